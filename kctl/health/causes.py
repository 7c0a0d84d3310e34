"""What partitions with a problem have in common: a broker, a log dir, a rack, or the leader of those that fall behind.

A place is suspect by two shares: how many of the partitions with a problem have a missing replica there, and how many
of all its replicas are missing. A broker that is down has both at 100 %; one bad disk of four explains all of the
problems with a quarter of the broker's replicas, so the disk comes before its broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kctl.health.model import Adding
from kctl.health.partitions import adding_of, partitions_of, under_replicated
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition

_ORDER = ("broker", "log dir", "rack", "leader")  # among equals the first says most


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place. kind: «broker», «log dir», «rack», or «leader»: the broker that leads partitions whose followers are
    missing. partitions, share_percent: those with a problem that have a missing replica there (a leader: that it
    leads). missing, replicas, missing_percent: its own replicas, how many of them are missing, without regard to
    which partitions (a leader: partitions it leads that have followers). state: of the broker, «up» or «down».
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
        """The rack, the broker, or the broker and its log dir."""
        if self.kind == "rack":
            return str(self.rack)
        return f"{self.broker} {self.log_dir}" if self.log_dir else str(self.broker)

    @property
    def description(self) -> str:
        """For example "broker 2 (down), in 100 % of them, with 100 % of its replicas"."""
        down = " (down)" if self.state == "down" else ""
        shares = f"in {self.share_percent:g} % of them, with {self.missing_percent:g} % of its replicas"
        return f"{self.kind} {self.place}{down}, {shares}"


Places = Mapping[tuple[TopicPartition, int], str | None]  # (partition, broker) → log dir


def missing_replicas(p: PartitionState, adding: Collection[int] = ()) -> list[int]:
    """Brokers whose replica is not in sync; of a partition without a leader also those that are not alive, though the
    last ISR still names them: an ISR keeps its last member."""
    gone = [node for node in p.replicas if node not in p.isr and node not in adding]
    if p.offline:
        gone += [node for node in p.replicas if node in p.offline_replicas and node not in gone]
        gone += [] if gone else list(p.replicas)
    return gone


def troubled(state: ClusterState, adding: Adding) -> list[PartitionState]:
    """Partitions without a leader, or with a replica that should be in sync and is not."""
    return [p for p in partitions_of(state) if p.offline or under_replicated(p, adding_of(p, adding))]


def find_suspects(
    state: ClusterState,
    places: Places,
    adding: Adding,
    fenced: Mapping[int, Broker] | None = None,
) -> list[Suspect]:
    """Every place where a replica is missing, the most suspect first. fenced: brokers that are down whose rack is known
    all the same. Pure."""
    racks = {node: broker.rack for node, broker in {**(fenced or {}), **state.brokers}.items()}
    problems = troubled(state, adding)
    wrong = {p.tp for p in problems}
    counts: dict[_Key, _Count] = {}
    for p in partitions_of(state):
        missing = set(missing_replicas(p, adding_of(p, adding))) if p.tp in wrong else set()
        for node in p.replicas:
            for key in _keys(racks, places, p.tp, node):
                counts.setdefault(key, _Count()).add(p.tp, missing=node in missing)
        if not p.offline and len(p.replicas) > 1:
            followers = any(node != p.leader for node in missing)
            counts.setdefault(_Key("leader", p.leader), _Count()).add(p.tp, missing=followers)
    found = [_suspect(key, count, len(problems), state) for key, count in counts.items() if count.missing]
    return sorted(found, key=_rank)


@dataclass(frozen=True, slots=True)
class _Key:
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


def _keys(racks: Mapping[int, str | None], places: Places, tp: TopicPartition, node: int) -> Iterator[_Key]:
    yield _Key("broker", node)
    log_dir = places.get((tp, node))
    if log_dir is not None:
        yield _Key("log dir", node, log_dir)
    rack = racks.get(node)
    if rack is not None:
        yield _Key("rack", rack=rack)


def _suspect(key: _Key, count: _Count, problems: int, state: ClusterState) -> Suspect:
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
