"""The times when messages were written, from the brokers' time indexes: time lags without any history.

ListOffsets with a timestamp returns the first record at or after it, with the record's timestamp (ListOffsetsRequest;
UnifiedLog.fetchOffsetByTimestamp). From the requested time to the record's timestamp, the log ended at the record's
offset. So a response yields two points like those of snapshots (kctl.lag.rates.LogEnd). The requested times go back
from now, each twice as far as the last, until the oldest offset of interest is covered. So at most half of a time lag
is interpolated, and no message is fetched.

Timestamps are the producers', unless message.timestamp.type is LogAppendTime; future ones count as now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.log_offsets import ByLeader, ask_leaders
from kctl.cluster.offsets import list_offsets_each
from kctl.errors import KctlError
from kctl.lag.rates import LogEnd
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_YOUNGEST_MS = 1000
_ROUNDS = 23  # up to an age of 48 days
_NO_OFFSET = -1

Points = dict[TopicPartition, tuple[LogEnd, ...]]


class UnreadLog(NamedTuple):
    """A log with unread messages. offset: the oldest offset of interest."""

    leader: int
    offset: int
    log_end: int


def fetch_points(
    client: ClusterClient, unread: Mapping[TopicPartition, UnreadLog], at_ms: int
) -> tuple[Points, dict[TopicPartition, KctlError]]:
    """Return points of each log, oldest first and ending with the log end as of at_ms, and the errors of other logs.

    The oldest point is not after the offset of interest, unless that is more than 48 days old. Sends one request
    to each leader for each age. Leaders that have changed since `unread` was read are looked up again. Logs of
    unresponsive brokers have errors.
    """
    points: dict[TopicPartition, list[LogEnd]] = {tp: [LogEnd(at_ms, end)] for tp, (_, _, end) in unread.items()}
    failed: dict[TopicPartition, KctlError] = {}
    pending = {tp: log.leader for tp, log in unread.items()}
    for round_ in range(_ROUNDS):
        if not pending:
            break
        time_ms = max(at_ms - (_YOUNGEST_MS << round_), 0)
        for tp, point in _list_offsets(client, pending, time_ms).items():
            _, offset, end = unread[tp]
            if isinstance(point, KctlError):
                failed[tp] = point
                del pending[tp]
                continue
            points[tp] += _between(points[tp][-1], point, time_ms, end)
            if points[tp][-1].offset <= offset:
                del pending[tp]
    return {tp: tuple(reversed(each)) for tp, each in points.items() if tp not in failed}, failed


def _between(before: LogEnd, first: LogEnd, time_ms: int, end: int) -> list[LogEnd]:
    """Return the points that a response yields, the newer one first. before: the oldest point so far.

    first: the first record at or after time_ms; if there is none, the log has not grown since then.
    """
    if first.offset == _NO_OFFSET:
        return [LogEnd(time_ms, end)]
    offset = min(first.offset, before.offset)
    return [LogEnd(max(min(first.at_ms, before.at_ms), time_ms), offset), LogEnd(time_ms, offset)]


def _list_offsets(
    client: ClusterClient, leaders: dict[TopicPartition, int], timestamp_ms: int
) -> dict[TopicPartition, LogEnd | KctlError]:
    """Return the response for each partition in `leaders`, and update the leaders that have changed."""

    def ask(by_leader: ByLeader) -> dict[TopicPartition, LogEnd | KctlError]:
        leaders.update({tp: leader for leader, tps in by_leader.items() for tp in tps})
        return list_offsets_each(client, by_leader, timestamp_ms, lambda row: LogEnd(row.timestamp, row.offset))

    by_leader: dict[int, list[TopicPartition]] = {}
    for tp, leader in leaders.items():
        by_leader.setdefault(leader, []).append(tp)
    responses = ask(by_leader)
    failed = [tp for tp, response in responses.items() if isinstance(response, KctlError)]
    retried, _, errors = ask_leaders(client, failed, ask)
    return responses | retried | errors
