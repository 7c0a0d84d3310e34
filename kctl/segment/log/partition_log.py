"""A partition's log as one thing: its segments in order, and what the log dir's checkpoints say of it."""

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
_NAMED = 3  # folders of a log dir, in a message


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """path: the folder, or the log file. segments: those that have a log, by base offset.

    start: the log start offset, where the log dir's checkpoint says so; it may be within the first segment.
    cleaned: compaction has been here up to this offset. leader_epochs: the checkpoint file, None without one.
    topic_id: of partition.metadata, None where it does not tell.
    """

    path: Path
    segments: tuple[SegmentFiles, ...]
    start: int | None = None
    cleaned: int | None = None
    leader_epochs: Path | None = None
    topic_id: str | None = None


def partition_log(path: Path) -> PartitionLog:
    """The log of a partition's folder, or of one log file. Raises NotFound, NotAuthorized, UsageError."""
    return partition_log_of_files([path]) if not is_folder(path) else _of_folder(path)


def partition_logs(paths: Iterable[Path]) -> list[PartitionLog]:
    """Folders each by itself, log files by the folder that they are in; in the order in which they were given."""
    groups: dict[tuple[Path, bool], list[Path]] = {}
    for path in paths:
        folder = is_folder(path)
        groups.setdefault((path if folder else path.parent, folder), []).append(path)
    return [_of_folder(place) if folder else partition_log_of_files(files) for (place, folder), files in groups.items()]


def partition_log_of_files(files: list[Path]) -> PartitionLog:
    """Some segments of one folder by their log files."""
    segments = {}
    for file in files:
        if not file.exists():
            raise NotFound(f"{file} does not exist")
        if file.suffix != ".log":
            raise UsageError(f"{file} is no log file", hint="give a partition's folder, or files that end in .log")
        found = companions(file)
        segments[found.base_offset] = found
    path = files[0] if len(segments) == 1 else files[0].parent
    return PartitionLog(path, tuple(segments[offset] for offset in sorted(segments)))


def _of_folder(path: Path) -> PartitionLog:
    folder = read_partition(path)
    segments = tuple(files for files in folder.segments if files.log is not None)
    if not segments:
        inner = [each.name for each in partition_folders(path)]
        hint = "give a partition's folder, or a file that ends in .log"
        if inner:
            more = f" and {len(inner) - _NAMED} more" if len(inner) > _NAMED else ""
            hint = f"it is a log dir: give one of its folders, {', '.join(inner[:_NAMED])}{more}"
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


def checkpointed(folder: Path, name: str) -> int | None:
    """What a checkpoint of the log dir says of a partition's folder in it; None when it does not."""
    for log_dir, own in log_dirs_of(folder):
        topic, partition, _ = parse_folder_name(own)
        if topic is None:
            continue
        try:
            rows = parse_offsets(read_whole(log_dir / name))
        except (KctlError, BadCheckpoint):
            continue
        return next((offset for found, number, offset in rows if (found, number) == (topic, partition)), None)
    return None


def log_dirs_of(folder: Path) -> list[tuple[Path, str]]:
    """Where a partition's folder lies, and its name there: as it is given, and where it is a link to. The first one
    counts: a container's disk, looked at through /proc/PID/root, resolves to a path that is not the container's."""
    return [(each.parent, each.name) for each in dict.fromkeys((folder.absolute(), folder.resolve()))]
