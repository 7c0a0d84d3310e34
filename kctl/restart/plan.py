"""What a rolling restart is going to do, before it does anything; and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kctl.base import journal
from kctl.cluster.rights import NEED_ALL_TOPICS
from kctl.errors import ConnectionFailed, NotAuthorized, NotFound, NotSupported, OperationFailed, Refused
from kctl.health.partitions import partitions_of
from kctl.model import Broker
from kctl.restart import journals
from kctl.restart.gate import Blocker, NoZookeeper, Unprotected, fit, gate, said, unprotected
from kctl.restart.look import Cluster, may_be_down
from kctl.restart.order import whole_order
from kctl.restart.running import Clock, Options, Run
from kctl.restart.seen import Seen
from kctl.restart.steps import Phase, RestartState, replay

_PATIENCE_S = 10.0  # a cluster that has just been started settles within that
_POLL_S = 1.0
_ASK_BROKERS = (
    "kctl cluster health tells what is wrong, and with --wait waits until it is mended; if only the replicas of one "
    "broker are behind, --brokers N restarts that one"
)
_ASK_ZOOKEEPER = "kctl zk stat tells which servers answer; a majority has to (kctl cluster health asks brokers alone)"


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """turn: from 1; those that go together have the same. state: «up», «down»: it is started before all else.

    host, port: None for one that is down and tells nobody.
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
    """blockers: what keeps a broker from being taken down now. resumes: the unfinished run that is gone on with.

    restarted: brokers that it restarted already. left_down: brokers that host replicas, are down, and are none of those
    that are restarted. not_seen: what this user may not see, and no gate can look at.
    """

    cluster: str
    cluster_id: str
    resumes: str | None
    restarted: tuple[int, ...]
    brokers: tuple[PlannedBroker, ...]
    unprotected: tuple[Unprotected, ...]
    blockers: tuple[Blocker, ...]
    left_down: tuple[int, ...] = ()
    not_seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartedBroker:
    """in_sync_ms: from its stop until all was in sync.

    longest_under_replicated_ms: of the partition that lacked a replica for longest, as it was seen.
    """

    broker: int
    result: Phase
    stop_ms: int | None
    start_ms: int | None
    in_sync_ms: int | None
    longest_under_replicated_ms: int | None


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """outcome: «done» or «not finished». elected: partitions that got their preferred leader, None without election;
    not_elected: those that did not, and why. journal: the run's file."""

    cluster: str
    cluster_id: str
    outcome: str
    resumed: bool
    brokers: tuple[RestartedBroker, ...]
    elected: int | None
    not_elected: tuple[str, ...]
    unprotected: tuple[Unprotected, ...]
    journal: Path
    duration_ms: int


def unfinished_run(cluster: Cluster, name: str, own_id: str | None = None) -> tuple[str | None, Path | None]:
    """The cluster's id, and the journal of its run that has not ended. The id is None when no broker is up: then the
    run is found by `own_id`, what the disks of one of kctl's own clusters say (another one may have had its name), or
    by the cluster's name. Raises ConnectionFailed's subclasses when there is none of that name either, and
    when what went wrong does not tell that brokers are down."""
    try:
        found = cluster.look(()).state.cluster_id
    except ConnectionFailed as exc:
        path = None
        if may_be_down(exc):
            path = journals.unfinished_of(name) if own_id is None else journals.unfinished(own_id)
        if path is None:
            raise
        return None, path
    if found is None:
        raise OperationFailed("the cluster does not tell its id")
    return found, journals.unfinished(found)


def read_unfinished(path: Path, wanted: Collection[int] | None) -> RestartState:
    """What the run is. Raises Refused when other brokers are asked for now; Busy while a process works on it."""
    journals.refuse_while_held(path)
    state = replay(journal.read(path), name=str(path))
    if wanted is not None and set(wanted) != set(state.brokers):
        raise Refused(
            f"a rolling restart of broker {', '.join(map(str, state.brokers))} of this cluster has not ended",
            hint="without --brokers the same command goes on with it; --abandon forgets it",
        )
    return state


def choose(known: Mapping[int, Broker], wanted: Collection[int] | None) -> dict[int, Broker]:
    """The brokers that were asked for, by id; all for None. Raises NotFound."""
    missing = sorted(set(wanted or ()).difference(known))
    if missing:
        raise NotFound(
            f"the cluster has no broker {', '.join(map(str, missing))}",
            hint=f"the brokers now: {', '.join(map(str, sorted(known)))}",
        )
    return {node: known[node] for node in sorted(known) if wanted is None or node in wanted}


