"""Rows of `kctl lag` with the number of offsets in their lag that hold no message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kctl.lag.control_records import MAX_LAG, MAX_PARTITIONS, control_records, fetch_markers
from kctl.lag.log_times import UnreadLog
from kctl.lag.rules import LagRow
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def with_control_records(
    client: ClusterClient,
    rows: Sequence[LagRow],
    *,
    max_partitions: int = MAX_PARTITIONS,
    share_groups: Collection[str] = (),
) -> list[LagRow]:
    """Return the rows with control_records set, for at most max_partitions partitions: those with the smallest lags.

    control_records stays None if the lag is large, for share groups (whose lag does not follow from offsets), and if
    the leader does not respond. Then each offset counts as a message.
    """
    ranges = {row: _unread_range(row) for row in rows if row.group not in share_groups}
    requests: dict[TopicPartition, UnreadLog] = {}
    for unread in ranges.values():
        if unread is not None:
            tp, offset, end = unread
            if tp not in requests or offset < requests[tp].offset:
                requests[tp] = UnreadLog(-1, offset, end)
    if not requests:
        return list(rows)
    nearest = sorted(requests, key=lambda tp: (requests[tp].log_end - requests[tp].offset, tp))[:max_partitions]
    requests = {tp: requests[tp] for tp in nearest}
    state = client.metadata({tp.topic for tp in requests}, keep_errors=True)
    leaders = {p.tp: p.leader for topic in state.topics.values() for p in topic.partitions if p.leader >= 0}
    markers, _ = fetch_markers(
        client, {tp: each._replace(leader=leaders[tp]) for tp, each in requests.items() if tp in leaders}
    )
    results = []
    for row in rows:
        unread = ranges.get(row)
        count = None if unread is None else control_records(markers.get(unread[0]), *unread[1:])
        results.append(row if count is None else row._replace(control_records=count))
    return results


def _unread_range(row: LagRow) -> tuple[TopicPartition, int, int] | None:
    """Return the range of the unread offsets of a row; None if there are none, or too many to count."""
    committed, start, end = row.committed_offset, row.log_start_offset, row.log_end_offset
    if committed is None or start is None or end is None or not row.lag or row.lag > MAX_LAG:
        return None
    return TopicPartition(row.topic, row.partition), max(committed, start), end
