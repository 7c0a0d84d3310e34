"""Layouts: turn a name and options into the full description of a cluster. Pure.

    single              one ZooKeeper, one broker
    pseudo-distributed  one ZooKeeper, N brokers (3), each with its own id, port and log dirs
    three-node          an ensemble of three ZooKeepers, three brokers

Ports are consecutive from a base: brokers first, then ZooKeeper's client ports, then its quorum and election ports.

Files below the cluster's folder:

    cluster.json                    this description
    broker-1/server.properties      zookeeper-1/zoo.cfg
    broker-1/log4j.properties       broker-1/process.json    its process, or that it was stopped on purpose
    broker-1/logs/server.log        broker-1/logs/console.log
    broker-1/data-1, data-2 …       zookeeper-1/data
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kctl.errors import NotFound, UsageError

LAYOUTS = ("single", "pseudo-distributed", "three-node")
MAX_BROKERS = 50
MAX_LOG_DIRS = 20
DEFAULT_CHROOT = "/kafka"
DEFAULT_HEAP = "512m"
ZOOKEEPER_HEAP = "128m"
LOOPBACK = "127.0.0.1"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HEAP = re.compile(r"([1-9]\d{0,6})([kmg])", re.IGNORECASE)
_HEAP_FACTOR = {"k": 2**10, "m": 2**20, "g": 2**30}
_MINIMUM_HEAP = 128 << 20
_RACK = re.compile(r"[A-Za-z0-9._-]{1,63}")
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
    """A broker."""

    id: int
    port: int
    rack: str | None = None

    @property
    def name(self) -> str:
        return f"broker-{self.id}"

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port,)


Node = ZooKeeperNode | BrokerNode


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The description that a cluster's files are rendered from.

    settings: the user's broker settings, with passwords. own_directory: True if kctl created the folder, so that
    `destroy` removes it.
    """

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

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        return tuple(f"{LOOPBACK}:{b.port}" for b in self.brokers)

    @property
    def zookeeper_servers(self) -> str:
        return ",".join(f"{LOOPBACK}:{z.port}" for z in self.zookeepers)

    @property
    def zookeeper_connect(self) -> str:
        """Return the servers with the chroot, as in zookeeper.connect."""
        return self.zookeeper_servers + self.chroot

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.zookeepers, *self.brokers)

    @property
    def ports(self) -> frozenset[int]:
        return frozenset(port for node in self.nodes for port in node.ports)

    def folder(self, node: Node) -> Path:
        return self.directory / node.name

    def config_path(self, node: Node) -> Path:
        return self.folder(node) / ("zoo.cfg" if isinstance(node, ZooKeeperNode) else "server.properties")

    def log4j_path(self, node: Node) -> Path:
        return self.folder(node) / "log4j.properties"

    def log_path(self, node: Node) -> Path:
        """Return the path of the log that log4j writes and rolls."""
        return self.folder(node) / "logs" / ("zookeeper.log" if isinstance(node, ZooKeeperNode) else "server.log")

    def console_path(self, node: Node) -> Path:
        """Return the path of Java's own output, e.g. about a heap that does not fit or a crash."""
        return self.folder(node) / "logs" / "console.log"

    def data_paths(self, node: Node) -> tuple[Path, ...]:
        """Return ZooKeeper's dataDir, or the broker's log.dirs."""
        if isinstance(node, ZooKeeperNode):
            return (self.folder(node) / "data",)
        return tuple(self.folder(node) / f"data-{n}" for n in range(1, self.log_dirs + 1))

    def broker(self, broker_id: int) -> BrokerNode:
        """Return the broker with this id. Raises NotFound with the existing ids."""
        for node in self.brokers:
            if node.id == broker_id:
                return node
        ids = ", ".join(str(b.id) for b in self.brokers)
        raise NotFound(f"cluster {self.name} has no broker {broker_id}", hint=f"its brokers: {ids}")


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """The user's options for a new cluster. None: the layout's default."""

    name: str
    layout: str
    brokers: int | None = None
    chroot: str = DEFAULT_CHROOT
    rack: str | None = None
    log_dirs: int = 1
    heap: str = DEFAULT_HEAP
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def check_request(request: LayoutRequest) -> None:
    """Raise UsageError for the first invalid option."""
    check_name(request.name)
    broker_count(request.layout, request.brokers)
    check_chroot(request.chroot)
    racks(request.rack, broker_count(request.layout, request.brokers))
    heap_bytes(request.heap)
    if not 1 <= request.log_dirs <= MAX_LOG_DIRS:
        raise UsageError(f"--log-dirs {request.log_dirs} is not between 1 and {MAX_LOG_DIRS}")


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
    """Return `directory` if Kafka can have log dirs in it. log.dirs is separated by commas. Raises UsageError."""
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


