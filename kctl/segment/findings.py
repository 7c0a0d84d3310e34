"""What can be wrong with log files, and what it means for the broker that opens them.

What a broker does at start: after an unclean shutdown it reads every segment behind the recovery point, cuts the log
at the first batch that is not valid, and builds its indexes anew (UnifiedLog, LogLoader). After a clean one it only
checks that indexes are there and sane. A damaged batch that it did not look at fails reads of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Severity(str, Enum):
    """How bad it is: worth knowing, repaired by the broker itself, or data are lost or cannot be read."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Effect(str, Enum):
    """What it means for the broker."""

    NONE = "nothing"
    RECOVERS = "recovers by itself"
    REBUILDS = "rebuilds the index at start"
    WRONG_READS = "finds wrong positions until the index is rebuilt"
    LOSES = "loses data from here at an unclean start; reads of it fail before"
    UNREADABLE = "cannot read these records"
    REFUSES = "does not start with it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found. position: in the file, None when it is about all of it; offset: where one is known."""

    code: str
    severity: Severity
    file: str
    position: int | None
    offset: int | None
    message: str
    effect: Effect


# code → severity and effect
_KINDS: dict[str, tuple[Severity, Effect]] = {
    "batch_crc": (Severity.ERROR, Effect.LOSES),
    "batch_size": (Severity.ERROR, Effect.LOSES),
    "batch_magic": (Severity.ERROR, Effect.LOSES),
    "batch_count": (Severity.ERROR, Effect.UNREADABLE),
    "batch_codec": (Severity.ERROR, Effect.UNREADABLE),
    "batch_incomplete": (Severity.WARNING, Effect.RECOVERS),
    "zero_tail": (Severity.WARNING, Effect.RECOVERS),
    "garbage": (Severity.ERROR, Effect.LOSES),
    "offset_order": (Severity.ERROR, Effect.LOSES),
    "offset_outside": (Severity.ERROR, Effect.LOSES),
    "offset_too_far": (Severity.ERROR, Effect.REFUSES),
    "records": (Severity.ERROR, Effect.UNREADABLE),
    "record_offsets": (Severity.ERROR, Effect.UNREADABLE),
    "max_timestamp": (Severity.WARNING, Effect.NONE),
    "index_missing": (Severity.WARNING, Effect.REBUILDS),
    "index_length": (Severity.WARNING, Effect.REBUILDS),
    "index_order": (Severity.ERROR, Effect.WRONG_READS),
    "index_position": (Severity.ERROR, Effect.WRONG_READS),
    "index_offset": (Severity.ERROR, Effect.WRONG_READS),
    "index_tail": (Severity.INFO, Effect.RECOVERS),
    "timeindex_missing": (Severity.WARNING, Effect.REBUILDS),
    "timeindex_length": (Severity.WARNING, Effect.REBUILDS),
    "timeindex_order": (Severity.ERROR, Effect.WRONG_READS),
    "timeindex_timestamp": (Severity.ERROR, Effect.WRONG_READS),
    "timeindex_offset": (Severity.ERROR, Effect.WRONG_READS),
    "txnindex_length": (Severity.ERROR, Effect.REFUSES),
    "txnindex_order": (Severity.ERROR, Effect.REFUSES),
    "txnindex_extra": (Severity.ERROR, Effect.WRONG_READS),
    "txnindex_lacks": (Severity.ERROR, Effect.WRONG_READS),
    "snapshot": (Severity.WARNING, Effect.RECOVERS),
    "snapshot_offset": (Severity.INFO, Effect.RECOVERS),
    "segment_gap": (Severity.INFO, Effect.NONE),
    "segment_overlap": (Severity.ERROR, Effect.LOSES),
    "segment_name": (Severity.ERROR, Effect.REFUSES),
    "leftover": (Severity.INFO, Effect.RECOVERS),
    "log_missing": (Severity.WARNING, Effect.RECOVERS),
    "epoch_order": (Severity.ERROR, Effect.RECOVERS),
    "epoch_batch": (Severity.WARNING, Effect.NONE),
    "checkpoint": (Severity.ERROR, Effect.REFUSES),
    "checkpoint_beyond": (Severity.WARNING, Effect.RECOVERS),
    "checkpoint_folder": (Severity.INFO, Effect.RECOVERS),
    "meta_properties": (Severity.ERROR, Effect.REFUSES),
    "unreadable": (Severity.ERROR, Effect.REFUSES),
}
CODES = tuple(_KINDS)


def finding(code: str, file: Path, message: str, *, position: int | None = None, offset: int | None = None) -> Finding:
    """A finding of a known kind."""
    severity, effect = _KINDS[code]
    return Finding(code, severity, str(file), position, offset, message, effect)
