"""How far leaders are from the preferred ones, as a controller counts it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kctl.base.text import counted
from kctl.errors import NotHealthy
from kctl.model import ClusterState, PartitionState


@dataclass(frozen=True, slots=True)
class BrokerLeaders:
    """leaders: partitions that it leads. preferred: those whose preferred replica it is; missing: of these, how many
    it does not lead; imbalance_percent: missing of preferred.
    """

    broker: int
    rack: str | None
    alive: bool
    leaders: int
    preferred: int
    missing: int
    imbalance_percent: float


@dataclass(frozen=True, slots=True)
class NotPreferred:
    """A partition that its preferred replica does not lead. leader: None when there is none.

    electable: the preferred replica is up and in sync, so that an election would work; reason: why not.
    """

    topic: str
    partition: int
    leader: int | None
    preferred_leader: int
    electable: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    """preferred_percent: partitions led by their preferred replica (100 when there are none).

    leaderless: partitions without a leader. auto_rebalance, imbalance_limit_percent: the brokers' settings, None when
    they could not be read. idle_brokers: up, with replicas, and no partition's preferred leader. empty_brokers: up,
    without any replica; not told where only some topics are counted.
    """

    partition_count: int
    preferred: int
    preferred_percent: float
    leaderless: int
    auto_rebalance: bool | None
    imbalance_limit_percent: float | None
    brokers: tuple[BrokerLeaders, ...]
    not_preferred: tuple[NotPreferred, ...]
    idle_brokers: tuple[int, ...] = ()
    empty_brokers: tuple[int, ...] = ()

    def over(self, max_percent: float) -> list[BrokerLeaders]:
        """Brokers whose imbalance is above the limit."""
        return [row for row in self.brokers if 100 * row.missing > max_percent * row.preferred]

    def require_healthy(self, max_percent: float) -> None:
        """Raise NotHealthy if a partition has no leader, or the imbalance of a broker is above the limit."""
        over = self.over(max_percent)
        problems = []
        if self.leaderless:
            problems.append(f"{counted(self.leaderless, 'partition')} without a leader")
        if over:
            worst = max(over, key=lambda row: row.imbalance_percent)
            problems.append(
                f"imbalance above {max_percent:g} % on {counted(len(over), 'broker')}, "
                f"the largest {worst.imbalance_percent:g} % on broker {worst.broker}"
            )
        if not problems:
            return
        if any(row.electable for row in self.not_preferred):
            hint = "`kctl leader elect --preferred` gives partitions back to their preferred replicas"
        else:
            hint = "no election can help now: start the brokers that are down, wait for replicas to be in sync"
        raise NotHealthy("; ".join(problems), hint=hint)


def leader_status(
    state: ClusterState,
    *,
    auto_rebalance: bool | None = None,
    imbalance_limit_percent: float | None = None,
    whole: bool = True,
) -> LeaderStatus:
    """Count. Pure. The topics of `state` are what is counted: the controller counts all there are. whole: all are."""
    rows = [p for name in sorted(state.topics) for p in state.topics[name].partitions]
    off = [p for p in rows if p.leader != p.preferred_leader]
    holding = {node for p in rows for node in p.replicas}
    idle = state.brokers.keys() - {p.preferred_leader for p in rows} if len(rows) >= len(state.brokers) else set()
    return LeaderStatus(
        partition_count=len(rows),
        preferred=len(rows) - len(off),
        preferred_percent=_percent(len(rows) - len(off), len(rows), 100.0),
        leaderless=sum(p.offline for p in rows),
        auto_rebalance=auto_rebalance,
        imbalance_limit_percent=imbalance_limit_percent,
        brokers=tuple(_brokers(state, rows)),
        not_preferred=tuple(not_preferred(state, p) for p in off),
        idle_brokers=tuple(sorted(idle & holding)),
        empty_brokers=tuple(sorted(idle - holding)) if whole else (),
    )


def _brokers(state: ClusterState, rows: Collection[PartitionState]) -> Iterator[BrokerLeaders]:
    leaders: dict[int, int] = {}
    preferred: dict[int, int] = {}
    missing: dict[int, int] = {}
    for p in rows:
        node = p.preferred_leader
        leaders[p.leader] = leaders.get(p.leader, 0) + 1
        preferred[node] = preferred.get(node, 0) + 1
        if p.leader != node:
            missing[node] = missing.get(node, 0) + 1
    for node in sorted(state.brokers.keys() | preferred.keys() | (leaders.keys() - {-1})):
        broker = state.brokers.get(node)
        yield BrokerLeaders(
            broker=node,
            rack=broker.rack if broker else None,
            alive=broker is not None,
            leaders=leaders.get(node, 0),
            preferred=preferred.get(node, 0),
            missing=missing.get(node, 0),
            imbalance_percent=_percent(missing.get(node, 0), preferred.get(node, 0), 0.0),
        )


def _percent(part: int, whole: int, of_nothing: float) -> float:
    return round(100 * part / whole, 3) if whole else of_nothing


def not_preferred(state: ClusterState, p: PartitionState) -> NotPreferred:
    """What an election would find."""
    reason = None
    if p.preferred_leader not in state.brokers:
        reason = f"broker {p.preferred_leader} is down"
    elif p.preferred_leader not in p.isr:
        reason = f"the replica on broker {p.preferred_leader} is not in sync"
    leader = None if p.offline else p.leader
    return NotPreferred(p.topic, p.partition, leader, p.preferred_leader, reason is None, reason)
