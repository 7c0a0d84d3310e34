"""The examples at the end of a command's docstring: a comment line, then the command line.

    # Show the lag of one group
    kctl lag billing

A blank line separates two examples. A command line that is too long for the source continues on the next line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
_CONTINUATION = " \\"


class Example(NamedTuple):
    comment: str  # begins with "# "
    command: str  # one line


def split_examples(docstring: str | None) -> tuple[str, list[Example]]:
    """Return the help of a command without its examples, and the examples."""
    paragraphs = inspect.cleandoc(docstring or "").split("\n\n")
    examples = [_example(text) for text in paragraphs if text.startswith("# ")]
    return "\n\n".join(text for text in paragraphs if not text.startswith("# ")), examples


def _example(paragraph: str) -> Example:
    comment, _, command = paragraph.partition("\n")
    return Example(comment, " ".join(command.split()))


def wrap_command(command: str, width: int) -> Iterator[str]:
    """Yield the lines of a command, which a shell reads as one. An option stays on a line with its value."""
    first, *rest = _parts(command)
    line = first
    for part in rest:
        if len(f"{line} {part}{_CONTINUATION}") > width:
            yield line + _CONTINUATION
            line = f"  {part}"
        else:
            line += f" {part}"
    yield line


def _parts(command: str) -> list[str]:
    """Split a command before each word that is not the value of an option."""
    parts: list[str] = []
    for word in _WORD.findall(command):
        if parts and parts[-1].startswith("-") and " " not in parts[-1]:
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts
