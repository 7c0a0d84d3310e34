"""The stored clusters: one folder per cluster, found by name, with a lock for changes.

    clusters_dir()/NAME/            the cluster's folder, or with --dir a link to it
    clusters_dir()/.NAME.lock       held (flock) by the kctl process that changes the cluster
    clusters_dir()/.ports.lock      held while ports are chosen, until they are written to a cluster.json

cluster.json is written before any other file. All other files follow from it, so that `start` can complete an
interrupted create, and `destroy` can remove its files.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from kctl.base import paths
from kctl.base.suggestions import did_you_mean
from kctl.deploy.host import Host
from kctl.deploy.layout import (
    UPGRADE_FORMAT,
    BrokerNode,
    ClusterSpec,
    ControllerNode,
    Release,
    Upgrade,
    UpgradePhase,
    ZooKeeperNode,
    check_name,
    spec_to_json,
)
from kctl.errors import Busy, InvalidFile, KctlError, NotFound, OperationFailed

SPEC_FILE = "cluster.json"
_FORMATS = (1, 2, UPGRADE_FORMAT)  # 2: KRaft, which kctl before 1.0.0 does not know
_UNFINISHED_SPEC = rf"\.{re.escape(SPEC_FILE)}\.\d+\.new"  # how Host.write_file names an incomplete file
_MAX_SPEC_BYTES = 4 << 20
LOCK_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class StoredCluster:
    """An entry in the folder of clusters. spec: None if it is unreadable; problem: the reason."""

    name: str
    directory: Path
    spec: ClusterSpec | None
    problem: str | None = None


def entry_path(name: str) -> Path:
    """Return the entry of a cluster: its folder, or the link to it."""
    return paths.clusters_dir() / check_name(name)


def exists(name: str) -> bool:
    """Return True if there is an entry, complete or not."""
    return os.path.lexists(entry_path(name))


def spec_path(directory: Path) -> Path:
    return directory / SPEC_FILE


def load(host: Host, name: str) -> ClusterSpec:
    """Return the description of a cluster. Raises NotFound with the existing names, InvalidFile if unreadable."""
    entry = entry_path(name)
    if not os.path.lexists(entry):
        names = [c.name for c in list_clusters(host)]
        hint = f"clusters: {', '.join(names)}" if names else "there are no clusters; `kctl cluster create` creates one"
        raise NotFound(f"cluster {name} does not exist", hint=did_you_mean(name, names) or hint)
    directory = Path(os.path.realpath(entry))
    data = host.read_file(spec_path(directory), max_bytes=_MAX_SPEC_BYTES)
    if data is None:
        raise NotFound(
            f"cluster {name} is incomplete: {spec_path(directory)} does not exist",
            hint="its folder was removed, or its creation was interrupted;"
            f" remove the rest with `kctl cluster destroy {name}`",
        )
    spec = parse_spec(data, spec_path(directory))
    if spec.name != name or spec.directory != directory:
        raise InvalidFile(
            f"{spec_path(directory)} describes cluster {spec.name} in {spec.directory}",
            hint="move the folder back: its files have absolute paths, so a cluster cannot be moved",
        )
    return spec


def parse_spec(data: bytes, path: Path) -> ClusterSpec:
    """Parse cluster.json. Raises InvalidFile."""
    try:
        document = json.loads(data)
        if document["format"] not in _FORMATS:
            raise InvalidFile(f"{path} was written by another version of kctl (format {document['format']})")
        return _spec_from_json(document)
    except KctlError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise InvalidFile(
            f"{path} is damaged: {type(exc).__name__} {exc}", hint="restore it, or destroy the cluster"
        ) from exc


def _spec_from_json(document: Mapping[str, Any]) -> ClusterSpec:
    defaults = {"own_directory": True, "controllers": (), "cluster_id": None, "upgrade": None}  # files may lack them
    document = {**defaults, **document}
    values = {f.name: document[f.name] for f in fields(ClusterSpec)}
    values["directory"] = Path(values["directory"])
    values["kafka_libs"] = Path(values["kafka_libs"])
    values["zookeepers"] = tuple(ZooKeeperNode(**node) for node in values["zookeepers"])
    values["brokers"] = tuple(BrokerNode(**node) for node in values["brokers"])
    values["controllers"] = tuple(ControllerNode(**node) for node in values["controllers"])
    values["settings"] = dict(values["settings"])
    values["upgrade"] = None if values["upgrade"] is None else _upgrade_from_json(values["upgrade"])
    for node in (*values["zookeepers"], *values["controllers"], *values["brokers"]):
        if not all(isinstance(number, int) for number in (node.id, *node.ports)):
            raise TypeError(f"{node.name}: id and ports must be numbers")
    check_name(values["name"])
    return ClusterSpec(**values)


def _upgrade_from_json(document: Mapping[str, Any]) -> Upgrade:
    values = {f.name: document[f.name] for f in fields(Upgrade)}
    values["to"] = Release(str(document["to"]["version"]), Path(document["to"]["libs"]))
    values["nodes"], values["raised"] = tuple(document["nodes"]), tuple(document["raised"])
    values["max_levels"] = {str(name): int(level) for name, level in document["max_levels"].items()}
    if document["phase"] not in get_args(UpgradePhase):
        raise ValueError(f"an upgrade cannot be in phase {document['phase']!r}")
    return Upgrade(**values)


def save(host: Host, spec: ClusterSpec) -> None:
    """Write cluster.json."""
    text = json.dumps(spec_to_json(spec), indent=2, ensure_ascii=False) + "\n"
    host.write_file(spec_path(spec.directory), text.encode())


def leftovers(host: Host, directory: Path) -> list[Path]:
    """Return the leftovers of interrupted writes of cluster.json in a cluster's folder."""
    return [directory / name for name in host.list_folder(directory) if re.fullmatch(_UNFINISHED_SPEC, name)]


