"""Find a record in a partition's log through the indexes, like a broker.

Rules: LocalLog.read and LogSegment.translateOffset (offsets), UnifiedLog.fetchOffsetByTimestamp and
LogSegment.findOffsetByTimestamp (timestamps). Unlike a broker, kctl checks each index entry against the log; if the
entry is wrong, it scans the segment from its start. Keys have no index: find_key.py scans the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from kctl.base.timestamps import format_timestamp
from kctl.errors import KctlError
from kctl.segment.dump.query import MAX_MESSAGE_BYTES, all_records, wrong_inner_crc
from kctl.segment.dump.rows import BatchRow, RecordRow, batch_row, record_row
from kctl.segment.format.batch import Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.index_lookup import offset_lookup, time_lookup
from kctl.segment.format.indexes import OffsetEntry, TimeEntry
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.log.partition import SegmentFiles
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batch_at, batch_damage, batches, content_of, is_preallocated, is_valid

_WINDOW_BYTES = 1 << 18  # the record is usually near the position in the index
MAX_REMARKS = 100  # limit for hostile logs


@dataclass(frozen=True, slots=True)
class IndexUse:
    """An index lookup. entry: number from 0; None: the target is before the first entry; entries: number of entries.

    offset, timestamp, position: of the entry. used: False if the log contradicts the entry.
    """

    file: str
    entry: int | None
    entries: int
    offset: int | None
    timestamp: str | None
    position: int | None
    used: bool


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The place of a record. position: of its batch in the segment."""

    segment: str
    position: int
    batch: BatchRow
    record: RecordRow


class SearchReason(str, Enum):
    """Why the search found a different record, or none.

    log_start: brokers no longer return the record; damaged: the offset is in a damaged part; not_there: removed by
    compaction, or never used; youngest: all records are older.
    """

    EMPTY = "empty"
    LOG_START = "log_start"
    BEFORE_LOG = "before_log"
    DAMAGED = "damaged"
    NOT_THERE = "not_there"
    LOG_END = "log_end"
    BEHIND_LOG = "behind_log"
    YOUNGEST = "youngest"
    NO_TIMESTAMPS = "no_timestamps"
    NO_SUCH_KEY = "no_such_key"
    TOMBSTONE = "tombstone"


@dataclass(slots=True)
class SearchResult:
    """The result of a search.

    place: None if no record was found. exact: the record has the requested offset, timestamp or key. scanned_from: the
    position in the last segment where the scan started; scanned_bytes: in all segments. reason, reason_code: why the
    search found a different record, or none. warnings: unusable indexes; damage: skipped parts of the log, which may
    have held the record.
    """

    path: str
    place: RecordPlace | None = None
    exact: bool = False
    reason: str | None = None
    reason_code: SearchReason | None = None
    indexes: list[IndexUse] = field(default_factory=list)
    scanned_from: int = 0
    scanned_bytes: int = 0
    scanned_batches: int = 0
    warnings: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def because(self, code: SearchReason, text: str) -> None:
        """Set the reason."""
        self.reason_code, self.reason = code, text

    def warn(self, text: str) -> None:
        """Add a warning about an unusable index."""
        if text not in self.warnings and len(self.warnings) < MAX_REMARKS:
            self.warnings.append(text)

    def damaged(self, file: Path, position: int, text: str) -> None:
        """Add a damaged part of the log."""
        remark = f"{file} at {position}: {text}"
        if remark not in self.damage and len(self.damage) < MAX_REMARKS:
            self.damage.append(remark)


# --- an offset ------------------------------------------------------------------------------------------------------


def find_offset(
    log: PartitionLog, offset: int, *, indexes: bool = True, limit: int = MAX_MESSAGE_BYTES
) -> SearchResult:
    """Find the first record at or after `offset`. indexes: use the indexes; limit: maximum bytes of a message."""
    result = SearchResult(str(log.path))
    first = max((number for number, files in enumerate(log.segments) if files.base_offset <= offset), default=0)
    end, skipped = None, _SkippedDamage(log.segments[0].base_offset)
    for number, files in enumerate(log.segments[first:]):
        with open_log(files) as source:
            start = _offset_start(files, source, offset, result) if indexes and number == 0 else 0
            for batch in scan(source, start, result, skipped):
                end = batch.last_offset + 1
                if batch.last_offset < offset and not batch.unnumbered:
                    skipped.good(batch)
                    continue
                for record in records(source, batch, result, limit, skipped):
                    if record.offset >= offset:
                        result.place, result.exact = place(source, batch, record), record.offset == offset
                        _set_reason(result, log, offset, record, skipped)
                        return result
    if skipped.position is not None:
        result.because(SearchReason.DAMAGED, skipped.text(offset, None))
    elif end is None:
        result.because(SearchReason.EMPTY, "the log is empty")
    elif offset == end:
        result.because(SearchReason.LOG_END, "it is the log end offset, the offset of the next record")
    else:
        result.because(SearchReason.BEHIND_LOG, f"it is above the log end offset {end}")
    return result


