"""The goals of a plan, checked against the cluster before planning."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from kctl.cluster.log_dirs import CORDONED
from kctl.errors import NotFound, Reason, Refused, UsageError
from kctl.reassign.planner.cluster import PlanCluster


class BalanceGoal(str, Enum):
    """A quantity to balance over the brokers."""

    REPLICAS = "replicas"
    LEADERS = "leaders"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Goals:
    """Options of a plan, by broker id.

    brokers: the only brokers that may hold replicas (None: any live broker). add_brokers: new brokers that get an even
    share, in addition to those with replicas. exclude_brokers: receive no replicas and keep theirs. tolerance: allowed
    deviation from the mean (0.1: ±10 %); floor and ceil of the mean are always allowed. log_dirs: balance the log dirs
    within each broker. max_moves, max_bytes: the plan stops there and is marked incomplete.
    """

    remove_brokers: frozenset[int] = frozenset()
    add_brokers: frozenset[int] = frozenset()
    brokers: frozenset[int] | None = None
    exclude_brokers: frozenset[int] = frozenset()
    replication_factor: int | None = None
    fix_racks: bool = False
    balance: frozenset[BalanceGoal] = frozenset()
    tolerance: float = 0.0
    leaders_only: bool = False
    log_dirs: bool = False
    max_moves: int | None = None
    max_bytes: int | None = None

    @property
    def moves_data(self) -> bool:
        spread = self.balance - {BalanceGoal.LEADERS}
        return bool(self.even_replicas or self.fix_racks or spread) and not self.leaders_only

    @property
    def even_replicas(self) -> bool:
        """Return True if replica counts must be even."""
        has_brokers = self.remove_brokers or self.add_brokers or self.brokers is not None
        return bool(has_brokers or self.replication_factor is not None or BalanceGoal.REPLICAS in self.balance)

    @property
    def even_leaders(self) -> bool:
        return self.leaders_only or BalanceGoal.LEADERS in self.balance


@dataclass(frozen=True, slots=True)
class Roles:
    """Brokers by index. hosts may receive replicas; leaving must end up empty; the others keep their replicas."""

    hosts: tuple[int, ...]
    leaving: frozenset[int]


def resolve(goals: Goals, cluster: PlanCluster) -> Roles:
    """Check goals against the cluster. Raises UsageError, NotFound (no such broker), Refused (unattainable)."""
    check_options(goals)
    index = cluster.index_of()
    _check_brokers_exist(goals, index.keys())
    dead = {broker.id for broker in cluster.brokers if not broker.alive}
    cordoned = {broker.id for broker in cluster.brokers if broker.cordoned}
    receivers = goals.add_brokers | (goals.brokers or frozenset())
    if receivers & dead:
        raise Refused(
            f"{_brokers(receivers & dead)} down and can receive nothing",
            hint="start it, or remove it from the goal",
            reason=Reason.NOT_READY,
        )
    if receivers & cordoned:
        raise Refused(
            f"{_brokers(receivers & cordoned)} cordoned in all log dirs and can receive nothing",
            hint=f"remove it from the goal, or run: kctl broker uncordon {min(receivers & cordoned)}",
            reason=Reason.NOT_READY,
        )
    current_hosts = {cluster.brokers[i].id for replicas in set(cluster.replicas) for i in replicas}
    if goals.brokers is not None:
        hosts = goals.brokers | goals.add_brokers
        leaving = (index.keys() - hosts) | goals.remove_brokers
        leaving -= goals.exclude_brokers
    else:
        hosts = frozenset(index) if not goals.add_brokers else frozenset(current_hosts) | goals.add_brokers
        leaving = set(goals.remove_brokers)
    hosts = hosts - leaving - dead - cordoned - goals.exclude_brokers
    if not hosts:
        hint = "remove or exclude fewer brokers"
        if cordoned:
            hint += f"; {_brokers(cordoned)} cordoned in all log dirs ({CORDONED})"
        raise Refused("no broker can receive a replica", hint=hint, reason=Reason.IMPOSSIBLE)
    if goals.moves_data:
        _check_factor(goals, cluster, len(hosts), {index[n] for n in index.keys() - hosts - leaving})
    if goals.fix_racks:
        _check_racks(cluster, {index[n] for n in hosts})
    return Roles(tuple(sorted(index[n] for n in hosts)), frozenset(index[n] for n in leaving))


def check_options(goals: Goals) -> None:
    """Check the options that do not depend on the cluster. Raises UsageError."""
    conflicts = goals.remove_brokers & (goals.add_brokers | (goals.brokers or frozenset()))
    if conflicts:
        raise UsageError(
            f"{_brokers(conflicts)} both removed and receiving", hint="use only one of the options for a broker"
        )
    conflicts = goals.exclude_brokers & (goals.add_brokers | (goals.brokers or frozenset()))
    if conflicts:
        raise UsageError(
            f"{_brokers(conflicts)} both excluded and receiving", hint="use only one of the options for a broker"
        )
    conflicts = goals.exclude_brokers & goals.remove_brokers
    if conflicts:
        raise UsageError(
            f"{_brokers(conflicts)} both excluded and removed",
            hint="an excluded broker keeps its replicas: use only one of the options",
        )
    if goals.replication_factor is not None and goals.replication_factor < 1:
        raise UsageError(f"replication factor {goals.replication_factor} is less than 1")
    if not 0 <= goals.tolerance < 1:
        raise UsageError(f"tolerance {goals.tolerance} is not between 0 and 1", hint="write 0.1 for 10 %")
    for name, limit in (("max-moves", goals.max_moves), ("max-bytes", goals.max_bytes)):
        if limit is not None and limit < 0:
            raise UsageError(f"--{name} {limit} is negative")
    moving = goals.even_replicas or goals.fix_racks or goals.balance - {BalanceGoal.LEADERS}
    if goals.leaders_only and (moving or goals.log_dirs):
        raise UsageError("--leaders-only moves no data, but the other goals do", hint="make two plans")
    if not (moving or goals.even_leaders or goals.log_dirs):
        raise UsageError("the plan has no goal", hint="add one, e.g. --remove-broker 3 or --balance replicas")


def _check_brokers_exist(goals: Goals, brokers: Collection[int]) -> None:
    selected = goals.remove_brokers | goals.add_brokers | (goals.brokers or frozenset()) | goals.exclude_brokers
    unknown = selected - set(brokers)
    if unknown:
        ids = sorted(brokers)
        more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
        raise NotFound(
            f"{_brokers(unknown)} not in the cluster",
            hint=f"brokers in the cluster: {', '.join(map(str, ids[:20]))}{more}",
        )


def _check_factor(goals: Goals, cluster: PlanCluster, hosts: int, keeping: set[int]) -> None:
    """Check that each partition has enough brokers. keeping: brokers (indexes) that keep their replicas."""
    for p, replicas in enumerate(cluster.replicas):
        needed = goals.replication_factor or len(replicas)
        if needed > hosts:
            needed -= sum(1 for node in replicas if node in keeping)
            if needed > hosts:
                raise Refused(
                    f"{cluster.tp(p)} needs {needed} brokers, but only {hosts} can receive replicas",
                    hint="remove fewer brokers, or lower --replication-factor",
                    reason=Reason.IMPOSSIBLE,
                )


def _check_racks(cluster: PlanCluster, hosts: set[int]) -> None:
    rackless = [cluster.brokers[i].id for i in sorted(hosts) if cluster.brokers[i].rack is None]
    if rackless:
        raise Refused(
            f"{_brokers(rackless)} without a rack", hint="set broker.rack on each broker", reason=Reason.IMPOSSIBLE
        )


def _brokers(ids: object) -> str:
    nodes = sorted(ids)  # type: ignore[call-overload]
    return f"broker {nodes[0]} is" if len(nodes) == 1 else f"brokers {', '.join(map(str, nodes))} are"
