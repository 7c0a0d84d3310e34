"""Results in a file instead of stdout: confirm before a file is replaced, and write it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.text import printable
from kctl.errors import NotConfirmed, UsageError

if TYPE_CHECKING:
    from kctl.commands.terminal.invocation import Invocation


# Texts in the first bytes of the reports that kctl writes.
HTML_REPORT = (b"<!DOCTYPE html>", b"<title>kctl report</title>")
JUNIT_REPORT = (b"<?xml", b"<testsuites name=", b'<property name="status"')
_HEAD_BYTES = 4096


def ask_to_replace(
    inv: Invocation, out: Path | None, option: str = "--out", *, like: Sequence[bytes] | None = None
) -> None:
    """Ask, before any work is done, whether a file with content may be replaced.

    An empty file, a pipe or a device loses nothing, so there is no question. An earlier report of the same kind, which
    has all of `like` in its first bytes, is also replaced without a question, so that a scheduled job can run again.
    Raises UsageError for a path that cannot be written, and NotConfirmed.
    """
    from kctl.base.output_file import check_output_path

    if out is None:
        return
    if str(out) == "-":
        raise UsageError(
            f'{option} requires a file, not "-"', hint="for stdout, use -o json, or /dev/stdout as the file"
        )
    target = check_output_path(out)
    if not target.has_content or (like is not None and _has(target.path, like)):
        return
    link = "" if target.path == Path(os.path.abspath(out)) else f" (a link to {target.path})"  # noqa: PTH100
    try:
        inv.confirm(f"{out}{link} exists. Replace it?")
    except NotConfirmed as exc:
        raise NotConfirmed(exc.message, hint="use --yes to replace the file, or name another file") from None


def _has(path: Path, like: Sequence[bytes]) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(like[0]) and all(part in head for part in like)


def write_whole(out: Path, text: str) -> None:
    """Write text and a newline; on a terminal, control characters are escaped. Raises as open_output does."""
    from kctl.base.output_file import open_output
    from kctl.base.text import with_escapes

    with open_output(out) as stream:
        if stream.isatty():
            text = "\n".join(map(printable, text.split("\n")))
        stream.write(with_escapes(text).encode() + b"\n")
