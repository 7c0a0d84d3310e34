"""Track the transactions of a log batch by batch, like a broker.

Rules: ProducerStateManager and ProducerAppendInfo. A producer's transaction starts with its first transactional batch
and ends with the coordinator's marker, a control batch. Aborted transactions are written to the segment's .txnindex
with the last stable offset at that time: the first offset of the oldest open transaction, or the offset after the
marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kctl.segment.dump.query import MAX_MESSAGE_BYTES, all_records
from kctl.segment.format.batch import Batch
from kctl.segment.format.control import ABORT, COMMIT, control_type
from kctl.segment.format.indexes import AbortedTransaction
from kctl.segment.format.producer_snapshot import ProducerEntry
from kctl.segment.format.record import StoredRecord

MAX_OPEN = 100_000  # far more than any partition has; hostile input must not exhaust memory


@dataclass(slots=True)
class OpenTransaction:
    """A transaction without a marker. first_timestamp (ms): of its first batch.

    last_offset, last_timestamp: of its latest batch in this log. If the transaction comes from a producer snapshot,
    records, batches and size_bytes count only data after the snapshot, and it started at or before first_timestamp.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    last_timestamp: int
    first_timestamp: int
    records: int = 0
    batches: int = 0
    size_bytes: int = 0


class EndedTransaction(NamedTuple):
    """A transaction with its marker. marker_offset: of the control record; last_stable_offset: at that time."""

    producer_id: int
    producer_epoch: int
    aborted: bool
    first_offset: int
    marker_offset: int
    last_stable_offset: int

    def index_entry(self) -> AbortedTransaction:
        """Return the .txnindex entry for an aborted transaction."""
        return AbortedTransaction(0, self.producer_id, self.first_offset, self.marker_offset, self.last_stable_offset)


class TransactionTracker:
    """The open transactions of a log. open: by producer id, ordered by first offset.

    untracked: number of batches that were not tracked because too many transactions were open.
    """

    def __init__(self, producers: Iterable[ProducerEntry] = (), *, max_open: int = MAX_OPEN) -> None:
        """Start with the entries of the producer snapshot at the start of the log."""
        self._max_open, self.untracked = max_open, 0
        entries = [entry for entry in producers if entry.current_transaction_first_offset >= 0]
        entries.sort(key=lambda entry: entry.current_transaction_first_offset)
        self.open = {
            entry.producer_id: OpenTransaction(
                entry.producer_id, entry.producer_epoch, entry.current_transaction_first_offset, entry.last_offset,
                entry.timestamp, entry.timestamp,
            )
            for entry in entries
        }  # fmt: skip

    def add(self, batch: Batch, content: memoryview | None = None) -> EndedTransaction | None:
        """Add the next batch. content: the whole batch, required for control batches.

        Raises BadRecords, BadPayload for an unreadable control batch.
        """
        if batch.producer_id < 0:
            return None
        if batch.control:
            return None if content is None else self._marker(batch, content)
        if batch.transactional:
            self._data(batch)
        return None

    def _data(self, batch: Batch) -> None:
        transaction = self.open.get(batch.producer_id)
        if transaction is None:
            if len(self.open) >= self._max_open:
                self.untracked += 1
                return
            transaction = self.open[batch.producer_id] = OpenTransaction(
                batch.producer_id, batch.producer_epoch, batch.base_offset, batch.last_offset, batch.max_timestamp,
                batch.base_timestamp,
            )  # fmt: skip
        transaction.producer_epoch = batch.producer_epoch
        transaction.last_offset, transaction.last_timestamp = batch.last_offset, batch.max_timestamp
        transaction.records += max(batch.record_count, 0)
        transaction.batches += 1
        transaction.size_bytes += batch.size

    def _marker(self, batch: Batch, content: memoryview) -> EndedTransaction | None:
        marker = first_record(batch, content)
        kind = control_type(marker) if marker is not None else None
        if kind not in {ABORT, COMMIT}:
            return None
        started = self.open.pop(batch.producer_id, None)
        if started is None:  # an empty transaction, or one that started before the tracker
            return None
        offset = batch.last_offset
        oldest = next(iter(self.open.values()), None)
        stable = offset + 1 if oldest is None else oldest.first_offset
        return EndedTransaction(
            batch.producer_id, batch.producer_epoch, kind == ABORT, started.first_offset, offset, stable
        )


def first_record(batch: Batch, content: memoryview) -> StoredRecord | None:
    """Return the first record of a batch; None if it is empty. Raises BadRecords, BadPayload."""
    if batch.record_count == 0:
        return None  # all removed by compaction
    return next(iter(all_records(batch, content, limit=MAX_MESSAGE_BYTES)), None)
