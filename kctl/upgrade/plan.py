"""The plan of an upgrade or a rollback: the order of the nodes, the changes to each node, and the blockers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kctl.deploy import store
from kctl.deploy.data import cluster_id_on_disk
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, ControllerNode, Node, Release, ZooKeeperNode
from kctl.deploy.nodes import NodeProcess, kind_of, observe
from kctl.deploy.runtime.java import MINIMUM_JAVA, find_java
from kctl.deploy.start import check_release
from kctl.errors import Reason, Refused
from kctl.restart.gate import Blocker, UnprotectedTopic, summary
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.own_members import live_cluster, members_of
from kctl.restart.plan import RestartPlan, make_plan
from kctl.restart.restart_run import RestartClock, RestartOptions
from kctl.upgrade.paths import check_path, path_warnings
from kctl.upgrade.record import (
    NodeSettings,
    check_resumable,
    current_upgrade,
    edited_logging,
    node_settings,
    to_former,
    to_target,
)
from kctl.upgrade.rolling import (
    RollingChange,
    pending_nodes,
    planned_state,
    stages,
    unfinished_path,
)


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """One node of a plan.

    turn: from 1. kafka_version: the current release. state: "up", or "down": the node is started first.
    is_active_controller: the node restarts last among its kind.
    """

    turn: int
    node: str
    kind: str
    node_id: int
    kafka_version: str
    state: str
    is_active_controller: bool


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """The plan of an upgrade or a rollback.

    action: "upgrade" or "rollback". resumes: True if it was started before. done: nodes that need no restart.
    settings: the changes to config files. blockers: why a node cannot be stopped now. java_version: of the Java that
    runs the nodes; minimum_java: the oldest accepted version.
    """

    cluster: str
    cluster_id: str
    action: str
    from_version: str
    to_version: str
    resumes: bool
    nodes: tuple[PlannedNode, ...]
    done: tuple[str, ...]
    settings: tuple[NodeSettings, ...]
    java_version: int
    minimum_java: int
    warnings: tuple[str, ...]
    unprotected: tuple[UnprotectedTopic, ...]
    blockers: tuple[Blocker, ...]


def upgrade_purpose(to: Release) -> str:
    """Return the purpose of the runs of an upgrade, as in the journals."""
    return f"upgrade to {to.version}"


def finalization_purpose(to: Release) -> str:
    """Return the purpose of the runs of a finalization, as in the journals."""
    return f"finalization of {to.version}"


def upgrade_change(spec: ClusterSpec, cluster_id: str, to: Release) -> RollingChange:
    """Return the change that switches every node to the target."""

    def is_pending(current: ClusterSpec, process: NodeProcess) -> bool:
        return current.release_of(process.node) != to or process.libs != to.libs

    return RollingChange(
        spec.name, cluster_id, upgrade_purpose(to), to_target, is_pending,
        f"run the same command again to resume, or return to {spec.kafka_version} with "
        f"`kctl cluster rollback {spec.name}`",
    )  # fmt: skip


def rollback_change(spec: ClusterSpec, cluster_id: str) -> RollingChange:
    """Return the change that returns every node to the previous release, also nodes that are down."""

    def is_pending(current: ClusterSpec, process: NodeProcess) -> bool:
        return current.release_of(process.node) != current.release or process.libs != current.release.libs

    return RollingChange(
        spec.name, cluster_id, f"rollback to {spec.kafka_version}", to_former, is_pending,
        "run the same command again to resume", backwards=True,
    )  # fmt: skip


def id_on_disk(host: Host, spec: ClusterSpec) -> str:
    """Return the cluster's id. Raises Refused for a cluster that was never started."""
    cluster_id = cluster_id_on_disk(host, spec)
    if cluster_id is None:
        raise Refused(
            f"cluster {spec.name} has no cluster id on its disks: it was never started, or its log dirs disagree",
            hint=f"start it with `kctl cluster start {spec.name}`",
            reason=Reason.NOT_READY,
        )
    return cluster_id


def plan_upgrade(
    host: Host, name: str, to: Release, options: RestartOptions, clock: RestartClock
) -> tuple[UpgradePlan, RollingChange]:
    """Return the plan of a new upgrade, or of the rest of an unfinished one. The jars of the target may be missing.

    Raises Refused for a downgrade, another unfinished operation, a cluster that does not run, and settings that the
    target rejects; NotSupported if there is no direct way, or no Java.
    """
    spec = store.load(host, name)
    if spec.upgrade is None:
        check_path(spec, to.version)
    else:
        check_resumable(spec, to.version)
    check_release(spec, spec.release)
    java = find_java()
    change = upgrade_change(spec, id_on_disk(host, spec), to)
    settings = node_settings(host, spec, to.version)
    _refuse_invalid(spec, settings, to.version)
    if spec.upgrade is None and not any(process.running for process in observe(host, spec)):
        raise Refused(
            f"cluster {name} does not run: an upgrade restarts one node at a time, and checks the cluster after each",
            hint=f"start it with `kctl cluster start {name}`",
            reason=Reason.NOT_READY,
        )
    warnings = [
        *path_warnings(spec.kafka_version, to.version),
        *(f"{path} was edited; Kafka 4 reads log4j2.properties, and kctl does not transfer the edits"
          for path in edited_logging(host, spec, to.version)),
    ]  # fmt: skip
    plan = UpgradePlan(
        cluster=name, cluster_id=change.cluster_id, action="upgrade", from_version=spec.kafka_version,
        to_version=to.version, resumes=spec.upgrade is not None, nodes=(), done=(),
        settings=tuple(row for row in settings if row.changes), java_version=java.version,
        minimum_java=MINIMUM_JAVA, warnings=tuple(warnings), unprotected=(), blockers=(),
    )  # fmt: skip
    unfinished_path(change)
    return _with_nodes(host, spec, plan, change, options, clock), change


