"""Write rates of topics, from log end offsets that are read repeatedly."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.grouping import grouped
from kctl.cluster.offsets import OffsetSpec, listed
from kctl.model import ClusterState, TopicPartition, TopicState
from kctl.topics.offsets import failure_lines, list_offsets

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The high watermarks at a point in time. at_s: seconds of the monotonic clock."""

    at_s: float
    ends: dict[TopicPartition, int]
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RateRow:
    """The rate of a topic or partition. log_end_offset: for a topic, the sum of the known ones.

    messages: offsets written since the previous measurement; None in the first one, and for partitions that are new,
    recreated or were unreadable.
    """

    topic: str
    partition: int | None
    log_end_offset: int
    messages: int | None
    messages_per_s: float | None


def read_ends(client: ClusterClient, state: ClusterState, topics: Collection[TopicState]) -> LogEnds:
    """Read the ends of all partitions of `topics`. state: has the topics. Failures are in the result."""
    partitions = [p.tp for topic in topics for p in topic.partitions]
    offsets, failed = list_offsets(client, partitions, OffsetSpec.LATEST, listed, state=state)
    return LogEnds(time.monotonic(), {tp: row.offset for tp, row in offsets.items()}, tuple(failure_lines(failed)))


def rates(before: LogEnds | None, now: LogEnds, *, by_partition: bool) -> list[RateRow]:
    """Return the rates, busiest first, then by name."""
    seconds = now.at_s - before.at_s if before else 0.0
    rows = [_partition_row(tp, end, before, seconds) for tp, end in now.ends.items()]
    if not by_partition:
        rows = [_topic_row(topic, of_topic, seconds) for topic, of_topic in grouped(rows, lambda r: r.topic).items()]
    return sorted(rows, key=lambda row: (-(row.messages or 0), row.topic, row.partition or 0))


def _partition_row(tp: TopicPartition, end: int, before: LogEnds | None, seconds: float) -> RateRow:
    earlier = before.ends.get(tp) if before else None
    messages = end - earlier if earlier is not None and end >= earlier else None
    return RateRow(tp.topic, tp.partition, end, messages, _per_s(messages, seconds))


def _topic_row(topic: str, rows: Sequence[RateRow], seconds: float) -> RateRow:
    counts = [row.messages for row in rows if row.messages is not None]
    messages = sum(counts) if counts else None
    return RateRow(topic, None, sum(row.log_end_offset for row in rows), messages, _per_s(messages, seconds))


def _per_s(messages: int | None, seconds: float) -> float | None:
    return None if messages is None or seconds <= 0 else round(messages / seconds, 1)
