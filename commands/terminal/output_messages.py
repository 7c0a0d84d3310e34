"""Messages besides the results: notes, warnings and errors, on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from kctl.base.text import printable
from kctl.commands.terminal.output_values import json_text, jsonable
from kctl.errors import KctlError

_INLINE, _PROBLEMS = 3, 20  # problems in an error's message, and as separate lines


def discard(stream: TextIO) -> None:
    """Redirect a stream without a reader to /dev/null."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(text: str) -> None:
    """Write a note to stderr, after the results so far."""
    sys.stdout.flush()
    try:
        sys.stderr.write(wrapped(text, sys.stderr) + "\n")
    except BrokenPipeError:
        discard(sys.stderr)


def warn(text: str) -> None:
    """Write a warning to stderr, after the results so far."""
    note(f"warning: {text}")


def error(exc: KctlError, output: str | None) -> None:
    """Write an error to stderr: one line, a line for each of several problems, and a hint; or JSON."""
    if output == "json":
        body = {
            "code": exc.code,
            "reason": exc.reason,
            "exit_code": int(exc.exit_code),
            "message": exc.message,
            "hint": exc.hint or None,
        }
        text = json.dumps({**body, **jsonable(exc.details)}, ensure_ascii=False)
        sys.stderr.write(json_text(text, sys.stderr) + "\n")
        return
    message, problems = _split_problems(exc)
    sys.stderr.write(wrapped(f"{exc.label}{message}", sys.stderr) + "\n")
    for line in problems:
        sys.stderr.write(wrapped(line, sys.stderr, indent="  - ") + "\n")
    for line in (exc.hint or "").splitlines():
        sys.stderr.write(wrapped(line, sys.stderr, indent="  ") + "\n")


def _split_problems(exc: KctlError) -> tuple[str, list[str]]:
    """Return the message, and several problems of details["problems"] if the message contains them."""
    rows = exc.details.get("problems")
    lines = [_problem(row) for row in rows] if isinstance(rows, list) else []
    inline = ": " + "; ".join(lines[:_INLINE])
    if len(lines) > _INLINE:
        inline += f"; and {len(lines) - _INLINE:,} more"
    if len(lines) < 2 or inline not in exc.message:
        return exc.message, []
    more = [f"and {len(lines) - _PROBLEMS:,} more; use -o json to see all"] if len(lines) > _PROBLEMS else []
    return exc.message.replace(inline, "", 1), lines[:_PROBLEMS] + more


def _problem(row: object) -> str:
    return f"{row.get('subject')}: {row.get('reason')}" if isinstance(row, Mapping) else str(row)


def wrapped(text: str, stream: TextIO, indent: str = "") -> str:
    """Return one line, escaped; on a terminal, wrapped between words."""
    line = indent + printable(text)
    if not stream.isatty():
        return line
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        line, max(width, 20), subsequent_indent=" " * len(indent), break_long_words=False, break_on_hyphens=False
    )
