"""Fault injection: kill -9, pause and unpause of one process, selected by name or by role.

1, broker-1, zookeeper-2     by id or name; controller-101 or controller:101 for a dedicated controller
controller                   the active controller; also controller:active
leader:orders-0              the broker that leads partition 0 of topic orders now
zookeeper-leader             the ZooKeeper that leads the ensemble (or stands alone)
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from kctl.base.deadline import Deadline
from kctl.deploy import health
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, Node, ZooKeeperNode
from kctl.deploy.nodes import NodeProcess, observe, write_record
from kctl.deploy.process import ProcessIdentity
from kctl.deploy.quorum import read_quorum
from kctl.deploy.waiting import wait_until
from kctl.errors import KctlError, NotFound, OperationFailed, Reason, Refused, UsageError

_EFFECT_TIMEOUT_S = 10.0
_REQUEST_TIMEOUT_S = 3.0

Fault = Literal["kill", "pause", "unpause"]


@dataclass(frozen=True, slots=True)
class FaultTarget:
    """The node that a selector selects, and its process."""

    node: Node
    identity: ProcessIdentity


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The affected process and its state afterwards."""

    cluster: str
    node: str
    node_id: int
    pid: int
    state: Literal["dead", "paused", "running"]


def choose(host: Host, spec: ClusterSpec, selector: str) -> FaultTarget:
    """Return the running process that `selector` selects now.

    Raises UsageError for an invalid selector, NotFound for an unknown node, Refused if the process does not run or no
    process has the role.
    """
    processes = observe(host, spec)
    node = _node(host, spec, selector, processes)
    process = next(p for p in processes if p.node == node)
    if process.identity is None:
        raise Refused(
            f"{node.name} of cluster {spec.name} does not run",
            hint=f"start it with `kctl cluster start {spec.name}`",
            reason=Reason.NOT_READY,
        )
    return FaultTarget(node, process.identity)


def _node(host: Host, spec: ClusterSpec, selector: str, processes: list[NodeProcess]) -> Node:
    by_name = named_node(spec, selector)
    if by_name is not None:
        return by_name
    if selector in {"controller", "controller:active"}:
        return _active_controller(host, spec, processes)
    if selector == "zookeeper-leader":
        return _zookeeper_leader(spec)
    topic, hyphen, partition = selector.removeprefix("leader:").rpartition("-")
    if selector.startswith("leader:") and hyphen and topic and partition.isascii() and partition.isdigit():
        return spec.broker(_leader(host, spec, topic, int(partition), processes))
    names = ", ".join(node.name for node in spec.nodes)
    if selector.startswith(("broker-", "zookeeper-", "controller")) or selector.isdigit():
        raise NotFound(f"cluster {spec.name} has no node {selector}", hint=f"its nodes: {names}")
    raise UsageError(
        f"{selector!r} does not select a process",
        hint=f"use a broker id, one of {names}, controller, zookeeper-leader or leader:TOPIC-PARTITION",
    )


def named_node(spec: ClusterSpec, selector: str) -> Node | None:
    """Return the node with that name, or the broker or controller with that id; None if there is none."""
    for node in spec.nodes:
        numbered = not isinstance(node, ZooKeeperNode) and selector == str(node.id)
        voter = selector == f"controller:{node.id}" and node.id in {v.id for v in spec.voters}
        if selector == node.name or numbered or voter:
            return node
    return None


def answering_brokers(host: Host, processes: list[NodeProcess]) -> list[int]:
    """Return the brokers that run and are not paused."""
    broker_ids = []
    for process in processes:
        if isinstance(process.node, BrokerNode) and process.identity is not None:
            usage = host.usage(process.identity)
            if usage is not None and usage.state != "T":
                broker_ids.append(process.node.id)
    return broker_ids


