"""Check log dirs: their partitions, checkpoints and owners, and several log dirs against each other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from kctl.errors import KctlError
from kctl.segment.format.checkpoints import (
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    BadCheckpoint,
    parse_offsets,
    parse_settings,
)
from kctl.segment.log.partition import list_folder, parse_folder_name, partition_folders, read_partition
from kctl.segment.verify.context import Verification, some
from kctl.segment.verify.kraft import shut_down_cleanly, verify_snapshot
from kctl.segment.verify.partition import PartitionCheck, PartitionFacts, is_uuid

_BOOTSTRAP = "bootstrap.checkpoint"  # BootstrapDirectory
_REPLICATION, _RECOVERY, _LOG_START, _CLEANER = OFFSET_CHECKPOINTS
_REMOTE_CACHE = "remote-log-index-cache"  # RemoteIndexCache.DIR_NAME
# LocalLog.parseTopicPartitionName, which a broker applies to every folder in a log dir.
_PARTITION = re.compile(r".+-[+-]?[0-9]{1,10}(?:\..*)?|.+\.[0-9a-z]+-(?:delete|future|stray)", re.DOTALL)
_INT = re.compile(r"-?[0-9]{1,10}")
Offsets = dict[tuple[str, int], int]


@dataclass
class LogDirFacts:
    """The owner of a log dir. None: unknown."""

    path: Path
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None


@dataclass
class LogDirs:
    """The check of several log dirs, each against the previous ones."""

    run: Verification
    _dirs: list[LogDirFacts] = field(default_factory=list)
    _topic_ids: dict[tuple[str | None, str], tuple[str, Path]] = field(default_factory=dict)
    _partitions: dict[tuple[str | None, int | None, str, int], Path] = field(default_factory=dict)
    _unread: set[tuple[str, int]] = field(default_factory=set)  # of the current log dir

    def check(self, path: Path) -> None:
        """Check a log dir and everything in it. Raises NotFound and the like if it cannot be listed."""
        self.run.checked.log_dir_count += 1
        children = list_folder(path)
        facts = read_meta_properties(self.run, path / META_PROPERTIES)
        self._compare(facts)
        checkpoints = {name: self._checkpoint(path / name) for name in OFFSET_CHECKPOINTS}
        if (path / _BOOTSTRAP).exists():
            verify_snapshot(self.run, path / _BOOTSTRAP)
        partitions: dict[tuple[str, int], PartitionFacts] = {}
        partition_paths = set(partition_folders(path))
        self._unread.clear()
        cleaner_unreadable = checkpoints[_CLEANER] is None and (path / _CLEANER).exists()
        cleaned = None if cleaner_unreadable else checkpoints[_CLEANER] or {}
        for folder in children:
            if folder in partition_paths:
                self._partition(folder, facts, cleaned, partitions)
            elif folder.is_dir() and folder.name != _REMOTE_CACHE and not _PARTITION.fullmatch(folder.name):
                self.run.findings.add("folder_name", folder, "a log dir may only contain partition folders")
        self._compare_offsets(path, checkpoints, partitions)

    # --- the owner ----------------------------------------------------------------------------------------------------

    def _compare(self, facts: LogDirFacts) -> None:
        """Compare the owner with those of the previous log dirs. The log dirs of one broker have the same node id."""
        file = facts.path / META_PROPERTIES
        for other in self._dirs:
            if facts.cluster_id != other.cluster_id and None not in {facts.cluster_id, other.cluster_id}:
                text = f"cluster.id is {facts.cluster_id}, but {other.cluster_id} in {other.path}"
                self.run.findings.add("cluster_id", file, text)
                break
        for other in self._dirs:
            if facts.directory_id is not None and facts.directory_id == other.directory_id:
                self.run.findings.add("directory_id", file, f"directory.id is the same as in {other.path}")
                break
        self._dirs.append(facts)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def _partition(
        self,
        path: Path,
        owner: LogDirFacts,
        cleaned: Offsets | None,
        checked: dict[tuple[str, int], PartitionFacts],
    ) -> None:
        try:
            folder = read_partition(path)
        except KctlError as exc:
            self.run.unreadable(path, exc)
            topic, partition, state = parse_folder_name(path.name)
            if topic is not None and partition is not None and state is None:
                self._unread.add((topic, partition))
            return
        if folder.topic is None or folder.partition is None:
            self.run.findings.add("folder_name", path, "the folder name is not TOPIC-PARTITION")
        if folder.state == "delete":
            self.run.findings.add("leftover", path, "the topic was deleted, or the replica was moved")
            return
        name = (folder.topic or path.name, folder.partition or 0)
        compacted = None if cleaned is None else cleaned.get(name, 0) > 0
        try:
            clean = shut_down_cleanly(path)
            facts = PartitionCheck(self.run, folder, cleaned=compacted, clean_shutdown=clean).check()
        except PermissionError as exc:  # the folder may be listed, but not entered
            self.run.unreadable(path, exc)
            if folder.state is None:
                self._unread.add(name)
            return
        if folder.topic is None or folder.state is not None:
            return
        checked[name] = facts
        self._compare_partition(facts, owner, name)

    def _compare_partition(self, facts: PartitionFacts, owner: LogDirFacts, name: tuple[str, int]) -> None:
        """Compare with the same topic and partition in other log dirs."""
        path = facts.folder.path
        if facts.topic_id is not None:
            topic_id, where = self._topic_ids.setdefault((owner.cluster_id, name[0]), (facts.topic_id, path))
            if topic_id != facts.topic_id:
                text = f"the topic id is {facts.topic_id}, but {topic_id} in {where}"
                self.run.findings.add("topic_id", facts.folder.metadata or path, text)
        if owner.node_id is not None:
            other_path = self._partitions.setdefault((owner.cluster_id, owner.node_id, *name), path)
            if other_path != path:
                text = f"broker {owner.node_id} also has this partition in {other_path}"
                self.run.findings.add("partition_twice", path, text)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def _checkpoint(self, path: Path) -> Offsets | None:
        return read_offsets(self.run, path) if path.exists() else None

    def _compare_offsets(
        self, path: Path, checkpoints: dict[str, Offsets | None], partitions: dict[tuple[str, int], PartitionFacts]
    ) -> None:
        for file, offsets in checkpoints.items():
            absent = []
            for (topic, partition), offset in (offsets or {}).items():
                facts = partitions.get((topic, partition))
                if (topic, partition) in self._unread:
                    continue
                if facts is None:
                    absent.append(f"{topic}-{partition}")
                elif facts.next_offset is not None and offset > facts.next_offset:
                    self._beyond(path / file, f"{topic}-{partition}", offset, facts.next_offset)
            if absent:
                text = f"no longer in this log dir: {some(absent)}"
                self.run.findings.add("checkpoint_folder", path / file, text)

    def _beyond(self, file: Path, name: str, offset: int, end: int) -> None:
        codes = {
            _REPLICATION: ("high_watermark", "the high watermark"),
            _RECOVERY: ("recovery_point", "the recovery point"),
            _LOG_START: ("log_start_offset", "the log start offset"),
            _CLEANER: ("cleaner_offset", "the cleaner offset"),
        }
        code, label = codes[file.name]
        text = f"{name}: {label} {offset} is above the log end offset {end}"
        self.run.findings.add(code, file, text, offset=offset)


def read_offsets(run: Verification, path: Path) -> Offsets | None:
    """Return the offsets of a checkpoint; None if unreadable. Reports problems."""
    data = run.small_file(path)
    if data is None:
        return None
    try:
        return {(topic, partition): offset for topic, partition, offset in parse_offsets(data)}
    except BadCheckpoint as exc:
        run.findings.add("checkpoint", path, str(exc))
        return None


def read_meta_properties(run: Verification, file: Path) -> LogDirFacts:
    """Return the owner according to meta.properties, as far as readable. Reports problems."""
    facts = LogDirFacts(file.parent)
    if not file.exists():
        run.findings.add("meta_properties_missing", file, "a broker treats the folder as a new log dir")
        return facts
    data = run.small_file(file)
    if data is None:
        return facts
    try:
        problem = _fill(facts, parse_settings(data, "="))
    except BadCheckpoint as exc:
        problem = str(exc)
    if problem is not None:
        run.findings.add("meta_properties", file, problem)
    return facts


def _fill(facts: LogDirFacts, settings: dict[str, str]) -> str | None:
    """Set the facts. Return why a broker would reject the settings (MetaProperties.Builder); None if it would not."""
    version = settings.get("version", "0")
    if version not in {"0", "1"}:
        return f"unknown version {version}"
    name = "broker.id" if version == "0" else "node.id"
    node_id, facts.cluster_id = settings.get(name), settings.get("cluster.id")
    directory_id = settings.get("directory.id")
    if node_id is not None and not _INT.fullmatch(node_id):
        return f"{name} is {node_id!r}, not a number"
    facts.node_id = None if node_id is None else int(node_id)
    if version == "1" and (node_id is None or facts.cluster_id is None):
        return f"{'node.id' if node_id is None else 'cluster.id'} is missing"
    if directory_id is not None and not is_uuid(directory_id):
        return f"directory.id {directory_id!r} is not a valid id"
    facts.directory_id = directory_id
    return None
