"""A cluster's processes: their commands, the record of the intended state, and discovery of running processes.

Running processes are found in /proc by their command line, which ends with kctl's config file. So kctl also adopts a
process whose start it could not record because kctl was killed. process.json holds the intended state, which
distinguishes a stopped broker from a crashed one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from kctl.deploy.host import Host
from kctl.deploy.layout import (
    CONTROLLER_HEAP,
    ZOOKEEPER_HEAP,
    BrokerNode,
    ClusterSpec,
    ControllerNode,
    Node,
    ZooKeeperNode,
    is_kafka_4,
)
from kctl.deploy.process import ProcessIdentity
from kctl.errors import KctlError

BROKER_MAIN = "kafka.Kafka"
ZOOKEEPER_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# For many small JVMs on few cores: a single-threaded collector and only the fast compiler (C1), at the cost of peak
# throughput. Measured for three ZooKeepers and three brokers: ready after 14 CPU seconds instead of 21.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
_MAX_RECORD_BYTES = 64 << 10

Intent = Literal["running", "stopped"]
NodeKind = Literal["zookeeper", "controller", "broker"]
# Class archives: the nodes of KRaft layouts share one, since brokers and controllers load nearly the same classes.
ArchiveKind = Literal["zookeeper", "broker", "kraft"]


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The content of process.json. identity: None between the intent to start a process and its start."""

    wanted: Intent
    at: str
    identity: ProcessIdentity | None = None


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A node and its process. intent: the intended state; None if the node was never started.

    libs: the folder of the jars that the process was started with.
    """

    node: Node
    identity: ProcessIdentity | None
    intent: Intent | None
    libs: Path | None = None

    @property
    def running(self) -> bool:
        return self.identity is not None


def kind_of(node: Node) -> NodeKind:
    if isinstance(node, BrokerNode):
        return "broker"
    return "controller" if isinstance(node, ControllerNode) else "zookeeper"


def archive_kind_of(spec: ClusterSpec, node: Node) -> ArchiveKind:
    if spec.uses_kraft:
        return "kraft"
    return "broker" if isinstance(node, BrokerNode) else "zookeeper"


def java_command(spec: ClusterSpec, node: Node, java: Path, *, archive_flags: Sequence[str] = ()) -> list[str]:
    """Return the argv of a node. archive_flags: Java's options for class archives.

    The last two words are the main class and the config file: `observe` looks for them.
    """
    heap = {"broker": spec.heap, "controller": CONTROLLER_HEAP, "zookeeper": ZOOKEEPER_HEAP}[kind_of(node)]
    logs = spec.log_path(node).parent
    return [
        str(java),
        f"-Xmx{heap}",
        *JVM_FLAGS,
        *archive_flags,
        f"-XX:ErrorFile={logs}/hs_err.log",
        "-Djava.awt.headless=true",
        "-Duser.timezone=UTC",
        log4j_flag(spec, node),
        "-cp",
        f"{spec.release_of(node).libs}/*",
        ZOOKEEPER_MAIN if isinstance(node, ZooKeeperNode) else BROKER_MAIN,
        str(spec.config_path(node)),
    ]


def log4j_flag(spec: ClusterSpec, node: Node) -> str:
    """Return the JVM option that names the node's logging configuration."""
    key = "log4j2.configurationFile" if is_kafka_4(spec.release_of(node).version) else "log4j.configuration"
    return f"-D{key}={spec.log4j_path(node).as_uri()}"


def record_path(spec: ClusterSpec, node: Node) -> Path:
    return spec.folder(node) / "process.json"


def write_record(
    host: Host, spec: ClusterSpec, node: Node, intent: Intent, identity: ProcessIdentity | None = None
) -> None:
    """Record the intended state before an operation, and the process after it."""
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    record = asdict(ProcessRecord(intent, at, identity))
    host.write_file(record_path(spec, node), json.dumps(record, indent=2).encode())


def note_stopped(host: Host, spec: ClusterSpec, node: Node) -> None:
    """Record a stop. Ignores errors, because a stop must proceed even on a full or failed disk."""
    with contextlib.suppress(KctlError):
        write_record(host, spec, node, "stopped")


def read_record(host: Host, spec: ClusterSpec, node: Node) -> ProcessRecord | None:
    """Return the recorded state; None if it is missing or unreadable (then only /proc counts)."""
    data = host.read_file(record_path(spec, node), max_bytes=_MAX_RECORD_BYTES)
    try:
        document = json.loads(data or b"")
        identity = document["identity"]
        intent: Intent = "running" if document["wanted"] == "running" else "stopped"
        return ProcessRecord(intent, str(document["at"]), ProcessIdentity(**identity) if identity else None)
    except (ValueError, KeyError, TypeError):
        return None


def observe(host: Host, spec: ClusterSpec) -> list[NodeProcess]:
    """Return each node with its process: ZooKeepers or controllers, then brokers."""
    running = {argv[-1]: (identity, argv) for identity, argv in reversed(_running(host, spec))}
    states = []
    for node in spec.nodes:
        record = read_record(host, spec, node)
        identity, argv = running.get(str(spec.config_path(node)), (None, []))
        states.append(NodeProcess(node, identity, record.wanted if record is not None else None, _libs_in(argv)))
    return states


def _libs_in(argv: Sequence[str]) -> Path | None:
    """Return the folder in the class path of `java_command`."""
    for option, value in itertools.pairwise(argv):
        if option == "-cp" and value.endswith("/*"):
            return Path(value.removesuffix("/*"))
    return None


def _running(host: Host, spec: ClusterSpec) -> list[tuple[ProcessIdentity, list[str]]]:
    """Return the processes of this cluster with their command lines, oldest first."""
    configs = {str(spec.config_path(node)) for node in spec.nodes}

    def is_member(argv: list[str]) -> bool:
        return is_node_command(argv) and argv[-1] in configs

    return host.find_processes(is_member)


def is_node_command(argv: Sequence[str]) -> bool:
    """Return True for the command of a node that kctl started: java … MainClass config-file."""
    return len(argv) > 3 and argv[-2] in {BROKER_MAIN, ZOOKEEPER_MAIN} and Path(argv[0]).name == "java"
