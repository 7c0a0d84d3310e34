"""Results that go to a file instead of stdout."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import NotConfirmed, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.commands.invocation import Invocation


def check_out(out: Path) -> None:
    """Could a file be written there? Raises UsageError, before any work is done."""
    if str(out) == "-":
        raise UsageError("--out writes to a file, and «-» is none", hint="-o json writes to stdout")
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist")
    if out.is_dir():
        raise UsageError(f"{out} is a folder", hint="name a file in it")


def ask_to_replace(inv: Invocation, out: Path) -> None:
    """Could a file be written there, and may it, if there is one? Raises UsageError, NotConfirmed."""
    check_out(out)
    if out.exists():
        try:
            inv.confirm(f"{out} exists. Replace it?")
        except NotConfirmed as exc:
            raise NotConfirmed(exc.message, hint="--yes replaces it; or name another file") from None


def write_whole(out: Path, text: str) -> None:
    """Whole or not at all: a full disk leaves the old file as it was. Raises OperationFailed."""
    try:
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)
            Path(name).replace(out)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as exc:
        raise OperationFailed(f"cannot write {out}: {exc.strerror}") from exc
