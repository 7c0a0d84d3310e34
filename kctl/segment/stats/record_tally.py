"""Count records: keys, sizes and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import gt, sub

from kctl.segment.format.batch import NO_TIMESTAMP, V2_HEADER, Batch
from kctl.segment.stats.cardinality import HotKeys, KeyTable
from kctl.segment.stats.record_rows import RecordRows, record_rows

_CHUNK = 1 << 12  # keys that are counted at once


@dataclass
class SizeHistogram:
    """The number of sizes by their binary digits: n digits are 2ⁿ⁻¹ to 2ⁿ − 1 bytes."""

    counts: Counter[int] = field(default_factory=Counter)
    number: int = 0
    total: int = 0
    smallest: int | None = None
    largest: int = 0

    def add_all(self, sizes: Sequence[int]) -> None:
        """Count each size."""
        smallest, largest = min(sizes), max(sizes)
        if smallest.bit_length() == largest.bit_length():
            self.counts[largest.bit_length()] += len(sizes)
        else:
            self.counts.update(map(int.bit_length, sizes))
        self.number += len(sizes)
        self.total += sum(sizes)
        self.largest = max(self.largest, largest)
        self.smallest = smallest if self.smallest is None else min(self.smallest, smallest)


@dataclass
class RecordTally:
    """The counts of all added records.

    now: ms; later timestamps are in the future. earliest, latest: timestamps; None: no timestamps. exact_bytes: True if
    no batch is compressed, so that the bytes of each record in the log are exact, not a share of its batch.
    """

    now: int
    limit: int
    hot: HotKeys = field(default_factory=HotKeys)
    records: int = 0
    null_keys: int = 0
    tombstones: int = 0
    null_values_without_key: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    records_with_headers: int = 0
    headers: int = 0
    header_bytes: int = 0
    sizes: SizeHistogram = field(default_factory=SizeHistogram)
    earliest: int | None = None
    latest: int | None = None
    out_of_order: int = 0
    largest_step_back: int = 0
    future: int = 0
    exact_bytes: bool = True
    _previous: int = NO_TIMESTAMP
    _keys: list[bytes] = field(default_factory=list)
    _stored: list[int] = field(default_factory=list)
    _table: KeyTable | None = None

    def begin_log(self, table: KeyTable) -> None:
        """Start counting another log."""
        self.flush()
        self._table, self._previous = table, NO_TIMESTAMP

    def add(self, batch: Batch, content: memoryview, *, aborted: bool = False) -> int:
        """Count the records of a batch. Return the decompressed size of the batch.

        aborted: its keys supersede nothing. Raises BadRecords, BadPayload where the batch becomes unreadable; earlier
        records are counted.
        """
        self.exact_bytes = self.exact_bytes and not batch.codec
        size = 0 if batch.legacy else V2_HEADER
        for rows in record_rows(batch, content, limit=self.limit):
            self._count(rows, aborted=aborted)
            size += sum(rows.sizes)
        return size if batch.codec else len(content)

    def _count(self, rows: RecordRows, *, aborted: bool) -> None:
        number = len(rows.sizes)
        self.records += number
        self.key_bytes += rows.key_bytes
        self.value_bytes += rows.value_bytes
        self.records_with_headers += len(rows.header_counts)
        self.headers += sum(rows.header_counts)
        self.header_bytes += rows.header_bytes
        self.sizes.add_all(rows.sizes)
        self._times(rows.timestamps)
        identities, stored = rows.identities, rows.stored
        keyless = identities.count(None)
        if rows.null_values is not None:
            nulls = sum(rows.null_values)
            without_key = sum(null and key is None for key, null in zip(identities, rows.null_values, strict=True))
            self.null_values_without_key += without_key
            self.tombstones += nulls - without_key
        if keyless:
            self.null_keys += keyless
            stored = [size for key, size in zip(identities, stored, strict=True) if key is not None]
        keys = [key for key in identities if key is not None] if keyless else identities
        if aborted:
            self.hot.add(keys)  # type: ignore[arg-type]  # no None is left
            if self._table is not None:
                self._table.add_aborted(keys)  # type: ignore[arg-type]
            return
        self._keys += keys  # type: ignore[arg-type]
        self._stored += stored
        if len(self._keys) >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        """Count the pending records."""
        if not self._keys:
            return
        self.hot.add(self._keys)
        if self._table is not None:
            self._table.add(self._keys, self._stored)
        self._keys, self._stored = [], []

    def _times(self, times: Sequence[int]) -> None:
        lowest, highest = min(times), max(times)
        if lowest == NO_TIMESTAMP:
            times = [time for time in times if time != NO_TIMESTAMP]
            if not times:
                return
            lowest = min(times)
        self.earliest = lowest if self.earliest is None else min(self.earliest, lowest)
        self.latest = highest if self.latest is None else max(self.latest, highest)
        if highest > self.now:
            self.future += sum(time > self.now for time in times)
        if times[0] < self._previous:
            self.out_of_order += 1
            self.largest_step_back = max(self.largest_step_back, self._previous - times[0])
        steps = sum(map(gt, times, islice(times, 1, None)))
        if steps:
            self.out_of_order += steps
            back = max(map(sub, times, islice(times, 1, None)))
            self.largest_step_back = max(self.largest_step_back, back)
        self._previous = times[-1]
