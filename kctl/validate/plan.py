"""What a run is going to do, and whether it can be done: looked at before anything is changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.text import counted
from kctl.errors import ConnectionFailed, NotSupported, OperationFailed, Refused, UsageError
from kctl.health.partitions import partitions_of
from kctl.model import ClusterState
from kctl.protocol.target import Target
from kctl.restart.gate import UnprotectedTopic, unprotected
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.snapshot import GateSnapshot
from kctl.topics.elect import why_no_election
from kctl.validate import leftovers
from kctl.validate.bystanders import Bystanders, without_two
from kctl.validate.means import Means
from kctl.validate.report.sentences import OPTIONS
from kctl.validate.report.verdict import Budgets
from kctl.validate.scenarios import SCENARIOS, Scenario, find
from kctl.zookeeper.session import zookeeper

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

WAIT_S = 180.0
_PATIENCE_S = 20.0
_GONE_S = 5.0
_NAMED = 3
_ZOOKEEPER_S = 10.0
_MOST_BROKERS = 64  # more partitions say no more


@dataclass(frozen=True, slots=True)
class Wishes:
    """How it is written, and what it may cost. min_insync: None for 2, or 1 where a broker less would stop writes for
    lack of replicas. per_s: records a second of one scenario. wait_s: the longest that a single wait may take: for
    writes, a broker's start, replicas in sync."""

    acks: str = "all"
    idempotent: bool = True
    min_insync: int | None = None
    per_s: float = 300.0
    budgets: Budgets = field(default_factory=Budgets)
    wait_s: float = WAIT_S

    def __post_init__(self) -> None:
        if self.idempotent and self.acks != "all":
            raise UsageError("idempotence needs acks=all", hint="--no-idempotence goes with --acks 0 and 1")


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """assignment: replicas of each partition of its topic, the preferred leader first. impossible: why it cannot be
    done here; None when it can."""

    scenario: str
    does: str
    proves: str
    assignment: tuple[tuple[int, ...], ...]
    min_insync_replicas: int
    impossible: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """unprotected: topics of others that stop taking writes, or are gone, while a broker is away, or two are."""

    cluster: str
    cluster_id: str
    brokers: tuple[int, ...]
    by: str
    scenarios: tuple[PlannedScenario, ...]
    unprotected: tuple[UnprotectedTopic, ...]

    @property
    def possible(self) -> tuple[PlannedScenario, ...]:
        return tuple(row for row in self.scenarios if row.impossible is None)


def make_plan(
    client: ClusterClient, means: Means, chosen: Sequence[Scenario], wishes: Wishes, *, controller: int | None
) -> Plan:
    """Wait a little until the cluster is healthy. Raises Refused when it is not, or when nothing of it can be done."""
    _refuse_without_zookeeper(client.target)
    state = wait_healthy(client, _PATIENCE_S)
    if state.cluster_id is None:
        raise OperationFailed("the cluster does not tell its id")
    refuse_others(client, state.cluster_id)
    no_election = why_no_election(client)
    around = Bystanders(tuple(sorted(state.brokers)), controller, no_election=no_election)
    rows = _plan_all(chosen, around, means, wishes)
    seen = _look(client.target, state)
    suffering = unprotected(seen.state, seen.min_isr, around.brokers)
    if any(each.unclean for each in chosen):
        around = Bystanders.read(client, seen.state, controller, no_election)
        rows = _plan_all(chosen, around, means, wishes)
        suffering += _without_two(rows, seen)
    return Plan(client.target.name, state.cluster_id, around.brokers, means.told, rows, tuple(suffering))


def _look(target: Target, state: ClusterState) -> GateSnapshot:
    """Raises Refused when a broker does not answer: until its session ends a dead one is told of as before, and topics
    may be made on it."""
    deadline = Deadline(_PATIENCE_S)
    with LiveCluster(target, list(state.brokers.values())) as cluster:
        while True:
            seen = cluster.snapshot(state.brokers)
            silent = sorted({*seen.silent, *(state.brokers.keys() - seen.state.brokers.keys())})
            if not silent:
                return seen
            if deadline.expired:
                raise Refused(
                    f"broker {', '.join(map(str, silent))} {'does' if len(silent) == 1 else 'do'} not answer",
                    hint="kctl broker list tells which do; a validation begins with all in order",
                )
            time.sleep(0.5)


def _plan_all(
    chosen: Sequence[Scenario], around: Bystanders, means: Means, wishes: Wishes
) -> tuple[PlannedScenario, ...]:  # fmt: skip
    """Raises Refused when nothing of it can be done."""
    rows = tuple(plan_scenario(each, around, means, wishes) for each in chosen)
    if all(row.impossible for row in rows):
        why = "; ".join(dict.fromkeys(row.impossible for row in rows if row.impossible))
        raise (Refused if len(rows) > 1 else NotSupported)(f"{_names(rows)} cannot be done here: {why}")
    _refuse_unmeasured([row for row in rows if row.impossible is None], around, wishes.budgets)
    return rows


