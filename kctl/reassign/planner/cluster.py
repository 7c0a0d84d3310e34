"""A compact cluster model for planning: a million partitions fit into about 200 MB.

Brokers are numbered 0…n−1 in the order of their ids ("index"), partitions in the order of topic and number. A partition
is a row over parallel arrays; its replicas are a tuple of broker indexes, shared by all partitions with the same
replicas.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kctl.cluster.topic_names import fault_of
from kctl.errors import InvalidFile
from kctl.model import ClusterState, TopicPartition

UNKNOWN = -1
NONE = -2
_MAX_ID = 2**31 - 1
_MAX_SIZE = 1 << 62


@dataclass(frozen=True, slots=True)
class PlanBroker:
    """A broker. usable_bytes: free bytes of each log dir that receives replicas, None if unknown.

    cordoned: no log dir receives replicas. Brokers that are down have no rack.
    """

    id: int
    rack: str | None
    alive: bool
    usable_bytes: tuple[int, ...] | None = None
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class PlanCluster:
    """Brokers by id, and partitions as columns.

    topic_of: index into topics. leader: broker index; NONE: no leader, UNKNOWN: unknown or not listed. size_bytes: of
    one replica, or UNKNOWN. moving: partitions under reassignment, whose replicas may still change. topic_ids: one per
    topic, empty if all are unknown.
    """

    brokers: tuple[PlanBroker, ...]
    topics: tuple[str, ...]
    topic_of: array[int]
    number: array[int]
    replicas: list[tuple[int, ...]]
    leader: array[int]
    size_bytes: array[int]
    moving: frozenset[int] = frozenset()
    cluster_id: str | None = None
    topic_ids: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        return len(self.replicas)

    def tp(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topics[self.topic_of[partition]], self.number[partition])

    def ids(self, indexes: Iterable[int]) -> list[int]:
        return [self.brokers[index].id for index in indexes]

    def index_of(self) -> dict[int, int]:
        """Return broker id → index."""
        return {broker.id: index for index, broker in enumerate(self.brokers)}

    def select(self, accepts: Callable[[str], bool]) -> PlanCluster:
        """Return the cluster with only the topics that the function accepts."""
        keep = [accepts(name) for name in self.topics]
        new_index = {old: new for new, old in enumerate(t for t, is_selected in enumerate(keep) if is_selected)}
        selected = self.take([p for p, t in enumerate(self.topic_of) if keep[t]])
        return replace(
            selected,
            topics=tuple(name for name, is_selected in zip(self.topics, keep, strict=True) if is_selected),
            topic_of=array("i", (new_index[t] for t in selected.topic_of)),
            topic_ids=tuple(each for each, is_selected in zip(self.topic_ids, keep, strict=False) if is_selected),
        )

    def take(self, rows: Sequence[int]) -> PlanCluster:
        """Return the cluster with only these partitions, in this order."""
        return replace(
            self,
            topic_of=array("i", (self.topic_of[p] for p in rows)),
            number=array("i", (self.number[p] for p in rows)),
            replicas=[self.replicas[p] for p in rows],
            leader=array("i", (self.leader[p] for p in rows)),
            size_bytes=array("q", (self.size_bytes[p] for p in rows)),
            moving=frozenset(new for new, old in enumerate(rows) if old in self.moving) if self.moving else frozenset(),
        )


class _Columns:
    """A builder of the columns, topic by topic. Ids become indexes; equal replica lists share one tuple."""

    def __init__(self, brokers: Iterable[PlanBroker]) -> None:
        self.brokers = tuple(sorted(brokers, key=lambda broker: broker.id))
        self._index = {broker.id: index for index, broker in enumerate(self.brokers)}
        self._tuples: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.topics: list[str] = []
        self.topic_ids: list[str | None] = []
        self.topic_of, self.number = array("i"), array("i")
        self.leader, self.size_bytes = array("i"), array("q")
        self.replicas: list[tuple[int, ...]] = []
        self.moving: set[int] = set()

    def add(self, number: int, replicas: Iterable[int], leader: int, size_bytes: int, moving: bool) -> None:
        """Add a partition of the topic that was added last. Raises KeyError for an unknown broker id."""
        row = tuple([self._index[node] for node in replicas])
        self.replicas.append(self._tuples.setdefault(row, row))
        self.topic_of.append(len(self.topics) - 1)
        self.number.append(number)
        self.leader.append(NONE if leader == NONE else self._index.get(leader, UNKNOWN))
        self.size_bytes.append(size_bytes)
        if moving:
            self.moving.add(len(self.replicas) - 1)

    def topic(self, name: str, topic_id: str | None) -> None:
        """Start a topic: the partitions that follow belong to it."""
        self.topics.append(name)
        self.topic_ids.append(topic_id)

    def cluster(self, cluster_id: str | None) -> PlanCluster:
        return PlanCluster(
            self.brokers, tuple(self.topics), self.topic_of, self.number, self.replicas, self.leader, self.size_bytes,
            frozenset(self.moving), cluster_id, tuple(self.topic_ids),
        )  # fmt: skip


def from_state(
    state: ClusterState,
    *,
    size_bytes: Mapping[TopicPartition, int] | None = None,
    usable_bytes: Mapping[int, tuple[int, ...]] | None = None,
    cordoned: Collection[int] = (),
    moving: Iterable[TopicPartition] = (),
) -> PlanCluster:
    """Build the cluster from a Metadata response, log dirs and reassignments. Missing values are unknown."""
    sizes, usable, moving_partitions = size_bytes or {}, usable_bytes or {}, frozenset(moving)
    hosting_brokers = {node for t in state.topics.values() for p in t.partitions for node in p.replicas}
    alive = [PlanBroker(b.id, b.rack, True, usable.get(b.id), b.id in cordoned) for b in state.brokers.values()]
    columns = _Columns([*alive, *(PlanBroker(node, None, False) for node in hosting_brokers - state.brokers.keys())])
    for name in sorted(state.topics):
        columns.topic(name, state.topics[name].topic_id)
        for p in sorted(state.topics[name].partitions, key=lambda p: p.partition):
            leader = NONE if p.offline else p.leader
            columns.add(p.partition, p.replicas, leader, sizes.get(p.tp, UNKNOWN), p.tp in moving_partitions)
    return columns.cluster(state.cluster_id)


def from_export(document: object) -> PlanCluster:
    """Return the cluster in the JSON of `kctl cluster export` (kctl.cluster.export). Raises InvalidFile.

    If some brokers have a host, a broker without one is down: the export lists it only because it has replicas. A
    broker that has replicas but is not listed is added, as down.
    """
    if not isinstance(document, Mapping):
        raise _invalid("not a JSON object")
    rows = _objects(document, "brokers", "the cluster")
    topics = _objects(document, "topics", "the cluster")
    with_hosts = any(row.get("host") is not None for row in rows)
    brokers = {b.id: b for b in (_broker(row, with_hosts) for row in rows)}
    if len(brokers) < len(rows):
        raise _invalid("two brokers have the same id")
    parsed_topics = [(_name(t), _text(t, "topic_id"), _objects(t, "partitions", f"topic {_name(t)}")) for t in topics]
    if len({name for name, _, _ in parsed_topics}) < len(parsed_topics):
        raise _invalid("a topic is listed twice")
    for name, _, partitions in parsed_topics:
        for row in partitions:
            for node in _replicas(name, row):
                if node not in brokers:
                    brokers[node] = PlanBroker(node, None, False)
    columns = _Columns(brokers.values())
    for name, topic_id, partitions in sorted(parsed_topics, key=lambda row: row[0]):
        columns.topic(name, topic_id)
        _add_partitions(columns, name, partitions)
    return columns.cluster(_text(document, "cluster_id"))


def _add_partitions(columns: _Columns, name: str, partitions: list[Mapping[str, Any]]) -> None:
    numbers = [_integer(row, "partition", f"topic {name}") for row in partitions]
    if len(set(numbers)) < len(numbers):
        raise _invalid(f"a partition of topic {name} is listed twice")
    for number, row in sorted(zip(numbers, partitions, strict=True), key=lambda pair: pair[0]):
        size = row.get("size_bytes")
        if size is not None and (type(size) is not int or not 0 <= size < _MAX_SIZE):
            raise _invalid(f"size_bytes of {name}-{number} is {size!r:.100}")
        columns.add(
            number,
            row["replicas"],
            _leader(row),
            UNKNOWN if size is None else size,
            bool(row.get("adding") or row.get("removing")),
        )


def _broker(row: Mapping[str, Any], with_hosts: bool) -> PlanBroker:
    node = _integer(row, "id", "a broker")
    rack, alive, log_dirs = row.get("rack"), row.get("alive"), row.get("log_dirs")
    if rack is not None and not isinstance(rack, str):
        raise _invalid(f"rack of broker {node} is {rack!r}")
    if not isinstance(alive, bool):
        alive = not with_hosts or row.get("host") is not None
    usable: tuple[int, ...] | None = None
    cordoned = False
    if isinstance(log_dirs, list):
        rows = [entry for entry in log_dirs if isinstance(entry, Mapping)]
        online = [entry.get("cordoned") is True for entry in rows if entry.get("replicas") is not None]
        cordoned = bool(online) and all(online)
        usable_values = [entry.get("usable_bytes") for entry in rows if entry.get("cordoned") is not True]
        usable = tuple(n for n in usable_values if type(n) is int and n >= 0) or None
    return PlanBroker(node, rack or None, alive, usable, cordoned)


def _leader(row: Mapping[str, Any]) -> int:
    """Return NONE if the partition has no leader, UNKNOWN if the file lacks the key."""
    if "leader" not in row:
        return UNKNOWN
    value = row["leader"]
    if value is None or value == -1:
        return NONE
    return value if type(value) is int else UNKNOWN


def _replicas(topic: str, row: Mapping[str, Any]) -> list[int]:
    value = row.get("replicas")
    if not isinstance(value, list) or not value or not all(type(n) is int and 0 <= n <= _MAX_ID for n in value):
        raise _invalid(f"replicas of partition {row.get('partition')!r:.20} of topic {topic} are {value!r:.100}")
    if len(set(value)) < len(value):
        raise _invalid(
            f"partition {row.get('partition')!r:.20} of topic {topic} has two replicas on one broker: {value!r:.100}"
        )
    return value


def _name(topic: Mapping[str, Any]) -> str:
    name = topic.get("name")
    if not isinstance(name, str) or (fault := fault_of(name)):
        raise _invalid(f"a topic's name is {name!r:.100}" + ("" if not isinstance(name, str) else f": {fault}"))
    return name


def _text(owner: Mapping[str, Any], key: str) -> str | None:
    value = owner.get(key)
    if not (value is None or isinstance(value, str)):
        raise _invalid(f"{key} is {value!r:.100}")
    return value


def _integer(row: Mapping[str, Any], key: str, owner: str) -> int:
    value = row.get(key)
    if type(value) is not int or value < 0 or value > _MAX_ID:
        raise _invalid(f"{key} of {owner} is {value!r:.100}")
    return value


def _objects(owner: Mapping[str, Any], key: str, name: str) -> list[Mapping[str, Any]]:
    value = owner.get(key)
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise _invalid(f"{name} has no list of {key}")
    return value


def _invalid(message: str) -> InvalidFile:
    return InvalidFile(message, hint="write one with `kctl cluster export --out cluster.json`")
