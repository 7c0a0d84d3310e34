"""Transactions of a log, as a broker follows them batch by batch.

Rules: ProducerStateManager and ProducerAppendInfo. A producer's transaction begins with its first transactional batch
and ends with the coordinator's marker, a control batch. What was aborted goes into the segment's .txnindex, with the
last stable offset of that moment: the first offset of the oldest transaction that was still open, or the one behind
the marker.
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
from kctl.segment.format.record import Record

MAX_OPEN = 100_000  # far more than any broker has in one partition; what is hostile must not fill the memory


@dataclass(slots=True)
class OpenTransaction:
    """A transaction without a marker so far. first_timestamp (ms): of its first batch; last_offset, last_timestamp: of
    its latest batch in this log.

    Of one that a snapshot tells of, records, batches and size_bytes count what came after the snapshot, and
    first_timestamp is the snapshot's: it began then or before.
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
    """A transaction with its marker. marker_offset: of the control record; last_stable_offset: at that moment."""

    producer_id: int
    producer_epoch: int
    aborted: bool
    first_offset: int
    marker_offset: int
    last_stable_offset: int

    def index_entry(self) -> AbortedTransaction:
        """Its entry in .txnindex, when it was aborted."""
        return AbortedTransaction(0, self.producer_id, self.first_offset, self.marker_offset, self.last_stable_offset)


class TransactionTracker:
    """open: by producer id, oldest first (in the order of their first offsets).

    untracked: batches of transactions that were not followed, because too many were open.
    """

    def __init__(self, known: Iterable[ProducerEntry] = (), *, max_open: int = MAX_OPEN) -> None:
        """known: the entries of the producer snapshot at which the log begins."""
        self._max_open, self.untracked = max_open, 0
        begun = [entry for entry in known if entry.current_transaction_first_offset >= 0]
        begun.sort(key=lambda entry: entry.current_transaction_first_offset)
        self.open = {
            entry.producer_id: OpenTransaction(
                entry.producer_id, entry.producer_epoch, entry.current_transaction_first_offset, entry.last_offset,
                entry.timestamp, entry.timestamp,
            )
            for entry in begun
        }  # fmt: skip

    def add(self, batch: Batch, content: memoryview | None = None) -> EndedTransaction | None:
        """Follow a batch, in the log's order. content: the whole batch, needed for control batches.

        Raises BadRecords, BadPayload for a control batch that cannot be read.
        """
        if batch.producer_id < 0:
            return None
        if batch.control:
            return None if content is None else self._marker(batch, content)
        if batch.transactional:
            self._data(batch)
        return None

    def _data(self, batch: Batch) -> None:
        found = self.open.get(batch.producer_id)
        if found is None:
            if len(self.open) >= self._max_open:
                self.untracked += 1
                return
            found = self.open[batch.producer_id] = OpenTransaction(
                batch.producer_id, batch.producer_epoch, batch.base_offset, batch.last_offset, batch.max_timestamp,
                batch.base_timestamp,
            )  # fmt: skip
        found.producer_epoch = batch.producer_epoch
        found.last_offset, found.last_timestamp = batch.last_offset, batch.max_timestamp
        found.records += max(batch.record_count, 0)
        found.batches += 1
        found.size_bytes += batch.size

    def _marker(self, batch: Batch, content: memoryview) -> EndedTransaction | None:
        marker = first_record(batch, content)
        kind = control_type(marker) if marker is not None else None
        if kind not in {ABORT, COMMIT}:
            return None
        begun = self.open.pop(batch.producer_id, None)
        if begun is None:  # an empty transaction, or one that began before what is known
            return None
        offset = batch.last_offset
        oldest = next(iter(self.open.values()), None)
        stable = offset + 1 if oldest is None else oldest.first_offset
        return EndedTransaction(
            batch.producer_id, batch.producer_epoch, kind == ABORT, begun.first_offset, offset, stable
        )


def first_record(batch: Batch, content: memoryview) -> Record | None:
    """The first record of a batch; None when it has none. Raises BadRecords, BadPayload."""
    if batch.record_count == 0:
        return None  # compaction emptied it
    return next(iter(all_records(batch, content, limit=MAX_MESSAGE_BYTES)), None)
