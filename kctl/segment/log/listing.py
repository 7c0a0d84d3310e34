"""What log dirs hold, segment by segment: sizes, offsets and times as retention and compaction go by them.

Two depths. A listing reads no log: names and sizes, the first batch's header, the last entry of the time index and what
is behind it; milliseconds a partition. With `headers` every batch header is read: batches, records, and damage.

The largest timestamp is what retention.ms goes by (LogSegment.largestTimestamp). A broker writes it as the last entry
of the time index when it rolls a segment (LogSegment.onBecomeInactiveSegment); of what is behind that entry, which the
active segment has, the headers are read. Without a time index all headers are.
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
    """A segment. state: of its folder (delete, future, stray), else None. next_base_offset None: the active one.

    index_bytes: of .index, .timeindex and .txnindex. modified_ms: of the log file. Timestamps are ms, None where no
    batch has one. batches, records, last_offset, damaged_places: only with headers. high_watermark, log_start_offset,
    cleaned_offset: of the partition, by the log dir's checkpoints. error: why the segment, or the folder, could not be
    read; then what is not known is None.
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
    """What a log dir's checkpoints say of its partitions."""

    high_watermarks: Mapping[tuple[str, int], int] = field(default_factory=dict)
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    cleaned: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, log_dir: Path) -> Checkpoints:
        """A file that is missing, or that a broker would not read, says nothing."""
        return cls(*(_offsets(log_dir / name) for name in (HIGH_WATERMARKS, LOG_STARTS, CLEANED)))


def _offsets(path: Path) -> dict[tuple[str, int], int]:
    try:
        return {(topic, partition): offset for topic, partition, offset in parse_offsets(read_whole(path))}
    except (KctlError, BadCheckpoint):
        return {}


def log_bytes(folder: Path) -> int:
    """What the log files of a folder take; 0 when it cannot be read."""
    try:
        return sum(file.stat().st_size for file in folder.iterdir() if file.suffix == ".log")
    except OSError:
        return 0


def list_segments(folders: Iterable[Path], *, headers: bool = False) -> Iterator[SegmentListing]:
    """The segments of partitions' folders, oldest first; one that cannot be read is a row with an error."""
    known: dict[Path, Checkpoints] = {}
    for folder in folders:
        parent = folder.absolute().parent
        checkpoints = known.setdefault(parent, known.get(parent) or Checkpoints.of(parent))
        yield from _folder(folder, checkpoints, headers=headers)


def _folder(path: Path, checkpoints: Checkpoints, *, headers: bool) -> Iterator[SegmentListing]:
    topic, partition, state = parse_folder_name(path.name)
    bare = SegmentListing(str(path.absolute().parent), path.name, topic, partition, state)
    try:
        folder = read_partition(path)
    except KctlError as exc:
        yield bare._replace(error=exc.message)
        return
    own = (topic, partition) if topic is not None and partition is not None and state is None else ("", -1)
    bare = bare._replace(
        topic_id=_topic_id(folder),
        high_watermark=checkpoints.high_watermarks.get(own),
        log_start_offset=checkpoints.log_starts.get(own),
        cleaned_offset=checkpoints.cleaned.get(own),
    )
    logs = [files for files in folder.segments if files.log is not None]
    following: Sequence[int | None] = [*(files.base_offset for files in logs[1:]), None]
    for files, after in zip(logs, following, strict=True):
        row = bare._replace(base_offset=files.base_offset, next_base_offset=after)
        try:
            yield _segment(row, files, headers=headers)
        except KctlError as exc:
            yield row._replace(error=exc.message)
        except OSError as exc:  # gone since the folder was listed
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
        seen = _Seen()
        if headers:
            seen.read(source, 0)
        else:
            position, indexed = _indexed(files, source.size)
            seen.largest = indexed
            first = next(batches(source), None)
            if isinstance(first, Batch):
                seen.first = _first_timestamp(first)
            seen.read(source, position)
        row = row._replace(
            size_bytes=source.size,
            index_bytes=sum(
                path.stat().st_size for path in (files.index, files.timeindex, files.txnindex) if path is not None
            ),
            modified_ms=files.log.stat().st_mtime_ns // 1_000_000,
            first_timestamp_ms=_known(seen.first),
            largest_timestamp_ms=_known(seen.largest),
        )
    if not headers:
        return row
    return row._replace(
        batches=seen.batches, records=seen.records, last_offset=seen.last_offset, damaged_places=seen.damaged
    )


def _indexed(files: SegmentFiles, size: int) -> tuple[int, int]:
    """Up to where the time index covers the log, and the largest timestamp of that part; (0, none) without one."""
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


def _known(timestamp: int) -> int | None:
    return timestamp if timestamp >= 0 else None


def _first_timestamp(batch: Batch) -> int:
    plain = batch.legacy or batch.delete_horizon_ms is not None or batch.log_append_time
    return batch.max_timestamp if plain else batch.base_timestamp


@dataclass(slots=True)
class _Seen:
    """What the headers of a segment come to."""

    first: int = NO_TIMESTAMP
    largest: int = NO_TIMESTAMP
    batches: int = 0
    records: int = 0
    last_offset: int | None = None
    damaged: int = 0

    def read(self, source: Source, position: int) -> None:
        """Every header from `position` on."""
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