@dataclass(slots=True)
class _SkippedDamage:
    """Damage between the last valid offset below the target and the record that was found.

    next_offset: after the last valid offset. position: of the first damage; None: no damage. first, last: the offsets
    of the damaged batch if its header is valid (only its records are damaged).
    """

    next_offset: int
    position: int | None = None
    first: int | None = None
    last: int | None = None
    bad_batch: int | None = None  # the position of a batch with a wrong CRC, whose header is not trusted
    whole: bool = True  # the damage is exactly one batch

    def good(self, batch: Batch) -> None:
        """Note a batch below the target."""
        if batch.position != self.bad_batch:
            self.next_offset = max(self.next_offset, batch.last_offset + 1)
            self.position = self.first = self.last = self.bad_batch = None

    def bad(self, position: int, *, whole: bool = True, batch: Batch | None = None) -> None:
        """Note damage; only the first one counts. batch: a valid batch with unreadable records."""
        if whole and batch is None:
            self.bad_batch = position
        if self.position is None:
            self.position, self.whole = position, whole
            if batch is not None:
                self.first, self.last = batch.base_offset, batch.last_offset
        else:
            self.whole, self.last = False, None

    def text(self, offset: int, readable_from: int | None) -> str:
        """Return the reason for `offset`.

        readable_from: the first readable offset after the damage; None: there is none.
        """
        assert self.position is not None
        kind = "damaged batch" if self.whole else "damaged part"
        first = self.next_offset if self.first is None else self.first
        last = self.last if self.last is not None or readable_from is None else readable_from - 1
        if last is None:
            return f"offset {offset} may be in the {kind} from {first} on, at position {self.position}"
        return f"offset {offset} is in the {kind} {first}–{last} at position {self.position}"


def _set_reason(
    result: SearchResult, log: PartitionLog, offset: int, record: StoredRecord, skipped: _SkippedDamage
) -> None:
    if log.start is not None and record.offset < log.start:
        text = f"offset {record.offset} is below the log start offset {log.start}: brokers no longer return it"
        result.because(SearchReason.LOG_START, text)
    elif record.offset == offset:
        return
    elif offset < (log.start or log.segments[0].base_offset):
        result.because(SearchReason.BEFORE_LOG, f"offset {offset} is below the start of the log")
    elif skipped.position is not None:
        result.because(SearchReason.DAMAGED, skipped.text(offset, record.offset))
    else:
        result.because(SearchReason.NOT_THERE, f"offset {offset} does not exist: removed by compaction, or never used")


def _offset_start(files: SegmentFiles, source: Source, offset: int, result: SearchResult) -> int:
    """Return the position from which to scan for `offset`: from the index if its entry is correct, otherwise 0."""
    if not source.size:
        return 0
    if files.index is None:
        result.warn(f"{source.path} has no .index: scanning it from its start")
        return 0
    try:
        with Source(files.index) as index:
            entry, hit = offset_lookup(index, files.base_offset, offset)
    except KctlError as exc:
        result.warn(f"{exc.message}; scanning {source.path} from its start")
        return 0
    problem = _extra_bytes_problem(hit.odd_bytes)
    if entry is not None and problem is None:
        problem = _offset_problem(source, entry)
    indexed, position = (None, None) if entry is None else entry
    result.indexes.append(IndexUse(str(files.index), hit.number, hit.entries, indexed, None, position, problem is None))
    if problem is not None:
        result.warn(f"{files.index} {problem}; scanning {source.path} from its start")
        return 0
    return position or 0


def _extra_bytes_problem(odd_bytes: int) -> str | None:
    return f"has {odd_bytes} extra bytes after the last whole entry" if odd_bytes else None


def _offset_problem(source: Source, entry: OffsetEntry) -> str | None:
    """Return what is wrong with an entry.

    A valid batch must start at the entry's position, with an offset at or below the entry's.
    """
    claim = f"has offset {entry.offset} at position {entry.position}"
    if not 0 <= entry.position < source.size:
        return f"{claim}, but the log has {source.size} bytes"
    batch = batch_at(source, entry.position, source.size)
    if not isinstance(batch, Batch) or not is_valid(source, batch):
        return f"{claim}, but there is no valid batch"
    if batch.base_offset > entry.offset:
        return f"{claim}, but the batch there starts at {batch.base_offset}"
    return None


# --- a timestamp ----------------------------------------------------------------------------------------------------


