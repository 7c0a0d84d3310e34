"""The state of a cluster's processes: from the kernel, ZooKeeper or the quorum, and each broker, with short limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kctl.deploy import health, store
from kctl.deploy.faults import answering_brokers
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, ControllerNode, Node, ZooKeeperNode
from kctl.deploy.nodes import NodeKind, NodeProcess, kind_of, observe
from kctl.deploy.process import ProcessUsage
from kctl.deploy.quorum import read_quorum
from kctl.errors import KctlError
from kctl.model import ClusterState, PartitionState
from kctl.protocol.quorum import Quorum, silent_replicas

_REQUEST_TIMEOUT_S = 3.0
# A JVM that has not responded for this long is no longer starting.
_STARTING_MS = 60_000

_FETCHED_WITHIN_MS = 5_000  # a voter fetches every 500 ms at least; see controller.quorum.fetch.timeout.ms

State = Literal["running", "starting", "unresponsive", "paused", "stopped", "dead"]


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process. None: it does not run, or the value is unknown.

    role: leader, follower or standalone of ZooKeepers and dedicated controllers; for brokers: controller (the active
    one) or broker. under_replicated_partitions: of those that this broker leads, as in its own metric.
    """

    node: str
    kind: NodeKind
    node_id: int
    state: State
    role: str | None
    pid: int | None
    port: int
    rack: str | None
    leader_partitions: int | None
    under_replicated_partitions: int | None
    uptime_ms: int | None
    rss_bytes: int | None
    cpu_ms: int | None
    disk_bytes: int
    kafka_version: str
    log: Path


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The state of a cluster. problems: why it is not healthy, one sentence each.

    upgrade_to: the release of an upgrade that is not finalized.
    """

    name: str
    layout: str
    healthy: bool
    problems: tuple[str, ...]
    cluster_id: str | None
    controller_id: int | None
    partition_count: int | None
    under_replicated_partitions: int | None
    offline_partitions: int | None
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None
    kafka_version: str
    upgrade_to: str | None
    directory: Path
    processes: tuple[ProcessStatus, ...]


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A row of `list`. state: running (all), partial, stopped (none), or broken (see problem)."""

    name: str
    state: Literal["running", "partial", "stopped", "broken"]
    layout: str | None
    broker_count: int | None
    running_processes: int
    process_count: int
    kafka_version: str | None
    bootstrap_servers: tuple[str, ...]
    current: bool
    directory: Path
    problem: str | None


@dataclass(frozen=True, slots=True)
class _ClusterFacts:
    """All facts that were read, not yet evaluated."""

    processes: Sequence[NodeProcess]
    usages: Mapping[str, ProcessUsage | None]
    modes: Mapping[int, str | None]
    answers: Mapping[int, health.BrokerAnswer]
    metadata: ClusterState | None
    disk: Mapping[str, int]
    quorum: Quorum | None
    controller_id: int | None

    @property
    def partitions(self) -> list[PartitionState] | None:
        if self.metadata is None:
            return None
        return [p for topic in self.metadata.topics.values() for p in topic.partitions]


def cluster_status(host: Host, spec: ClusterSpec) -> ClusterStatus:
    """Read the state once. A server that does not respond is a result, not an error."""
    snapshot = _read_facts(host, spec)
    rows = tuple(_process_status(spec, process, snapshot) for process in snapshot.processes)
    partitions = snapshot.partitions
    problems = _problems(rows, snapshot)
    return ClusterStatus(
        name=spec.name,
        layout=spec.layout,
        healthy=not problems,
        problems=tuple(problems),
        cluster_id=snapshot.metadata.cluster_id if snapshot.metadata else None,
        controller_id=snapshot.controller_id,
        partition_count=None if partitions is None else len(partitions),
        under_replicated_partitions=None if partitions is None else sum(p.under_replicated for p in partitions),
        offline_partitions=None if partitions is None else sum(p.offline for p in partitions),
        bootstrap_servers=spec.bootstrap_servers,
        zookeeper=spec.zookeeper_connect,
        kafka_version=spec.kafka_version,
        upgrade_to=spec.upgrade.to.version if spec.upgrade else None,
        directory=spec.directory,
        processes=rows,
    )


def _read_facts(host: Host, spec: ClusterSpec) -> _ClusterFacts:
    processes = observe(host, spec)
    usages = {p.node.name: host.usage(p.identity) if p.identity else None for p in processes}
    live = [z.id for z in spec.zookeepers if _is_live(usages[z.name])]
    modes = {z.id: health.zookeeper_mode(z.port) if z.id in live else None for z in spec.zookeepers}
    answers = health.ask_brokers(spec, answering_brokers(host, list(processes)), timeout_s=_REQUEST_TIMEOUT_S)
    metadata = _metadata(spec, [b for b, answer in answers.items() if answer.problem is None])
    quorum, controller_id = None, metadata.controller_id if metadata else None
    if spec.uses_kraft:  # whose brokers name a random broker as the controller
        live_ids = [p.node.id for p in processes if _is_live(usages[p.node.name])]
        quorum = read_quorum(spec, live_ids, timeout_s=_REQUEST_TIMEOUT_S)
        controller_id = quorum.leader_id if quorum is not None else None
    return _ClusterFacts(
        processes=processes,
        usages=usages,
        modes=modes,
        answers=answers,
        metadata=metadata,
        disk={node.name: sum(host.tree_bytes(path) for path in spec.data_paths(node)) for node in spec.nodes},
        quorum=quorum,
        controller_id=controller_id,
    )


def _is_live(usage: ProcessUsage | None) -> bool:
    return usage is not None and usage.state != "T"