def broker_count(layout: str, brokers: int | None) -> int:
    """Return the number of brokers of `layout`. Raises UsageError."""
    if layout not in LAYOUTS:
        raise UsageError(f"there is no layout {layout!r}", hint=f"choose one of {', '.join(LAYOUTS)}")
    fixed = {"single": 1, "three-node": 3}.get(layout)
    if fixed is not None and brokers not in {None, fixed}:
        raise UsageError(
            f"layout {layout} has {fixed} broker{'s' if fixed > 1 else ''}, not {brokers}",
            hint="--layout pseudo-distributed takes any number with --brokers",
        )
    count = fixed or (3 if brokers is None else brokers)
    if not 1 <= count <= MAX_BROKERS:
        raise UsageError(f"--brokers {count} is not between 1 and {MAX_BROKERS}")
    return count


def racks(rack: str | None, brokers: int) -> tuple[str | None, ...]:
    """Return a rack for each broker: r1, r2, … for "auto"; a list is assigned in turn. Raises UsageError."""
    if rack is None:
        return (None,) * brokers
    names: Sequence[str] = [f"r{n}" for n in range(1, brokers + 1)] if rack == "auto" else rack.split(",")
    for name in names:
        if not _RACK.fullmatch(name):
            raise UsageError(f"--rack: {name!r} is not a valid rack name", hint="set for example r1,r2,r3 or auto")
    if len(names) > brokers:
        raise UsageError(f"--rack has {len(names)} racks for {brokers} broker{'s' if brokers > 1 else ''}")
    return tuple(names[n % len(names)] for n in range(brokers))


def port_count(layout: str, brokers: int | None) -> int:
    """Return the number of consecutive ports that the layout needs."""
    count = broker_count(layout, brokers)
    return count + (9 if layout == "three-node" else 1)


def build_spec(
    request: LayoutRequest,
    *,
    directory: Path,
    base_port: int,
    kafka_version: str,
    kafka_libs: Path,
    created_at: str,
) -> ClusterSpec:
    """Return the cluster that a valid request describes."""
    count = broker_count(request.layout, request.brokers)
    brokers = tuple(
        BrokerNode(id=n, port=base_port + n - 1, rack=rack)
        for n, rack in enumerate(racks(request.rack, count), start=1)
    )
    return ClusterSpec(
        name=request.name,
        layout=request.layout,
        directory=check_directory(directory),
        created_at=created_at,
        kafka_version=kafka_version,
        kafka_libs=kafka_libs,
        zookeepers=_zookeepers(request.layout, base_port + count),
        brokers=brokers,
        chroot=check_chroot(request.chroot),
        heap=request.heap,
        log_dirs=request.log_dirs,
        settings=dict(request.settings),
    )


def _zookeepers(layout: str, base: int) -> tuple[ZooKeeperNode, ...]:
    if layout != "three-node":
        return (ZooKeeperNode(id=1, port=base),)
    return tuple(ZooKeeperNode(n, base + n - 1, base + n + 2, base + n + 5) for n in (1, 2, 3))


def spec_to_json(spec: ClusterSpec) -> dict[str, object]:
    """Return the content of cluster.json, which `store.parse_spec` reads back."""
    return {
        "format": 1,
        **dataclasses.asdict(spec),
        "directory": str(spec.directory),
        "kafka_libs": str(spec.kafka_libs),
    }