def find_timestamp(
    log: PartitionLog, timestamp: int, *, indexes: bool = True, limit: int = MAX_MESSAGE_BYTES
) -> SearchResult:
    """Find the first record, by offset, at or after `timestamp` (ms), from the log start offset on."""
    result = SearchResult(str(log.path))
    latest, first = -1, log.start or 0
    for files in log.segments:
        with open_log(files) as source:
            start, indexed = _time_start(files, source, timestamp, result) if indexes else (0, -1)
            latest = max(latest, indexed)
            for batch in scan(source, start, result):
                latest = max(latest, batch.max_timestamp)
                timed = batch.magic != 0 or not batch.codec  # a wrapper of magic 0 can hold messages of magic 1
                if (timed and batch.max_timestamp < timestamp) or batch.last_offset < first:
                    continue
                for record in records(source, batch, result, limit):
                    if record.timestamp >= timestamp and record.offset >= first:
                        result.place, result.exact = place(source, batch, record), record.timestamp == timestamp
                        return result
    latest_text = format_timestamp(latest)
    if latest_text is None:
        result.because(SearchReason.NO_TIMESTAMPS, "no record has a timestamp")
    else:
        result.because(SearchReason.YOUNGEST, f"the latest record has timestamp {latest_text}")
    return result


def _time_start(files: SegmentFiles, source: Source, timestamp: int, result: SearchResult) -> tuple[int, int]:
    """Return the position from which to scan for `timestamp`, and the largest known timestamp before it.

    If the last entry is older, the segment is scanned from there: usually from its last batch.
    """
    if not source.size:
        return 0, -1
    if files.timeindex is None:
        result.warn(f"{source.path} has no .timeindex: scanning it from its start")
        return 0, -1
    try:
        with Source(files.timeindex) as index:
            entry, hit = time_lookup(index, files.base_offset, timestamp)
    except KctlError as exc:
        result.warn(f"{exc.message}; scanning {source.path} from its start")
        return 0, -1
    position, problem = 0, _extra_bytes_problem(hit.odd_bytes)
    if entry is not None and problem is None:
        position, problem = _time_position(files, source, entry, result)
    indexed, offset = (-1, None) if entry is None else entry
    result.indexes.append(
        IndexUse(
            str(files.timeindex), hit.number, hit.entries, offset, format_timestamp(indexed), None, problem is None
        )
    )
    if problem is not None:
        result.warn(f"{files.timeindex} {problem}; scanning {source.path} from its start")
        return 0, -1
    return position, indexed


def _time_position(
    files: SegmentFiles, source: Source, entry: TimeEntry, result: SearchResult
) -> tuple[int, str | None]:
    """Return the position of an entry's batch, and what is wrong with the entry.

    The batch must have the entry's timestamp.
    """
    claim = f"has {format_timestamp(entry.timestamp)} as the latest timestamp up to offset {entry.offset}"
    if entry.offset < files.base_offset:
        return 0, f"{claim}, but the segment starts at {files.base_offset}"
    start = _offset_start(files, source, entry.offset, result)
    for batch in scan(source, start, result):
        if batch.last_offset >= entry.offset:
            if batch.max_timestamp == entry.timestamp:
                return batch.position, None
            return 0, f"{claim}, but the batch there has {format_timestamp(batch.max_timestamp)}"
    return 0, f"{claim}, but there is no batch with this offset"


# --- the log itself -------------------------------------------------------------------------------------------------


def open_log(files: SegmentFiles) -> Source:
    """Open the log file of a segment. Raises the errors of Source."""
    assert files.log is not None
    return Source(files.log, window_bytes=_WINDOW_BYTES)


def scan(source: Source, start: int, result: SearchResult, skipped: _SkippedDamage | None = None) -> Iterator[Batch]:
    """Yield the batches that start at or after a position.

    Each is counted, and damage is noted before the next one is read.
    """
    result.scanned_from = start
    for item in batches(source, start):
        if isinstance(item, Damage):
            if is_preallocated(source, item):
                continue
            result.damaged(source.path, item.position, f"{item.message}; skipped {item.length} bytes")
            result.scanned_bytes += item.length
            if skipped is not None:
                skipped.bad(item.position, whole=False)
            continue
        result.scanned_bytes += item.size
        result.scanned_batches += 1
        damage = batch_damage(source, item)
        if damage is not None:
            result.damaged(source.path, item.position, damage)
            if skipped is not None:
                skipped.bad(item.position)
        yield item


def records(
    source: Source, batch: Batch, result: SearchResult, limit: int, skipped: _SkippedDamage | None = None
) -> Iterator[StoredRecord]:
    """Yield the records of a batch. Unreadable records are noted as damage and end the batch."""
    if batch.magic < 0:  # unknown format
        return
    try:
        for record in all_records(batch, content_of(source, batch, limit), limit=limit, keep_last=True):
            if batch.codec and not record.legacy_valid:
                result.damaged(source.path, batch.position, wrong_inner_crc(record))
            yield record
    except (BadRecords, BadPayload) as exc:
        if is_valid(source, batch):  # otherwise already noted
            result.damaged(source.path, batch.position, str(exc))
            if skipped is not None:
                skipped.bad(batch.position, batch=batch)


def place(source: Source, batch: Batch, record: StoredRecord) -> RecordPlace:
    """Return the place of a record, with the rows of the record and its batch."""
    file, damage = str(source.path), batch_damage(source, batch)
    valid = damage is None
    return RecordPlace(
        file,
        batch.position,
        batch_row(file, batch, valid=valid, damage=damage),
        record_row(file, batch, record, valid=valid),
    )
