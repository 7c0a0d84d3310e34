"""Restart the nodes that an upgrade, a rollback or a finalization still has to change, in stages.

ZooKeeper servers first, because newer brokers may need a newer ZooKeeper; then dedicated controllers, the active one
last, because controllers must know the records that they write for newer brokers; then brokers. Controllers and
brokers restart as in `kctl cluster restart --rolling`, with its gate and its journal. A rollback reverses the order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kctl.base import journal
from kctl.deploy import store
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, ControllerNode, Node, ZooKeeperNode
from kctl.deploy.nodes import NodeProcess, observe
from kctl.errors import OperationFailed
from kctl.restart import journals
from kctl.restart.own_members import live_cluster, members_of
from kctl.restart.plan import read_unfinished
from kctl.restart.restart_run import RestartClock, RestartOptions, RestartReporter, RestartRun
from kctl.restart.run import carry_out
from kctl.restart.steps import BrokerPhase, BrokerState, RestartState, replay
from kctl.upgrade.control import SwitchingControl
from kctl.upgrade.record import Switch
from kctl.upgrade.zookeepers import restart_zookeepers

_ROUNDS = 3  # a node that another kctl starts meanwhile with the old release needs a second round


@dataclass(frozen=True, slots=True)
class RollingChange:
    """A change of all nodes of a cluster.

    purpose: as in the journal, e.g. "upgrade to 4.4.0". cluster_id: as on the disks. switch: changes a stopped node.
    is_pending: True for a node that still has to be changed. how_to_resume: the next step after an interruption.
    backwards: brokers, then controllers, then ZooKeeper servers, for a rollback.
    """

    cluster: str
    cluster_id: str
    purpose: str
    switch: Switch
    is_pending: Callable[[ClusterSpec, NodeProcess], bool]
    how_to_resume: str
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class ChangedNode:
    """The result for one node; the times are those of a rolling restart."""

    node: str
    result: BrokerPhase
    stop_ms: int | None = None
    start_ms: int | None = None
    in_sync_ms: int | None = None
    longest_under_replicated_ms: int | None = None


@dataclass
class RollingWork:
    """The state of the work in this process. changed_nodes: by name. current: the run in progress, for messages."""

    host: Host
    options: RestartOptions
    reporter: RestartReporter
    clock: RestartClock
    changed_nodes: dict[str, ChangedNode] = field(default_factory=dict)
    current: RestartRun | None = None

    def record_phase(self, node: Node, phase: BrokerPhase) -> None:
        """Record the phase of a server that no journal covers."""
        self.changed_nodes[node.name] = ChangedNode(node.name, phase)


def pending_nodes(host: Host, spec: ClusterSpec, change: RollingChange) -> list[Node]:
    """Return the nodes that still have to be changed, in the order of `ClusterSpec.nodes`."""
    return [process.node for process in observe(host, spec) if change.is_pending(spec, process)]


def stages(nodes: Sequence[Node], *, backwards: bool = False) -> list[list[Node]]:
    """Return the nodes in groups of one kind: ZooKeeper servers, dedicated controllers, brokers. Pure."""
    kinds = (ZooKeeperNode, ControllerNode, BrokerNode)[:: -1 if backwards else 1]
    groups = [[node for node in nodes if isinstance(node, kind)] for kind in kinds]
    return [group for group in groups if group]


def planned_state(change: RollingChange, nodes: Sequence[BrokerNode | ControllerNode]) -> RestartState:
    """Return the state of a run that has not started."""
    rows = {node: BrokerState(broker) for node, broker in members_of(nodes).items()}
    return RestartState(change.cluster, change.cluster_id, "", change.purpose, rows)


def unfinished_path(change: RollingChange) -> tuple[Path, RestartState] | None:
    """Return the unfinished run of this change. Raises Refused for a run with another purpose, Busy."""
    path = journals.find_unfinished(change.cluster_id)
    return None if path is None else (path, read_unfinished(path, None, purpose=change.purpose))


def discard_run(cluster_id: str, purposes: Collection[str]) -> None:
    """End the unfinished run if it has one of these purposes. Raises Busy."""
    path = journals.find_unfinished(cluster_id)
    if path is not None and replay(journal.read(path), name=str(path)).purpose in purposes:
        journals.abandon(path)


def change_nodes(change: RollingChange, work: RollingWork) -> None:
    """Change all pending nodes. Raises NotFinished; OperationFailed, if nodes are still pending."""
    for _ in range(_ROUNDS):
        unfinished = unfinished_path(change)
        spec = store.load(work.host, change.cluster)
        if unfinished is not None:
            nodes = [node for node in spec.nodes if node.id in unfinished[1].brokers]
            _restart(change, work, spec, _members(nodes), unfinished[0])
            continue
        pending = pending_nodes(work.host, spec, change)
        if not pending:
            return
        for nodes in stages(pending, backwards=change.backwards):
            if members := _members(nodes):
                _restart(change, work, spec, members, None)
                continue
            zookeepers = [node for node in nodes if isinstance(node, ZooKeeperNode)]
            restart_zookeepers(
                work.host, spec, zookeepers, change.switch, work.options, work.reporter, work.record_phase
            )
    names = ", ".join(node.name for node in pending_nodes(work.host, store.load(work.host, change.cluster), change))
    if names:
        raise OperationFailed(f"the {change.purpose} did not reach {names}", hint=change.how_to_resume)


def _members(nodes: Sequence[Node]) -> list[BrokerNode | ControllerNode]:
    return [node for node in nodes if not isinstance(node, ZooKeeperNode)]


def _restart(
    change: RollingChange, work: RollingWork, spec: ClusterSpec, nodes: Sequence[BrokerNode | ControllerNode],
    path: Path | None,
) -> None:  # fmt: skip
    """Restart nodes of one kind, in a new run or in the unfinished run in `path`."""
    brokers = members_of(nodes)
    controllers = frozenset(node.id for node in nodes if isinstance(node, ControllerNode))
    control = SwitchingControl(change.cluster, change.switch, progress=None, host=work.host)
    with live_cluster(spec) as cluster:
        cluster.add_servers([broker for node, broker in brokers.items() if node not in controllers])
        run_journal, state = journals.begin_or_resume(
            change.cluster, change.cluster_id, list(brokers.values()), path, change.purpose
        )
        with run_journal:
            run = RestartRun(
                cluster, control, run_journal, state, _options_for(work.options, controllers), work.reporter,
                work.clock, controllers=controllers, how_to_resume=change.how_to_resume,
            )  # fmt: skip
            work.current = run
            try:
                carry_out(run)
            finally:
                work.changed_nodes |= _results(spec, run)
    work.current = None


def _options_for(options: RestartOptions, controllers: frozenset[int]) -> RestartOptions:
    return replace(options, elect=options.elect and not controllers)


def _results(spec: ClusterSpec, run: RestartRun) -> Mapping[str, ChangedNode]:
    names = {node.id: node.name for node in _members(spec.nodes)}
    return {
        names[node]: ChangedNode(
            names[node], row.phase, row.stop_ms, row.start_ms, row.in_sync_ms, row.longest_under_replicated_ms
        )
        for node, row in run.state.brokers.items()
    }
