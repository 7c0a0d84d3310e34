"""What the check of a log is given, and what it finds out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.format.batch import NO_TIMESTAMP
from kctl.segment.verify.epochs import EpochCheck
from kctl.segment.verify.indexes import OffsetCursor, TimeCursor
from kctl.segment.verify.transactions import TransactionCheck

LOG_WINDOW_BYTES = 128 << 10  # in the processor's cache, and mostly more than one batch
FARTHEST = 2**31 - 1  # offsets in indexes are i32, relative to the base offset


@dataclass
class LogFacts:
    """What was found out about a log. next_offset: behind its last batch. damaged_at: the position of the first bytes
    or batch that is not valid. compacted: offsets are missing in it. records: as the headers count them."""

    path: Path
    base_offset: int | None
    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    max_timestamp: int = NO_TIMESTAMP
    damaged_at: int | None = None
    compacted: bool = False

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1 if self.last_offset is not None else self.base_offset or 0


@dataclass
class Companions:
    """What is checked along with a log; None: not there, or not asked for."""

    index: OffsetCursor | None = None
    times: TimeCursor | None = None
    transactions: TransactionCheck | None = None
    epochs: EpochCheck = field(default_factory=EpochCheck)


@dataclass(frozen=True)
class LogOptions:
    """deep: records too. active: it is the segment that a broker appends to. clean: its log dir was shut down cleanly.
    complete: its time index was closed.

    max_message_bytes: larger batches are not decoded. progress: called with the bytes that were walked since.
    """

    deep: bool = False
    active: bool = True
    clean: bool = False
    complete: bool = False
    max_message_bytes: int = MAX_MESSAGE_BYTES
    progress: Callable[[int], None] | None = None