def _metadata(spec: ClusterSpec, brokers: Sequence[int]) -> ClusterState | None:
    from kctl.protocol.client import connect

    if not brokers:
        return None
    try:
        with connect(health.target_of(spec, brokers), timeout_s=_REQUEST_TIMEOUT_S) as client:
            return client.metadata()
    except KctlError:
        return None


def _process_status(spec: ClusterSpec, process: NodeProcess, snapshot: _ClusterFacts) -> ProcessStatus:
    node, usage = process.node, snapshot.usages[process.node.name]
    broker = isinstance(node, BrokerNode)
    # Metadata may still list the partitions of a broker that does not run.
    metadata_known = broker and usage and snapshot.metadata
    led = [p for p in snapshot.partitions or () if p.leader == node.id] if metadata_known else None
    state = _state(process, usage, snapshot)
    return ProcessStatus(
        node=node.name,
        kind=kind_of(node),
        node_id=node.id,
        state=state,
        role=_role(node, state, snapshot),
        pid=process.identity.pid if process.identity and usage else None,
        port=node.port,
        rack=node.rack if isinstance(node, BrokerNode) else None,
        leader_partitions=None if led is None else len(led),
        under_replicated_partitions=None if led is None else sum(p.under_replicated for p in led),
        uptime_ms=usage.uptime_ms if usage else None,
        rss_bytes=usage.rss_bytes if usage else None,
        cpu_ms=usage.cpu_ms if usage else None,
        disk_bytes=snapshot.disk[node.name],
        kafka_version=_version(spec, process),
        log=spec.log_path(node),
    )


def _version(spec: ClusterSpec, process: NodeProcess) -> str:
    """Return the release of the running process; if it does not run, the release that it will start with."""
    releases = [spec.release, *([spec.upgrade.to] if spec.upgrade is not None else [])]
    running = [release.version for release in releases if release.libs == process.libs]
    return running[0] if running else spec.release_of(process.node).version


def _state(process: NodeProcess, usage: ProcessUsage | None, snapshot: _ClusterFacts) -> State:
    if usage is None:
        return "dead" if process.intent == "running" else "stopped"
    if usage.state == "T":
        return "paused"
    if _serves(process.node, snapshot):
        return "running"
    return "starting" if usage.uptime_ms < _STARTING_MS else "unresponsive"


def _serves(node: Node, snapshot: _ClusterFacts) -> bool:
    if isinstance(node, ZooKeeperNode):
        return snapshot.modes[node.id] is not None
    if isinstance(node, ControllerNode):
        return _follows_quorum(node.id, snapshot.quorum)
    answer = snapshot.answers.get(node.id)
    registered = snapshot.metadata is not None and node.id in snapshot.metadata.brokers
    return answer is not None and answer.problem is None and registered


def _follows_quorum(node_id: int, quorum: Quorum | None) -> bool:
    """Return True for the leader, and for voters and observers that have fetched from it recently."""
    if quorum is None:
        return False
    replicas = [each for each in (*quorum.voters, *quorum.observers) if each.id == node_id]
    return bool(replicas) and not silent_replicas(quorum, replicas, limit_ms=_FETCHED_WITHIN_MS)


def _role(node: Node, state: State, snapshot: _ClusterFacts) -> str | None:
    if isinstance(node, ZooKeeperNode):
        return snapshot.modes[node.id]
    if state in {"stopped", "dead"}:
        return None
    if isinstance(node, ControllerNode):
        if state != "running":
            return None
        return "leader" if node.id == snapshot.controller_id else "follower"
    return "controller" if node.id == snapshot.controller_id else "broker"


def _problems(rows: Sequence[ProcessStatus], snapshot: _ClusterFacts) -> list[str]:
    problems = [f"{row.node} is {row.state}" for row in rows if row.state != "running"]
    if len(snapshot.modes) > 1 and any(snapshot.modes.values()) and "leader" not in snapshot.modes.values():
        problems.append("the ZooKeepers have no leader")
    if snapshot.metadata is not None and not any(_is_active_controller(row) for row in rows):
        problems.append("there is no controller")
    partitions = snapshot.partitions or []
    for count, what in (
        (sum(p.offline for p in partitions), "without a leader"),
        (sum(p.under_replicated for p in partitions), "under-replicated"),
    ):
        if count:
            problems.append(f"{count} partition{'s are' if count > 1 else ' is'} {what}")
    return problems


def _is_active_controller(row: ProcessStatus) -> bool:
    return row.role == {"broker": "controller", "controller": "leader"}.get(row.kind, "")


def list_summaries(host: Host) -> list[ClusterSummary]:
    """Return all clusters on this machine by name. Looks only at their processes; opens no connection."""
    from kctl.contexts.choose import current_context

    current = current_context()
    return [_summary(host, cluster, current) for cluster in store.list_clusters(host)]


def _summary(host: Host, cluster: store.StoredCluster, current: str | None) -> ClusterSummary:
    spec = cluster.spec
    processes = observe(host, spec) if spec is not None else []
    running = sum(p.running for p in processes)
    state: Literal["running", "partial", "stopped", "broken"] = "partial"
    if spec is None:
        state = "broken"
    elif running in {0, len(processes)}:
        state = "running" if running else "stopped"
    return ClusterSummary(
        name=cluster.name,
        state=state,
        layout=spec.layout if spec else None,
        broker_count=len(spec.brokers) if spec else None,
        running_processes=running,
        process_count=len(processes),
        kafka_version=spec.kafka_version if spec else None,
        bootstrap_servers=spec.bootstrap_servers if spec else (),
        current=cluster.name == current,
        directory=cluster.directory,
        problem=cluster.problem,
    )
