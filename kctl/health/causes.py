"""Common causes of unhealthy partitions: a broker, a log dir, a rack, or the leader of replicas that fall behind.

Locations are ranked by two percentages: how many of the unhealthy partitions miss a replica there, and how many of its
own replicas are missing. For a broker that is down, both are 100%. If one of a broker's four disks fails, the disk and
the broker both explain every unhealthy partition. But all replicas on the disk are missing, and only a quarter of the
broker's, so the disk ranks higher.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kctl.health.model import Adding
from kctl.health.partitions import adding_of, partitions_of, under_replicated
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition

_ORDER = ("broker", "log dir", "rack", "leader")  # ranking of locations with equal scores


@dataclass(frozen=True, slots=True)
class Suspect:
    """A location that may be the cause.

    kind: "broker", "log dir", "rack", or "leader": the broker that leads partitions with missing followers.
    partition_count, share_percent: unhealthy partitions with a missing replica there (leader: that it leads). missing,
    replica_count, missing_percent: its missing replicas, out of all of its replicas (leader: partitions with a missing
    follower, out of those with followers that it leads). state: of the broker, "up" or "down".
    """

    kind: str
    broker: int | None
    state: str | None
    log_dir: str | None
    rack: str | None
    partition_count: int
    share_percent: float
    missing: int
    replica_count: int
    missing_percent: float

    @property
    def place(self) -> str:
        """Return the rack, the broker, or the broker and its log dir."""
        if self.kind == "rack":
            return str(self.rack)
        return f"{self.broker} {self.log_dir}" if self.log_dir else str(self.broker)

    @property
    def description(self) -> str:
        """Return e.g. "broker 2 (down), in 100 % of them, with 100 % of its replicas"."""
        down = " (down)" if self.state == "down" else ""
        shares = f"in {self.share_percent:g} % of them, with {self.missing_percent:g} % of its replicas"
        return f"{self.kind} {self.place}{down}, {shares}"


Places = Mapping[tuple[TopicPartition, int], str | None]  # (partition, broker) → log dir


def missing_replicas(p: PartitionState, adding: Collection[int] = ()) -> list[int]:
    """Return brokers whose replica is not in sync; for a partition without a leader, also those that are not live.

    The last ISR of such a partition may still name a broker that is down: an ISR keeps its last member.
    """
    missing = [node for node in p.replicas if node not in p.isr and node not in adding]
    if p.offline:
        missing += [node for node in p.replicas if node in p.offline_replicas and node not in missing]
        missing += [] if missing else list(p.replicas)
    return missing


def unhealthy(state: ClusterState, adding: Adding) -> list[PartitionState]:
    """Return partitions without a leader, or with a replica that should be in sync and is not."""
    return [p for p in partitions_of(state) if p.offline or under_replicated(p, adding_of(p, adding))]


def find_suspects(
    state: ClusterState,
    places: Places,
    adding: Adding,
    fenced: Mapping[int, Broker] | None = None,
) -> list[Suspect]:
    """Return every location with a missing replica, the most suspect first. Pure.

    fenced: brokers that are down but have a known rack.
    """
    racks = {node: broker.rack for node, broker in {**(fenced or {}), **state.brokers}.items()}
    problems = unhealthy(state, adding)
    problem_tps = {p.tp for p in problems}
    counts: dict[_CauseKey, _Count] = {}
    for p in partitions_of(state):
        missing = set(missing_replicas(p, adding_of(p, adding))) if p.tp in problem_tps else set()
        for node in p.replicas:
            for key in _keys(racks, places, p.tp, node):
                counts.setdefault(key, _Count()).add(p.tp, missing=node in missing)
        if not p.offline and len(p.replicas) > 1:
            followers = any(node != p.leader for node in missing)
            counts.setdefault(_CauseKey("leader", p.leader), _Count()).add(p.tp, missing=followers)
    suspects = [_suspect(key, count, len(problems), state) for key, count in counts.items() if count.missing]
    return sorted(suspects, key=_rank)


@dataclass(frozen=True, slots=True)
class _CauseKey:
    kind: str
    broker: int | None = None
    log_dir: str | None = None
    rack: str | None = None


class _Count:
    def __init__(self) -> None:
        self.replicas = self.missing = 0
        self.partitions: set[TopicPartition] = set()

    def add(self, tp: TopicPartition, *, missing: bool) -> None:
        self.replicas += 1
        if missing:
            self.missing += 1
            self.partitions.add(tp)


def _keys(racks: Mapping[int, str | None], places: Places, tp: TopicPartition, node: int) -> Iterator[_CauseKey]:
    yield _CauseKey("broker", node)
    log_dir = places.get((tp, node))
    if log_dir is not None:
        yield _CauseKey("log dir", node, log_dir)
    rack = racks.get(node)
    if rack is not None:
        yield _CauseKey("rack", rack=rack)


def _suspect(key: _CauseKey, count: _Count, problems: int, state: ClusterState) -> Suspect:
    return Suspect(
        kind=key.kind,
        broker=key.broker,
        state=None if key.broker is None else "up" if key.broker in state.brokers else "down",
        log_dir=key.log_dir,
        rack=key.rack,
        partition_count=len(count.partitions),
        share_percent=round(100 * len(count.partitions) / problems, 1),
        missing=count.missing,
        replica_count=count.replicas,
        missing_percent=round(100 * count.missing / count.replicas, 1),
    )


def _rank(row: Suspect) -> tuple[float, int, int, str, str]:
    score = -row.share_percent * row.missing_percent
    return score, _ORDER.index(row.kind), -1 if row.broker is None else row.broker, row.log_dir or "", row.rack or ""
