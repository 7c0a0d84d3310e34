"""The state of a verification: options, counts, findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.log.source import read_whole
from kctl.segment.verify.findings import FileProblems

SMALL_FILE_BYTES = 4 << 20  # checkpoints and the like: 60,000 lines
SNAPSHOT_BYTES = 8 << 20  # 180,000 producers


@dataclass(frozen=True)
class VerifyOptions:
    """The options of a verification. deep: decode every record. max_findings: listed per file and code.

    max_message_bytes: larger batches are not decoded. progress: called with the current file ("" if unchanged) and the
    number of log bytes checked since the last call.
    """

    deep: bool = False
    max_findings: int = 20
    max_message_bytes: int = MAX_MESSAGE_BYTES
    progress: Callable[[str, int], None] | None = None


@dataclass(slots=True)
class CheckedCounts:
    """Counts of checked items. records: as counted by the batch headers; size_bytes: of logs."""

    log_dir_count: int = 0
    partition_count: int = 0
    segments: int = 0
    files: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0


@dataclass
class Verification:
    """A running verification."""

    options: VerifyOptions
    findings: FileProblems
    checked: CheckedCounts = field(default_factory=CheckedCounts)
    denied: int = 0  # files and folders that this user may not read

    def small_file(self, path: Path, limit: int = SMALL_FILE_BYTES) -> bytes | None:
        """Return the content of a small file; None if unreadable, which is reported."""
        self.checked.files += 1
        try:
            if path.stat().st_size > limit:
                text = f"not checked: {path.stat().st_size} bytes exceed the limit of {limit}"
                self.findings.add("too_large", path, text)
                return None
            return read_whole(path, most_bytes=limit)
        except (KctlError, OSError) as exc:
            self.unreadable(path, exc)
            return None

    def unreadable(self, path: Path, exc: Exception) -> None:
        """Report a file that cannot be opened or read, or that was removed."""
        if isinstance(exc, (NotFound, FileNotFoundError)):
            self.findings.add("vanished", path, "removed during the check, or a broken symbolic link")
            return
        text = exc.message if isinstance(exc, KctlError) else str(exc)
        if isinstance(exc, (NotAuthorized, PermissionError)):
            self.denied += 1
            text = "cannot be read: permission denied; run kctl as the broker's user"
        self.findings.add("unreadable", path, text)


def some(names: Sequence[str], limit: int = 3) -> str:
    """Return the first names, and the number of the rest."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"
