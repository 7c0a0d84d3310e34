"""docs/tour.svg: a broker fails, kctl names it, and the cluster recovers.

`python tests/support/picture.py HOME` writes the picture. HOME has a running cluster `trio` with a topic `orders`.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).resolve().parents[2] / "docs" / "tour.svg"
_WIDTH = 100
_PROGRESS = "\u2501"  # a part of a progress bar, which a terminal erases
_EXPIRY_S = 8.0  # until ZooKeeper notices the dead broker
_LINES = (
    ("A broker dies.", "kctl cluster kill trio leader:orders-0 --yes"),
    ("What do the unhealthy partitions have in common?", "kctl cluster diagnose"),
    ("Start it again, and give it back its leaders.", "kctl cluster start trio"),
    ("", "kctl leader elect --preferred --yes"),
    ("Healthy?", "kctl cluster health"),
)


def _printed(line: str, home: str) -> str:
    """Return what a command prints on a terminal, with its colors."""
    master, slave = pty.openpty()
    environment = {**os.environ, "HOME": home, "COLUMNS": str(_WIDTH), "LINES": "50", "TERM": "xterm-256color"}
    process = subprocess.Popen(line.split(), stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    content = b""
    try:
        while data := os.read(master, 4096):
            content += data
    except OSError:  # the command has ended
        pass
    process.wait()
    os.close(master)
    lines = content.decode().replace("\r\n", "\n").replace(home, "~").split("\n")
    return "\n".join(line for line in lines if _PROGRESS not in line)


def main(home: str) -> None:
    console = Console(record=True, width=_WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    for comment, line in _LINES:
        if comment:
            console.print(Text(f"# {comment}", style="bright_black"))
        console.print(Text(f"$ {line}", style="bold"))
        console.print(Text.from_ansi(_printed(line, home).rstrip("\n")))
        console.print()
        if "kill" in line:
            time.sleep(_EXPIRY_S)
    TARGET.write_text(console.export_svg(title="kctl"))


if __name__ == "__main__":
    main(sys.argv[1])
