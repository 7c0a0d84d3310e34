"""List the segments of log dirs: the sizes, offsets and timestamps that decide retention and compaction.

By default, only the first batch header, the last time index entry and the headers after that entry are read:
milliseconds per partition. With `headers`, every batch header is read, to count batches, records and damage.

retention.ms applies to the largest timestamp (LogSegment.largestTimestamp). A broker writes it as the last entry of the
time index when it rolls a segment (LogSegment.onBecomeInactiveSegment). Active segments have batches after that entry.
Without a time index, all headers are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kctl.errors import KctlError
from kctl.segment.format.batch import NO_TIMESTAMP, Batch
from kctl.segment.format.checkpoints import BadCheckpoint, parse_offsets, parse_settings
from kctl.segment.format.index_lookup import offset_lookup, time_lookup
from kctl.segment.log.log_selection import HIGH_WATERMARKS
from kctl.segment.log.partition import (
    PartitionFolder,
    SegmentFiles,
    parse_folder_name,
    read_partition,
)
from kctl.segment.log.partition_log import CLEANED, LOG_STARTS
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.walk import Damage, batches, is_preallocated

_LAST = 2**63 - 1


class SegmentListing(NamedTuple):
    """A segment. state: of its folder (delete, future, stray) or None. next_base_offset: None if active.

    index_bytes: of .index, .timeindex and .txnindex. modified_ms: of the log file. Timestamps: ms; None: no batch has
    one. batches, records, last_offset, damaged_places: only with headers. high_watermark, log_start_offset,
    cleaned_offset: of the partition, from the log dir's checkpoints. error: why the segment or folder could not be
    read; unknown fields are None.
    """

    log_dir: str
    folder: str
    topic: str | None = None
    partition: int | None = None
    state: str | None = None
    topic_id: str | None = None
    base_offset: int | None = None
    next_base_offset: int | None = None
    size_bytes: int | None = None
    index_bytes: int | None = None
    modified_ms: int | None = None
    first_timestamp_ms: int | None = None
    largest_timestamp_ms: int | None = None
    batches: int | None = None
    records: int | None = None
    last_offset: int | None = None
    damaged_places: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    cleaned_offset: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Checkpoints:
    """The offsets of partitions in a log dir's checkpoints."""

    high_watermarks: Mapping[tuple[str, int], int] = field(default_factory=dict)
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    cleaned: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, log_dir: Path) -> Checkpoints:
        """Read the checkpoints of a log dir. Missing and invalid files count as empty."""
        return cls(*(_offsets(log_dir / name) for name in (HIGH_WATERMARKS, LOG_STARTS, CLEANED)))


def _offsets(path: Path) -> dict[tuple[str, int], int]:
    try:
        return {(topic, partition): offset for topic, partition, offset in parse_offsets(read_whole(path))}
    except (KctlError, BadCheckpoint):
        return {}


def log_bytes(folder: Path) -> int:
    """Return the total size of the log files of a folder; 0 if unreadable."""
    try:
        return sum(file.stat().st_size for file in folder.iterdir() if file.suffix == ".log")
    except OSError:
        return 0


def list_segments(folders: Iterable[Path], *, headers: bool = False) -> Iterator[SegmentListing]:
    """Yield the segments of partition folders, oldest first.

    An unreadable segment or folder yields a row with an error.
    """
    by_log_dir: dict[Path, Checkpoints] = {}
    for folder in folders:
        parent = folder.absolute().parent
        checkpoints = by_log_dir.setdefault(parent, by_log_dir.get(parent) or Checkpoints.of(parent))
        yield from _folder(folder, checkpoints, headers=headers)


