"""Read logs batch by batch and count. Memory is bounded, whatever the size of the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.errors import KctlError
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.dump.rows import timestamp_type
from kctl.segment.format.batch import NO_TIMESTAMP, Batch, crc_is_valid
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.producer_snapshot import BadSnapshot, ProducerEntry, parse_snapshot
from kctl.segment.format.record import BadRecords
from kctl.segment.log.aborted import AbortedBatches
from kctl.segment.log.log_selection import SelectedLog, SelectedSegment
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.transactions import OpenTransaction, TransactionTracker
from kctl.segment.log.walk import Damage, batches, content_of, is_preallocated, preallocated_text
from kctl.segment.stats.cardinality import NOTHING, KeyTable, Superseded
from kctl.segment.stats.producer_shares import ProducerShares
from kctl.segment.stats.record_tally import RecordTally, SizeHistogram

_PROGRESS_BYTES = 8 << 20
Progress = Callable[[int, int], None]  # bytes read, total bytes


class TallyOptions(NamedTuple):
    """The options of a count. now: ms; records: decode batches; max_keys: keys per log that are counted exactly."""

    now: int
    max_keys: int
    records: bool = True
    max_message_bytes: int = MAX_MESSAGE_BYTES


@dataclass
class CodecTally:
    """The batches of one codec."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    uncompressed_bytes: int = 0


@dataclass
class SegmentTally:
    """A segment. mtime: of its file, ms; superseded, aborted: in the log up to the end of this segment."""

    selected: SelectedSegment
    base_offset: int | None
    size_bytes: int
    mtime: int
    batches: int = 0
    records: int = 0
    last_offset: int | None = None
    largest_timestamp: int = NO_TIMESTAMP
    damaged_places: int = 0
    damaged_bytes: int = 0
    superseded: Superseded = NOTHING
    aborted: Superseded = NOTHING


@dataclass
class LogTally:
    """A complete log. open, untracked: transactions (TransactionTracker).

    distinct: the number of distinct keys, and its standard error; overflown: there were more than max_keys.
    """

    selected: SelectedLog
    segments: list[SegmentTally] = field(default_factory=list)
    first_offset: int | None = None
    log_end_offset: int | None = None
    open: list[OpenTransaction] = field(default_factory=list)
    untracked: int = 0
    distinct: tuple[int, float] = (0, 0.0)
    overflown: bool = False


@dataclass
class Tally:
    """The totals of all logs.

    remarks: unusable companion files, with the reason; notes: skipped bytes that are not damage.
    """

    options: TallyOptions
    records: RecordTally
    logs: list[LogTally] = field(default_factory=list)
    codecs: dict[str, CodecTally] = field(default_factory=dict)
    time_types: Counter[str | None] = field(default_factory=Counter)
    batch_sizes: SizeHistogram = field(default_factory=SizeHistogram)
    producers: ProducerShares = field(default_factory=ProducerShares)
    control_batches: int = 0
    control_records: int = 0
    records_exact: bool = True
    committed: int = 0
    aborted: int = 0
    other_markers: int = 0
    index_entries: int = 0
    earliest: int | None = None
    remarks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_logs(selected: Sequence[SelectedLog], options: TallyOptions, progress: Progress | None = None) -> Tally:
    """Read and count all logs. Raises NotFound and the like for an unreadable segment, NotSupported for a codec."""
    tally = Tally(options, RecordTally(options.now, options.max_message_bytes))
    reported = _ByteProgress(progress, sum(_size(segment) for log in selected for segment in log.segments))
    for log in selected:
        tally.logs.append(_TallyReader(tally, log, reported).read())
    return tally


@dataclass
class _ByteProgress:
    """The progress reported so far."""

    progress: Progress | None
    total: int
    done: int = 0

    def add(self, count: int) -> None:
        """Report `count` more bytes."""
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


def _size(segment: SelectedSegment) -> int:
    try:
        return segment.log.stat().st_size
    except OSError:  # opening it reports the error
        return 0


