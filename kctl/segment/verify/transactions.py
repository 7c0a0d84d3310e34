"""Check .txnindex against the markers in the log, and track transactions across the segments of a partition.

The expected entries of a segment are known if the transactions open at its start are known: the log was read from
offset 0, or there is a producer snapshot at its base offset. Otherwise, entries for transactions that started earlier
are not checked. Compaction removes records of aborted transactions, and their markers later: in a compacted log, a
transaction may have started earlier than its first remaining record, and an entry may have lost its records.

The last stable offset of an entry is the first offset of the oldest transaction open after the marker, or the offset
after the marker. If a follower fetched the marker together with later batches, it already counts transactions that
start in them (UnifiedLog.append, ProducerStateManager.lastStableOffset): then it is any offset after the marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kctl.segment.format.batch import V2_HEADER, Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.control import ABORT, NAMES, control_type
from kctl.segment.format.index_entries import extent, transaction_entries
from kctl.segment.format.indexes import TXN_ENTRY_SIZE, AbortedTransaction
from kctl.segment.format.producer_snapshot import ProducerEntry
from kctl.segment.format.record import BadRecords
from kctl.segment.log.source import Source
from kctl.segment.log.transactions import MAX_OPEN, EndedTransaction, TransactionTracker, first_record
from kctl.segment.verify.findings import FileProblems

_MAX_SORTED = 50_000


class LogTransactions:
    """The transactions of a log, segment by segment.

    known: all open transactions are known; compacted: offsets are missing so far; lost: too many were open to track.
    """

    def __init__(self) -> None:
        self.tracker = TransactionTracker()
        self.known = False
        self.compacted = False
        self.lost = False

    def begin(self, entries: Iterable[ProducerEntry] | None) -> None:
        """Start where all producers are known: with the entries of a snapshot, or with none at offset 0."""
        self.tracker = TransactionTracker(entries or ())
        self.known, self.lost = True, False

    def forget(self) -> None:
        """Forget the open transactions, because bytes of the log are unreadable."""
        self.tracker = TransactionTracker()
        self.known = False

    def open_transactions(self) -> dict[int, int]:
        """Return the first offset of each open transaction, by producer id."""
        return {each.producer_id: each.first_offset for each in self.tracker.open.values()}

    def add(self, batch: Batch, content: memoryview) -> EndedTransaction | None:
        """Add a batch of a producer. Raises BadRecords, BadPayload for an unreadable marker."""
        if self.lost:
            return None
        if len(self.tracker.open) >= MAX_OPEN:
            self.lost = True
            self.forget()
            return None
        return self.tracker.add(batch, content)


class TransactionCheck:
    """The comparison of a segment's .txnindex with its log. path: of the index, which may not exist."""

    def __init__(
        self, path: Path, base_offset: int, findings: FileProblems, transactions: LogTransactions, *, exists: bool
    ) -> None:
        """Open the file and check its format. Raises the errors of Source."""
        self.path, self.base_offset, self.transactions = path, base_offset, transactions
        self._findings = findings
        self._source = Source(path, window_bytes=1 << 16) if exists else None
        self._entries = self._read()
        self._next = next(self._entries, None)

    def _read(self) -> Iterator[AbortedTransaction]:
        source = self._source
        if source is None:
            return iter(())
        size = extent(source, TXN_ENTRY_SIZE)
        count = source.size // TXN_ENTRY_SIZE  # zeros count: this file is never preallocated
        if size.odd_bytes:
            text = f"{size.odd_bytes} extra bytes after the last whole entry"
            self._report("txnindex_length", text, position=source.size - size.odd_bytes)
        log_size = self.path.with_suffix(".log").stat().st_size
        if count > log_size // V2_HEADER + 1:
            text = f"{count} entries are more than the markers that fit into a log of {log_size} bytes"
            self._report("txnindex_extra", text)
            return iter(())
        ordered, before = True, -1
        for number, entry in enumerate(transaction_entries(source, count)):
            ordered = self._check_form(entry, before, number * TXN_ENTRY_SIZE) and ordered
            before = entry.last_offset
        if ordered:
            return transaction_entries(source, count)
        return iter(sorted(transaction_entries(source, min(count, _MAX_SORTED)), key=lambda entry: entry.last_offset))

    def _check_form(self, entry: AbortedTransaction, before: int, position: int) -> bool:
        """Return True if the entry is in order. Reports problems."""
        if entry.version_read > 0:
            self._report("txnindex_version", f"unknown version {entry.version_read}", position=position)
        elif entry.version:
            text = f"version {entry.version}; a broker reads only the first byte, {entry.version_read}"
            self._report("txnindex_version_byte", text, position=position)
        if entry.last_offset < self.base_offset:
            text = f"the transaction ends at offset {entry.last_offset}, before the segment"
            self._report("txnindex_before_base", text, position=position, offset=entry.last_offset)
        if entry.last_offset <= before:
            self._report("txnindex_order", f"the entry for end offset {entry.last_offset} follows that for {before}",
                         position=position, offset=entry.last_offset)  # fmt: skip
        return entry.last_offset > before

    def _report(self, code: str, text: str, *, position: int | None = None, offset: int | None = None) -> None:
        self._findings.add(code, self.path, text, position=position, offset=offset)

    def pass_batch(self, log: Path, batch: Batch, content: memoryview) -> None:
        """Check a valid batch that has a producer id."""
        state = self.transactions
        if not batch.control:
            if not batch.transactional and batch.producer_id in state.tracker.open and state.known:
                text = f"producer {batch.producer_id} wrote outside its open transaction"
                self._findings.add("transaction_state", log, text, position=batch.position, offset=batch.base_offset)
            self._follow(log, batch, content)
            return
        started = state.tracker.open.get(batch.producer_id)
        try:
            marker = first_record(batch, content)
            kind = None if marker is None else control_type(marker)
            ended = state.add(batch, content)
        except (BadRecords, BadPayload) as exc:
            self._findings.add("control_record", log, str(exc), position=batch.position, offset=batch.base_offset)
            return
        if kind is not None and kind not in {0, 1}:
            text = f"control record {NAMES.get(kind, f'type {kind}')} has a producer id but is not a transaction marker"
            self._findings.add("control_record", log, text, position=batch.position, offset=batch.base_offset)
        emptied = started is not None and started.records == 0  # by compaction
        self._compare(batch, kind, ended, emptied=emptied)

    def _follow(self, log: Path, batch: Batch, content: memoryview) -> None:
        was_lost = self.transactions.lost
        self.transactions.add(batch, content)
        if self.transactions.lost and not was_lost:
            text = f"more than {MAX_OPEN} transactions are open: .txnindex is not checked from here on"
            self._findings.add(
                "transactions_not_followed", log, text, position=batch.position, offset=batch.base_offset
            )

    def _compare(self, batch: Batch, kind: int | None, ended: EndedTransaction | None, *, emptied: bool) -> None:
        """Compare a marker with the next entry. ended: the transaction that it ended."""
        offset = batch.last_offset
        while self._next is not None and self._next.last_offset < offset:
            self._extra(self._next)
            self._next = next(self._entries, None)
        entry = self._next
        if entry is None or entry.last_offset > offset:
            if ended is not None and ended.aborted and not (emptied and self.transactions.compacted):
                location = f"of producer {ended.producer_id} from offset {ended.first_offset} to {offset}"
                text = f"the aborted transaction {location} has no entry"
                self._report("txnindex_lacks", text, offset=offset)
            return
        self._next = next(self._entries, None)
        self._check_entry(entry, batch, kind, ended)

    def _check_entry(
        self, entry: AbortedTransaction, batch: Batch, kind: int | None, ended: EndedTransaction | None
    ) -> None:
        state = self.transactions
        unknown = kind is None or not state.known
        if entry.producer_id != batch.producer_id or (kind is not None and kind != ABORT):
            text = f"the entry claims an abort of producer {entry.producer_id} at offset {entry.last_offset}; the log "
            text += f"has {NAMES.get(kind or 0, 'a marker')} of producer {batch.producer_id} there"
            self._report("txnindex_extra", text, offset=entry.last_offset)
        elif ended is None:
            if not unknown and not state.compacted:
                text = f"the marker of producer {entry.producer_id} at offset {entry.last_offset} ends no transaction"
                self._report("txnindex_extra", text, offset=entry.last_offset)
        else:
            self._check_offsets(entry, ended)

    def _check_offsets(self, entry: AbortedTransaction, ended: EndedTransaction) -> None:
        state = self.transactions
        first = ended.first_offset
        started_before = entry.first_offset < first and (state.compacted or not state.known)
        if entry.first_offset != first and not started_before:
            text = f"the transaction of producer {entry.producer_id} starts at offset {first}, not {entry.first_offset}"
            self._report("txnindex_entry", text, offset=entry.last_offset)
        stable, marker = ended.last_stable_offset, ended.marker_offset
        right = entry.last_stable_offset == stable or (stable == marker + 1 and entry.last_stable_offset > marker)
        if not right and state.known and not state.compacted:
            self._report("txnindex_entry", f"the last stable offset at the marker {marker} is {stable}, not "
                         f"{entry.last_stable_offset}", offset=entry.last_offset)  # fmt: skip

    def _extra(self, entry: AbortedTransaction) -> None:
        if not self.transactions.compacted and entry.last_offset >= self.base_offset:
            text = f"the entry claims an abort of producer {entry.producer_id} at offset {entry.last_offset}; "
            text += "the log has no marker there"
            self._report("txnindex_extra", text, offset=entry.last_offset)

    def skip_damage(self, next_offset: int | None) -> None:
        """Skip the entries up to `next_offset` (None: to the end), because bytes of the log are unreadable."""
        self.transactions.forget()
        while self._next is not None and (next_offset is None or self._next.last_offset < next_offset):
            self._next = next(self._entries, None)

    def finish(self) -> None:
        """End the check at the end of the log."""
        while self._next is not None:
            self._extra(self._next)
            self._next = next(self._entries, None)

    def close(self) -> None:
        """Close the file."""
        if self._source is not None:
            self._source.close()