def _folder(path: Path, checkpoints: Checkpoints, *, headers: bool) -> Iterator[SegmentListing]:
    topic, partition, state = parse_folder_name(path.name)
    bare = SegmentListing(str(path.absolute().parent), path.name, topic, partition, state)
    try:
        folder = read_partition(path)
    except KctlError as exc:
        yield bare._replace(error=exc.message)
        return
    key = (topic, partition) if topic is not None and partition is not None and state is None else ("", -1)
    bare = bare._replace(
        topic_id=_topic_id(folder),
        high_watermark=checkpoints.high_watermarks.get(key),
        log_start_offset=checkpoints.log_starts.get(key),
        cleaned_offset=checkpoints.cleaned.get(key),
    )
    logs = [files for files in folder.segments if files.log is not None]
    next_bases: Sequence[int | None] = [*(files.base_offset for files in logs[1:]), None]
    for files, next_base in zip(logs, next_bases, strict=True):
        row = bare._replace(base_offset=files.base_offset, next_base_offset=next_base)
        try:
            yield _segment(row, files, headers=headers)
        except KctlError as exc:
            yield row._replace(error=exc.message)
        except OSError as exc:  # deleted since the folder was listed
            yield row._replace(error=f"{files.log}: {exc.strerror}")


def _topic_id(folder: PartitionFolder) -> str | None:
    if folder.metadata is None:
        return None
    try:
        return parse_settings(read_whole(folder.metadata), ":").get("topic_id")
    except (KctlError, BadCheckpoint):
        return None


def _segment(row: SegmentListing, files: SegmentFiles, *, headers: bool) -> SegmentListing:
    assert files.log is not None
    with Source(files.log) as source:
        headers_read = _HeaderTotals()
        if headers:
            headers_read.read(source, 0)
        else:
            position, indexed = _indexed(files, source.size)
            headers_read.largest = indexed
            first = next(batches(source), None)
            if isinstance(first, Batch):
                headers_read.first = _first_timestamp(first)
            headers_read.read(source, position)
        row = row._replace(
            size_bytes=source.size,
            index_bytes=sum(
                path.stat().st_size for path in (files.index, files.timeindex, files.txnindex) if path is not None
            ),
            modified_ms=files.log.stat().st_mtime_ns // 1_000_000,
            first_timestamp_ms=_ms_or_none(headers_read.first),
            largest_timestamp_ms=_ms_or_none(headers_read.largest),
        )
    if not headers:
        return row
    return row._replace(
        batches=headers_read.batches,
        records=headers_read.records,
        last_offset=headers_read.last_offset,
        damaged_places=headers_read.damaged,
    )


def _indexed(files: SegmentFiles, size: int) -> tuple[int, int]:
    """Return the position up to which the time index covers the log, and the largest timestamp before it.

    Returns (0, NO_TIMESTAMP) without a usable index.
    """
    if files.timeindex is None or files.index is None:
        return 0, NO_TIMESTAMP
    try:
        with Source(files.timeindex) as source:
            latest, _ = time_lookup(source, files.base_offset, _LAST)
        if latest is None:
            return 0, NO_TIMESTAMP
        with Source(files.index) as source:
            entry, _ = offset_lookup(source, files.base_offset, latest.offset)
    except KctlError:
        return 0, NO_TIMESTAMP
    if entry is None or not 0 <= entry.position < size:
        return 0, NO_TIMESTAMP
    return entry.position, latest.timestamp


def _ms_or_none(timestamp: int) -> int | None:
    return timestamp if timestamp >= 0 else None


def _first_timestamp(batch: Batch) -> int:
    no_base = batch.legacy or batch.delete_horizon_ms is not None or batch.log_append_time
    return batch.max_timestamp if no_base else batch.base_timestamp


@dataclass(slots=True)
class _HeaderTotals:
    """Totals of the batch headers of a segment."""

    first: int = NO_TIMESTAMP
    largest: int = NO_TIMESTAMP
    batches: int = 0
    records: int = 0
    last_offset: int | None = None
    damaged: int = 0

    def read(self, source: Source, position: int) -> None:
        """Read every header from `position` on."""
        for item in batches(source, position):
            if isinstance(item, Damage):
                self.damaged += not is_preallocated(source, item)
                continue
            if not self.batches and position == 0:
                self.first = _first_timestamp(item)
            self.batches += 1
            self.records += max(item.record_count, 0)
            self.largest = max(self.largest, item.max_timestamp)
            self.last_offset = max(item.last_offset, -1 if self.last_offset is None else self.last_offset)
