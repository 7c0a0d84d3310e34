"""What a run is going to do, and whether it can be done: looked at before anything is changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.context import Target
from kctl.deadline import Deadline
from kctl.errors import ConnectionFailed, NotSupported, OperationFailed, Refused, UsageError
from kctl.health.partitions import partitions_of
from kctl.model import ClusterState
from kctl.restart.gate import Unprotected, unprotected
from kctl.restart.look import LiveCluster
from kctl.text import counted
from kctl.validate.means import Means
from kctl.validate.scenarios import Scenario
from kctl.validate.verdict import Budgets
from kctl.zk.session import zookeeper

if TYPE_CHECKING:
    from kctl.client import ClusterClient

WAIT_S = 180.0
_PATIENCE_S = 20.0
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
    """unprotected: topics of others that stop taking writes, or are gone, while a broker is away."""

    cluster: str
    cluster_id: str
    brokers: tuple[int, ...]
    by: str
    scenarios: tuple[PlannedScenario, ...]
    unprotected: tuple[Unprotected, ...]

    @property
    def possible(self) -> tuple[PlannedScenario, ...]:
        return tuple(row for row in self.scenarios if row.impossible is None)


def make_plan(
    client: ClusterClient, means: Means, chosen: Sequence[Scenario], wishes: Wishes, *, controller: int | None
) -> Plan:
    """Wait a little until the cluster is healthy. Raises Refused when it is not, or when nothing of it can be done."""
    _refuse_without_zookeeper(client.target)
    state = _healthy(client)
    brokers = tuple(sorted(state.brokers))
    rows = tuple(plan_scenario(each, brokers, means, wishes, controller=controller) for each in chosen)
    if all(row.impossible for row in rows):
        why = "; ".join(dict.fromkeys(row.impossible for row in rows if row.impossible))
        raise (Refused if len(rows) > 1 else NotSupported)(f"{_names(rows)} cannot be done here: {why}")
    with LiveCluster(client.target, list(state.brokers.values())) as cluster:
        seen = cluster.look(brokers)
    if state.cluster_id is None:
        raise OperationFailed("the cluster does not tell its id")
    return Plan(
        client.target.name, state.cluster_id, brokers, means.told, rows,
        tuple(unprotected(seen.state, seen.min_isr, brokers)),
    )  # fmt: skip


def plan_scenario(
    scenario: Scenario, brokers: Sequence[int], means: Means, wishes: Wishes, *, controller: int | None
) -> PlannedScenario:
    """Pure."""
    assignment = unclean_assignment(brokers, controller) if scenario.unclean else spread(brokers)
    factor = len(assignment[0]) if assignment else 0
    least = wishes.min_insync if wishes.min_insync is not None else 2 if factor > 2 or scenario.unclean else 1
    return PlannedScenario(
        scenario.name, scenario.does, scenario.proves, assignment, least,
        _impossible(scenario, brokers, means, least, factor, controller),
    )  # fmt: skip


def _impossible(
    scenario: Scenario, brokers: Sequence[int], means: Means, least: int, factor: int, controller: int | None
) -> str | None:
    lacking = [act for act in scenario.acts if act not in means.control.acts]
    if lacking:
        return f"the hooks have no command to {' and to '.join(lacking)} each broker"
    if scenario.zookeeper and not means.zookeepers:
        return "kctl did not set up ZooKeepers of this cluster, and hooks have no command for them"
    if len(brokers) < 2 and not scenario.zookeeper:
        return "with one broker nothing can take over"
    if least > factor:
        return f"min.insync.replicas={least} with {counted(factor, 'replica')} takes no write at all"
    if not scenario.unclean and not scenario.zookeeper and least >= factor:
        return f"with {counted(factor, 'replica')} and min.insync.replicas={least} no broker may be missing"
    if scenario.name == "controller-election" and controller is not None and controller not in brokers:
        return "the controller is no broker"
    return None


def spread(brokers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """A partition led by each broker, with three replicas, or as many as there are brokers."""
    count = len(brokers)
    factor = min(3, count)
    return tuple(tuple(brokers[(at + n) % count] for n in range(factor)) for at in range(min(count, _MOST_BROKERS)))


def unclean_assignment(brokers: Sequence[int], controller: int | None) -> tuple[tuple[int, ...], ...]:
    """One partition with two replicas; not the controller where others are enough: its loss would be another test."""
    others = [broker for broker in brokers if broker != controller]
    chosen = others if len(others) > 1 else list(brokers)
    return (tuple(chosen[:2]),) if len(chosen) > 1 else ()


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


def _healthy(client: ClusterClient) -> ClusterState:
    """Raises Refused when a partition is not fully replicated: the faults would hit it harder than is right."""
    deadline = Deadline(_PATIENCE_S)
    while True:
        state = client.metadata()
        behind = [p for p in partitions_of(state) if p.offline or set(p.isr) != set(p.replicas)]
        if not behind and state.brokers:
            return state
        if deadline.expired:
            named = ", ".join(str(p.tp) for p in behind[:3]) + (", …" if len(behind) > 3 else "")
            raise Refused(
                f"the cluster is not healthy: {counted(len(behind), 'partition')} not fully replicated ({named})",
                hint="kctl cluster health tells what is wrong; a validation begins with all replicas in sync",
            )
        time.sleep(0.5)


def _names(rows: Sequence[PlannedScenario]) -> str:
    return ", ".join(row.scenario for row in rows)
