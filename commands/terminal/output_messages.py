"""What a person is told beside the results: notes, warnings and errors, on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from kctl.base.text import printable
from kctl.commands.terminal.output_values import json_text, jsonable
from kctl.errors import KctlError

_INLINE, _PROBLEMS = 3, 20  # of several problems: in an error's message, and as lines of their own


def discard(stream: TextIO) -> None:
    """Nobody reads it any more: what is left in it, and what comes, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(text: str) -> None:
    """A line for the person, on stderr, behind the results so far."""
    sys.stdout.flush()
    try:
        sys.stderr.write(wrapped(text, sys.stderr) + "\n")
    except BrokenPipeError:
        discard(sys.stderr)


def warn(text: str) -> None:
    """A line that should not be overlooked, on stderr, behind the results so far."""
    note(f"warning: {text}")


def error(exc: KctlError, output: str | None) -> None:
    """The error as one line and a hint, or as JSON, on stderr; several problems have a line each."""
    if output == "json":
        body = {
            "code": exc.code,
            "exit_code": int(exc.exit_code),
            "message": exc.message,
            "hint": exc.hint or None,
        }
        text = json.dumps({**body, **jsonable(exc.details)}, ensure_ascii=False)
        sys.stderr.write(json_text(text, sys.stderr) + "\n")
        return
    message, problems = _apart(exc)
    sys.stderr.write(wrapped(f"{exc.label}{message}", sys.stderr) + "\n")
    for line in problems:
        sys.stderr.write(wrapped(line, sys.stderr, indent="  - ") + "\n")
    for line in (exc.hint or "").splitlines():
        sys.stderr.write(wrapped(line, sys.stderr, indent="  ") + "\n")


def _apart(exc: KctlError) -> tuple[str, list[str]]:
    """The message, and the problems of details["problems"] when there are several and the message has them in it."""
    rows = exc.details.get("problems")
    lines = [_problem(row) for row in rows] if isinstance(rows, list) else []
    inline = ": " + "; ".join(lines[:_INLINE])
    if len(lines) > _INLINE:
        inline += f"; and {len(lines) - _INLINE:,} more"
    if len(lines) < 2 or inline not in exc.message:
        return exc.message, []
    more = [f"and {len(lines) - _PROBLEMS:,} more; -o json has all"] if len(lines) > _PROBLEMS else []
    return exc.message.replace(inline, "", 1), lines[:_PROBLEMS] + more


def _problem(row: object) -> str:
    return f"{row.get('subject')}: {row.get('reason')}" if isinstance(row, Mapping) else str(row)


def wrapped(text: str, stream: TextIO, indent: str = "") -> str:
    """One line, escaped; on a terminal broken between words, so that it does not cut them."""
    line = indent + printable(text)
    if not stream.isatty():
        return line
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        line, max(width, 20), subsequent_indent=" " * len(indent), break_long_words=False, break_on_hyphens=False
    )