def list_clusters(host: Host) -> list[StoredCluster]:
    """Return all entries by name, including broken ones, so that they can be destroyed."""
    clusters = []
    base = paths.clusters_dir()
    for name in host.list_folder(base):
        if name.startswith("."):
            continue
        directory = Path(os.path.realpath(base / name))
        try:
            data = host.read_file(spec_path(directory), max_bytes=_MAX_SPEC_BYTES)
            if data is None:
                clusters.append(StoredCluster(name, directory, None, "cluster.json is not there"))
            else:
                clusters.append(StoredCluster(name, directory, parse_spec(data, spec_path(directory))))
        except KctlError as exc:
            clusters.append(StoredCluster(name, directory, None, exc.message))
    return clusters


def reserved_ports(host: Host) -> frozenset[int]:
    """Return the ports of all clusters, running or not."""
    return frozenset(port for c in list_clusters(host) if c.spec is not None for port in c.spec.ports)


@contextmanager
def lock_cluster(name: str) -> Iterator[None]:
    """Lock the cluster against changes by another kctl. Raises Busy, with the other's pid, after LOCK_WAIT_S.

    A forked child also holds the lock until it executes Java, so the next owner sees either no process or its final
    command line.
    """
    with _lock(paths.clusters_dir() / f".{check_name(name)}.lock", f"cluster {name}", LOCK_WAIT_S):
        yield


@contextmanager
def lock_ports() -> Iterator[None]:
    """Hold the lock for the choice of ports."""
    with _lock(paths.clusters_dir() / ".ports.lock", "the choice of ports", 20.0):
        yield


@contextmanager
def _lock(path: Path, what: str, wait_s: float) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = _acquire(path, what, time.monotonic() + wait_s)
    except OSError as exc:
        raise OperationFailed(f"cannot write in {path.parent}: {exc.strerror}") from exc
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def _acquire(path: Path, what: str, deadline: float) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file (destroy): a lock on it would exclude no other process.
            if os.path.lexists(path) and os.path.samestat(os.fstat(fd), path.stat()):
                return fd
            os.close(fd)
        except BlockingIOError:
            other = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            os.close(fd)
            if time.monotonic() >= deadline:
                raise Busy(
                    f"another kctl{f' (pid {other})' if other else ''} is working on {what}",
                    hint="wait until it ends, then try again",
                ) from None
            time.sleep(0.1)


def remove_lock(name: str) -> None:
    """Remove the lock file of a removed cluster; only while holding the lock."""
    (paths.clusters_dir() / f".{check_name(name)}.lock").unlink(missing_ok=True)
