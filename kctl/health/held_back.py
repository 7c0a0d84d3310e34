"""Partitions with records above the high watermark, which no consumer can read.

On a busy partition this is normal for a moment. It persists while the ISR is smaller than min.insync.replicas, or a
follower in the ISR does not fetch. LATEST, and therefore lag, does not show such records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.grouping import grouped
from kctl.cluster.offsets import OffsetSpec, fetch_offsets_each, fetch_replica_ends
from kctl.errors import KctlError
from kctl.health.partitions import partitions_of
from kctl.model import ClusterState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_SETTLE_S = 1.0  # a follower fetches at least every replica.fetch.wait.max.ms, 0.5 s


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A partition with unreadable records.

    leader_log_end_offset: read first. high_watermark: a second later, and still smaller. records: the difference. Other
    commands call the high watermark log_end_offset, since consumers see the log end there.
    """

    topic: str
    partition: int
    leader: int
    high_watermark: int
    leader_log_end_offset: int
    records: int


def find_held_back(
    client: ClusterClient, state: ClusterState, *, sleep: Callable[[float], None] = time.sleep
) -> tuple[list[HeldBack], list[str]]:
    """Return the partitions, most records first, and why others could not be read.

    The log ends are read first, then the high watermarks. Where a high watermark is lower, it is read again a second
    later: a partition that is merely busy has passed its earlier end by then. Takes two or three requests per leader.
    """
    leaders = {p.tp: p.leader for p in partitions_of(state) if p.leader in state.brokers}
    by_leader = grouped(leaders, lambda tp: leaders[tp])
    if not by_leader:
        return [], []
    ends: dict[TopicPartition, int | KctlError] = {}
    for replica_ends in fetch_replica_ends(client, by_leader).values():
        ends.update(replica_ends)
    marks = fetch_offsets_each(client, by_leader, OffsetSpec.LATEST)
    failures = dict.fromkeys(e.message for e in (*ends.values(), *marks.values()) if isinstance(e, KctlError))
    suspects = [tp for tp in leaders if _behind(marks.get(tp), ends.get(tp))]
    if suspects:
        sleep(_SETTLE_S)
        marks |= fetch_offsets_each(client, grouped(suspects, lambda tp: leaders[tp]), OffsetSpec.LATEST)
    rows = [row for tp in suspects if (row := _row(tp, leaders[tp], marks.get(tp), ends.get(tp))) is not None]
    return sorted(rows, key=lambda row: (-row.records, row.topic, row.partition)), list(failures)


def _behind(mark: int | KctlError | None, end: int | KctlError | None) -> bool:
    return isinstance(mark, int) and isinstance(end, int) and mark < end


def _row(tp: TopicPartition, leader: int, mark: int | KctlError | None, end: int | KctlError | None) -> HeldBack | None:
    if not isinstance(mark, int) or not isinstance(end, int) or mark >= end:
        return None
    return HeldBack(tp.topic, tp.partition, leader, mark, end, end - mark)
