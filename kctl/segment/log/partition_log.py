"""A partition's log: its segments in order, and its offsets in the log dir's checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError, NotFound, UsageError
from kctl.segment.format.checkpoints import BadCheckpoint, parse_offsets, parse_settings
from kctl.segment.log.partition import (
    SegmentFiles,
    companions,
    is_folder,
    parse_folder_name,
    partition_folders,
    read_partition,
)
from kctl.segment.log.source import read_whole

LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
_MAX_NAMES = 3  # folders of a log dir in a message


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """A partition's log. path: the folder, or the log file. segments: those that have a .log, by base offset.

    start: the log start offset, which may be within the first segment; cleaned: the log is compacted up to this offset;
    both from the log dir's checkpoints, None: unknown. leader_epochs: the checkpoint file; None: it does not exist.
    topic_id: from partition.metadata; None: unknown.
    """

    path: Path
    segments: tuple[SegmentFiles, ...]
    start: int | None = None
    cleaned: int | None = None
    leader_epochs: Path | None = None
    topic_id: str | None = None


def partition_log(path: Path) -> PartitionLog:
    """Return the log of a partition folder or of one log file. Raises NotFound, NotAuthorized, UsageError."""
    return partition_log_of_files([path]) if not is_folder(path) else _of_folder(path)


def partition_logs(paths: Iterable[Path]) -> list[PartitionLog]:
    """Return one log per folder, and one for all log files in the same folder, in the order of the paths."""
    groups: dict[tuple[Path, bool], list[Path]] = {}
    for path in paths:
        folder = is_folder(path)
        groups.setdefault((path if folder else path.parent, folder), []).append(path)
    return [
        _of_folder(key_path) if folder else partition_log_of_files(files)
        for (key_path, folder), files in groups.items()
    ]


def partition_log_of_files(files: list[Path]) -> PartitionLog:
    """Return the log that consists of these segments of one folder."""
    segments = {}
    for file in files:
        if not file.exists():
            raise NotFound(f"{file} does not exist")
        if file.suffix != ".log":
            raise UsageError(f"{file} is not a log file", hint="pass a partition folder, or .log files")
        segment = companions(file)
        segments[segment.base_offset] = segment
    path = files[0] if len(segments) == 1 else files[0].parent
    return PartitionLog(path, tuple(segments[offset] for offset in sorted(segments)))


def _of_folder(path: Path) -> PartitionLog:
    folder = read_partition(path)
    segments = tuple(files for files in folder.segments if files.log is not None)
    if not segments:
        inner = [each.name for each in partition_folders(path)]
        hint = "pass a partition folder, or a .log file"
        if inner:
            more = f" and {len(inner) - _MAX_NAMES} more" if len(inner) > _MAX_NAMES else ""
            hint = f"it is a log dir: pass one of its folders: {', '.join(inner[:_MAX_NAMES])}{more}"
        raise UsageError(f"{path} has no log segment", hint=hint)
    return PartitionLog(
        path, segments, checkpointed(path, LOG_STARTS), checkpointed(path, CLEANED), folder.leader_epochs,
        _topic_id(folder.metadata),
    )  # fmt: skip


def _topic_id(metadata: Path | None) -> str | None:
    if metadata is None:
        return None
    try:
        return parse_settings(read_whole(metadata), ":").get("topic_id")
    except (KctlError, BadCheckpoint):
        return None


def checkpointed(folder: Path, checkpoint: str) -> int | None:
    """Return the offset of a partition folder in a checkpoint of its log dir; None if unknown."""
    for log_dir, name in log_dirs_of(folder):
        topic, partition, _ = parse_folder_name(name)
        if topic is None:
            continue
        try:
            rows = parse_offsets(read_whole(log_dir / checkpoint))
        except (KctlError, BadCheckpoint):
            continue
        return next((offset for row_topic, number, offset in rows if (row_topic, number) == (topic, partition)), None)
    return None


def log_dirs_of(folder: Path) -> list[tuple[Path, str]]:
    """Return (parent, name) of a partition folder: by this path, then by the resolved path.

    The first one has priority: a container's disk seen through /proc/PID/root resolves to a path outside the container.
    """
    return [(each.parent, each.name) for each in dict.fromkeys((folder.absolute(), folder.resolve()))]
