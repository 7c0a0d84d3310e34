"""When messages of a log were written, by the brokers' time indexes: time lags without any history.

ListOffsets with a timestamp answers with the first record that is not older, and with its own timestamp
(ListOffsetsRequest; UnifiedLog.fetchOffsetByTimestamp). From the one time to the other the log ended at that
offset: points of the kind that snapshots observe (kctl.lag.rates.LogEnd), as many as are asked for. They are asked
for from young to old, each age twice the last, until the oldest offset that is of interest lies behind them. So what is
interpolated of a time lag is at most half of it, and no message is fetched.

Timestamps are the producers', unless message.timestamp.type is LogAppendTime; those of the future count as now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.offsets import list_offsets_each
from kctl.errors import KctlError
from kctl.lag.rates import LogEnd
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_YOUNGEST_MS = 1000
_ROUNDS = 23  # the oldest age that is asked for: 48 days
_NOWHERE = -1

Points = dict[TopicPartition, tuple[LogEnd, ...]]


class Wanted(NamedTuple):
    """offset: the oldest one of interest."""

    leader: int
    offset: int
    log_end: int


def fetch_points(
    client: ClusterClient, wanted: Mapping[TopicPartition, Wanted], at_ms: int
) -> tuple[Points, dict[TopicPartition, KctlError]]:
    """Points of each log, oldest first, the last one its end as of at_ms; and the logs that could not be asked.

    The oldest point is not after the offset of interest, unless that is more than 48 days old. A request to each leader
    for each age; raises nothing of brokers that do not answer.
    """
    found: dict[TopicPartition, list[LogEnd]] = {tp: [LogEnd(at_ms, end)] for tp, (_, _, end) in wanted.items()}
    failed: dict[TopicPartition, KctlError] = {}
    pending = dict(wanted)
    for round_ in range(_ROUNDS):
        if not pending:
            break
        asked_ms = max(at_ms - (_YOUNGEST_MS << round_), 0)
        for tp, point in _ask(client, pending, asked_ms).items():
            _, offset, end = pending[tp]
            if isinstance(point, KctlError):
                failed[tp] = point
                del pending[tp]
                continue
            found[tp] += _between(found[tp][-1], point, asked_ms, end)
            if found[tp][-1].offset <= offset:
                del pending[tp]
    return {tp: tuple(reversed(points)) for tp, points in found.items() if tp not in failed}, failed


def _between(before: LogEnd, first: LogEnd, asked_ms: int, end: int) -> list[LogEnd]:
    """The points that an answer gives, the younger first; before: the oldest point so far.

    first: the first record that is not older than asked_ms; when there is none, the log ended then where it does now.
    """
    if first.offset == _NOWHERE:
        return [LogEnd(asked_ms, end)]
    offset = min(first.offset, before.offset)
    return [LogEnd(max(min(first.at_ms, before.at_ms), asked_ms), offset), LogEnd(asked_ms, offset)]


def _ask(
    client: ClusterClient, wanted: Mapping[TopicPartition, Wanted], timestamp_ms: int
) -> dict[TopicPartition, LogEnd | KctlError]:
    by_leader: dict[int, list[TopicPartition]] = {}
    for tp, (leader, _, _) in wanted.items():
        by_leader.setdefault(leader, []).append(tp)
    return list_offsets_each(client, by_leader, timestamp_ms, lambda row: LogEnd(row.timestamp, row.offset))
