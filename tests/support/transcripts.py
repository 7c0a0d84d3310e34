"""Transcripts in Markdown: ```console blocks with a command after `$ ` and its output below it.

`python tests/support/transcripts.py docs/segments.md …` runs the commands and writes their current output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import incident_files

# A command with its continuation lines.
_COMMAND = re.compile(r"^\$ (.*(?:(?<=\\)\n.*)*)\n", re.MULTILINE)
_MARK = "\x1e"
# Parts that differ from run to run, with a constant length.
_CHANGING = [(re.compile(r"\.old-\d{8}T\d{6}Z"), ".old-20261121T090000Z")]


def _block(kind: str) -> re.Pattern[str]:
    return re.compile(rf"^```{kind}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, kind: str = "console") -> list[str]:
    """Return the contents of the blocks, in order."""
    return _block(kind).findall(text)


def commands(block: str) -> list[str]:
    """Return the commands of a block."""
    return _COMMAND.findall(block)


def run(text: str, folder: Path, environment: Mapping[str, str], kind: str = "console", timeout_s: float = 60) -> str:
    """Return the Markdown with the output of its commands in `folder`, from one shell that continues after failures.

    stdout and stderr are mixed as on a terminal. Raises TimeoutExpired.
    """
    script = "".join(
        f"{command}\n_code=$?; printf '{_MARK}'; (exit $_code)\n"
        for each in blocks(text, kind)
        for command in commands(each)
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder, env={**environment, "COLUMNS": "80", "TZ": "UTC", "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    printed = iter(done.stdout.split(_MARK))
    return _block(kind).sub(lambda match: f"```{kind}\n{''.join(_rerun(match[1], printed))}```", text)


def _rerun(block: str, printed: Iterator[str]) -> Iterator[str]:
    for command in commands(block):
        output = next(printed, "the shell has ended before this\n")
        for pattern, replacement in _CHANGING:
            output = pattern.sub(replacement, output)
        yield f"$ {command}\n{output}{'' if output.endswith(chr(10)) or not output else chr(10)}"


def main() -> None:
    """Regenerate the documents of the command line."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in sys.argv[1:]:
        document = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            incident_files.make(Path(folder))
            document.write_text(run(document.read_text(), Path(folder), {**os.environ, "PATH": path, "HOME": folder}))


if __name__ == "__main__":
    main()
