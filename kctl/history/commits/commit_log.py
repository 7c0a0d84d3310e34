"""Commits of groups and their times, from the log of __consumer_offsets: partition folders of brokers, or copies.

Rows are commits, in the order in which they took effect (rules: kctl.segment.format.offset_commits), decoded into Arrow
batches. Damage and read failures are rows with only `error` set: other rows remain valid, and the report states that
some are missing. A copy of a log that a broker writes to may end within a batch; that is not damage.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kctl.errors import KctlError, NotFound
from kctl.history.commits.batch_columns import read_piece
from kctl.history.commits.effects import Commits, applied
from kctl.history.evaluate.column_arrays import numeric
from kctl.history.snapshots.columns import column
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.format.batch import Batch
from kctl.segment.format.offset_commits import (
    TOPIC,
    CommitLog,
    CommitNotes,
    GroupPartition,
    OffsetCommit,
    PendingCommits,
)
from kctl.segment.format.record import BadRecords
from kctl.segment.log.partition import holds_segments, is_folder, parse_folder_name, partition_folders
from kctl.segment.log.partition_log import PartitionLog, partition_log, partition_log_of_files
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batches, content_of, is_valid

PIECE_BYTES = 1 << 20
_MIN_BYTES = 8 << 10
_MAX_PLAIN = 1024  # batches to decode one by one before columns are tried again
ARROW = pa.schema([
    pa.field("at_ms", pa.int64()),
    pa.field("group", pa.string()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("committed_offset", pa.int64()),
    pa.field("commit_ms", pa.int64()),
    pa.field("leader_epoch", pa.int32()),
    pa.field("transactional", pa.bool_()),
    pa.field("log_partition", pa.int32()),
    pa.field("log_offset", pa.int64()),
    pa.field("error", pa.string()),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Commits that took effect with from_ms ≤ at_ms < to_ms, of groups g with lower ≤ g < upper; None: no bound."""

    from_ms: int | None = None
    to_ms: int | None = None
    lower: str | None = None
    upper: str | None = None

    def has_group(self, group: str) -> bool:
        """Return True if the group is in the span."""
        return (self.lower is None or group >= self.lower) and (self.upper is None or group < self.upper)


EVERYTHING = Span()


def offsets_logs(paths: Sequence[Path]) -> list[PartitionLog]:
    """Return the logs of __consumer_offsets in `paths`: .log files, partition folders, log dirs.

    Of several replicas of a partition, the longest is used. A folder with another name (a copy) is used unchanged; in a
    log dir, only folders with the topic's name are used. Raises NotFound, NotAuthorized, UsageError.
    """
    result: list[PartitionLog] = []
    files: dict[Path, list[Path]] = {}
    for path in paths:
        if not is_folder(path):
            files.setdefault(path.parent, []).append(path)
        elif holds_segments(path):
            result.append(partition_log(path))
        else:
            result += _logs_in(path)
    result += [partition_log_of_files(each) for each in files.values()]
    by_partition: dict[object, PartitionLog] = {}
    for log in result:
        number = log_partition(log)
        key: object = log.path.resolve() if number is None else number
        if key not in by_partition or _length(log) > _length(by_partition[key]):
            by_partition[key] = log
    return list(by_partition.values())


def _logs_in(path: Path) -> list[PartitionLog]:
    folders = [each for each in partition_folders(path) if parse_folder_name(each.name)[::2] == (TOPIC, None)]
    result = [partition_log(each) for each in folders if any(file.suffix == ".log" for file in each.iterdir())]
    if not result:
        raise NotFound(f"{path} has no partition of {TOPIC}", hint=f"use log dirs, or folders {TOPIC}-N")
    return result


def log_partition(log: PartitionLog) -> int | None:
    """Return the partition number from the folder's name; None if the name has none."""
    folder = log.path if log.path.suffix != ".log" else log.path.parent
    topic, number, _ = parse_folder_name(folder.resolve().name)
    return number if topic == TOPIC else None


