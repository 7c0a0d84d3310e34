"""Where a record is in a partition's log: through the indexes, as a broker finds it.

Rules: LocalLog.read and LogSegment.translateOffset (offsets), UnifiedLog.fetchOffsetByTimestamp and
LogSegment.findOffsetByTimestamp (timestamps). Other than a broker, what an index says is looked at in the log before it
is believed; where it is not so, the segment is read from its start. Keys have no index: find_key.py reads the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from kctl.base.moments import moment_text
from kctl.errors import KctlError
from kctl.segment.dump.query import MAX_MESSAGE_BYTES, all_records, wrong_inner_crc
from kctl.segment.dump.rows import BatchRow, RecordRow, batch_row, record_row
from kctl.segment.format.batch import Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.index_lookup import offset_lookup, time_lookup
from kctl.segment.format.indexes import OffsetEntry, TimeEntry
from kctl.segment.format.record import BadRecords, Record
from kctl.segment.log.partition import SegmentFiles
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batch_at, batch_damage, batches, content_of, is_preallocated, is_valid

_WINDOW_BYTES = 1 << 18  # what is looked for is mostly near
MOST_REMARKS = 100  # of a hostile log


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What an index said. entry: its number from 0, None when the search begins before the first one; entries: how many
    there are. offset, timestamp, position: the entry's. used: whether the log agreed with it."""

    file: str
    entry: int | None
    entries: int
    offset: int | None
    timestamp: str | None
    position: int | None
    used: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record is. position: of its batch in the segment; valid: the batch's CRC."""

    segment: str
    position: int
    batch: BatchRow
    record: RecordRow


class Reason(str, Enum):
    """Why another record, or none, was found. log_start: brokers do not return it any more; damaged: the offset is in
    damage; not_there: removed by compaction, or never used; youngest: all records are older."""

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
class Found:
    """The way to a record. place: None when there is none; exact: it is the offset that was asked for.

    scanned_from: the position in the last segment from which on the log itself was read; scanned_bytes: how much of all
    segments. reason, reason_code: why another record, or none, was found. warnings: indexes that could not be used;
    damage: in the log, passed over: what was looked for may have been there.
    """

    path: str
    place: Place | None = None
    exact: bool = False
    reason: str | None = None
    reason_code: Reason | None = None
    indexes: list[IndexUse] = field(default_factory=list)
    scanned_from: int = 0
    scanned_bytes: int = 0
    scanned_batches: int = 0
    warnings: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def because(self, code: Reason, text: str) -> None:
        """Why it was found, or not."""
        self.reason_code, self.reason = code, text

    def warn(self, text: str) -> None:
        """An index that cannot be used."""
        if text not in self.warnings and len(self.warnings) < MOST_REMARKS:
            self.warnings.append(text)

    def damaged(self, file: Path, position: int, text: str) -> None:
        """A place in the log that cannot be read."""
        remark = f"{file} at {position}: {text}"
        if remark not in self.damage and len(self.damage) < MOST_REMARKS:
            self.damage.append(remark)


# --- an offset ------------------------------------------------------------------------------------------------------


def find_offset(log: PartitionLog, offset: int, *, indexes: bool = True, limit: int = MAX_MESSAGE_BYTES) -> Found:
    """The first record whose offset is not below `offset`. indexes: whether they are used; limit: of one message."""
    found = Found(str(log.path))
    first = max((number for number, files in enumerate(log.segments) if files.base_offset <= offset), default=0)
    end, passed = None, _Passed(log.segments[0].base_offset)
    for number, files in enumerate(log.segments[first:]):
        with open_log(files) as source:
            start = _offset_start(files, source, offset, found) if indexes and number == 0 else 0
            for batch in scan(source, start, found, passed):
                end = batch.last_offset + 1
                if batch.last_offset < offset and not batch.unnumbered:
                    passed.good(batch)
                    continue
                for record in records(source, batch, found, limit, passed):
                    if record.offset >= offset:
                        found.place, found.exact = place(source, batch, record), record.offset == offset
                        _say_why(found, log, offset, record, passed)
                        return found
    if passed.position is not None:
        found.because(Reason.DAMAGED, passed.text(offset, None))
    elif end is None:
        found.because(Reason.EMPTY, "the log is empty")
    elif offset == end:
        found.because(Reason.LOG_END, "it is the log end offset: the next record will have it")
    else:
        found.because(Reason.BEHIND_LOG, f"the log ends before it, at {end}")
    return found


