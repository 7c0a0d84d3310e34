"""Checking .txnindex against the markers in the log, and following transactions over a partition's segments.

What the entries of a segment must be is known when every transaction that is open where the segment begins is known:
because the log was read from offset 0, or because of the producer snapshot at its base offset. Where it is not, an
entry for a transaction that began earlier cannot be judged. Compaction removes records of aborted transactions, and
their markers after a while: in a compacted log the first offset of a transaction can have been an earlier one, and an
entry can have lost its records.

The last stable offset of an entry is the first offset of the oldest transaction open behind the marker, else the one
behind the marker. A follower that got the marker together with later batches already counts transactions that begin
there (UnifiedLog.append, ProducerStateManager.lastStableOffset): then it can be any offset behind the marker.
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
from kctl.segment.verify.findings import Findings

_MAX_SORTED = 50_000


class Transactions:
    """Follows the transactions of a log, segment by segment.

    known: whether all that are open are known; compacted: whether offsets are missing so far; lost: too many at once.
    """

    def __init__(self) -> None:
        self.tracker = TransactionTracker()
        self.known = False
        self.compacted = False
        self.lost = False

    def begin(self, entries: Iterable[ProducerEntry] | None) -> None:
        """At an offset where the producers are known (a snapshot's entries, or none at the log's beginning)."""
        self.tracker = TransactionTracker(entries or ())
        self.known, self.lost = True, False

    def forget(self) -> None:
        """Bytes of the log could not be read: what is open behind them is not known."""
        self.tracker = TransactionTracker()
        self.known = False

    def open_transactions(self) -> dict[int, int]:
        """Producer id → first offset."""
        return {found.producer_id: found.first_offset for found in self.tracker.open.values()}

    def add(self, batch: Batch, content: memoryview) -> EndedTransaction | None:
        """Follow a batch of a producer. Raises BadRecords, BadPayload for a marker that cannot be read."""
        if self.lost:
            return None
        if len(self.tracker.open) >= MAX_OPEN:
            self.lost = True
            self.forget()
            return None
        return self.tracker.add(batch, content)


class TransactionCheck:
    """Compares the .txnindex of a segment with its log. path: of the index, whether it is there or not."""

    def __init__(
        self, path: Path, base_offset: int, findings: Findings, transactions: Transactions, *, exists: bool
    ) -> None:
        """Opens the file and reports on its form. Raises what Source raises."""
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
        count = source.size // TXN_ENTRY_SIZE  # zeros count, nothing preallocates this file
        if size.odd_bytes:
            text = f"{size.odd_bytes} bytes behind the last whole entry"
            self._report("txnindex_length", text, position=source.size - size.odd_bytes)
        log_size = self.path.with_suffix(".log").stat().st_size
        if count > log_size // V2_HEADER + 1:
            text = f"{count} entries, and a log of {log_size} bytes cannot have so many markers"
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
        """Whether it comes behind the one before."""
        if entry.version_read > 0:
            self._report("txnindex_version", f"version {entry.version_read} is unknown", position=position)
        elif entry.version:
            text = f"version {entry.version}, of which a broker reads the first byte, {entry.version_read}"
            self._report("txnindex_version_byte", text, position=position)
        if entry.last_offset < self.base_offset:
            self._report("txnindex_before_base", f"a transaction that ends at {entry.last_offset}, before the segment",
                         position=position, offset=entry.last_offset)  # fmt: skip
        if entry.last_offset <= before:
            self._report("txnindex_order", f"the transaction that ends at {entry.last_offset} comes behind {before}",
                         position=position, offset=entry.last_offset)  # fmt: skip
        return entry.last_offset > before

    def _report(self, code: str, text: str, *, position: int | None = None, offset: int | None = None) -> None:
        self._findings.add(code, self.path, text, position=position, offset=offset)

    def pass_batch(self, log: Path, batch: Batch, content: memoryview) -> None:
        """Follow a valid batch that has a producer."""
        following = self.transactions
        if not batch.control:
            if not batch.transactional and batch.producer_id in following.tracker.open and following.known:
                text = f"producer {batch.producer_id} writes outside of its open transaction"
                self._findings.add("transaction_state", log, text, position=batch.position, offset=batch.base_offset)
            self._follow(log, batch, content)
            return
        begun = following.tracker.open.get(batch.producer_id)
        try:
            marker = first_record(batch, content)
            kind = None if marker is None else control_type(marker)
            ended = following.add(batch, content)
        except (BadRecords, BadPayload) as exc:
            self._findings.add("control_record", log, str(exc), position=batch.position, offset=batch.base_offset)
            return
        if kind is not None and kind not in {0, 1}:
            text = f"{NAMES.get(kind, f'type {kind}')} with a producer id is no marker of a transaction"
            self._findings.add("control_record", log, text, position=batch.position, offset=batch.base_offset)
        emptied = begun is not None and begun.records == 0  # by compaction
        self._compare(batch, kind, ended, emptied=emptied)

    def _follow(self, log: Path, batch: Batch, content: memoryview) -> None:
        was_lost = self.transactions.lost
        self.transactions.add(batch, content)
        if self.transactions.lost and not was_lost:
            text = f"more than {MAX_OPEN} transactions are open at once: .txnindex is not compared from here on"
            where = batch.position
            self._findings.add("transactions_not_followed", log, text, position=where, offset=batch.base_offset)

    def _compare(self, batch: Batch, kind: int | None, ended: EndedTransaction | None, *, emptied: bool) -> None:
        """A marker, with what it ended."""
        offset = batch.last_offset
        while self._next is not None and self._next.last_offset < offset:
            self._extra(self._next)
            self._next = next(self._entries, None)
        entry = self._next
        if entry is None or entry.last_offset > offset:
            if ended is not None and ended.aborted and not (emptied and self.transactions.compacted):
                what = f"{ended.first_offset} to {offset} of producer {ended.producer_id}"
                text = f"the aborted transaction {what} has no entry"
                self._report("txnindex_lacks", text, offset=offset)
            return
        self._next = next(self._entries, None)
        self._check_entry(entry, batch, kind, ended)

    def _check_entry(
        self, entry: AbortedTransaction, batch: Batch, kind: int | None, ended: EndedTransaction | None
    ) -> None:
        following = self.transactions
        unknown = kind is None or not following.known
        if entry.producer_id != batch.producer_id or (kind is not None and kind != ABORT):
            self._report("txnindex_extra", f"producer {entry.producer_id} aborted at {entry.last_offset}, it says: the "
                         f"log has {NAMES.get(kind or 0, 'a marker')} of producer {batch.producer_id} there",
                         offset=entry.last_offset)  # fmt: skip
        elif ended is None:
            if not unknown and not following.compacted:
                text = f"the marker at {entry.last_offset} of producer {entry.producer_id} ends no transaction"
                self._report("txnindex_extra", text, offset=entry.last_offset)
        else:
            self._check_offsets(entry, ended)

    def _check_offsets(self, entry: AbortedTransaction, ended: EndedTransaction) -> None:
        following = self.transactions
        first = ended.first_offset
        begun_before = entry.first_offset < first and (following.compacted or not following.known)
        if entry.first_offset != first and not begun_before:
            self._report("txnindex_entry", f"the transaction of producer {entry.producer_id} begins at {first}, not at "
                         f"{entry.first_offset}", offset=entry.last_offset)  # fmt: skip
        stable, marker = ended.last_stable_offset, ended.marker_offset
        right = entry.last_stable_offset == stable or (stable == marker + 1 and entry.last_stable_offset > marker)
        if not right and following.known and not following.compacted:
            self._report("txnindex_entry", f"the last stable offset at {marker} is {stable}, not "
                         f"{entry.last_stable_offset}", offset=entry.last_offset)  # fmt: skip

    def _extra(self, entry: AbortedTransaction) -> None:
        if not self.transactions.compacted and entry.last_offset >= self.base_offset:
            text = f"no marker at {entry.last_offset}, where producer {entry.producer_id} is said to have aborted"
            self._report("txnindex_extra", text, offset=entry.last_offset)

    def skip_damage(self, next_offset: int | None) -> None:
        """Bytes could not be read up to `next_offset` (None: to the end): entries for them cannot be judged."""
        self.transactions.forget()
        while self._next is not None and (next_offset is None or self._next.last_offset < next_offset):
            self._next = next(self._entries, None)

    def finish(self) -> None:
        """The log ends."""
        while self._next is not None:
            self._extra(self._next)
            self._next = next(self._entries, None)

    def close(self) -> None:
        """Close the file."""
        if self._source is not None:
            self._source.close()
