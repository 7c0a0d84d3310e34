"""The shell blocks of a Markdown file, to run as they are."""

from __future__ import annotations

import re
from pathlib import Path

_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash", "shell"}  # console blocks also have output: transcripts.py


def shell_blocks(document: Path) -> list[str]:
    """Return the text of each ```sh block, in order."""
    return [body for language, body in _BLOCK.findall(document.read_text()) if language in SHELL]


def script(document: Path) -> str:
    """Return all blocks as one bash script that stops at the first failure and prints the block's number."""
    lines = ["set -euo pipefail"]
    for number, block in enumerate(shell_blocks(document), 1):
        lines += [f"echo '--- {document.name}, block {number}' >&2", block]
    return "\n".join(lines)
