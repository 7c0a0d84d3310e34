"""What topics take on disk, from DescribeLogDirs: all replicas, or the leaders' copies alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.errors import KctlError
from kctl.model import ClusterState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class Size:
    """known_bytes: replicas that brokers told of, copies under way included. missing: assigned replicas that none told
    of. leader_bytes: of the leaders' replicas; None when one of them is missing."""

    known_bytes: int
    missing: int
    leader_bytes: int | None

    @property
    def bytes(self) -> int | None:
        """All replicas; None when one is missing."""
        return None if self.missing else self.known_bytes

    def __add__(self, other: Size) -> Size:
        known = None not in (self.leader_bytes, other.leader_bytes)
        leaders = (self.leader_bytes or 0) + (other.leader_bytes or 0) if known else None
        return Size(self.known_bytes + other.known_bytes, self.missing + other.missing, leaders)


NOTHING = Size(0, 0, 0)


class Sizes:
    """Sizes by partition and by topic. failures: why some are not known, a line each."""

    def __init__(self, by_partition: dict[TopicPartition, Size], failures: list[str]) -> None:
        self.by_partition = by_partition
        self.failures = failures

    def topic(self, topic: TopicState) -> Size:
        """The sum over its partitions."""
        return sum((self.by_partition[p.tp] for p in topic.partitions), NOTHING)


def fetch_sizes(client: ClusterClient, state: ClusterState, topics: Iterable[TopicState]) -> Sizes:
    """The sizes of `topics`, which are of `state`: one DescribeLogDirs of just these to each broker."""
    chosen = list(topics)
    if not chosen:
        return Sizes({}, [])
    wanted = {t.name: [p.partition for p in t.partitions] for t in chosen}
    failures: list[str] = []
    found: dict[TopicPartition, dict[int, int]] = {}
    for node, answer in fetch_log_dirs(client, state.brokers, topics=wanted).items():
        if isinstance(answer, KctlError):
            failures.append(f"sizes of broker {node}: {answer.message}")
            continue
        for log_dir in answer:
            if log_dir.error:
                failures.append(f"sizes of broker {node}: {log_dir.error}")
            for replica in log_dir.replicas:
                by_broker = found.setdefault(TopicPartition(replica.topic, replica.partition), {})
                by_broker[node] = by_broker.get(node, 0) + replica.size_bytes
    absent = {node for t in chosen for p in t.partitions for node in p.replicas} - state.brokers.keys()
    failures += [f"sizes of broker {node}: it is not there" for node in sorted(absent)]
    return Sizes(
        {p.tp: size_of(found.get(p.tp, {}), p.replicas, p.leader) for t in chosen for p in t.partitions}, failures
    )


def size_of(by_broker: dict[int, int], replicas: Iterable[int], leader: int) -> Size:
    """One partition. by_broker: what each broker said that it has of it."""
    missing = sum(node not in by_broker for node in replicas)
    return Size(sum(by_broker.values()), missing, by_broker.get(leader))
