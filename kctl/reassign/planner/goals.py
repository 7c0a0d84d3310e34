"""What a plan is to reach, and what it must keep. Checked against the cluster before anything is planned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from kctl.cluster.log_dirs import CORDONED
from kctl.errors import NotFound, Refused, UsageError
from kctl.reassign.planner.cluster import PlanCluster


class Balance(str, Enum):
    """What is to be spread evenly over the brokers."""

    REPLICAS = "replicas"
    LEADERS = "leaders"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Goals:
    """Options of a plan, by broker id.

    brokers: all replicas go to these (None: wherever there is a live broker). add_brokers: new ones that get their
    share, besides those that hold replicas already. exclude_brokers: receive nothing, keep what they have. tolerance:
    share of the mean by which a broker may differ (0.1: ±10 %); counts are always allowed floor and ceil of the mean.
    log_dirs: even out the log dirs of each broker, by moves inside it.
    max_moves, max_bytes: the plan stops there and is marked incomplete.
    """

    remove_brokers: frozenset[int] = frozenset()
    add_brokers: frozenset[int] = frozenset()
    brokers: frozenset[int] | None = None
    exclude_brokers: frozenset[int] = frozenset()
    replication_factor: int | None = None
    fix_racks: bool = False
    balance: frozenset[Balance] = frozenset()
    tolerance: float = 0.0
    leaders_only: bool = False
    log_dirs: bool = False
    max_moves: int | None = None
    max_bytes: int | None = None

    @property
    def moves_data(self) -> bool:
        spread = self.balance - {Balance.LEADERS}
        return bool(self.even_replicas or self.fix_racks or spread) and not self.leaders_only

    @property
    def even_replicas(self) -> bool:
        """Do replica counts have to come out even?"""
        named = self.remove_brokers or self.add_brokers or self.brokers is not None
        return bool(named or self.replication_factor is not None or Balance.REPLICAS in self.balance)

    @property
    def even_leaders(self) -> bool:
        return self.leaders_only or Balance.LEADERS in self.balance


@dataclass(frozen=True, slots=True)
class Roles:
    """By broker index. hosts may receive; leaving must end empty; the rest keep what they have."""

    hosts: tuple[int, ...]
    leaving: frozenset[int]


def resolve(goals: Goals, cluster: PlanCluster) -> Roles:
    """Check goals against the cluster. Raises UsageError, NotFound (no such broker), Refused (cannot be reached)."""
    check_options(goals)
    index = cluster.index_of()
    _check_known(goals, index.keys())
    dead = {broker.id for broker in cluster.brokers if not broker.alive}
    cordoned = {broker.id for broker in cluster.brokers if broker.cordoned}
    asked = goals.add_brokers | (goals.brokers or frozenset())
    if asked & dead:
        raise Refused(f"{_brokers(asked & dead)} down and can receive nothing", hint="start it, or leave it out")
    if asked & cordoned:
        raise Refused(
            f"{_brokers(asked & cordoned)} cordoned in all log dirs and can receive nothing",
            hint=f"remove it from the goal, or run: kctl config unset broker/{min(asked & cordoned)} {CORDONED}",
        )
    holding = {cluster.brokers[i].id for replicas in set(cluster.replicas) for i in replicas}
    if goals.brokers is not None:
        hosts = goals.brokers | goals.add_brokers
        leaving = (index.keys() - hosts) | goals.remove_brokers
        leaving -= goals.exclude_brokers
    else:
        hosts = frozenset(index) if not goals.add_brokers else frozenset(holding) | goals.add_brokers
        leaving = set(goals.remove_brokers)
    hosts = hosts - leaving - dead - cordoned - goals.exclude_brokers
    if not hosts:
        hint = "name fewer brokers to remove or exclude"
        if cordoned:
            hint += f"; {_brokers(cordoned)} cordoned in all log dirs ({CORDONED})"
        raise Refused("no broker can receive a replica", hint=hint)
    if goals.moves_data:
        _check_factor(goals, cluster, len(hosts), {index[n] for n in index.keys() - hosts - leaving})
    if goals.fix_racks:
        _check_racks(cluster, {index[n] for n in hosts})
    return Roles(tuple(sorted(index[n] for n in hosts)), frozenset(index[n] for n in leaving))


def check_options(goals: Goals) -> None:
    """What can be told without a cluster. Raises UsageError."""
    both = goals.remove_brokers & (goals.add_brokers | (goals.brokers or frozenset()))
    if both:
        raise UsageError(f"{_brokers(both)} both to be removed and to receive", hint="name it once")
    both = goals.exclude_brokers & (goals.add_brokers | (goals.brokers or frozenset()))
    if both:
        raise UsageError(f"{_brokers(both)} both excluded and to receive", hint="name it once")
    both = goals.exclude_brokers & goals.remove_brokers
    if both:
        raise UsageError(
            f"{_brokers(both)} both excluded and to be removed",
            hint="an excluded broker keeps what it has: name it once",
        )
    if goals.replication_factor is not None and goals.replication_factor < 1:
        raise UsageError(f"replication factor {goals.replication_factor} is less than 1")
    if not 0 <= goals.tolerance < 1:
        raise UsageError(f"tolerance {goals.tolerance} is not from 0 to 1", hint="write 0.1 for 10 %")
    for name, limit in (("max-moves", goals.max_moves), ("max-bytes", goals.max_bytes)):
        if limit is not None and limit < 0:
            raise UsageError(f"--{name} {limit} is negative")
    moving = goals.even_replicas or goals.fix_racks or goals.balance - {Balance.LEADERS}
    if goals.leaders_only and (moving or goals.log_dirs):
        raise UsageError("--leaders-only moves no data, the other goals do", hint="make two plans")
    if not (moving or goals.even_leaders or goals.log_dirs):
        raise UsageError("no goal for the plan", hint="for example --remove-broker 3 or --balance replicas")


def _check_known(goals: Goals, known: Collection[int]) -> None:
    named = goals.remove_brokers | goals.add_brokers | (goals.brokers or frozenset()) | goals.exclude_brokers
    unknown = named - set(known)
    if unknown:
        there = sorted(known)
        more = f" and {len(there) - 20} more" if len(there) > 20 else ""
        raise NotFound(
            f"{_brokers(unknown)} not in the cluster", hint=f"its brokers are {', '.join(map(str, there[:20]))}{more}"
        )


def _check_factor(goals: Goals, cluster: PlanCluster, hosts: int, keeping: set[int]) -> None:
    """Enough brokers for each partition? keeping: brokers (indexes) that hold what they have."""
    for p, replicas in enumerate(cluster.replicas):
        wanted = goals.replication_factor or len(replicas)
        if wanted > hosts:
            wanted -= sum(1 for node in replicas if node in keeping)
            if wanted > hosts:
                raise Refused(
                    f"{cluster.tp(p)} needs {wanted} brokers and {hosts} can receive",
                    hint="remove fewer brokers, or lower --replication-factor",
                )


def _check_racks(cluster: PlanCluster, hosts: set[int]) -> None:
    without = [cluster.brokers[i].id for i in sorted(hosts) if cluster.brokers[i].rack is None]
    if without:
        raise Refused(f"{_brokers(without)} without a rack", hint="set broker.rack on each broker")


def _brokers(ids: object) -> str:
    found = sorted(ids)  # type: ignore[call-overload]
    return f"broker {found[0]} is" if len(found) == 1 else f"brokers {', '.join(map(str, found))} are"
