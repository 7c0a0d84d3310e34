"""Index files and producer snapshots as DumpLogSegments prints them, and what it finds wrong with indexes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

from kctl.segment import indexes
from kctl.segment.batch import Batch
from kctl.segment.kafka_text_names import absolute, base_offset_of
from kctl.segment.kafka_text_options import Dies, Findings, KafkaTextOptions
from kctl.segment.producer_snapshot import BadSnapshot, ProducerEntry, parse_snapshot
from kctl.segment.query import all_records
from kctl.segment.scala_order import mutable_map_order
from kctl.segment.source import Source, read_whole
from kctl.segment.walk import Damage, batch_at, batches, content_of

_NO_TIMESTAMP = -1
# Batches that are stepped over to find what a time index points at; a fitting one needs few for each entry.
_MOST_STEPS = 20_000_000


class Mismatches:
    """What does not fit, by kind and file, in pairs of numbers; told at the end of all files.

    file: the one that is dumped now, with its folder (java.io.File.getAbsolutePath).
    """

    def __init__(self) -> None:
        self.file = ""
        self.offsets: dict[str, array[int]] = {}
        self.timestamps: dict[str, array[int]] = {}
        self.out_of_order: dict[str, array[int]] = {}
        self.not_found: dict[str, array[int]] = {}
        self.gaps: dict[str, array[int]] = {}

    def add(self, kind: dict[str, array[int]], *numbers: int) -> None:
        """Pairs of numbers, of one of the kinds."""
        if numbers:
            kind.setdefault(self.file, array("q")).extend(numbers)

    def lines(self) -> Iterator[str]:
        """The lines for stderr, in the JVM tool's order: offsets latest first, times as they were found."""
        for name, pairs in _in_maps_order(self.offsets, replaced=True):
            yield f"Mismatches in :{name}"
            yield from (f"  Index offset: {index}, log offset: {log}" for index, log in _latest_first(pairs))
        for name, pairs in _in_maps_order(self.timestamps):
            yield f"Found timestamp mismatch in :{name}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in _pairs(pairs))
        for name, pairs in _in_maps_order(self.out_of_order):
            yield f"Found out of order timestamp in :{name}"
            yield from (
                f"  Index timestamp: {now}, Previously indexed timestamp: {last}" for now, last in _pairs(pairs)
            )
        for _, pairs in _in_maps_order(self.not_found):
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in _pairs(pairs))
        for name, pairs in _in_maps_order(self.gaps, replaced=True):
            yield f"Non-consecutive offsets in {name}"
            yield from (f"  {first} is followed by {second}" for first, second in _latest_first(pairs))


def _in_maps_order(kind: dict[str, array[int]], *, replaced: bool = False) -> Iterator[tuple[str, array[int]]]:
    """The files with their pairs as the JVM tool's map gives them. replaced: it puts its lists anew for each pair."""
    names = list(kind)
    put_again = replaced and bool(names) and len(kind[names[-1]]) > 2
    return ((name, kind[name]) for name in mutable_map_order(names, put_again=put_again))


def _pairs(numbers: array[int]) -> Iterator[tuple[int, int]]:
    return ((numbers[at], numbers[at + 1]) for at in range(0, len(numbers), 2))


def _latest_first(numbers: array[int]) -> Iterator[tuple[int, int]]:
    return ((numbers[at], numbers[at + 1]) for at in range(len(numbers) - 2, -1, -2))