def _active_controller(host: Host, spec: ClusterSpec, processes: list[NodeProcess]) -> Node:
    if spec.uses_kraft:
        quorum = read_quorum(spec, [p.node.id for p in processes if p.running], timeout_s=_REQUEST_TIMEOUT_S)
        node_id = quorum.leader_id if quorum is not None else None
    else:
        node_id = _controller_id(host, spec, processes)
    if node_id is None:
        raise Refused(
            f"cluster {spec.name} has no controller now", hint="try again in a few seconds", reason=Reason.NOT_READY
        )
    return next(node for node in spec.nodes if node.id == node_id and not isinstance(node, ZooKeeperNode))


def _controller_id(host: Host, spec: ClusterSpec, processes: list[NodeProcess]) -> int | None:
    try:
        with health.registry(spec, timeout_s=_REQUEST_TIMEOUT_S) as registry:
            return registry.controller_id()
    except KctlError:  # while ZooKeeper is down, brokers still report the last controller
        answers = health.ask_brokers(spec, answering_brokers(host, processes), timeout_s=_REQUEST_TIMEOUT_S)
        return next((a.controller_id for a in answers.values() if a.controller_id is not None), None)


def _zookeeper_leader(spec: ClusterSpec) -> Node:
    if spec.uses_kraft:
        raise UsageError(f"cluster {spec.name} has no ZooKeeper", hint="for its active controller, use controller")
    modes = health.ensemble_modes(spec)
    for node in spec.zookeepers:
        if modes[node.id] in {"leader", "standalone"}:
            return node
    raise Refused(
        f"the ZooKeepers of cluster {spec.name} have no leader now",
        hint="try again in a few seconds",
        reason=Reason.NOT_READY,
    )


def _leader(host: Host, spec: ClusterSpec, topic: str, partition: int, processes: list[NodeProcess]) -> int:
    from kctl.protocol.client import connect

    target = health.target_of(spec, answering_brokers(host, processes))
    if not target.bootstrap_servers:
        raise Refused(
            f"no broker of cluster {spec.name} runs",
            hint=f"run `kctl cluster start {spec.name}`",
            reason=Reason.NOT_READY,
        )
    with connect(target, timeout_s=_REQUEST_TIMEOUT_S) as client:
        state = client.metadata([topic]).topics.get(topic)
    if state is None:
        raise NotFound(f"topic {topic} does not exist in cluster {spec.name}")
    for partition_state in state.partitions:
        if partition_state.partition == partition:
            if partition_state.offline:
                raise Refused(
                    f"{partition_state.tp} has no leader now",
                    hint=f"see kctl topic describe {topic}",
                    reason=Reason.NOT_READY,
                )
            return partition_state.leader
    raise NotFound(f"topic {topic} has no partition {partition}", hint=f"it has {len(state.partitions)} partitions")


def inflict(host: Host, spec: ClusterSpec, chosen: FaultTarget, fault: Fault) -> FaultResult:
    """Send the signal and wait for its effect. Raises OperationFailed if the state does not change."""
    number = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "unpause": signal.SIGCONT}[fault]
    if fault == "kill":  # the intended state stays "running", so that status shows dead, not stopped
        write_record(host, spec, chosen.node, "running", chosen.identity)
    if not host.signal(chosen.identity, number) and fault != "kill":
        raise OperationFailed(f"{chosen.node.name} ended before it could be signalled")

    def has_effect() -> bool:
        usage = host.usage(chosen.identity)
        if fault == "kill":
            return not host.is_running(chosen.identity)
        return usage is not None and (usage.state == "T") == (fault == "pause")

    if not wait_until(has_effect, Deadline(_EFFECT_TIMEOUT_S), every_s=0.02):
        raise OperationFailed(f"{chosen.node.name} (pid {chosen.identity.pid}) did not react to the {fault} signal")
    state: Literal["dead", "paused", "running"] = (
        "dead" if fault == "kill" else "paused" if fault == "pause" else "running"
    )
    return FaultResult(spec.name, chosen.node.name, chosen.node.id, chosen.identity.pid, state)