class _TallyReader:
    def __init__(self, tally: Tally, selected: SelectedLog, progress: _ByteProgress) -> None:
        self._tally, self._log, self._progress = tally, LogTally(selected), progress
        self._tracker = TransactionTracker(self._producers())
        self._table = KeyTable(tally.options.max_keys)
        self._aborted = AbortedBatches()
        self._aborted_records = self._aborted_bytes = 0

    def read(self) -> LogTally:
        log, tally = self._log, self._tally
        tally.records.begin_log(self._table)
        self._read_indexes()
        for selected in log.selected.segments:
            self._segment(selected)
        log.open, log.untracked = list(self._tracker.open.values()), self._tracker.untracked
        log.distinct, log.overflown = self._table.distinct(), self._table.overflown
        return log

    def _producers(self) -> list[ProducerEntry]:
        path = self._log.selected.snapshot
        if path is None:
            return []
        try:
            return parse_snapshot(read_whole(path))
        except (KctlError, BadSnapshot) as exc:
            self._tally.remarks.append(f"{path} was ignored: {exc}")
            return []

    def _read_indexes(self) -> None:
        for segment in self._log.selected.segments:
            if segment.txnindex is not None:
                try:
                    self._tally.index_entries += self._aborted.add_index(segment.txnindex)
                except KctlError as exc:
                    self._tally.remarks.append(f"{segment.txnindex} was ignored: {exc}")

    def _segment(self, selected: SelectedSegment) -> None:
        reported = 0
        with Source(selected.log) as source:
            mtime = int(selected.log.stat().st_mtime * 1000)
            segment = SegmentTally(selected, selected.base_offset, source.size, mtime)
            self._log.segments.append(segment)
            for item in batches(source):
                if isinstance(item, Damage):
                    if is_preallocated(source, item):
                        self._tally.notes.append(f"{selected.log} ends with {preallocated_text(item.length)}")
                    else:
                        _damaged(segment, item.length)
                    continue
                self._batch(segment, source, item)
                if item.position - reported >= _PROGRESS_BYTES:
                    self._progress.add(item.position - reported)
                    reported = item.position
            self._progress.add(max(source.size - reported, 0))
        self._tally.records.flush()
        segment.superseded = self._table.superseded()
        segment.aborted = Superseded(self._aborted_records, self._aborted_bytes)

    def _batch(self, segment: SegmentTally, source: Source, batch: Batch) -> None:
        tally = self._tally
        try:
            content = content_of(source, batch, tally.options.max_message_bytes)
        except BadRecords:  # too large to decode
            _damaged(segment, batch.size)
            return
        if not crc_is_valid(batch, content):
            _damaged(segment, batch.size)
            return
        self._offsets(segment, batch)
        segment.batches += 1
        tally.batch_sizes.add_all((batch.size,))
        tally.time_types[timestamp_type(batch)] += 1
        try:
            self._transaction(batch, content)
            if batch.control:
                tally.control_batches += 1
                tally.control_records += max(batch.record_count, 0)
                self._count(segment, batch, 0, len(content))
            elif tally.options.records:
                self._records(segment, batch, content)
            else:
                tally.records_exact = tally.records_exact and not (batch.legacy and batch.codec)
                self._count(segment, batch, max(batch.record_count, 0), 0)
        except (BadRecords, BadPayload):
            _damaged(segment, batch.size)

    def _offsets(self, segment: SegmentTally, batch: Batch) -> None:
        log, last = self._log, batch.last_offset
        if segment.base_offset is None:
            segment.base_offset = batch.base_offset
        if log.first_offset is None:
            log.first_offset = batch.base_offset
        segment.last_offset = last if segment.last_offset is None else max(last, segment.last_offset)
        log.log_end_offset = max(segment.last_offset + 1, log.log_end_offset or 0)
        segment.largest_timestamp = max(segment.largest_timestamp, batch.max_timestamp)
        first = batch.max_timestamp if batch.legacy or batch.delete_horizon_ms is not None else batch.base_timestamp
        if first != NO_TIMESTAMP:
            self._tally.earliest = first if self._tally.earliest is None else min(first, self._tally.earliest)

    def _transaction(self, batch: Batch, content: memoryview) -> None:
        ended = self._tracker.add(batch, content)
        if ended is not None:
            self._tally.aborted += ended.aborted
            self._tally.committed += not ended.aborted
        elif batch.control and batch.producer_id >= 0:
            self._tally.other_markers += 1

    def _records(self, segment: SegmentTally, batch: Batch, content: memoryview) -> None:
        tally = self._tally.records
        aborted = self._aborted.has(batch)
        records_before = tally.records
        uncompressed = 0
        try:
            uncompressed = tally.add(batch, content, aborted=aborted)
        finally:
            count = tally.records - records_before
            self._count(segment, batch, count, uncompressed)
            if aborted:
                self._aborted_records += count
                self._aborted_bytes += batch.size

    def _count(self, segment: SegmentTally, batch: Batch, records: int, uncompressed: int) -> None:
        """Count a batch with `records` data records. uncompressed: bytes; 0: unknown."""
        segment.records += records
        codec = self._tally.codecs.setdefault(batch.codec_name, CodecTally())
        codec.batches += 1
        codec.records += records
        codec.size_bytes += batch.size
        codec.uncompressed_bytes += uncompressed or batch.size
        if not batch.control:
            self._tally.producers.add(batch, records)


def _damaged(segment: SegmentTally, length: int) -> None:
    segment.damaged_places += 1
    segment.damaged_bytes += length
