"""Group files into segments, partition folders and log dirs.

Names: LogFileUtils and UnifiedLog/LocalLog. The files of a segment are named after its base offset, 20 digits. A
partition folder is `topic-partition`, or `topic-partition.<unique id>-delete|-future|-stray`.
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
METADATA_TOPIC = "__cluster_metadata"
METADATA_FOLDER = f"{METADATA_TOPIC}-0"
_KRAFT_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint|bootstrap\.checkpoint")
# Files that a broker removes at startup: deleted segments, and those of an interrupted compaction (LogLoader).
LEFTOVERS = (".cleaned", ".swap", ".deleted")


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of a segment. None: the file does not exist."""

    base_offset: int
    log: Path | None
    index: Path | None
    timeindex: Path | None
    txnindex: Path | None


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """The contents of a partition folder. segments: by base offset; the last one is active.

    topic, partition: None if the folder has another name (a copy). state: delete, future, stray or None. snapshots:
    (offset, path) of producer snapshots, by offset. leftovers: files that a broker removes at startup.
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
    """Return the offset in a file name; None if it has none."""
    stem = path.name.partition(".")[0]
    return int(stem) if _OFFSET.fullmatch(stem) and int(stem) <= _MAX_OFFSET else None


def is_kraft_snapshot(path: Path) -> bool:
    """Return True if a file is a KRaft snapshot by its name (KIP-630)."""
    return _KRAFT_SNAPSHOT.fullmatch(path.name) is not None


def next_segment(path: Path) -> Path | None:
    """Return the next log file in the folder; None if there is none, or if the name has no base offset."""
    base_offset = offset_of(path)
    if base_offset is None:
        return None
    try:
        logs = {offset_of(file): file for file in list_folder(path.parent) if file.suffix == ".log"}
    except KctlError:
        return None
    later = [offset for offset in logs if offset is not None and offset > base_offset]
    return logs[min(later)] if later else None


def is_folder(path: Path) -> bool:
    """Return True if the path is a folder, False if it does not exist. Raises NotAuthorized, OperationFailed."""
    try:
        return path.is_dir()
    except PermissionError:
        raise NotAuthorized(f"cannot read {path}: permission denied", hint="run kctl as the broker's user") from None
    except (OSError, ValueError) as exc:  # a name too long, a null byte
        raise OperationFailed(f"cannot read {path}: {exc}") from None


def list_folder(path: Path) -> list[Path]:
    """Return the contents of a folder, by name. Raises NotFound, NotAuthorized, UsageError if it is not a folder."""
    try:
        return sorted(path.iterdir())
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist") from None
    except NotADirectoryError:
        raise UsageError(f"{path} is a file, not a folder") from None
    except PermissionError:
        raise NotAuthorized(f"cannot read {path}: permission denied", hint="run kctl as the broker's user") from None
    except OSError as exc:
        raise OperationFailed(f"cannot read {path}: {exc.strerror}") from None


def read_partition(path: Path) -> PartitionFolder:
    """Return the files of a partition folder. Raises NotFound, NotAuthorized, UsageError."""
    files: dict[str, dict[int, Path]] = {".log": {}, ".index": {}, ".timeindex": {}, ".txnindex": {}, ".snapshot": {}}
    leftovers, unknown = [], []
    special: dict[str, Path] = {}
    for file in list_folder(path):
        offset = offset_of(file)
        if file.suffix in LEFTOVERS:
            leftovers.append(file)
        elif offset is not None and file.suffix in files and file.name == f"{offset:020d}{file.suffix}":
            files[file.suffix][offset] = file
        elif file.name in {LEADER_EPOCHS, PARTITION_METADATA}:
            special[file.name] = file
        else:
            unknown.append(file)
    topic, partition, state = parse_folder_name(path.name)
    return PartitionFolder(
        path, topic, partition, state, tuple(_segments(files)), tuple(sorted(files[".snapshot"].items())),
        special.get(LEADER_EPOCHS), special.get(PARTITION_METADATA), tuple(leftovers), tuple(unknown),
    )  # fmt: skip


def _segments(files: dict[str, dict[int, Path]]) -> Iterator[SegmentFiles]:
    kinds = [files[suffix] for suffix in (".log", ".index", ".timeindex", ".txnindex")]
    for offset in sorted(set().union(*kinds)):
        log, index, timeindex, txnindex = (kind.get(offset) for kind in kinds)
        yield SegmentFiles(offset, log, index, timeindex, txnindex)


def parse_folder_name(name: str) -> tuple[str | None, int | None, str | None]:
    """Return (topic, partition, state); topic and partition are None if the name is not a partition folder's."""
    state = None
    renamed = _RENAMED.fullmatch(name)
    if renamed:
        name, state = renamed["name"], renamed["state"]
    match = _FOLDER.fullmatch(name)
    if match is None or len(match["partition"]) > 10:
        return None, None, state
    return match["topic"], int(match["partition"]), state


def companions(log: Path) -> SegmentFiles:
    """Return the segment of a log file. Raises UsageError if the file name has no base offset."""
    offset = offset_of(log)
    if offset is None:
        raise UsageError(
            f"{log.name} is not named after a base offset", hint="the name of a log file is 20 digits and .log"
        )
    others = (log.with_suffix(suffix) for suffix in (".index", ".timeindex", ".txnindex"))
    index, timeindex, txnindex = (path if path.exists() else None for path in others)
    return SegmentFiles(offset, log if log.exists() else None, index, timeindex, txnindex)


def holds_segments(path: Path) -> bool:
    """Return True if a folder contains segment files, or other files that only partition folders have."""
    return any(
        (offset_of(file) is not None and file.suffix in {".log", ".index", ".timeindex", ".snapshot"})
        or file.name in {LEADER_EPOCHS, PARTITION_METADATA}
        for file in list_folder(path)
    )


def partition_folders(log_dir: Path) -> list[Path]:
    """Return the partition folders of a log dir, recognized by name or, if readable, by contents."""
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
