"""Layouts: turn a name and options into the full description of a cluster. Pure.

    single              one ZooKeeper, one broker
    pseudo-distributed  one ZooKeeper, N brokers (default: 3), each with its own id, port and log dirs
    three-node          an ensemble of three ZooKeepers, three brokers
    kraft-single        one node that is broker and controller
    kraft-combined      N nodes (default: 3), each broker and controller
    kraft-separate      a quorum of 1, 3 or 5 controllers (default: 3), and N brokers (default: 3)

Ports are consecutive from a base: brokers first, then controllers, or ZooKeeper's client ports and then its quorum and
election ports.

Files below the cluster's folder:

    cluster.json                    this description
    broker-1/server.properties      zookeeper-1/zoo.cfg, controller-101/server.properties
    broker-1/log4j.properties       broker-1/process.json    its process and its intended state
    broker-1/formatted              KRaft only: the log dirs were formatted completely
    broker-1/logs/server.log        broker-1/logs/console.log
    broker-1/data-1, data-2 …       zookeeper-1/data
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kctl.deploy.runtime.jars import version_numbers
from kctl.errors import NotFound, UsageError

ZOOKEEPER_LAYOUTS = ("single", "pseudo-distributed", "three-node")
KRAFT_LAYOUTS = ("kraft-single", "kraft-combined", "kraft-separate")
LAYOUTS = (*ZOOKEEPER_LAYOUTS, *KRAFT_LAYOUTS)
DEFAULT_CHROOT = "/kafka"
DEFAULT_HEAP = "512m"
ZOOKEEPER_HEAP = "128m"
CONTROLLER_HEAP = "256m"
LOOPBACK = "127.0.0.1"
UPGRADE_FORMAT = 3  # of cluster.json, only during an upgrade: another kctl would start nodes with the wrong release

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HEAP = re.compile(r"([1-9]\d{0,6})([kmg])", re.IGNORECASE)
_HEAP_FACTOR = {"k": 2**10, "m": 2**20, "g": 2**30}
_MINIMUM_HEAP = 128 << 20
_CHROOT_NODE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class ZooKeeperNode:
    """A ZooKeeper server. Quorum and election ports are 0 for a single server."""

    id: int
    port: int
    quorum_port: int = 0
    election_port: int = 0

    @property
    def name(self) -> str:
        return f"zookeeper-{self.id}"

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(p for p in (self.port, self.quorum_port, self.election_port) if p)


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker. In combined KRaft layouts also a controller: then controller_port and directory_id are set."""

    id: int
    port: int
    rack: str | None = None
    controller_port: int = 0
    directory_id: str | None = None

    @property
    def name(self) -> str:
        return f"broker-{self.id}"

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port, self.controller_port) if self.controller_port else (self.port,)


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """A dedicated KRaft controller. directory_id: of the log dir with the metadata log (KIP-853)."""

    id: int
    port: int
    directory_id: str

    @property
    def name(self) -> str:
        return f"controller-{self.id}"

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port,)


@dataclass(frozen=True, slots=True)
class QuorumVoter:
    """A voter of the metadata quorum: the node, the port of its controller listener, and its directory id."""

    id: int
    port: int
    directory_id: str


Node = ZooKeeperNode | BrokerNode | ControllerNode
UpgradePhase = Literal["upgrading", "rolling back", "finalizing"]


@dataclass(frozen=True, slots=True)
class Release:
    """A Kafka release, and the folder of its jars."""

    version: str
    libs: Path


