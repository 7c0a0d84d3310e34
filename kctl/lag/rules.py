"""The rules of lag, as used by `kctl lag` and the Spark jobs. Pure.

Definitions (all in offsets):
- log_end_offset is the high watermark (ListOffsets LATEST), the end of the log for consumers, as in Kafka's
  ConsumerGroupCommand.
- lag = max(end - max(committed, start), 0): messages in the log that are not read yet.
- lost = max(start - committed, 0): messages deleted before they were read. Kafka's tool counts them as lag: its LAG is
  lag + lost.
- A partition without a commit has neither: null, not 0.
- ahead = max(committed - end, 0): a committed offset beyond the end of the log. The topic was deleted and recreated,
  or the log was truncated. Then lag is 0 and meaningless: a consumer resets its position by auto.offset.reset.
- control_records: offsets within lag that hold no message (kctl.lag.control_records). messages = lag - control_records.
- A share group (KIP-932) commits nothing. Its start offset takes the place of the committed offset. Its lag is reported
  by the coordinator, since records after the start offset may have been delivered already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kctl.base.grouping import grouped


class LagRow(NamedTuple):
    """One partition of one group. The field names are the JSON keys and never change.

    An offset is None if not committed (committed_offset), or if the topic was deleted or its leader did not respond.
    client_id, host: of the member that the partition is assigned to, if any.
    """

    group: str
    state: str
    topic: str
    partition: int
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    lost: int | None
    client_id: str | None = None
    host: str | None = None
    ahead: int | None = None
    control_records: int | None = None

    @property
    def messages(self) -> int | None:
        """Return the lag without offsets that are known to hold no message."""
        return None if self.lag is None else self.lag - (self.control_records or 0)


@dataclass(frozen=True, slots=True)
class TopicLag:
    """The partitions of one topic in one group, added up. Unknown partitions are omitted from the sums."""

    group: str
    state: str
    topic: str
    partition_count: int
    lag: int | None
    max_lag: int | None
    lost: int | None
    not_committed: int
    unknown: int
    ahead: int | None = None
    control_records: int | None = None

    @property
    def messages(self) -> int | None:
        """Return the lag without offsets that are known to hold no message."""
        return None if self.lag is None else self.lag - (self.control_records or 0)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """One group, added up. unknown: number of committed partitions whose log offsets are unknown."""

    group: str
    state: str
    topic_count: int
    partition_count: int
    lag: int | None
    max_lag: int | None
    lost: int | None
    not_committed: int
    unknown: int
    ahead: int | None = None
    control_records: int | None = None

    @property
    def messages(self) -> int | None:
        """Return the lag without offsets that are known to hold no message."""
        return None if self.lag is None else self.lag - (self.control_records or 0)


def lag_of(committed: int | None, log_start: int | None, log_end: int | None) -> int | None:
    """Return the number of unread messages in the log; None without a commit or if an offset is unknown."""
    if committed is None or log_start is None or log_end is None:
        return None
    return max(log_end - max(committed, log_start), 0)


def lost_of(committed: int | None, log_start: int | None) -> int | None:
    """Return the number of messages deleted before they were read; None without a commit or a log start."""
    if committed is None or log_start is None:
        return None
    return max(log_start - committed, 0)


def ahead_of(committed: int | None, log_end: int | None) -> int | None:
    """Return how far the commit is beyond the end of the log; None without a commit or a log end."""
    if committed is None or log_end is None:
        return None
    return max(committed - log_end, 0)


def by_topic(rows: Iterable[LagRow]) -> list[TopicLag]:
    """Return rows added up by group and topic, in the order of first appearance."""
    return [
        TopicLag(members[0].group, members[0].state, members[0].topic, len(members), *_sums(members))
        for members in grouped(rows, lambda row: (row.group, row.topic)).values()
    ]


def by_group(rows: Iterable[LagRow]) -> list[GroupLag]:
    """Return rows added up by group, in the order of first appearance."""
    return [
        GroupLag(members[0].group, members[0].state, len({m.topic for m in members}), len(members), *_sums(members))
        for members in grouped(rows, lambda row: row.group).values()
    ]


class _LagSums(NamedTuple):
    lag: int | None
    max_lag: int | None
    losses: int | None
    not_committed: int
    unknown: int
    ahead: int | None
    control_records: int | None


def _sums(rows: list[LagRow]) -> _LagSums:
    lags = [row.lag for row in rows if row.lag is not None]
    losses = [row.lost for row in rows if row.lost is not None]
    ahead = [row.ahead for row in rows if row.ahead is not None]
    control = [row.control_records for row in rows if row.control_records is not None]
    return _LagSums(
        lag=sum(lags) if lags else None,
        max_lag=max(lags, default=None),
        losses=sum(losses) if losses else None,
        not_committed=sum(row.committed_offset is None for row in rows),
        unknown=sum(row.committed_offset is not None and row.lag is None for row in rows),
        ahead=sum(ahead) if ahead else None,
        control_records=sum(control) if control else None,
    )
