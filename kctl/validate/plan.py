"""The plan of a run, and the reasons why scenarios are impossible. Made before any change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.text import counted
from kctl.errors import ConnectionFailed, NotSupported, OperationFailed, Reason, Refused, UsageError
from kctl.health.partitions import partitions_of
from kctl.model import ClusterState
from kctl.protocol.target import Target
from kctl.restart.gate import UnprotectedTopic, unprotected
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.snapshot import GateSnapshot
from kctl.topics.elect import why_no_election
from kctl.validate import leftovers
from kctl.validate.fault_injection import FaultInjection
from kctl.validate.other_topics import OtherTopics, without_two
from kctl.validate.report.sentences import OPTIONS
from kctl.validate.report.verdict import Budgets
from kctl.validate.scenarios import SCENARIOS, Scenario, find
from kctl.zookeeper.session import zookeeper

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

WAIT_S = 180.0
_HEALTHY_S = 20.0
_DELETED_S = 5.0
_SHOWN = 3
_ZOOKEEPER_S = 10.0
_MAX_PARTITIONS = 64  # of a test topic


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """The producer settings and budgets.

    min_insync: None means 2, or 1 if writes would stop when a broker is down. per_s: records per second of a scenario.
    wait_s: maximum duration of a single wait: for writes, a start, replicas in sync.
    """

    acks: str = "all"
    idempotent: bool = True
    min_insync: int | None = None
    per_s: float = 300.0
    budgets: Budgets = field(default_factory=Budgets)
    wait_s: float = WAIT_S

    def __post_init__(self) -> None:
        if self.idempotent and self.acks != "all":
            raise UsageError("idempotence needs acks=all", hint="use --no-idempotence with --acks 0 or 1")


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """A scenario of a plan.

    assignment: replicas of each partition of its topic, preferred leader first. impossible: the reason why this cluster
    does not support it, else None.
    """

    scenario: str
    does: str
    proves: str
    assignment: tuple[tuple[int, ...], ...]
    min_insync_replicas: int
    impossible: str | None = None


@dataclass(frozen=True, slots=True)
class ValidationPlan:
    """A plan. unprotected: other topics that reject writes or are unavailable while one or two brokers are down."""

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
    client: ClusterClient,
    injection: FaultInjection,
    selected: Sequence[Scenario],
    options: ValidationOptions,
    *,
    controller: int | None,
) -> ValidationPlan:
    """Wait briefly until the cluster is healthy, then return the plan.

    Raises Refused if it is unhealthy, or if no scenario is possible.
    """
    _refuse_without_zookeeper(client.target)
    state = wait_healthy(client, _HEALTHY_S)
    if state.cluster_id is None:
        raise OperationFailed("the cluster does not report its id")
    refuse_others(client, state.cluster_id)
    no_election = why_no_election(client)
    other_topics = OtherTopics(tuple(sorted(state.brokers)), controller, no_election=no_election)
    rows = _plan_all(selected, other_topics, injection, options)
    snapshot = _take_snapshot(client.target, state)
    affected = unprotected(snapshot.state, snapshot.min_isr, other_topics.brokers)
    if any(each.unclean for each in selected):
        other_topics = OtherTopics.read(client, snapshot.state, controller, no_election)
        rows = _plan_all(selected, other_topics, injection, options)
        affected += _without_two(rows, snapshot)
    return ValidationPlan(
        client.target.name, state.cluster_id, other_topics.brokers, injection.method, rows, tuple(affected)
    )


def _take_snapshot(target: Target, state: ClusterState) -> GateSnapshot:
    """Return a snapshot of the cluster.

    Raises Refused if a broker does not respond: until its session expires, a dead broker is still listed, and topics
    may be created on it.
    """
    deadline = Deadline(_HEALTHY_S)
    with LiveCluster(target, list(state.brokers.values())) as cluster:
        while True:
            snapshot = cluster.snapshot(state.brokers)
            silent = sorted({*snapshot.silent, *(state.brokers.keys() - snapshot.state.brokers.keys())})
            if not silent:
                return snapshot
            if deadline.expired:
                raise Refused(
                    f"broker {', '.join(map(str, silent))} {'does' if len(silent) == 1 else 'do'} not respond",
                    hint="check with `kctl broker list`; all brokers must be up before a validation",
                    reason=Reason.NOT_READY,
                )
            time.sleep(0.5)


def _plan_all(
    selected: Sequence[Scenario], other_topics: OtherTopics, injection: FaultInjection, options: ValidationOptions
) -> tuple[PlannedScenario, ...]:  # fmt: skip
    """Return the planned scenarios. Raises Refused if none is possible."""
    rows = tuple(plan_scenario(each, other_topics, injection, options) for each in selected)
    if all(row.impossible for row in rows):
        why = "; ".join(dict.fromkeys(row.impossible for row in rows if row.impossible))
        raise (Refused if len(rows) > 1 else NotSupported)(f"{_names(rows)} cannot run on this cluster: {why}")
    _refuse_unmeasured([row for row in rows if row.impossible is None], other_topics, options.budgets)
    return rows


def _refuse_unmeasured(rows: Sequence[PlannedScenario], other_topics: OtherTopics, budgets: Budgets) -> None:
    """Raise Refused for a budget that no scenario can exceed: it would prove nothing."""
    measured = {name for row in rows for name in find(row.scenario).measures}
    dedicated = other_topics.controller is not None and other_topics.controller not in other_topics.brokers
    if dedicated and not any(row.scenario == "controller-loss" for row in rows):
        measured.discard("max_controller_ms")  # no broker that is stopped is the controller
    for name, option in OPTIONS.items():
        if getattr(budgets, name) is not None and name not in measured:
            scenarios = [each.name for each in SCENARIOS if name in each.measures]
            raise Refused(
                f"{option}: {_names(rows)} cannot measure this on this cluster",
                hint=f"omit {option}, or run one of {', '.join(scenarios)}",
                reason=Reason.IMPOSSIBLE,
            )


def _without_two(rows: Sequence[PlannedScenario], snapshot: GateSnapshot) -> list[UnprotectedTopic]:
    """Return topics affected while the pair of an unclean election is down.

    Earlier scenarios may move the controller, which changes the pair.
    """
    possible = [row for row in rows if row.impossible is None]
    unclean = [row for row in possible if find(row.scenario).unclean]
    pair = unclean[0].assignment[0] if unclean and len(possible) == 1 else None
    return without_two(snapshot.state, snapshot.min_isr, pair) if unclean else []


def plan_scenario(
    scenario: Scenario, other_topics: OtherTopics, injection: FaultInjection, options: ValidationOptions
) -> PlannedScenario:
    """Return the plan of a scenario. Pure."""
    assignment = other_topics.assignment() if scenario.unclean else spread(other_topics.brokers)
    factor = 2 if scenario.unclean else len(assignment[0]) if assignment else 0
    default = 2 if factor > 2 or scenario.unclean else 1
    min_insync = default if options.min_insync is None else options.min_insync
    return PlannedScenario(
        scenario.name, scenario.does, scenario.proves, assignment, min_insync,
        _impossible(scenario, other_topics, injection, min_insync, factor),
    )  # fmt: skip


def _impossible(
    scenario: Scenario, other_topics: OtherTopics, injection: FaultInjection, min_insync: int, factor: int
) -> str | None:
    missing = [act for act in scenario.acts if act not in injection.control.acts]
    if missing:
        return f"the hooks have no command to {' or '.join(missing)} each broker"
    if scenario.servers is not None:
        if (why := _no_servers(scenario, injection)) is not None:
            return why
    elif len(other_topics.brokers) < 2:
        return "a single broker has no other broker to take over"
    if min_insync > factor:
        return f"min.insync.replicas={min_insync} with {counted(factor, 'replica')} rejects all writes"
    if not scenario.unclean and scenario.servers is None and min_insync >= factor:
        return f"min.insync.replicas={min_insync} with {counted(factor, 'replica')} rejects writes without a broker"
    if scenario.unclean and other_topics.pair() is None:
        return other_topics.why_none()
    if scenario.name == "leader-election" and other_topics.no_election is not None:
        return other_topics.no_election
    if scenario.name == "controller-election" and other_topics.controller not in {None, *other_topics.brokers}:
        return "the controller is not a broker"
    return None


def _no_servers(scenario: Scenario, injection: FaultInjection) -> str | None:
    """Return why the servers that the scenario kills cannot be killed, None if they can."""
    servers = injection.zookeepers if scenario.servers == "zookeepers" else injection.controllers
    if isinstance(servers, str):
        return servers
    if scenario.name == "controller-loss" and len(servers.names) < 2:
        return "a single controller has no other controller to take over"
    return None


def spread(brokers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return a partition led by each broker, with up to three replicas."""
    count = len(brokers)
    factor = min(3, count)
    return tuple(tuple(brokers[(at + n) % count] for n in range(factor)) for at in range(min(count, _MAX_PARTITIONS)))


