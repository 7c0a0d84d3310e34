"""Resolve paths (.log files, partition folders, log dirs) to logs, with their offsets in the log dir's checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError, NotFound, UsageError
from kctl.segment.log.partition import (
    companions,
    holds_segments,
    is_folder,
    list_folder,
    offset_of,
    parse_folder_name,
    partition_folders,
    read_partition,
)
from kctl.segment.log.partition_log import LOG_STARTS, checkpointed

HIGH_WATERMARKS = "replication-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class SelectedSegment:
    """A segment. base_offset: None if the file name has none. next_base_offset: None for the active segment."""

    base_offset: int | None
    log: Path
    txnindex: Path | None
    next_base_offset: int | None


@dataclass(frozen=True, slots=True)
class SelectedLog:
    """A partition's log, or some segments of it. topic, partition: None if the folder name has none.

    left_out: number of segments of the folder that were not selected. snapshot: of producers, at the first segment's
    base offset. high_watermark, log_start_offset: from the log dir's checkpoints; None: unknown.
    """

    folder: Path
    topic: str | None
    partition: int | None
    segments: tuple[SelectedSegment, ...]
    left_out: int
    snapshot: Path | None
    high_watermark: int | None
    log_start_offset: int | None

    @property
    def name(self) -> str:
        return self.folder.resolve().name or str(self.folder)


def select_logs(paths: Sequence[Path]) -> list[SelectedLog]:
    """Return the logs, in the order of their first path. Raises NotFound, NotAuthorized, UsageError."""
    chosen: dict[Path, dict[Path, None] | None] = {}  # folder → selected files; None: all files
    for path in paths:
        if not is_folder(path):
            if path.suffix != ".log":
                if not path.exists():
                    raise NotFound(f"{path} does not exist")
                raise UsageError(f"{path} is not a log", hint="pass .log files, partition folders or log dirs")
            files = chosen.setdefault(path.parent, {})
            if files is not None:
                files[path] = None
            continue
        for folder in _partitions(path):
            chosen[folder] = None
    return [_whole(folder) if files is None else _some(folder, list(files)) for folder, files in chosen.items()]


def _partitions(folder: Path) -> list[Path]:
    if holds_segments(folder):
        return [folder]
    folders = [each for each in partition_folders(folder) if holds_segments(each)]
    if not folders:
        raise UsageError(f"{folder} has no log segment", hint="pass .log files, partition folders or log dirs")
    return folders


def _whole(folder: Path) -> SelectedLog:
    partition = read_partition(folder)
    logs = [(segment.base_offset, segment.log, segment.txnindex) for segment in partition.segments if segment.log]
    if not logs:
        raise UsageError(
            f"{folder} has no log segment", hint="the .log files are missing; restore them, or pass another folder"
        )
    next_bases = [*(base for base, _, _ in logs[1:]), None]
    segments = [SelectedSegment(*log, next_base) for log, next_base in zip(logs, next_bases, strict=True)]
    return _selected(folder, segments, 0)


def _some(folder: Path, files: Sequence[Path]) -> SelectedLog:
    try:
        base_offsets = sorted(base for base, name in _logs(folder) if name.suffix == ".log")
    except KctlError:  # the folder can be accessed, but not listed
        base_offsets = []
    segments = []
    for path in files:
        base = offset_of(path)
        if base is None:
            segments.append(SelectedSegment(None, path, None, None))
            continue
        next_base = next((other for other in base_offsets if other > base), None)
        segments.append(SelectedSegment(base, path, companions(path).txnindex, next_base))
    segments.sort(key=lambda segment: -1 if segment.base_offset is None else segment.base_offset)
    selected_bases = {segment.base_offset for segment in segments}
    return _selected(folder, segments, sum(base not in selected_bases for base in base_offsets))


def _logs(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in list_folder(folder):
        base = offset_of(path)
        if base is not None:
            yield base, path


def _selected(folder: Path, segments: Sequence[SelectedSegment], left_out: int) -> SelectedLog:
    topic, partition, _ = parse_folder_name(folder.resolve().name)
    base = segments[0].base_offset
    snapshot = None if base is None else segments[0].log.with_name(f"{base:020d}.snapshot")
    return SelectedLog(
        folder,
        topic,
        partition,
        tuple(segments),
        left_out,
        snapshot if snapshot is not None and snapshot.exists() else None,
        checkpointed(folder, HIGH_WATERMARKS),
        checkpointed(folder, LOG_STARTS),
    )
