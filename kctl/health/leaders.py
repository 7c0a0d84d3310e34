"""Count the partitions that are not led by their preferred leader, as the controller does. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kctl.base.text import counted
from kctl.errors import NotHealthy
from kctl.model import ClusterState, PartitionState


@dataclass(frozen=True, slots=True)
class BrokerLeaders:
    """The leadership of one broker.

    leaders: partitions that it leads. preferred: partitions of which it is the preferred leader. missing: preferred
    partitions that it does not lead. imbalance_percent: missing as a percentage of preferred.
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
    """A partition that is not led by its preferred leader. leader: None if there is none.

    electable: the preferred leader is up and in sync, so an election would succeed. reason: why not.
    """

    topic: str
    partition: int
    leader: int | None
    preferred_leader: int
    electable: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    """The leadership of all partitions.

    preferred_percent: partitions led by their preferred leader (100 if there are none). leaderless: partitions without
    a leader. auto_rebalance, imbalance_limit_percent: broker settings; None: not readable. idle_brokers: up, with
    replicas, but the preferred leader of no partition. empty_brokers: up, without replicas; empty if only some topics
    are counted.
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
        """Return brokers whose imbalance exceeds the limit."""
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
            hint = "run `kctl leader elect --preferred` to return leadership to the preferred leaders"
        else:
            hint = (
                "no election can help now: start the brokers that are down, and wait for their replicas to be in sync"
            )
        raise NotHealthy("; ".join(problems), hint=hint)


def leader_status(
    state: ClusterState,
    *,
    auto_rebalance: bool | None = None,
    imbalance_limit_percent: float | None = None,
    whole: bool = True,
) -> LeaderStatus:
    """Count leaders. Pure. state: the topics to count (the controller counts all). whole: `state` has all topics."""
    rows = [p for name in sorted(state.topics) for p in state.topics[name].partitions]
    non_preferred = [p for p in rows if p.leader != p.preferred_leader]
    holding = {node for p in rows for node in p.replicas}
    idle = state.brokers.keys() - {p.preferred_leader for p in rows} if len(rows) >= len(state.brokers) else set()
    return LeaderStatus(
        partition_count=len(rows),
        preferred=len(rows) - len(non_preferred),
        preferred_percent=_percent(len(rows) - len(non_preferred), len(rows), 100.0),
        leaderless=sum(p.offline for p in rows),
        auto_rebalance=auto_rebalance,
        imbalance_limit_percent=imbalance_limit_percent,
        brokers=tuple(_brokers(state, rows)),
        not_preferred=tuple(not_preferred(state, p) for p in non_preferred),
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


def _percent(part: int, whole: int, default: float) -> float:
    return round(100 * part / whole, 3) if whole else default


def not_preferred(state: ClusterState, p: PartitionState) -> NotPreferred:
    """Return the row of a partition, with the reason if an election would fail."""
    reason = None
    if p.preferred_leader not in state.brokers:
        reason = f"broker {p.preferred_leader} is down"
    elif p.preferred_leader not in p.isr:
        reason = f"the replica on broker {p.preferred_leader} is not in sync"
    leader = None if p.offline else p.leader
    return NotPreferred(p.topic, p.partition, leader, p.preferred_leader, reason is None, reason)