def _refuse_without_zookeeper(target: Target) -> None:
    """Raise Refused if ZooKeeper does not respond: brokers keep serving for a while, but elect no leaders."""
    if target.zookeeper is None:
        return
    try:
        with zookeeper(target.zookeeper, security=target.zookeeper_security, timeout_s=_ZOOKEEPER_S):
            pass
    except ConnectionFailed as exc:
        raise Refused(
            f"ZooKeeper does not respond: {exc.message}",
            hint="check the servers with `kctl zk stat`",
            reason=Reason.NOT_READY,
        ) from exc


def wait_healthy(client: ClusterClient, timeout_s: float, *, ignore: str | None = None) -> ClusterState:
    """Return the state of the cluster once it is healthy. ignore: prefix of topics to ignore.

    Raises Refused if a partition is not fully replicated in time, because faults could make it unavailable.
    """
    deadline = Deadline(timeout_s)
    while True:
        state = client.metadata()
        behind = [
            p
            for p in partitions_of(state)
            if (p.offline or set(p.isr) != set(p.replicas)) and not (ignore and p.topic.startswith(ignore))
        ]
        if not behind and state.brokers:
            return state
        if deadline.expired:
            names = ", ".join(str(p.tp) for p in behind[:3]) + (", …" if len(behind) > 3 else "")
            raise Refused(
                f"the cluster is not healthy: {counted(len(behind), 'partition')} not fully replicated ({names})",
                hint="check with `kctl cluster health`; all replicas must be in sync before a validation",
                reason=Reason.NOT_READY,
            )
        time.sleep(0.5)


def refuse_others(client: ClusterClient, cluster_id: str) -> None:
    """Raise Refused if another machine or user runs a validation: its topics show that.

    Brokers may still list deleted topics for a moment.
    """
    deadline = Deadline(_DELETED_S)
    while True:
        local_topics = leftovers.topics_of(cluster_id)
        others = sorted(
            name for name in client.metadata().topics.keys() - local_topics if name.startswith(leftovers.PREFIX)
        )
        if not others:
            return
        if deadline.expired:
            names = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
            raise Refused(
                f"another machine or user runs a validation of this cluster, or one was killed: topics {names} exist",
                hint="wait until it has ended, or run `kctl validate` on that machine to clean up; otherwise run "
                f"`kctl topic delete {others[0]}`",
                reason=Reason.NOT_READY,
            )
        time.sleep(0.5)


def _names(rows: Sequence[PlannedScenario]) -> str:
    return ", ".join(row.scenario for row in rows)