@dataclass(frozen=True, slots=True)
class Upgrade:
    """An upgrade that is neither finalized nor rolled back. The cluster's own release is the one before it.

    nodes: names of the nodes that run the target, or will when they start next. raised: of these, the brokers with the
    target's inter.broker.protocol.version (ZooKeeper). max_levels: the highest level of each feature that the release
    before supports. began_at: ISO 8601 UTC.
    """

    to: Release
    began_at: str
    phase: UpgradePhase = "upgrading"
    nodes: tuple[str, ...] = ()
    raised: tuple[str, ...] = ()
    max_levels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The description that a cluster's files are rendered from. settings: the user's broker settings, with passwords.
    own_directory: True if kctl created the folder, so that `destroy` removes it. cluster_id: KRaft only; kctl generates
    it, with the directory ids, before anything is formatted, so that a repeated format gives the same cluster."""

    name: str
    layout: str
    directory: Path
    created_at: str  # ISO 8601 UTC
    kafka_version: str
    kafka_libs: Path
    zookeepers: tuple[ZooKeeperNode, ...]
    brokers: tuple[BrokerNode, ...]
    chroot: str = DEFAULT_CHROOT
    heap: str = DEFAULT_HEAP
    log_dirs: int = 1
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    own_directory: bool = True
    controllers: tuple[ControllerNode, ...] = ()
    cluster_id: str | None = None
    upgrade: Upgrade | None = None

    @property
    def uses_kraft(self) -> bool:
        return self.layout in KRAFT_LAYOUTS

    @property
    def voters(self) -> tuple[QuorumVoter, ...]:
        """Return the voters of the metadata quorum; () with ZooKeeper."""
        combined = (QuorumVoter(b.id, b.controller_port, b.directory_id) for b in self.brokers if b.directory_id)
        return (*(QuorumVoter(c.id, c.port, c.directory_id) for c in self.controllers), *combined)

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        return tuple(f"{LOOPBACK}:{b.port}" for b in self.brokers)

    @property
    def controller_servers(self) -> tuple[str, ...]:
        """Return the controller listeners of the voters; () with ZooKeeper."""
        return tuple(f"{LOOPBACK}:{voter.port}" for voter in self.voters)

    @property
    def zookeeper_servers(self) -> str:
        return ",".join(f"{LOOPBACK}:{z.port}" for z in self.zookeepers)

    @property
    def zookeeper_connect(self) -> str | None:
        """Return the servers with the chroot, as in zookeeper.connect; None with KRaft."""
        return self.zookeeper_servers + self.chroot if self.zookeepers else None

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.zookeepers, *self.controllers, *self.brokers)

    @property
    def ports(self) -> frozenset[int]:
        return frozenset(port for node in self.nodes for port in node.ports)

    @property
    def release(self) -> Release:
        """Return the release of the cluster: during an upgrade, the one before."""
        return Release(self.kafka_version, self.kafka_libs)

    def release_of(self, node: Node) -> Release:
        """Return the release that a node runs, or will when it starts next."""
        return self.upgrade.to if self.upgrade is not None and node.name in self.upgrade.nodes else self.release

    def as_run_by(self, node: Node) -> ClusterSpec:
        """Return the cluster as if all of its nodes had the release of this node."""
        release = self.release_of(node)
        return dataclasses.replace(self, kafka_version=release.version, kafka_libs=release.libs, upgrade=None)

    def folder(self, node: Node) -> Path:
        return self.directory / node.name

    def config_path(self, node: Node) -> Path:
        return self.folder(node) / ("zoo.cfg" if isinstance(node, ZooKeeperNode) else "server.properties")

    def log4j_path(self, node: Node) -> Path:
        kafka_4 = is_kafka_4(self.release_of(node).version)
        return self.folder(node) / ("log4j2.properties" if kafka_4 else "log4j.properties")

    def log_path(self, node: Node) -> Path:
        """Return the path of the log that log4j writes and rolls."""
        return self.folder(node) / "logs" / ("zookeeper.log" if isinstance(node, ZooKeeperNode) else "server.log")

    def console_path(self, node: Node) -> Path:
        """Return the path of the JVM's own output, e.g. a crash, or the error for a heap that does not fit."""
        return self.folder(node) / "logs" / "console.log"

    def data_paths(self, node: Node) -> tuple[Path, ...]:
        """Return ZooKeeper's dataDir, or the log.dirs. A controller has one: the metadata log's."""
        if not isinstance(node, BrokerNode):
            return (self.folder(node) / "data",)
        return tuple(self.folder(node) / f"data-{n}" for n in range(1, self.log_dirs + 1))

    def broker(self, broker_id: int) -> BrokerNode:
        """Return the broker with this id. Raises NotFound with the existing ids."""
        for node in self.brokers:
            if node.id == broker_id:
                return node
        ids = ", ".join(str(b.id) for b in self.brokers)
        raise NotFound(f"cluster {self.name} has no broker {broker_id}", hint=f"brokers of the cluster: {ids}")


def check_name(name: str) -> str:
    """Return `name` if it is a valid cluster name. Raises UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a cluster",
            hint="use up to 63 letters, digits, dots, hyphens and underscores, a letter or digit first",
        )
    return name


def check_chroot(chroot: str) -> str:
    """Return `chroot` if Kafka can use it, i.e. it is empty or a path below ZooKeeper's root. Raises UsageError."""
    if chroot in {"", "/"}:
        return ""
    nodes = chroot.split("/")
    wrong = nodes[0] or not all(_CHROOT_NODE.fullmatch(n) for n in nodes[1:]) or nodes[1] == "zookeeper"
    if wrong:
        raise UsageError(
            f"--chroot {chroot!r} is not a valid chroot for Kafka in ZooKeeper",
            hint="set for example /kafka or /prod/kafka; /zookeeper is reserved for ZooKeeper",
        )
    return chroot


def check_directory(directory: Path) -> Path:
    """Return `directory` if Kafka can have log dirs in it. (log.dirs is a comma-separated list.) Raises UsageError."""
    text = str(directory)
    if "," in text or any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise UsageError(f"Kafka cannot use a folder with a comma or a control character in its name: {text!r}")
    return directory


def heap_bytes(heap: str) -> int:
    """Return a java -Xmx size such as 512m or 2g in bytes. Raises UsageError, also if it is too small for a broker."""
    match = _HEAP.fullmatch(heap)
    size = int(match.group(1)) * _HEAP_FACTOR[match.group(2).lower()] if match else 0
    if size < _MINIMUM_HEAP:
        raise UsageError(
            f"--heap {heap!r} is not a heap size for a broker",
            hint="set for example 512m or 2g; at least 128m",
        )
    return size


def is_kafka_4(kafka_version: str) -> bool:
    """Return True for Kafka 4.0 and later: no ZooKeeper, log4j 2 (KIP-653), share groups."""
    return version_numbers(kafka_version) >= (4,)


def spec_to_json(spec: ClusterSpec) -> dict[str, object]:
    """Return the content of cluster.json, which `store.parse_spec` reads back."""
    document = {
        "format": 2 if spec.uses_kraft else 1,
        **dataclasses.asdict(spec),
        "directory": str(spec.directory),
        "kafka_libs": str(spec.kafka_libs),
    }
    del document["upgrade"]
    if spec.upgrade is None:
        return document
    to = {"version": spec.upgrade.to.version, "libs": str(spec.upgrade.to.libs)}
    return document | {"format": UPGRADE_FORMAT, "upgrade": {**dataclasses.asdict(spec.upgrade), "to": to}}
