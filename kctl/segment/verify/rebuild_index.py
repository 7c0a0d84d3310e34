"""Rebuild the indexes of a log like a broker: LogSegment.recover of 3.9, without truncating the log.

A batch gets a .index entry if it starts more than index.interval.bytes after the batch of the previous entry. With each
entry, and at the end, the largest timestamp so far is added to .timeindex if it is new. .txnindex gets the transactions
whose ABORT marker is in the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.format.batch import NO_TIMESTAMP, Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.indexes import (
    OFFSET_ENTRY_SIZE,
    OFFSET_LAYOUT,
    TIME_ENTRY_SIZE,
    TIME_LAYOUT,
    TXN_ENTRY_SIZE,
    TXN_LAYOUT,
)
from kctl.segment.format.record import BadRecords
from kctl.segment.log.source import Source
from kctl.segment.log.transactions import MAX_OPEN, EndedTransaction, TransactionTracker
from kctl.segment.log.walk import Damage, batch_at, content_of, is_preallocated, is_valid
from kctl.segment.verify.log_facts import LOG_WINDOW_BYTES, MAX_RELATIVE_OFFSET

INDEX_INTERVAL_BYTES = 4096  # index.interval.bytes
MAX_INDEX_BYTES = 10 << 20  # segment.index.bytes


@dataclass(frozen=True, slots=True)
class RebuiltIndexes:
    """The content of the rebuilt files. stopped: why a broker would not read the log to its end; None: it would."""

    index: bytes
    timeindex: bytes
    txnindex: bytes
    stopped: str | None

    def content(self, suffix: str) -> bytes:
        """Return the content of the file with this suffix."""
        return {".index": self.index, ".timeindex": self.timeindex, ".txnindex": self.txnindex}[suffix]


ENTRY_SIZE = {".index": OFFSET_ENTRY_SIZE, ".timeindex": TIME_ENTRY_SIZE, ".txnindex": TXN_ENTRY_SIZE}


class _RecoveryStop(Exception):
    """A broker would stop reading here."""


def rebuild(log: Path, base_offset: int, tracker: TransactionTracker, *, interval_bytes: int) -> RebuiltIndexes:
    """Rebuild the indexes of a log.

    tracker: the transactions that are open at its start. Raises the errors of Source.
    """
    with Source(log, window_bytes=LOG_WINDOW_BYTES) as source:
        builder = _IndexBuilder(source, base_offset, tracker, interval_bytes)
        stopped = None
        try:
            builder.run()
        except _RecoveryStop as exc:
            stopped = str(exc)
        builder.close()
        return RebuiltIndexes(bytes(builder.index), bytes(builder.times), bytes(builder.transactions), stopped)


class _IndexBuilder:
    def __init__(self, source: Source, base_offset: int, tracker: TransactionTracker, interval_bytes: int) -> None:
        self._source, self._base, self._tracker, self._interval = source, base_offset, tracker, interval_bytes
        self.index, self.times, self.transactions = bytearray(), bytearray(), bytearray()
        self._indexed, self._last_offset = 0, -1
        self._latest, self._latest_offset = NO_TIMESTAMP, base_offset
        self._last_time = (NO_TIMESTAMP, base_offset)

    def run(self) -> None:
        position = 0
        while (batch := batch_at(self._source, position, self._source.size)) is not None:
            if isinstance(batch, Damage):
                if is_preallocated(self._source, batch):
                    return
                raise _RecoveryStop(f"the log is damaged at {position}: {batch.message}")
            if not is_valid(self._source, batch):
                raise _RecoveryStop(f"the log is damaged at {position}: the CRC does not match")
            self._add(batch)
            position = batch.next_position

    def _add(self, batch: Batch) -> None:
        last = batch.last_offset
        if not 0 <= last - self._base <= MAX_RELATIVE_OFFSET:
            raise _RecoveryStop(
                f"offset {last} at {batch.position} does not fit into a segment with base offset {self._base}"
            )
        if batch.max_timestamp > self._latest:
            self._latest, self._latest_offset = batch.max_timestamp, last
        if batch.position - self._indexed > self._interval:
            if self.index and last <= self._last_offset:
                raise _RecoveryStop(f"offset {last} at {batch.position} follows offset {self._last_offset}")
            if len(self.index) + OFFSET_ENTRY_SIZE > MAX_INDEX_BYTES:
                raise _RecoveryStop(f"the index is full at {batch.position}: {MAX_INDEX_BYTES} bytes")
            self.index += OFFSET_LAYOUT.pack(last - self._base, batch.position)
            self._last_offset, self._indexed = last, batch.position
            self._add_time()
        if batch.producer_id >= 0:
            self._follow(batch)

    def _add_time(self) -> None:
        if self.times and self._latest_offset < self._last_time[1]:
            raise _RecoveryStop(f"the offset {self._latest_offset} of the latest record is below {self._last_time[1]}")
        if self._latest > self._last_time[0]:
            self.times += TIME_LAYOUT.pack(self._latest, self._latest_offset - self._base)
            self._last_time = (self._latest, self._latest_offset)

    def _follow(self, batch: Batch) -> None:
        if self._tracker.untracked:
            raise _RecoveryStop(f"more than {MAX_OPEN} transactions are open at {batch.position}")
        ended = follow(self._source, self._tracker, batch)
        if ended is not None and ended.aborted:
            self.transactions += TXN_LAYOUT.pack(*ended.index_entry())

    def close(self) -> None:
        """Add the last entry of .timeindex."""
        if not (self.times and self._latest_offset < self._last_time[1]):
            self._add_time()


def follow(source: Source, tracker: TransactionTracker, batch: Batch) -> EndedTransaction | None:
    """Add a batch of a producer to the tracker. Raises _RecoveryStop at an unreadable marker."""
    try:
        content = content_of(source, batch, MAX_MESSAGE_BYTES) if batch.control else None
        return tracker.add(batch, content)
    except (BadRecords, BadPayload) as exc:
        raise _RecoveryStop(f"the marker at {batch.position} cannot be read: {exc}") from None


def follow_log(log: Path, tracker: TransactionTracker, *, first: int) -> str | None:
    """Track the transactions of a log from offset `first` on. Return why that is not possible; None on success."""
    with Source(log, window_bytes=LOG_WINDOW_BYTES) as source:
        position = 0
        while (batch := batch_at(source, position, source.size)) is not None:
            if isinstance(batch, Damage) or not is_valid(source, batch):
                return f"{log.name} is damaged at {position}"
            if batch.producer_id >= 0 and batch.last_offset >= first:
                try:
                    follow(source, tracker, batch)
                except _RecoveryStop as exc:
                    return f"{log.name}: {exc}"
                if tracker.untracked:
                    return f"{log.name}: more than {MAX_OPEN} transactions are open"
            position = batch.next_position
    return None
