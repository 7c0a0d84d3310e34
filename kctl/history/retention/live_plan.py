"""Distribute the reads of a cluster over tasks: planned in kctl's main process with one Metadata request.

A share keeps a leader's partitions together, so that a task sends few requests. There are at most `parallelism` shares:
starting more Python workers costs more than it saves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from kctl.base.text import counted
from kctl.errors import NotFound
from kctl.history.retention.live_reads import BrokersShare, PartitionsShare, TopicsShare
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

_TOPICS_PER_TASK = 500

T = TypeVar("T")


@dataclass(frozen=True)
class RetentionPlan:
    """Shares for the retention report. brokers: live brokers. failures: what cannot be read."""

    brokers: tuple[BrokersShare, ...]
    partitions: tuple[PartitionsShare, ...]
    topics: tuple[TopicsShare, ...]
    failures: tuple[str, ...] = ()


def plan_retention(client: ClusterClient, *, topics: Collection[str] | None = None, parallelism: int) -> RetentionPlan:
    """Return the shares for `topics` (None: all). Raises NotFound for a requested topic that does not exist."""
    state = client.metadata(None if topics is None else sorted(topics))
    for name in sorted(topics or ()):
        if name not in state.topics:
            raise NotFound(f"topic {name!r} does not exist", hint="list topics with `kctl topic list`")
    selected = frozenset(topics) if topics is not None else None
    names = sorted(state.topics)
    chunks = [names[start : start + _TOPICS_PER_TASK] for start in range(0, len(names), _TOPICS_PER_TASK)]
    return RetentionPlan(
        brokers=tuple(
            BrokersShare(tuple(share), selected)
            for share in split_evenly([[node] for node in state.brokers], parallelism)
        ),
        partitions=_partition_shares(state, parallelism, oldest=True),
        topics=tuple(TopicsShare(tuple(share)) for share in split_evenly(chunks, parallelism)),
        failures=tuple(_absent_brokers(state)),
    )


def _absent_brokers(state: ClusterState) -> Iterator[str]:
    """Yield a line for each broker that should hold replicas and is not in the cluster."""
    every = (partition for topic in state.topics.values() for partition in topic.partitions)
    replicas = Counter(node for partition in every for node in partition.replicas)
    for node in sorted(replicas.keys() - state.brokers.keys()):
        yield f"broker {node} is down: {counted(replicas[node], 'replica')} could not be read"


def _partition_shares(state: ClusterState, parallelism: int, *, oldest: bool) -> tuple[PartitionsShare, ...]:
    by_leader: dict[int, list[tuple[TopicPartition, int]]] = {}
    for topic in state.topics.values():
        for partition in topic.partitions:
            by_leader.setdefault(partition.leader, []).append((partition.tp, partition.leader))
    return tuple(PartitionsShare(tuple(share), oldest) for share in split_evenly(by_leader.values(), parallelism))


def split_evenly(bundles: Iterable[Sequence[T]], max_shares: int) -> list[list[T]]:
    """Return at most `max_shares` shares of about the same size, none of them empty. Bundles stay whole.

    Bundles are assigned largest first, each to the smallest share (Graham's rule, at most 4/3 of the best).
    """
    largest_first = sorted((bundle for bundle in bundles if bundle), key=len, reverse=True)
    shares: list[list[T]] = [[] for _ in range(min(max_shares, len(largest_first)))]
    for bundle in largest_first:
        min(shares, key=len).extend(bundle)
    return shares