def make_plan(
    cluster: Cluster,
    name: str,
    brokers: Mapping[int, Broker],
    options: Options,
    *,
    clock: Clock,
    resumes: Path | None = None,
    state: RestartState | None = None,
) -> RestartPlan:
    """Look for at most ten seconds, until nothing blocks. state: of the run that is gone on with.

    With a broker down there are no blockers: it is brought back first, and then it is looked again.
    """
    there = cluster.registered() if state is not None else frozenset()
    first = [] if state is None else _first(state, there)
    if state is not None and (first or not there):
        order = [(node,) for node in first] + whole_order(state.pending, {}, None)
        plan = _plan(name, state.cluster_id, brokers, order, None, there, resumes, state)
        return _with_look(plan, cluster, cluster.look([*first, *state.pending])) if there else plan
    until = clock.now() + min(_PATIENCE_S, options.timeout_s)
    while True:
        left = list(brokers) if state is None else state.pending
        controller = cluster.controller()
        seen = cluster.look(left)
        there = frozenset(seen.state.brokers)
        order = whole_order(
            left,
            {node: broker.rack for node, broker in brokers.items()},
            controller,
            max_unavailable=options.max_unavailable,
            fits=lambda some: fit(seen, some, brokers),  # noqa: B023 - used within the round
        )
        found: list[Blocker] = []
        if there.issuperset(brokers):
            found = list(dict.fromkeys(each for batch in order for each in gate(seen, batch, list(brokers))))
        if not found or clock.now() >= until:
            break
        clock.sleep(_POLL_S)
    plan = _plan(name, seen.state.cluster_id or "", brokers, order, controller, there, resumes, state)
    return replace(_with_look(plan, cluster, seen), blockers=tuple(found))


def _first(state: RestartState, there: Collection[int]) -> list[int]:
    """Brokers of a run that are brought back before anything else: also those that it restarted, and that are down."""
    return [node for node, row in state.brokers.items() if row.open or (row.phase is Phase.DONE and node not in there)]


def _with_look(plan: RestartPlan, cluster: Cluster, seen: Seen) -> RestartPlan:
    """What the topics tell: those that cannot be protected, and who hosts them and is not there; what is hidden."""
    coming = [row.broker for row in plan.brokers]
    hosts = {node for p in partitions_of(seen.state) for node in p.replicas}
    return replace(
        plan,
        unprotected=tuple(unprotected(seen.state, seen.min_isr, coming)),
        left_down=tuple(sorted(hosts.difference(seen.state.brokers, coming, plan.restarted))),
        not_seen=tuple(_not_seen(cluster, seen)),
    )


def _not_seen(cluster: Cluster, seen: Seen) -> Iterator[str]:
    """What nobody tells this user. Not a blocker: who operates only some topics may restart for those."""
    if cluster.hides_topics():
        yield (
            "this user may not describe all topics: brokers are taken down whatever the others have in sync "
            f"({NEED_ALL_TOPICS})"
        )
    if isinstance(seen.quorum, NotAuthorized):
        yield (
            "this user may not describe the metadata quorum: brokers are taken down whether or not it keeps its "
            "majority, and the controller not last (it needs an ACL for Describe on the cluster)"
        )


def _plan(
    name: str,
    cluster_id: str,
    brokers: Mapping[int, Broker],
    order: Sequence[tuple[int, ...]],
    controller: int | None,
    there: Collection[int],
    resumes: Path | None,
    state: RestartState | None,
) -> RestartPlan:
    rows = [
        PlannedBroker(
            turn, node, brokers[node].host or None, brokers[node].port if brokers[node].host else None,
            brokers[node].rack, node == controller, "up" if node in there else "down",
        )
        for turn, batch in enumerate(order, 1)
        for node in batch
    ]  # fmt: skip
    coming = {row.broker for row in rows}
    done = tuple(node for node in brokers if state is not None and node not in coming)
    return RestartPlan(name, cluster_id, resumes.stem if resumes else None, done, tuple(rows), (), ())


def _way_out(found: Sequence[Blocker]) -> str:
    without = any(isinstance(each, NoZookeeper) for each in found)
    return _ASK_ZOOKEEPER if without else _ASK_BROKERS


def refuse_without_election(cluster: Cluster, options: Options, state: RestartState | None) -> None:
    """Raise NotSupported before the first stop where brokers cannot elect leaders at the end. state: of a run that is
    gone on with, which is not left with brokers down for that."""
    if not options.elect or state is not None:
        return
    why_not = cluster.why_no_election()
    if why_not is not None:
        raise NotSupported(
            f"cannot elect the preferred leaders at the end: {why_not}",
            hint="nothing was stopped; with --no-election the brokers restart without an election",
        )


def refuse_blocked(plan: RestartPlan) -> None:
    """Raise Refused when a broker may not be taken down: nothing was changed."""
    if plan.blockers:
        raise Refused(
            f"no broker is taken down now: {said(plan.blockers)}",
            hint=_way_out(plan.blockers),
            details={"blockers": [str(each) for each in plan.blockers]},
        )


def result_of(run: Run, plan: RestartPlan, began: float) -> RollingRestart:
    """What came of a run, also of one that stopped on its way."""
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
