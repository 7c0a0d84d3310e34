"""What a verification carries with it: what is asked for, what was checked so far, what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.log.source import read_whole
from kctl.segment.verify.findings import Findings

SMALL_FILE_BYTES = 4 << 20  # checkpoints and the like: 60,000 lines
SNAPSHOT_BYTES = 8 << 20  # 180,000 producers


@dataclass(frozen=True)
class VerifyOptions:
    """deep: decode every record. max_findings: listed of each file and code. max_message_bytes: the largest batch that
    is decoded. progress: called with what is looked at and with bytes of logs that were walked since."""

    deep: bool = False
    max_findings: int = 20
    max_message_bytes: int = MAX_MESSAGE_BYTES
    progress: Callable[[str, int], None] | None = None


@dataclass(slots=True)
class Checked:
    """How much was looked at. records: as the batches count them; size_bytes: of logs."""

    log_dir_count: int = 0
    partition_count: int = 0
    segments: int = 0
    files: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0


@dataclass
class Verification:
    """One run."""

    options: VerifyOptions
    findings: Findings
    checked: Checked = field(default_factory=Checked)
    denied: int = 0  # files and folders that this user may not read

    def small_file(self, path: Path, limit: int = SMALL_FILE_BYTES) -> bytes | None:
        """The content of a file that is read at once; None when it cannot be, which is reported."""
        self.checked.files += 1
        try:
            if path.stat().st_size > limit:
                text = f"{path.stat().st_size} bytes are more than the {limit} that are looked at"
                self.findings.add("too_large", path, text)
                return None
            return read_whole(path, most_bytes=limit)
        except (KctlError, OSError) as exc:
            self.unreadable(path, exc)
            return None

    def unreadable(self, path: Path, exc: Exception) -> None:
        """A file that cannot be opened or read, or that is not there any more."""
        if isinstance(exc, (NotFound, FileNotFoundError)):
            self.findings.add("vanished", path, "it was removed while it was looked at, or is a link to nowhere")
            return
        text = exc.message if isinstance(exc, KctlError) else str(exc)
        if isinstance(exc, (NotAuthorized, PermissionError)):
            self.denied += 1
            text = "cannot be read: permission denied; run kctl as the broker's user"
        self.findings.add("unreadable", path, text)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