@dataclass(slots=True)
class _Passed:
    """Damage between the last good offset below what is looked for and what is found.

    next_offset: behind that good one. position: of the first damage, None without any; first, last: the offsets of the
    damaged batch where its header can be believed (its records are damaged, not the batch).
    """

    next_offset: int
    position: int | None = None
    first: int | None = None
    last: int | None = None
    bad_batch: int | None = None  # the position of one with a wrong CRC, whose header says nothing
    whole: bool = True  # it is a batch as far as its length goes

    def good(self, batch: Batch) -> None:
        """A batch below what is looked for."""
        if batch.position != self.bad_batch:
            self.next_offset = max(self.next_offset, batch.last_offset + 1)
            self.position = self.first = self.last = self.bad_batch = None

    def bad(self, position: int, *, whole: bool = True, batch: Batch | None = None) -> None:
        """Damage; batch: a valid one, whose records cannot be read. The first one counts."""
        if whole and batch is None:
            self.bad_batch = position
        if self.position is None:
            self.position, self.whole = position, whole
            if batch is not None:
                self.first, self.last = batch.base_offset, batch.last_offset
        else:
            self.whole, self.last = False, None

    def text(self, offset: int, following: int | None) -> str:
        """Where `offset` is. following: the first offset that can be read behind the damage; None: there is none."""
        assert self.position is not None
        what = "damaged batch" if self.whole else "damaged part"
        first = self.next_offset if self.first is None else self.first
        last = self.last if self.last is not None or following is None else following - 1
        if last is None:
            return f"offset {offset} may be in the {what} from {first} on, at position {self.position}"
        return f"offset {offset} is in the {what} {first}–{last} at position {self.position}"


def _say_why(found: Found, log: PartitionLog, offset: int, record: Record, passed: _Passed) -> None:
    if log.start is not None and record.offset < log.start:
        text = f"offset {record.offset} is before the log start offset {log.start}: brokers do not return it any more"
        found.because(Reason.LOG_START, text)
    elif record.offset == offset:
        return
    elif offset < (log.start or log.segments[0].base_offset):
        found.because(Reason.BEFORE_LOG, f"offset {offset} is before the start of the log")
    elif passed.position is not None:
        found.because(Reason.DAMAGED, passed.text(offset, record.offset))
    else:
        found.because(Reason.NOT_THERE, f"offset {offset} is not there: removed by compaction, or never used")


def _offset_start(files: SegmentFiles, source: Source, offset: int, found: Found) -> int:
    """The position from which on to scan for `offset`: what the index says when it is true, else 0."""
    if not source.size:
        return 0
    if files.index is None:
        found.warn(f"{source.path} has no .index: it is read from its start")
        return 0
    try:
        with Source(files.index) as index:
            entry, hit = offset_lookup(index, files.base_offset, offset)
    except KctlError as exc:
        found.warn(f"{exc.message}; {source.path} is read from its start")
        return 0
    problem = _odd(hit.odd_bytes)
    if entry is not None and problem is None:
        problem = _offset_problem(source, entry)
    at, position = (None, None) if entry is None else entry
    found.indexes.append(IndexUse(str(files.index), hit.number, hit.entries, at, None, position, problem is None))
    if problem is not None:
        found.warn(f"{files.index} {problem}; {source.path} is read from its start")
        return 0
    return position or 0


def _odd(odd_bytes: int) -> str | None:
    return f"has {odd_bytes} bytes behind its last whole entry" if odd_bytes else None


def _offset_problem(source: Source, entry: OffsetEntry) -> str | None:
    """What is wrong with an entry: there must be a batch that does not begin behind the entry's offset."""
    said = f"says that offset {entry.offset} is at position {entry.position}"
    if not 0 <= entry.position < source.size:
        return f"{said}, and the log has {source.size} bytes"
    batch = batch_at(source, entry.position, source.size)
    if not isinstance(batch, Batch) or not is_valid(source, batch):
        return f"{said}, and there is no valid batch"
    if batch.base_offset > entry.offset:
        return f"{said}, and the batch there begins at {batch.base_offset}"
    return None


# --- a timestamp ----------------------------------------------------------------------------------------------------


def find_timestamp(log: PartitionLog, timestamp: int, *, indexes: bool = True, limit: int = MAX_MESSAGE_BYTES) -> Found:
    """The first record, by offset, whose timestamp (ms) is not before `timestamp`; from the log start offset on."""
    found = Found(str(log.path))
    youngest, first = -1, log.start or 0
    for files in log.segments:
        with open_log(files) as source:
            start, known = _time_start(files, source, timestamp, found) if indexes else (0, -1)
            youngest = max(youngest, known)
            for batch in scan(source, start, found):
                youngest = max(youngest, batch.max_timestamp)
                timed = batch.magic != 0 or not batch.codec  # a wrapper of magic 0 can hold messages of magic 1
                if (timed and batch.max_timestamp < timestamp) or batch.last_offset < first:
                    continue
                for record in records(source, batch, found, limit):
                    if record.timestamp >= timestamp and record.offset >= first:
                        found.place, found.exact = place(source, batch, record), record.timestamp == timestamp
                        return found
    at = moment_text(youngest)
    if at is None:
        found.because(Reason.NO_TIMESTAMPS, "no record has a timestamp")
    else:
        found.because(Reason.YOUNGEST, f"the youngest record is of {at}")
    return found