def _refuse_unmeasured(rows: Sequence[PlannedScenario], around: Bystanders, budgets: Budgets) -> None:
    """A budget that nothing can break would be kept, and say nothing. Raises Refused."""
    measured = {name for row in rows for name in find(row.scenario).measures}
    if around.controller is not None and around.controller not in around.brokers:
        measured.discard("max_controller_ms")  # no broker that is taken away is it
    for name, option in OPTIONS.items():
        if getattr(budgets, name) is not None and name not in measured:
            able = [each.name for each in SCENARIOS if name in each.measures]
            raise Refused(
                f"{option}: {_names(rows)} cannot measure that here",
                hint=f"leave it out, or take one that does: {', '.join(able)}",
            )


def _without_two(rows: Sequence[PlannedScenario], seen: GateSnapshot) -> list[UnprotectedTopic]:
    """While the pair of an unclean election is away. Scenarios before it may move the controller, and with it the
    pair."""
    possible = [row for row in rows if row.impossible is None]
    unclean = [row for row in possible if find(row.scenario).unclean]
    pair = unclean[0].assignment[0] if unclean and len(possible) == 1 else None
    return without_two(seen.state, seen.min_isr, pair) if unclean else []


def plan_scenario(scenario: Scenario, around: Bystanders, means: Means, wishes: Wishes) -> PlannedScenario:
    """Pure."""
    assignment = around.assignment() if scenario.unclean else spread(around.brokers)
    factor = 2 if scenario.unclean else len(assignment[0]) if assignment else 0
    least = wishes.min_insync if wishes.min_insync is not None else 2 if factor > 2 or scenario.unclean else 1
    return PlannedScenario(
        scenario.name, scenario.does, scenario.proves, assignment, least,
        _impossible(scenario, around, means, least, factor),
    )  # fmt: skip


def _impossible(scenario: Scenario, around: Bystanders, means: Means, least: int, factor: int) -> str | None:
    lacking = [act for act in scenario.acts if act not in means.control.acts]
    if lacking:
        return f"the hooks have no command to {' and to '.join(lacking)} each broker"
    if scenario.zookeeper and isinstance(means.zookeepers, str):
        return means.zookeepers
    if len(around.brokers) < 2 and not scenario.zookeeper:
        return "with one broker nothing can take over"
    if least > factor:
        return f"min.insync.replicas={least} with {counted(factor, 'replica')} takes no write at all"
    if not scenario.unclean and not scenario.zookeeper and least >= factor:
        return f"with {counted(factor, 'replica')} and min.insync.replicas={least} no broker may be missing"
    if scenario.unclean and around.pair() is None:
        return around.why_none()
    if scenario.name == "leader-election" and around.no_election is not None:
        return around.no_election
    if scenario.name == "controller-election" and around.controller not in {None, *around.brokers}:
        return "the controller is no broker"
    return None


def spread(brokers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """A partition led by each broker, with three replicas, or as many as there are brokers."""
    count = len(brokers)
    factor = min(3, count)
    return tuple(tuple(brokers[(at + n) % count] for n in range(factor)) for at in range(min(count, _MOST_BROKERS)))


def _refuse_without_zookeeper(target: Target) -> None:
    """Brokers go on for a while without it, and find no new leaders."""
    if target.zookeeper is None:
        return
    try:
        with zookeeper(target.zookeeper, security=target.zookeeper_security, timeout_s=_ZOOKEEPER_S):
            pass
    except ConnectionFailed as exc:
        raise Refused(
            f"ZooKeeper does not answer: {exc.message}",
            hint="kctl zk stat tells which servers do; a validation begins with all in order",
        ) from exc


def wait_healthy(client: ClusterClient, timeout_s: float, *, own: str | None = None) -> ClusterState:
    """What it is when all is well. own: how the names of topics begin that are no matter.

    Raises Refused when a partition is not fully replicated by then: the faults would hit it harder than is right.
    """
    deadline = Deadline(timeout_s)
    while True:
        state = client.metadata()
        behind = [
            p
            for p in partitions_of(state)
            if (p.offline or set(p.isr) != set(p.replicas)) and not (own and p.topic.startswith(own))
        ]
        if not behind and state.brokers:
            return state
        if deadline.expired:
            named = ", ".join(str(p.tp) for p in behind[:3]) + (", …" if len(behind) > 3 else "")
            raise Refused(
                f"the cluster is not healthy: {counted(len(behind), 'partition')} not fully replicated ({named})",
                hint="kctl cluster health tells what is wrong; a validation begins with all replicas in sync",
            )
        time.sleep(0.5)


def refuse_others(client: ClusterClient, cluster_id: str) -> None:
    """Validations of other machines and users have their topics there as long as they last. One that was deleted may be
    told of for a moment. Raises Refused."""
    deadline = Deadline(_GONE_S)
    while True:
        known = leftovers.topics_of(cluster_id)
        others = sorted(name for name in client.metadata().topics.keys() - known if name.startswith(leftovers.PREFIX))
        if not others:
            return
        if deadline.expired:
            named = ", ".join(others[:_NAMED]) + (", …" if len(others) > _NAMED else "")
            raise Refused(
                f"another kctl validates this cluster, or one was killed on another machine: its topics are {named}",
                hint="wait until it has ended, or let kctl validate on that machine take it back; else "
                f"kctl topic delete {others[0]}",
            )
        time.sleep(0.5)


def _names(rows: Sequence[PlannedScenario]) -> str:
    return ", ".join(row.scenario for row in rows)
