"""Rows of `kctl lag` with the number of offsets in their lag that hold no message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kctl.lag.control_records import MOST_LAG, MOST_PARTITIONS, control_records, fetch_markers
from kctl.lag.log_times import Wanted
from kctl.lag.rules import LagRow
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def with_control_records(
    client: ClusterClient, rows: Sequence[LagRow], *, most: int = MOST_PARTITIONS, share_groups: Collection[str] = ()
) -> list[LagRow]:
    """Return the rows with control_records for the `most` partitions with the smallest lags.

    None where the lag is large, where it is a share group's, which does not go by offsets, and where the leader does
    not answer: then each offset counts as a message.
    """
    places = {row: _place(row) for row in rows if row.group not in share_groups}
    wanted: dict[TopicPartition, Wanted] = {}
    for place in places.values():
        if place is not None:
            tp, offset, end = place
            if tp not in wanted or offset < wanted[tp].offset:
                wanted[tp] = Wanted(-1, offset, end)
    if not wanted:
        return list(rows)
    nearest = sorted(wanted, key=lambda tp: (wanted[tp].log_end - wanted[tp].offset, tp))[:most]
    wanted = {tp: wanted[tp] for tp in nearest}
    state = client.metadata({tp.topic for tp in wanted}, keep_errors=True)
    leaders = {p.tp: p.leader for topic in state.topics.values() for p in topic.partitions if p.leader >= 0}
    markers, _ = fetch_markers(
        client, {tp: each._replace(leader=leaders[tp]) for tp, each in wanted.items() if tp in leaders}
    )
    counted = []
    for row in rows:
        place = places.get(row)
        count = None if place is None else control_records(markers.get(place[0]), *place[1:])
        counted.append(row if count is None else row._replace(control_records=count))
    return counted


def _place(row: LagRow) -> tuple[TopicPartition, int, int] | None:
    """Return the range of the unread offsets of a row; None if there are none, or too many to count."""
    committed, start, end = row.committed_offset, row.log_start_offset, row.log_end_offset
    if committed is None or start is None or end is None or not row.lag or row.lag > MOST_LAG:
        return None
    return TopicPartition(row.topic, row.partition), max(committed, start), end
