"""Index files and producer snapshots as DumpLogSegments prints them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kctl.segment.dump.kafka_text_mismatches import Mismatches
from kctl.segment.dump.kafka_text_names import absolute, base_offset_of
from kctl.segment.dump.kafka_text_options import DumpDamage, KafkaTextOptions, ToolCrash
from kctl.segment.dump.query import all_records
from kctl.segment.format import indexes
from kctl.segment.format.batch import Batch
from kctl.segment.format.index_lookup import position_of
from kctl.segment.format.producer_snapshot import BadSnapshot, ProducerEntry, parse_snapshot
from kctl.segment.format.release import Release
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.walk import Damage, batch_at, batches, content_of

_NO_TIMESTAMP = -1
# The limit of batches to step over while looking for the targets of time index entries. A correct index needs few.
_MAX_STEPS = 20_000_000


class IndexText:
    """The text of the files beside a log. Each method raises ToolCrash where Kafka's tool ends with an exception."""

    def __init__(
        self, options: KafkaTextOptions, line: Callable[[str], None], findings: DumpDamage, mismatches: Mismatches
    ) -> None:
        self._options, self._line, self._findings, self._mismatches = options, line, findings, mismatches
        self._steps = _MAX_STEPS

    def offset_index(self, path: Path, name: str) -> None:
        """Print a .index, and compare each entry with the log."""
        base = base_offset_of(path)
        with Source(_sibling(path, ".log")) as log, Source(path) as source:
            entries = indexes.OffsetSlots(source, base)
            if not entries:
                self._line(f"{name} is empty.")
                return
            if self._options.sanity_only:
                self._sanity(indexes.offset_index_problem(absolute(name), entries, base), name)
                return
            for number, entry in enumerate(entries):
                if entry.offset == base and number > 0:
                    return
                batch = self._first_in_slice(log, entry.position)
                if batch.last_offset != entry.offset:
                    self._mismatches.add(self._mismatches.offsets, entry.offset, batch.last_offset)
                if not self._options.verify_only:
                    self._line(f"offset: {entry.offset} position: {entry.position}")

    def _first_in_slice(self, log: Source, position: int) -> Batch:
        if position < 0 or position > log.size:
            raise ToolCrash(f"Slice from position {position} exceeds end position of the log")
        end = min(position + self._options.max_message_bytes, log.size)
        batch = batch_at(log, position, end)
        if not isinstance(batch, Batch):
            raise ToolCrash(batch.message if batch else "there is no batch at this position")
        return batch

    def _sanity(self, problem: str | None, name: str) -> None:
        if problem is not None:
            raise ToolCrash(problem)
        self._line(f"{name} passed sanity check.")

    def time_index(self, path: Path, name: str) -> None:
        """Print a .timeindex, and compare each entry with the log through the .index."""
        base, offsets_path = base_offset_of(path), _sibling(path, ".index")
        with Source(_sibling(path, ".log")) as log, Source(path) as source:
            entries = indexes.TimeSlots(source, base)
            if self._options.sanity_only:
                self._sanity(indexes.time_index_problem(absolute(name), entries, base), name)
                return
            if not offsets_path.exists():
                raise ToolCrash(f"{offsets_path} does not exist")  # Kafka's tool creates an empty file here, and exits
            with Source(offsets_path) as offsets_source:
                offsets = indexes.OffsetSlots(offsets_source, base)
                previous = _NO_TIMESTAMP
                for number, entry in enumerate(entries):
                    if entry.offset == base and number > 0:
                        return
                    self._check_time(log, entry, position_of(offsets, entry.offset), previous)
                    if not self._options.verify_only:
                        self._line(f"timestamp: {entry.timestamp} offset: {entry.offset}")
                    previous = entry.timestamp

    def _check_time(self, log: Source, entry: indexes.TimeEntry, position: int, previous: int) -> None:
        if position > log.size or position < 0:
            raise ToolCrash(f"Slice from position {position} exceeds end position of the log")
        mismatches = self._mismatches
        batch = self._first_up_to(log, position, entry.offset)
        if batch is None or batch.last_offset != entry.offset:
            last_offset = -1 if batch is None else batch.last_offset
            mismatches.add(mismatches.not_found, entry.offset, last_offset)
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
        """Return the first batch from `position` on that ends at or after `offset`."""
        for item in batches(log, position):
            if isinstance(item, Damage):
                if item.throws:
                    raise ToolCrash(item.message)
                return None
            if item.last_offset >= offset:
                return item
            self._steps -= 1
            if self._steps < 0:
                raise ToolCrash("the index does not match the log: too many batches between its entries")
        return None

    def snapshot(self, path: Path, _name: str) -> None:
        """Print the producers of a .snapshot."""
        try:
            entries = parse_snapshot(read_whole(path))
        except BadSnapshot as exc:
            self._findings.add(path, None, str(exc))
            return
        for entry in entries:
            text = _producer_text(entry)
            self._line(text if self._options.release is Release.KAFKA_3_9 else text.rstrip(" "))

    def transaction_index(self, path: Path, _name: str) -> None:
        """Print the aborted transactions of a .txnindex."""
        base_offset_of(path)
        with Source(path) as source:
            for number, txn in enumerate(indexes.TransactionSlots(source, 0)):
                if txn.version:
                    self._findings.add(path, number * indexes.TXN_ENTRY_SIZE, f"version {txn.version} is unknown")
                if txn.version_read > 0:
                    continue  # Kafka's tool stops here
                version = txn.version_read if self._options.release is Release.KAFKA_3_9 else 0
                self._line(
                    f"version: {version} producerId: {txn.producer_id} firstOffset: {txn.first_offset} "
                    f"lastOffset: {txn.last_offset} lastStableOffset: {txn.last_stable_offset}"
                )


def _sibling(path: Path, suffix: str) -> Path:
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
