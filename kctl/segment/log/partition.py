"""Which files belong together: a segment's companions, a partition's folder, a log dir.

Names: LogFileUtils and UnifiedLog/LocalLog. A segment's files are named after its base offset, 20 digits; a partition's
folder is `topic-partition`, or `topic-partition.<unique id>-delete|-future|-stray`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError, NotAuthorized, NotFound, OperationFailed, UsageError

_OFFSET = re.compile(r"[0-9]{20}")
_FOLDER = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>[0-9]+)")
_RENAMED = re.compile(r"(?P<name>.+)\.[0-9a-f]{32}-(?P<state>delete|future|stray)")
_MAX_OFFSET = 2**63 - 1
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
# What a broker removes when it starts: cleaned and swapped segments of a compaction, deleted ones (LogLoader).
LEFTOVERS = (".cleaned", ".swap", ".deleted")


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """A segment by its base offset. The paths of files that are not there are None."""

    base_offset: int
    log: Path | None
    index: Path | None
    timeindex: Path | None
    txnindex: Path | None


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """What a partition's folder holds. segments: by base offset; the last one is the active one.

    topic, partition: None when the folder's name does not tell (a copy). state: delete, future or stray, else None.
    snapshots: (offset, path) of producer snapshots, by offset. leftovers: what a broker removes at its start.
    """

    path: Path
    topic: str | None
    partition: int | None
    state: str | None
    segments: tuple[SegmentFiles, ...]
    snapshots: tuple[tuple[int, Path], ...]
    leader_epochs: Path | None
    metadata: Path | None
    leftovers: tuple[Path, ...]
    unknown: tuple[Path, ...]

    @property
    def name(self) -> str:
        return self.path.name or str(self.path)


def offset_of(path: Path) -> int | None:
    """The offset in a file's name; None when it has none."""
    stem = path.name.partition(".")[0]
    return int(stem) if _OFFSET.fullmatch(stem) and int(stem) <= _MAX_OFFSET else None


def next_segment(path: Path) -> Path | None:
    """The log after this one in its folder; None when there is none, or when the name does not tell."""
    own = offset_of(path)
    if own is None:
        return None
    try:
        logs = {offset_of(file): file for file in list_folder(path.parent) if file.suffix == ".log"}
    except KctlError:
        return None
    later = [offset for offset in logs if offset is not None and offset > own]
    return logs[min(later)] if later else None


def is_folder(path: Path) -> bool:
    """Whether it is a folder; false for what does not exist. Raises NotAuthorized, OperationFailed."""
    try:
        return path.is_dir()
    except PermissionError:
        raise NotAuthorized(f"{path} cannot be read: permission denied", hint="run kctl as the broker's user") from None
    except (OSError, ValueError) as exc:  # a name too long, a null byte
        raise OperationFailed(f"cannot read {path}: {exc}") from None


def list_folder(path: Path) -> list[Path]:
    """What is in a folder, by name. Raises NotFound, NotAuthorized, UsageError when it is no folder."""
    try:
        return sorted(path.iterdir())
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist") from None
    except NotADirectoryError:
        raise UsageError(f"{path} is a file, not a folder") from None
    except PermissionError:
        raise NotAuthorized(f"{path} cannot be read: permission denied", hint="run kctl as the broker's user") from None
    except OSError as exc:
        raise OperationFailed(f"cannot read {path}: {exc.strerror}") from None


def read_partition(path: Path) -> PartitionFolder:
    """The files of a partition's folder. Raises NotFound, NotAuthorized, UsageError."""
    found: dict[str, dict[int, Path]] = {".log": {}, ".index": {}, ".timeindex": {}, ".txnindex": {}, ".snapshot": {}}
    leftovers, unknown = [], []
    special: dict[str, Path] = {}
    for file in list_folder(path):
        offset = offset_of(file)
        if file.suffix in LEFTOVERS:
            leftovers.append(file)
        elif offset is not None and file.suffix in found and file.name == f"{offset:020d}{file.suffix}":
            found[file.suffix][offset] = file
        elif file.name in {LEADER_EPOCHS, PARTITION_METADATA}:
            special[file.name] = file
        else:
            unknown.append(file)
    topic, partition, state = parse_folder_name(path.name)
    return PartitionFolder(
        path, topic, partition, state, tuple(_segments(found)), tuple(sorted(found[".snapshot"].items())),
        special.get(LEADER_EPOCHS), special.get(PARTITION_METADATA), tuple(leftovers), tuple(unknown),
    )  # fmt: skip


def _segments(found: dict[str, dict[int, Path]]) -> Iterator[SegmentFiles]:
    kinds = [found[suffix] for suffix in (".log", ".index", ".timeindex", ".txnindex")]
    for offset in sorted(set().union(*kinds)):
        log, index, timeindex, txnindex = (kind.get(offset) for kind in kinds)
        yield SegmentFiles(offset, log, index, timeindex, txnindex)


def parse_folder_name(name: str) -> tuple[str | None, int | None, str | None]:
    """(topic, partition, state); the first two are None when the name is none of a partition's."""
    state = None
    renamed = _RENAMED.fullmatch(name)
    if renamed:
        name, state = renamed["name"], renamed["state"]
    match = _FOLDER.fullmatch(name)
    if match is None or len(match["partition"]) > 10:
        return None, None, state
    return match["topic"], int(match["partition"]), state


def companions(log: Path) -> SegmentFiles:
    """A log file and what lies beside it. Raises UsageError when its name has no base offset."""
    offset = offset_of(log)
    if offset is None:
        raise UsageError(f"{log.name} is not named after a base offset", hint="a segment is named 20 digits and .log")
    others = (log.with_suffix(suffix) for suffix in (".index", ".timeindex", ".txnindex"))
    index, timeindex, txnindex = (path if path.exists() else None for path in others)
    return SegmentFiles(offset, log if log.exists() else None, index, timeindex, txnindex)


def holds_segments(path: Path) -> bool:
    """Whether a folder is a partition's: it has a segment's file, or the files that only a partition's folder has."""
    return any(
        (offset_of(file) is not None and file.suffix in {".log", ".index", ".timeindex", ".snapshot"})
        or file.name in {LEADER_EPOCHS, PARTITION_METADATA}
        for file in list_folder(path)
    )


def partition_folders(log_dir: Path) -> list[Path]:
    """The partitions' folders of a log dir: by how they are called, or by what they hold, if that may be read."""
    return [
        path
        for path in list_folder(log_dir)
        if path.is_dir() and (parse_folder_name(path.name)[0] is not None or _seems_to_hold_segments(path))
    ]


def _seems_to_hold_segments(path: Path) -> bool:
    try:
        return holds_segments(path)
    except NotAuthorized:  # lost+found
        return False
