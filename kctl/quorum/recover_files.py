"""The files of a controller that decide elections: meta.properties, quorum-state and the metadata log. Read only.

quorum-state (org.apache.kafka.raft.FileQuorumStateStore, QuorumStateData.json): one JSON object with the epoch, and the
leader or the vote of this node in that epoch. The file is small and replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.deploy.host import Host
from kctl.deploy.layout import ClusterSpec, ZooKeeperNode
from kctl.deploy.nodes import observe
from kctl.errors import KctlError, NotFound, UsageError
from kctl.quorum.recover_log import METADATA_FOLDER, MetadataLog, read_metadata_log
from kctl.segment.format.checkpoints import META_PROPERTIES, BadCheckpoint, parse_settings
from kctl.segment.format.quorum_state import QUORUM_STATE, BadQuorumState, parse_quorum_state
from kctl.segment.log.log_dir_lock import holder
from kctl.segment.log.partition import is_folder, list_folder, partition_folders
from kctl.segment.log.source import read_whole

_MAX_BYTES = 1 << 20
_NO_DIRECTORY = "A" * 22


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The content of quorum-state. leader_id, voted_id: None if there is none in this epoch.

    voted_directory_id: of the candidate that got the vote. voters: ids; only with static voters.
    """

    leader_epoch: int
    leader_id: int | None
    voted_id: int | None
    voted_directory_id: str | None
    voters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The files of one controller, or of a broker, which has a copy of the metadata log.

    name: e.g. "broker-2" in a cluster that kctl set up; None for a path. node_id, cluster_id, directory_id: from
    meta.properties, None if unreadable. log: None if the folder of the metadata log is missing or unreadable. state:
    None if missing or unreadable. process: the process that uses the log dir, e.g. "process 4711"; None if there is
    none on this machine. has_partitions: the log dir has partitions of topics, so the cluster was in use. problems:
    what could not be read, and why.
    """

    log_dir: Path
    name: str | None
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None
    state: QuorumState | None
    log: MetadataLog | None
    process: str | None
    has_partitions: bool
    problems: tuple[str, ...]

    @property
    def subject(self) -> str:
        """Return the name of this node in messages."""
        return f"controller {self.node_id}" if self.node_id is not None else str(self.log_dir)


def read_paths(paths: Iterable[Path]) -> list[NodeFiles]:
    """Return the controllers whose log dirs (or folders of the metadata log, or node folders) are `paths`.

    A log dir without metadata is ignored if another log dir of the same node has it. Raises NotFound, NotAuthorized,
    UsageError for a path without a log dir.
    """
    log_dirs = dict.fromkeys(log_dir for path in paths for log_dir in _log_dirs(path))
    nodes = [read_log_dir(log_dir) for log_dir in log_dirs]
    complete = {(node.node_id, node.cluster_id) for node in nodes if node.log is not None}
    return [node for node in nodes if node.log is not None or (node.node_id, node.cluster_id) not in complete]


def read_cluster(host: Host, spec: ClusterSpec) -> list[NodeFiles]:
    """Return the nodes of a cluster that kctl set up. Brokers have copies of the metadata log, too."""
    running = {each.node.name: each.identity for each in observe(host, spec)}
    nodes = []
    for node in spec.nodes:
        if isinstance(node, ZooKeeperNode):
            continue
        identity = running.get(node.name)
        process = None if identity is None else f"process {identity.pid}"
        log_dirs = spec.data_paths(node)
        log_dir = next((each for each in log_dirs if (each / METADATA_FOLDER).is_dir()), log_dirs[0])
        nodes.append(read_log_dir(log_dir, name=node.name, node_id=node.id, process=process))
    return nodes


def read_log_dir(
    log_dir: Path, *, name: str | None = None, node_id: int | None = None, process: str | None = None
) -> NodeFiles:
    """Return the files of one log dir. node_id: if it is known without meta.properties."""
    problems: list[str] = []
    meta = _meta(log_dir, problems)
    own_id = meta.get("node.id", meta.get("broker.id", ""))
    folder = log_dir / METADATA_FOLDER
    log = None
    try:
        log = read_metadata_log(folder)
    except NotFound:
        problems.append(f"{METADATA_FOLDER} does not exist")
    except KctlError as exc:
        problems.append(exc.message)
    if process is None:
        try:
            process = holder(log_dir)
        except KctlError:
            process = None
    return NodeFiles(
        log_dir=log_dir,
        name=name,
        node_id=int(own_id) if own_id.isdecimal() else node_id,
        cluster_id=meta.get("cluster.id"),
        directory_id=meta.get("directory.id"),
        state=_state(folder / QUORUM_STATE, problems),
        log=log,
        process=process,
        has_partitions=_has_partitions(log_dir),
        problems=tuple(problems),
    )


def _log_dirs(path: Path) -> list[Path]:
    """Return the log dir that a path names, or the log dirs in a node's folder."""
    path = path.absolute()
    if not is_folder(path):
        raise (
            NotFound(f"{path} does not exist")
            if not path.exists()
            else UsageError(f"{path} is not a folder", hint="pass the log dirs of controllers")
        )
    if path.name == METADATA_FOLDER:
        return [path.parent]
    if _is_log_dir(path):
        return [path]
    inner = [each for each in list_folder(path) if each.is_dir() and _is_log_dir(each)]
    if not inner:
        raise UsageError(
            f"{path} is not a log dir: it has neither {META_PROPERTIES} nor {METADATA_FOLDER}",
            hint="pass metadata.log.dir of the controller, or the first of its log.dirs",
        )
    return inner


def _is_log_dir(path: Path) -> bool:
    return (path / META_PROPERTIES).exists() or (path / METADATA_FOLDER).is_dir()


def _has_partitions(log_dir: Path) -> bool:
    try:
        return any(folder.name != METADATA_FOLDER for folder in partition_folders(log_dir))
    except KctlError:
        return False


def _meta(log_dir: Path, problems: list[str]) -> dict[str, str]:
    path = log_dir / META_PROPERTIES
    try:
        return parse_settings(read_whole(path, most_bytes=_MAX_BYTES), "=")
    except NotFound:
        problems.append(f"{META_PROPERTIES} does not exist")
    except BadCheckpoint as exc:
        problems.append(f"{path}: {exc}")
    except KctlError as exc:
        problems.append(exc.message)
    return {}


def _state(path: Path, problems: list[str]) -> QuorumState | None:
    try:
        return _quorum_state(parse_quorum_state(read_whole(path, most_bytes=_MAX_BYTES)))
    except NotFound:
        return None  # never written, or lost: the diagnosis compares with the log
    except BadQuorumState as exc:
        problems.append(f"{QUORUM_STATE} is invalid ({exc}): the controller does not start")
    except KctlError as exc:
        problems.append(exc.message)
    return None


def _quorum_state(values: Mapping[str, Any]) -> QuorumState:
    directory = values.get("votedDirectoryId")
    return QuorumState(
        leader_epoch=values["leaderEpoch"],
        leader_id=_id(values.get("leaderId")),
        voted_id=_id(values.get("votedId")),
        voted_directory_id=None if directory in {None, _NO_DIRECTORY} else str(directory),
        voters=tuple(each["voterId"] for each in values.get("currentVoters") or ()),
    )


def _id(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
