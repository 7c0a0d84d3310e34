"""An SVG of a real run: `python tests/support/picture.py TARGET.svg TITLE COLUMNS -- kctl …` (several by `--`)."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

PROGRESS = "\u2501"  # a part of a progress bar, which a terminal erases


def run_in_terminal(argv: list[str], columns: int) -> str:
    """Return everything that the command writes to a terminal of that width, escape sequences included."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "60", "TERM": "xterm-256color"}
    with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=environment):
        os.close(slave)
        chunks = []
        while True:
            try:
                chunk = os.read(master, 1 << 16)
            except OSError:  # the other end is closed: Linux returns EIO
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(master)
    return b"".join(chunks).decode(errors="replace").replace("\r\n", "\n")


def draw(commands: list[list[str]], title: str, columns: int, pauses_s: Mapping[int, float] | None = None) -> str:
    """Return the commands and their output as SVG; `pauses_s` has the wait after a command, by its index."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    for index, argv in enumerate(commands):
        console.print(Text(f"$ {shlex.join(argv)}", style="bold green"))
        lines = run_in_terminal(argv, columns).split("\n")
        console.print(Text.from_ansi("\n".join(line for line in lines if PROGRESS not in line)))
        time.sleep((pauses_s or {}).get(index, 0))
    # Without rich's web font: a picture must not load anything.
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=title), flags=re.DOTALL)


def main() -> None:
    """Run the commands of the command line and write the picture."""
    target, title, columns, _, *rest = sys.argv[1:]
    commands: list[list[str]] = [[]]
    for word in rest:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    Path(target).write_text(draw(commands, title, int(columns)))


if __name__ == "__main__":
    main()