def plan_rollback(
    host: Host, name: str, options: RestartOptions, clock: RestartClock
) -> tuple[UpgradePlan, RollingChange]:
    """Return the plan that returns all nodes to the previous release.

    Raises Refused if there is no unfinished upgrade; NotFound if the jars of the previous release are missing.
    """
    spec = store.load(host, name)
    upgrade = current_upgrade(spec)
    check_release(spec, spec.release)
    java = find_java()
    change = rollback_change(spec, id_on_disk(host, spec))
    plan = UpgradePlan(
        cluster=name, cluster_id=change.cluster_id, action="rollback", from_version=upgrade.to.version,
        to_version=spec.kafka_version, resumes=upgrade.phase == "rolling back", nodes=(), done=(), settings=(),
        java_version=java.version, minimum_java=MINIMUM_JAVA, warnings=(), unprotected=(), blockers=(),
    )  # fmt: skip
    return _with_nodes(host, spec, plan, change, options, clock), change


def refuse_blocked(plan: UpgradePlan) -> None:
    """Raise Refused if a node cannot be stopped; nothing was changed."""
    if plan.blockers:
        raise Refused(
            f"no node can be stopped now: {summary(plan.blockers)}",
            hint=f"find the cause with `kctl cluster status {plan.cluster}` and `kctl cluster health`",
            details={"blockers": [str(each) for each in plan.blockers]},
            reason=Reason.NOT_READY,
        )


def _refuse_invalid(spec: ClusterSpec, settings: Sequence[NodeSettings], target: str) -> None:
    """Raise Refused for the first node with a value that the target rejects."""
    for row in settings:
        if row.invalid:
            raise Refused(
                f"{row.node} of cluster {spec.name} would not start with Kafka {target}: {'; '.join(row.invalid)}",
                hint=f"change {spec.directory / row.node / 'server.properties'}, then run the command again",
                details={"node": row.node, "settings": list(row.invalid)},
                reason=Reason.IMPOSSIBLE,
            )


def _with_nodes(
    host: Host, spec: ClusterSpec, plan: UpgradePlan, change: RollingChange, options: RestartOptions,
    clock: RestartClock,
) -> UpgradePlan:  # fmt: skip
    """Add the order of the nodes, the blockers and the unprotected topics, by a rolling restart per stage."""
    processes = {process.node.name: process for process in observe(host, spec)}
    pending = pending_nodes(host, spec, change)
    rows: list[PlannedNode] = []
    plans: list[RestartPlan] = []
    with live_cluster(spec) as cluster:
        for nodes in stages(pending, backwards=change.backwards):
            if isinstance(nodes[0], ZooKeeperNode):
                rows += [_planned(spec, len(rows) + n, processes[node.name]) for n, node in enumerate(nodes, 1)]
                continue
            plans.append(_stage_plan(cluster, change, nodes, options, clock))
            by_id = {node.id: node for node in nodes}
            rows += [
                _planned(spec, len(rows) + n, processes[by_id[row.broker].name], active=row.is_controller)
                for n, row in enumerate(plans[-1].brokers, 1)
            ]
    warnings = [f"{row.node} is down: it is started first, with Kafka {plan.to_version}"
                for row in rows if row.state == "down" and not plan.resumes]  # fmt: skip
    unseen = dict.fromkeys(line for each in plans for line in each.not_seen)
    blockers = dict.fromkeys(blocker for each in plans for blocker in each.blockers)
    unprotected = dict.fromkeys(topic for each in plans for topic in each.unprotected)
    return replace(
        plan,
        nodes=tuple(rows),
        done=tuple(node.name for node in spec.nodes if node not in pending),
        warnings=(*plan.warnings, *unseen, *warnings),
        unprotected=tuple(unprotected),
        blockers=tuple(blockers),
    )


def _stage_plan(
    cluster: LiveCluster, change: RollingChange, nodes: Sequence[Node], options: RestartOptions, clock: RestartClock
) -> RestartPlan:
    members = [node for node in nodes if isinstance(node, (BrokerNode, ControllerNode))]
    state = planned_state(change, members)
    return make_plan(cluster, change.cluster, members_of(members), options, clock=clock, state=state)


def _planned(spec: ClusterSpec, turn: int, process: NodeProcess, *, active: bool = False) -> PlannedNode:
    node = process.node
    return PlannedNode(
        turn, node.name, kind_of(node), node.id, spec.release_of(node).version, "up" if process.running else "down",
        active,
    )  # fmt: skip