def _length(log: PartitionLog) -> tuple[int, int]:
    last = log.segments[-1]
    return last.base_offset, last.log.stat().st_size if last.log is not None else 0


# --- one log ------------------------------------------------------------------------------------------------------


def read_log(
    log: PartitionLog, span: Span = EVERYTHING, *, notes: CommitNotes | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield a log's commits as batches of ARROW's schema, then read failures. Raises the errors of Source."""
    number = log_partition(log)
    reader = _CommitLogReader(notes or CommitNotes())
    for files in log.segments:
        assert files.log is not None
        reader.is_last = files is log.segments[-1]
        with Source(files.log, window_bytes=PIECE_BYTES) as source:
            yield from _batches_of(reader.read(source, str(source.path)), number, span)
    yield from _failures(reader, str(log.path))


def read_fetched(pieces: Iterable[bytes], number: int, span: Span = EVERYTHING) -> Iterator[pa.RecordBatch]:
    """Yield the commits of a partition's log that is fetched in pieces of complete batches (kctl.lag.offsets_topic).

    Raises the errors of `pieces`.
    """
    reader, name = _CommitLogReader(CommitNotes()), f"{TOPIC}-{number}"
    reader.is_last = False
    with tempfile.NamedTemporaryFile(prefix="kctl-offsets-") as file:  # Source can only read files
        for piece in pieces:
            file.seek(0)
            file.truncate()
            file.write(piece)
            file.flush()
            with Source(Path(file.name), window_bytes=PIECE_BYTES) as source:
                yield from _batches_of(reader.read(source, name), number, span)
    yield from _failures(reader, name)


def _batches_of(
    result: Iterable[Commits | list[OffsetCommit]], number: int | None, span: Span
) -> Iterator[pa.RecordBatch]:
    for events in result:
        batch = _batch(events, number, span)
        if batch.num_rows:
            yield batch


def _failures(reader: _CommitLogReader, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the read failures."""
    if reader.pending.untracked:
        reader.notes.damage(f"{name}: {reader.pending.untracked} commits were skipped: too many open transactions")
    if reader.notes.texts:
        yield errors_of(reader.notes)


def read_logs(logs: Iterable[PartitionLog], span: Span = EVERYTHING) -> Iterator[pa.RecordBatch]:
    """Yield `read_log` of each log. A log that cannot be read is a row with its error."""
    for log in logs:
        notes = CommitNotes()
        try:
            yield from read_log(log, span, notes=notes)
        except KctlError as exc:
            notes.damage(exc.message)
            yield errors_of(notes)


class _CommitLogReader:
    """A reader of a log's segments: pieces of ordinary batches as columns, other batches one by one."""

    def __init__(self, notes: CommitNotes) -> None:
        self.notes = notes
        self._plain = CommitLog(notes)
        self.is_last = True  # the last segment: a broker may be writing to it
        self.pending: PendingCommits[GroupPartition, OffsetCommit] = self._plain.pending

    def read(self, source: Source, name: str) -> Iterator[Commits | list[OffsetCommit]]:
        """Yield the commits of a segment that take effect, in order. name: the segment's name in messages."""
        position, size, plain = 0, PIECE_BYTES, 1
        while position < source.size:
            commits, next_position = read_piece(source, position, size)
            if next_position > position:
                result = applied(commits, self.pending)
                if len(result):
                    yield result
                # Other batches end a piece: smaller pieces waste less reading where they are frequent.
                if (next_position - position) * 2 >= min(size, source.size - position):
                    size, plain = min(size * 2, PIECE_BYTES), 1
                else:
                    size = max(size // 8, _MIN_BYTES)
                position = next_position
                continue
            rows, position = self._one_by_one(source, position, plain, name)
            size, plain = min(size * 4, PIECE_BYTES), min(plain * 2, _MAX_PLAIN)
            if rows:
                yield rows

    def _one_by_one(self, source: Source, position: int, count: int, name: str) -> tuple[list[OffsetCommit], int]:
        """Decode `count` batches from `position` on. Return the commits that take effect, and the next position."""
        result: list[OffsetCommit] = []
        next_position = position
        for item in islice(batches(source, position), count):
            where = f"{name} at {item.position}"
            if isinstance(item, Damage):
                next_position = item.position + item.length
                if not (self.is_last and next_position >= source.size and item.code == "incomplete"):
                    self.notes.damage(f"{where}: {item.message}")
            else:
                next_position = item.next_position
                result += self._batch(source, item, where)
        return result, next_position if next_position > position else source.size

    def _batch(self, source: Source, batch: Batch, where: str) -> list[OffsetCommit]:
        if batch.magic < 0 or not is_valid(source, batch):
            self.notes.damage(f"{where}: the CRC is not that of the batch")
            return []
        try:
            content = content_of(source, batch, MAX_MESSAGE_BYTES)
        except BadRecords as exc:
            self.notes.damage(f"{where}: {exc}")
            return []
        return list(self._plain.add(batch, content, where))


# --- to Arrow -----------------------------------------------------------------------------------------------------


def _batch(events: Commits | list[OffsetCommit], number: int | None, span: Span) -> pa.RecordBatch:
    if isinstance(events, Commits):
        return _batch_of_columns(events, number, span)
    return _batch_of_rows(events, number, span)


def _batch_of_columns(commits: Commits, number: int | None, span: Span) -> pa.RecordBatch:
    selected = np.ones(len(commits), dtype=bool)
    if span.from_ms is not None:
        selected &= commits.at_ms >= span.from_ms
    if span.to_ms is not None:
        selected &= commits.at_ms < span.to_ms
    if span.lower is not None or span.upper is not None:
        selected &= np.array([span.has_group(key.group) for key in commits.keys], dtype=bool)[commits.key]
    if not selected.all():
        commits = commits.at(np.flatnonzero(selected))
    size = len(commits)
    which = numeric(commits.key, pa.int64())
    names = [column([each[i] for each in commits.keys], kind) for i, kind in enumerate(_KEY_TYPES)]
    arrays: list[Any] = [
        numeric(commits.at_ms, pa.int64()),
        *(each.take(which) for each in names),
        numeric(np.where(commits.removed, 0, commits.committed_offset), pa.int64(), ~commits.removed),
        numeric(commits.commit_ms, pa.int64(), commits.has_time),
        numeric(commits.leader_epoch.astype(np.int32), pa.int32(), ~commits.removed & (commits.leader_epoch >= 0)),
        _flags(commits.producer_id >= 0),
        _constant(number, size),
        numeric(commits.log_offset, pa.int64()),
        pa.nulls(size, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


_KEY_TYPES = (pa.string(), pa.string(), pa.int32())


def _flags(values: Any) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def _constant(number: int | None, size: int) -> pa.Array:
    if number is None:
        return pa.nulls(size, pa.int32())
    return numeric(np.full(size, min(number, 2**31 - 1), dtype=np.int32), pa.int32())


def _batch_of_rows(events: list[OffsetCommit], number: int | None, span: Span) -> pa.RecordBatch:
    rows = [
        (
            each.at_ms, *each.key, each.committed_offset, each.commit_ms, each.leader_epoch, each.transactional,
            number, each.log_offset, None,
        )
        for each in events
        if (span.from_ms is None or each.at_ms >= span.from_ms)
        and (span.to_ms is None or each.at_ms < span.to_ms)
        and span.has_group(each.key.group)
    ]  # fmt: skip
    columns = zip(*rows, strict=True) if rows else [()] * len(ARROW.names)
    arrays = [column(values, field.type) for values, field in zip(columns, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def errors_of(notes: CommitNotes) -> pa.RecordBatch:
    """Return read failures as rows of ARROW."""
    more = notes.damaged + notes.unreadable - len(notes.texts)
    texts = notes.texts + ([f"and {more} more"] if more > 0 else [])
    arrays = [
        column(texts, pa.string()) if field.name == "error" else pa.nulls(len(texts), field.type) for field in ARROW
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)
