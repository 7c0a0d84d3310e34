"""The plan of a rolling restart, and its result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kctl.base import journal
from kctl.cluster.rights import NEED_ALL_TOPICS
from kctl.errors import ConnectionFailed, NotAuthorized, NotFound, NotSupported, OperationFailed, Reason, Refused
from kctl.health.partitions import partitions_of
from kctl.model import Broker
from kctl.restart import journals
from kctl.restart.gate import Blocker, UnprotectedTopic, ZookeeperDown, can_stop_together, gate, summary, unprotected
from kctl.restart.live_cluster import Cluster, may_be_down
from kctl.restart.order import whole_order
from kctl.restart.restart_run import RestartClock, RestartOptions, RestartRun
from kctl.restart.snapshot import GateSnapshot
from kctl.restart.steps import ROLLING_RESTART, BrokerPhase, RestartState, replay

_SETTLE_S = 10.0  # a cluster that has just started settles within this time
_POLL_S = 1.0
_BROKERS_HINT = (
    "find the cause with `kctl cluster health`, which waits for recovery with --wait; if only the replicas of one "
    "broker are behind, restart that broker with --brokers N"
)
_HOW_TO_END = {  # by the first word of the purpose of a run
    "rolling": "resume it with `kctl cluster restart {name} --rolling`, or discard it with --abandon",
    "upgrade": (
        "resume it with `kctl cluster upgrade {name} --to {version}`, or go back with `kctl cluster rollback {name}`"
    ),
    "rollback": "resume it with `kctl cluster rollback {name}`",
    "finalization": "resume it with `kctl cluster finalize {name}`",
}
_ZOOKEEPER_HINT = "check the servers with `kctl zk stat`: a majority must respond"


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """One broker of a plan.

    turn: from 1; brokers that are stopped together share a turn. state: "up", or "down": it is started first. host,
    port: None if the broker is down and its address is unknown.
    """

    turn: int
    broker: int
    host: str | None
    port: int | None
    rack: str | None
    is_controller: bool
    state: str


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """The plan of a rolling restart.

    resumes: the unfinished run to resume; restarted: the brokers that it has already restarted. blockers: reasons
    why a broker cannot be stopped now. left_down: brokers that host replicas, are down, and are not part of the plan.
    not_seen: what the user may not describe, so that the gate cannot check it.
    """

    cluster: str
    cluster_id: str
    resumes: str | None
    restarted: tuple[int, ...]
    brokers: tuple[PlannedBroker, ...]
    unprotected: tuple[UnprotectedTopic, ...]
    blockers: tuple[Blocker, ...]
    left_down: tuple[int, ...] = ()
    not_seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartedBroker:
    """The result for one broker.

    in_sync_ms: from its stop until all partitions were in sync. longest_under_replicated_ms: the longest time that any
    partition lacked a replica.
    """

    broker: int
    result: BrokerPhase
    stop_ms: int | None
    start_ms: int | None
    in_sync_ms: int | None
    longest_under_replicated_ms: int | None


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """The result of a run.

    outcome: "done" or "not finished". elected: partitions that got their preferred leader; None without an election.
    not_elected: the other partitions, with the reason. journal: the run's file.
    """

    cluster: str
    cluster_id: str
    outcome: str
    resumed: bool
    brokers: tuple[RestartedBroker, ...]
    elected: int | None
    not_elected: tuple[str, ...]
    unprotected: tuple[UnprotectedTopic, ...]
    journal: Path
    duration_ms: int


def unfinished_run(cluster: Cluster, name: str, own_id: str | None = None) -> tuple[str | None, Path | None]:
    """Return the cluster's id and the journal of its unfinished run.

    If no broker is up, the id is None, and the run is found by `own_id` (the id on the disks of a cluster that kctl set
    up, because an earlier cluster may have had its name) or by the cluster's name. Raises subclasses of
    ConnectionFailed if there is no such run either, and for errors that a stopped broker does not cause.
    """
    try:
        live_id = cluster.snapshot(()).state.cluster_id
    except ConnectionFailed as exc:
        path = None
        if may_be_down(exc):
            path = journals.find_unfinished_by_name(name) if own_id is None else journals.find_unfinished(own_id)
        if path is None:
            raise
        return None, path
    if live_id is None:
        raise OperationFailed("the cluster does not report its id")
    return live_id, journals.find_unfinished(live_id)


def read_unfinished(path: Path, selected: Collection[int] | None, *, purpose: str = ROLLING_RESTART) -> RestartState:
    """Return the state of a run.

    Raises Refused if other brokers are selected or the run has another purpose, Busy if a process works on it.
    """
    journals.refuse_while_held(path)
    state = replay(journal.read(path), name=str(path))
    if state.purpose != purpose:
        raise Refused(
            f"an unfinished {state.purpose} of cluster {state.cluster} is restarting its nodes",
            hint=_HOW_TO_END.get(state.purpose.partition(" ")[0], "finish it first").format(
                name=state.cluster, version=state.purpose.rpartition(" ")[2]
            ),
            reason=Reason.RUN_STATE,
        )
    if selected is not None and set(selected) != set(state.brokers):
        raise Refused(
            f"an unfinished rolling restart of this cluster covers broker {', '.join(map(str, state.brokers))}",
            hint="run the command without --brokers to resume it, or with --abandon to forget it",
            reason=Reason.RUN_STATE,
        )
    return state


def choose(existing: Mapping[int, Broker], selected: Collection[int] | None) -> dict[int, Broker]:
    """Return the selected brokers by id; all if `selected` is None. Raises NotFound."""
    missing = sorted(set(selected or ()).difference(existing))
    if missing:
        raise NotFound(
            f"the cluster has no broker {', '.join(map(str, missing))}",
            hint=f"brokers of the cluster: {', '.join(map(str, sorted(existing)))}",
        )
    return {node: existing[node] for node in sorted(existing) if selected is None or node in selected}


def make_plan(
    cluster: Cluster,
    name: str,
    brokers: Mapping[int, Broker],
    options: RestartOptions,
    *,
    clock: RestartClock,
    resumes: Path | None = None,
    state: RestartState | None = None,
) -> RestartPlan:
    """Read the cluster until nothing blocks, for up to ten seconds. state: of the unfinished run to resume.

    While a broker is down there are no blockers: the broker is started first, and the gate is checked afterwards.
    """
    live_nodes = cluster.registered() if state is not None else frozenset()
    first = [] if state is None else _start_first(state, live_nodes)
    if state is not None and (first or not live_nodes):
        order = [(node,) for node in first] + whole_order(state.pending, {}, None)
        plan = _plan(name, state.cluster_id, brokers, order, None, live_nodes, resumes, state)
        return _with_topic_facts(plan, cluster, cluster.snapshot([*first, *state.pending])) if live_nodes else plan
    until = clock.now() + min(_SETTLE_S, options.timeout_s)
    while True:
        broker_ids = list(brokers) if state is None else state.pending
        controller = cluster.controller()
        current = cluster.snapshot(broker_ids)
        live_nodes = current.up
        order = whole_order(
            broker_ids,
            {node: broker.rack for node, broker in brokers.items()},
            controller,
            max_unavailable=options.max_unavailable,
            fits=lambda nodes: can_stop_together(current, nodes, brokers),  # noqa: B023 - called in this iteration
        )
        problems: list[Blocker] = []
        if live_nodes.issuperset(brokers):
            problems = list(dict.fromkeys(each for batch in order for each in gate(current, batch, list(brokers))))
        if not problems or clock.now() >= until:
            break
        clock.sleep(_POLL_S)
    plan = _plan(name, current.state.cluster_id or "", brokers, order, controller, live_nodes, resumes, state)
    return replace(_with_topic_facts(plan, cluster, current), blockers=tuple(problems))


def _start_first(state: RestartState, live_nodes: Collection[int]) -> list[int]:
    """Return the brokers to start first, including those that the run restarted and that are down again."""
    return [
        node
        for node, row in state.brokers.items()
        if row.open or (row.phase is BrokerPhase.DONE and node not in live_nodes)
    ]


def _with_topic_facts(plan: RestartPlan, cluster: Cluster, snapshot: GateSnapshot) -> RestartPlan:
    """Add unprotected topics, brokers that are down and not in the plan, and what the user may not describe."""
    planned_brokers = [row.broker for row in plan.brokers]
    hosts = {node for p in partitions_of(snapshot.state) for node in p.replicas}
    return replace(
        plan,
        unprotected=tuple(unprotected(snapshot.state, snapshot.min_isr, planned_brokers)),
        left_down=tuple(sorted(hosts.difference(snapshot.state.brokers, planned_brokers, plan.restarted))),
        not_seen=tuple(_not_seen(cluster, snapshot)),
    )


def _not_seen(cluster: Cluster, snapshot: GateSnapshot) -> Iterator[str]:
    """Yield what the user may not describe. Not a blocker: users of only some topics may restart brokers, too."""
    if cluster.hides_topics():
        yield (
            "this user may not describe all topics: brokers are stopped without checking the ISRs of the others "
            f"({NEED_ALL_TOPICS})"
        )
    if isinstance(snapshot.quorum, NotAuthorized):
        yield (
            "this user may not describe the metadata quorum: brokers are stopped without checking its majority, and "
            "the controller may not be last (requires an ACL for Describe on the cluster)"
        )


def _plan(
    name: str,
    cluster_id: str,
    brokers: Mapping[int, Broker],
    order: Sequence[tuple[int, ...]],
    controller: int | None,
    live_nodes: Collection[int],
    resumes: Path | None,
    state: RestartState | None,
) -> RestartPlan:
    rows = [
        PlannedBroker(
            turn, node, brokers[node].host or None, brokers[node].port if brokers[node].host else None,
            brokers[node].rack, node == controller, "up" if node in live_nodes else "down",
        )
        for turn, batch in enumerate(order, 1)
        for node in batch
    ]  # fmt: skip
    planned_brokers = {row.broker for row in rows}
    done = tuple(node for node in brokers if state is not None and node not in planned_brokers)
    return RestartPlan(name, cluster_id, resumes.stem if resumes else None, done, tuple(rows), (), ())


def _next_step_hint(problems: Sequence[Blocker]) -> str:
    zookeeper_down = any(isinstance(each, ZookeeperDown) for each in problems)
    return _ZOOKEEPER_HINT if zookeeper_down else _BROKERS_HINT


def refuse_without_election(cluster: Cluster, options: RestartOptions, state: RestartState | None) -> None:
    """Raise NotSupported before the first stop if the brokers do not support elections by request.

    state: of a run to resume, which is exempt because its brokers may be down.
    """
    if not options.elect or state is not None:
        return
    why_not = cluster.why_no_election()
    if why_not is not None:
        raise NotSupported(
            f"cannot elect the preferred leaders at the end: {why_not}",
            hint="nothing was stopped; set --no-election to restart without an election",
        )


def refuse_blocked(plan: RestartPlan) -> None:
    """Raise Refused if a broker cannot be stopped; nothing was changed."""
    if plan.blockers:
        raise Refused(
            f"no broker can be stopped now: {summary(plan.blockers)}",
            hint=_next_step_hint(plan.blockers),
            details={"blockers": [str(each) for each in plan.blockers]},
            reason=Reason.NOT_READY,
        )


def result_of(run: RestartRun, plan: RestartPlan, began: float) -> RollingRestart:
    """Return the result of a run, finished or not."""
    state = run.state
    rows = [
        RestartedBroker(node, row.phase, row.stop_ms, row.start_ms, row.in_sync_ms, row.longest_under_replicated_ms)
        for node, row in state.brokers.items()
    ]
    return RollingRestart(
        cluster=state.cluster,
        cluster_id=state.cluster_id,
        outcome=state.outcome or "not finished",
        resumed=state.resumed > 0,
        brokers=tuple(rows),
        elected=run.elected_count,
        not_elected=tuple(run.elected_left),
        unprotected=plan.unprotected,
        journal=run.journal.path,
        duration_ms=round((run.clock.now() - began) * 1000),
    )
