"""A cluster's processes: the command of each, the record of what was intended, and finding the ones that run.

What runs is found in /proc by its command line, which ends with our config file: so a process whose start nobody
could write down any more (kctl killed at that moment) is found and adopted. The record beside it, process.json, says
what was wanted: it tells a broker that was stopped from one that died.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from kctl.deploy.host import Host
from kctl.deploy.layout import ZOOKEEPER_HEAP, BrokerNode, ClusterSpec, Node
from kctl.deploy.process import ProcessIdentity
from kctl.errors import KctlError

BROKER_MAIN = "kafka.Kafka"
ZOOKEEPER_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_MAX_RECORD_BYTES = 64 << 10

Wanted = Literal["running", "stopped"]
NodeKind = Literal["zookeeper", "broker"]


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """process.json. identity is None between the intent to start a process and its start."""

    wanted: Wanted
    at: str
    identity: ProcessIdentity | None = None


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """One node and the process that runs it; wanted is None when it was never started."""

    node: Node
    identity: ProcessIdentity | None
    wanted: Wanted | None

    @property
    def running(self) -> bool:
        return self.identity is not None


def kind_of(node: Node) -> NodeKind:
    return "broker" if isinstance(node, BrokerNode) else "zookeeper"


def java_command(spec: ClusterSpec, node: Node, java: Path, *, archive_flags: Sequence[str] = ()) -> list[str]:
    """The argv of a node. archive_flags: what Java shall do about class archives.

    The last two words are the main class and the config file: `observe` looks for them.
    """
    broker = isinstance(node, BrokerNode)
    heap = spec.heap if broker else ZOOKEEPER_HEAP
    logs = spec.log_path(node).parent
    return [
        str(java),
        f"-Xmx{heap}",
        *_jvm_flags(),
        *archive_flags,
        f"-XX:ErrorFile={logs}/hs_err.log",
        "-Djava.awt.headless=true",
        "-Duser.timezone=UTC",
        f"-Dlog4j.configuration={spec.log4j_path(node).as_uri()}",
        "-cp",
        f"{spec.kafka_libs}/*",
        BROKER_MAIN if broker else ZOOKEEPER_MAIN,
        str(spec.config_path(node)),
    ]


def _jvm_flags() -> list[str]:
    """For many small JVMs on few cores: start-up takes a third less CPU, at the price of peak throughput.

    The collector with one thread, and the quick compiler only (C1). Measured for three ZooKeepers and three brokers:
    14 CPU seconds until ready instead of 21.
    """
    return ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError"]


def record_path(spec: ClusterSpec, node: Node) -> Path:
    return spec.folder(node) / "process.json"


def write_record(
    host: Host, spec: ClusterSpec, node: Node, wanted: Wanted, identity: ProcessIdentity | None = None
) -> None:
    """Write down what is wanted, before it is done; and who it is, after."""
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    record = asdict(ProcessRecord(wanted, at, identity))
    host.write_file(record_path(spec, node), json.dumps(record, indent=2).encode())


def note_stopped(host: Host, spec: ClusterSpec, node: Node) -> None:
    """`write_record` of a stop, which must go on where nothing can be written: on a full or lost disk."""
    with contextlib.suppress(KctlError):
        write_record(host, spec, node, "stopped")


def read_record(host: Host, spec: ClusterSpec, node: Node) -> ProcessRecord | None:
    """What was wanted; None when nothing was written, or nothing that can be read (then /proc alone decides)."""
    data = host.read_file(record_path(spec, node), max_bytes=_MAX_RECORD_BYTES)
    try:
        document = json.loads(data or b"")
        identity = document["identity"]
        wanted: Wanted = "running" if document["wanted"] == "running" else "stopped"
        return ProcessRecord(wanted, str(document["at"]), ProcessIdentity(**identity) if identity else None)
    except (ValueError, KeyError, TypeError):
        return None


def observe(host: Host, spec: ClusterSpec) -> list[NodeProcess]:
    """Each node with its process, in the order of the description: ZooKeepers, then brokers."""
    running = {config: identity for identity, config in reversed(_running(host, spec))}
    states = []
    for node in spec.nodes:
        record = read_record(host, spec, node)
        identity = running.get(str(spec.config_path(node)))
        states.append(NodeProcess(node, identity, record.wanted if record is not None else None))
    return states


def _running(host: Host, spec: ClusterSpec) -> list[tuple[ProcessIdentity, str]]:
    """Processes of this cluster with their config file, oldest first."""
    configs = {str(spec.config_path(node)) for node in spec.nodes}

    def ours(argv: list[str]) -> bool:
        return is_node_command(argv) and argv[-1] in configs

    return [(identity, argv[-1]) for identity, argv in host.find_processes(ours)]


def is_node_command(argv: Sequence[str]) -> bool:
    """Is this the command of a broker or ZooKeeper that kctl started: java … MainClass config-file."""
    return len(argv) > 3 and argv[-2] in {BROKER_MAIN, ZOOKEEPER_MAIN} and Path(argv[0]).name == "java"