class IndexText:
    """Prints the files that lie beside a log. Each method raises Dies where the JVM's tool ends with an exception."""

    def __init__(
        self, options: KafkaTextOptions, line: Callable[[str], None], found: Findings, mismatches: Mismatches
    ) -> None:
        self._options, self._line, self._found, self._mismatches = options, line, found, mismatches
        self._steps = _MOST_STEPS

    def offset_index(self, path: Path, shown: str) -> None:
        """.index, each entry against the log."""
        base = base_offset_of(path)
        with Source(_beside(path, ".log")) as log, Source(path) as source:
            entries = indexes.OffsetSlots(source, base)
            if not entries:
                self._line(f"{shown} is empty.")
                return
            if self._options.sanity_only:
                self._sanity(indexes.offset_index_problem(absolute(shown), entries, base), shown)
                return
            for number, entry in enumerate(entries):
                if entry.offset == base and number > 0:
                    return
                found = self._first_in_slice(log, entry.position)
                if found.last_offset != entry.offset:
                    self._mismatches.add(self._mismatches.offsets, entry.offset, found.last_offset)
                if not self._options.verify_only:
                    self._line(f"offset: {entry.offset} position: {entry.position}")

    def _first_in_slice(self, log: Source, position: int) -> Batch:
        if position < 0 or position > log.size:
            raise Dies(f"Slice from position {position} exceeds end position of the log")
        end = min(position + self._options.max_message_bytes, log.size)
        found = batch_at(log, position, end)
        if not isinstance(found, Batch):
            raise Dies(found.message if found else "there is no batch at this position")
        return found

    def _sanity(self, problem: str | None, shown: str) -> None:
        if problem is not None:
            raise Dies(problem)
        self._line(f"{shown} passed sanity check.")

    def time_index(self, path: Path, shown: str) -> None:
        """.timeindex, each entry against the log, through .index."""
        base, offsets_path = base_offset_of(path), _beside(path, ".index")
        with Source(_beside(path, ".log")) as log, Source(path) as source:
            entries = indexes.TimeSlots(source, base)
            if self._options.sanity_only:
                self._sanity(indexes.time_index_problem(absolute(shown), entries, base), shown)
                return
            if not offsets_path.exists():
                raise Dies(f"{offsets_path} does not exist")  # the JVM's tool makes an empty one here, and dies
            with Source(offsets_path) as offsets_source:
                offsets = indexes.OffsetSlots(offsets_source, base)
                previous = _NO_TIMESTAMP
                for number, entry in enumerate(entries):
                    if entry.offset == base and number > 0:
                        return
                    self._check_time(log, entry, indexes.lookup(offsets, entry.offset), previous)
                    if not self._options.verify_only:
                        self._line(f"timestamp: {entry.timestamp} offset: {entry.offset}")
                    previous = entry.timestamp

    def _check_time(self, log: Source, entry: indexes.TimeEntry, position: int, previous: int) -> None:
        if position > log.size or position < 0:
            raise Dies(f"Slice from position {position} exceeds end position of the log")
        mismatches = self._mismatches
        batch = self._first_up_to(log, position, entry.offset)
        if batch is None or batch.last_offset != entry.offset:
            found = -1 if batch is None else batch.last_offset
            mismatches.add(mismatches.not_found, entry.offset, found)
            return
        content = content_of(log, batch, self._options.record_bytes)
        records = all_records(batch, content, limit=self._options.record_bytes)
        youngest = max((record.timestamp for record in records), default=_NO_TIMESTAMP)
        youngest = max(youngest, _NO_TIMESTAMP)
        if youngest != entry.timestamp:
            mismatches.add(mismatches.timestamps, entry.timestamp, youngest)
        if previous >= entry.timestamp:
            mismatches.add(mismatches.out_of_order, entry.timestamp, previous)

    def _first_up_to(self, log: Source, position: int, offset: int) -> Batch | None:
        """The first batch from `position` on that ends at or behind `offset`."""
        for item in batches(log, position):
            if isinstance(item, Damage):
                if item.dies:
                    raise Dies(item.message)
                return None
            if item.last_offset >= offset:
                return item
            self._steps -= 1
            if self._steps < 0:
                raise Dies("the index and the log do not fit: too many batches are between its entries")
        return None

    def snapshot(self, path: Path, _shown: str) -> None:
        """.snapshot: producers."""
        try:
            entries = parse_snapshot(read_whole(path))
        except BadSnapshot as exc:
            self._found.add(path, None, str(exc))
            return
        for entry in entries:
            self._line(_producer_text(entry))

    def transaction_index(self, path: Path, _shown: str) -> None:
        """.txnindex: transactions that were aborted."""
        base_offset_of(path)
        with Source(path) as source:
            for txn in indexes.TransactionSlots(source, 0):
                if txn.version > 0:
                    raise Dies(f"Unexpected aborted transaction version {txn.version} in transaction index {path}")
                self._line(
                    f"version: {txn.version} producerId: {txn.producer_id} firstOffset: {txn.first_offset} "
                    f"lastOffset: {txn.last_offset} lastStableOffset: {txn.last_stable_offset}"
                )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name.split('.')[0]}{suffix}")


def _producer_text(entry: ProducerEntry) -> str:
    first = entry.current_transaction_first_offset
    text = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} "
        f"currentTxnFirstOffset: {'OptionalLong.empty' if first == -1 else f'OptionalLong[{first}]'} "
        f"lastTimestamp: {entry.timestamp} "
    )
    if entry.last_offset < 0:
        return text
    return text + (
        f"firstSequence: {entry.first_sequence} lastSequence: {entry.last_sequence} lastOffset: {entry.last_offset} "
        f"offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
    )