def _time_start(files: SegmentFiles, source: Source, timestamp: int, found: Found) -> tuple[int, int]:
    """The position from which on to scan for `timestamp`, and the youngest timestamp before it as far as it is known.

    A segment whose last entry is older than that is scanned from there on: mostly this is its last batch.
    """
    if not source.size:
        return 0, -1
    if files.timeindex is None:
        found.warn(f"{source.path} has no .timeindex: it is read from its start")
        return 0, -1
    try:
        with Source(files.timeindex) as index:
            entry, hit = time_lookup(index, files.base_offset, timestamp)
    except KctlError as exc:
        found.warn(f"{exc.message}; {source.path} is read from its start")
        return 0, -1
    position, problem = 0, _odd(hit.odd_bytes)
    if entry is not None and problem is None:
        position, problem = _time_position(files, source, entry, found)
    at, offset = (-1, None) if entry is None else entry
    found.indexes.append(
        IndexUse(str(files.timeindex), hit.number, hit.entries, offset, moment_text(at), None, problem is None)
    )
    if problem is not None:
        found.warn(f"{files.timeindex} {problem}; {source.path} is read from its start")
        return 0, -1
    return position, at


def _time_position(files: SegmentFiles, source: Source, entry: TimeEntry, found: Found) -> tuple[int, str | None]:
    """The position of the batch that an entry is about, and what is wrong with it: it must have the timestamp."""
    said = f"says that up to offset {entry.offset} the youngest record is of {moment_text(entry.timestamp)}"
    if entry.offset < files.base_offset:
        return 0, f"{said}, and the segment begins at {files.base_offset}"
    start = _offset_start(files, source, entry.offset, found)
    for batch in scan(source, start, found):
        if batch.last_offset >= entry.offset:
            if batch.max_timestamp == entry.timestamp:
                return batch.position, None
            return 0, f"{said}, and the batch there has {moment_text(batch.max_timestamp)}"
    return 0, f"{said}, and there is no batch with this offset"


# --- the log itself -------------------------------------------------------------------------------------------------


def open_log(files: SegmentFiles) -> Source:
    """A segment's log file. Raises what Source raises."""
    assert files.log is not None
    return Source(files.log, window_bytes=_WINDOW_BYTES)


def scan(source: Source, start: int, found: Found, passed: _Passed | None = None) -> Iterator[Batch]:
    """The batches from a position on; each is counted, and damage is told before the next one is looked at."""
    found.scanned_from = start
    for item in batches(source, start):
        if isinstance(item, Damage):
            if is_preallocated(source, item):
                continue
            found.damaged(source.path, item.position, f"{item.message}; {item.length} bytes are passed over")
            found.scanned_bytes += item.length
            if passed is not None:
                passed.bad(item.position, whole=False)
            continue
        found.scanned_bytes += item.size
        found.scanned_batches += 1
        damage = batch_damage(source, item)
        if damage is not None:
            found.damaged(source.path, item.position, damage)
            if passed is not None:
                passed.bad(item.position)
        yield item


def records(source: Source, batch: Batch, found: Found, limit: int, passed: _Passed | None = None) -> Iterator[Record]:
    """The records of a batch; where they cannot be read, damage is told and they end."""
    if batch.magic < 0:  # of an unknown format
        return
    try:
        for record in all_records(batch, content_of(source, batch, limit), limit=limit, keep_last=True):
            if batch.codec and not record.legacy_valid:
                found.damaged(source.path, batch.position, wrong_inner_crc(record))
            yield record
    except (BadRecords, BadPayload) as exc:
        if is_valid(source, batch):  # else it was told already
            found.damaged(source.path, batch.position, str(exc))
            if passed is not None:
                passed.bad(batch.position, batch=batch)


def place(source: Source, batch: Batch, record: Record) -> Place:
    """Where a record is, with what can be said of it and of its batch."""
    file, damage = str(source.path), batch_damage(source, batch)
    valid = damage is None
    return Place(
        file,
        batch.position,
        batch_row(file, batch, valid=valid, damage=damage),
        record_row(file, batch, record, valid=valid),
    )
