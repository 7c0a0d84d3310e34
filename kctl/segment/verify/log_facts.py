"""The inputs and results of a log check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.format.batch import NO_TIMESTAMP
from kctl.segment.verify.epochs import EpochCheck
from kctl.segment.verify.indexes import OffsetCursor, TimeCursor
from kctl.segment.verify.transactions import TransactionCheck

LOG_WINDOW_BYTES = 128 << 10  # fits the processor's cache, and usually holds more than one batch
MAX_RELATIVE_OFFSET = 2**31 - 1  # offsets in indexes are i32, relative to the base offset


@dataclass
class LogFacts:
    """The facts about a log. next_offset: after the last batch. records: as counted by the headers.

    damaged_at: the position of the first invalid bytes or batch. compacted: offsets are missing within the log.
    """

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
    """The files that are checked together with a log. None: missing, or not requested."""

    index: OffsetCursor | None = None
    times: TimeCursor | None = None
    transactions: TransactionCheck | None = None
    epochs: EpochCheck = field(default_factory=EpochCheck)


@dataclass(frozen=True)
class LogOptions:
    """The options of a log check. deep: check records. active: a broker appends to this segment.

    clean: the log dir was shut down cleanly. complete: the time index was closed. max_message_bytes: larger batches are
    not decoded. progress: called with the number of bytes checked since the last call.
    """

    deep: bool = False
    active: bool = True
    clean: bool = False
    complete: bool = False
    max_message_bytes: int = MAX_MESSAGE_BYTES
    progress: Callable[[int], None] | None = None
