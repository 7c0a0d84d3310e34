"""Transcripts in Markdown: ```console blocks, where a command stands behind «$ » and what it printed below it.

`python tests/support/transcripts.py docs/segments.md …` runs the commands and writes what they print now.
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

# A command, with the lines that it goes on in.
_COMMAND = re.compile(r"^\$ (.*(?:(?<=\\)\n.*)*)\n", re.MULTILINE)
_MARK = "\x1e"
# What differs from run to run, without a change of its length.
_CHANGING = [(re.compile(r"\.old-\d{8}T\d{6}Z"), ".old-20261121T090000Z")]


def _block(kind: str) -> re.Pattern[str]:
    return re.compile(rf"^```{kind}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, kind: str = "console") -> list[str]:
    """What stands in the blocks, in order."""
    return _block(kind).findall(text)


def commands(block: str) -> list[str]:
    """The commands of a block."""
    return _COMMAND.findall(block)


def run(text: str, folder: Path, environment: Mapping[str, str], kind: str = "console", timeout_s: float = 60) -> str:
    """The Markdown with what its commands print in `folder`: one shell for all, which goes on behind failures.

    stdout and stderr come as they would on a terminal. Raises TimeoutExpired.
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
    """Write the documents anew that the command line names."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in sys.argv[1:]:
        document = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            incident_files.make(Path(folder))
            document.write_text(run(document.read_text(), Path(folder), {**os.environ, "PATH": path, "HOME": folder}))


if __name__ == "__main__":
    main()
