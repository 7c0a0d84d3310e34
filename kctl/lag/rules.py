"""What lag is. Pure rules, applied by `kctl lag` and by the Spark jobs alike.

Definitions (all in offsets):
- log_end_offset is what a consumer can read up to (ListOffsets LATEST, the high watermark), as in Kafka's
  own ConsumerGroupCommand.
- lag = max(end - max(committed, start), 0): messages that are there and not read.
- lost = max(start - committed, 0): messages that were deleted before they were read. The Java tool counts them
  as lag: its LAG is lag + lost.
- A partition without a commit has neither: null, not 0.
- ahead = max(committed - end, 0): a committed offset beyond the end of the log. The topic was deleted and recreated,
  or the log was truncated. Lag is 0 then and means nothing: a consumer resets its position as auto.offset.reset says.
- control_records: offsets within lag that hold no message (kctl.lag.control_records). messages = lag - control_records.
- A share group (KIP-932) commits nothing. Its start offset stands in the place of the committed one, and its lag is the
  one that its coordinator reports: records after the start offset may be delivered already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kctl.base.grouping import grouped


class LagRow(NamedTuple):
    """One partition of one group. The field names are the JSON keys and never change.

    None in an offset: not committed (committed_offset), or the topic is gone or its leader did not answer.
    client_id and host are the member that the partition is assigned to, when there is one.
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
        """The lag without offsets that are known to hold no message."""
        return None if self.lag is None else self.lag - (self.control_records or 0)


@dataclass(frozen=True, slots=True)
class TopicLag:
    """The partitions of one topic in one group, added up. Sums are over the partitions that are known."""

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
        """The lag without offsets that are known to hold no message."""
        return None if self.lag is None else self.lag - (self.control_records or 0)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """One group, added up. unknown: committed partitions whose offsets could not be had."""

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
        """The lag without offsets that are known to hold no message."""
        return None if self.lag is None else self.lag - (self.control_records or 0)


def lag_of(committed: int | None, log_start: int | None, log_end: int | None) -> int | None:
    """Messages that are in the log and not read yet; None when there is no commit or an offset is not known."""
    if committed is None or log_start is None or log_end is None:
        return None
    return max(log_end - max(committed, log_start), 0)


def lost_of(committed: int | None, log_start: int | None) -> int | None:
    """Messages that were deleted before they were read; None when there is no commit or no log start."""
    if committed is None or log_start is None:
        return None
    return max(log_start - committed, 0)


def ahead_of(committed: int | None, log_end: int | None) -> int | None:
    """Return how far the commit is beyond the end of the log; None without a commit or a log end."""
    if committed is None or log_end is None:
        return None
    return max(committed - log_end, 0)


def by_topic(rows: Iterable[LagRow]) -> list[TopicLag]:
    """Rows added up per group and topic, in the order of first appearance."""
    return [
        TopicLag(members[0].group, members[0].state, members[0].topic, len(members), *_sums(members))
        for members in grouped(rows, lambda row: (row.group, row.topic)).values()
    ]


def by_group(rows: Iterable[LagRow]) -> list[GroupLag]:
    """Rows added up per group, in the order of first appearance."""
    return [
        GroupLag(members[0].group, members[0].state, len({m.topic for m in members}), len(members), *_sums(members))
        for members in grouped(rows, lambda row: row.group).values()
    ]


class _Sums(NamedTuple):
    lag: int | None
    max_lag: int | None
    lost: int | None
    not_committed: int
    unknown: int
    ahead: int | None
    control_records: int | None


def _sums(rows: list[LagRow]) -> _Sums:
    lags = [row.lag for row in rows if row.lag is not None]
    lost = [row.lost for row in rows if row.lost is not None]
    ahead = [row.ahead for row in rows if row.ahead is not None]
    control = [row.control_records for row in rows if row.control_records is not None]
    return _Sums(
        lag=sum(lags) if lags else None,
        max_lag=max(lags, default=None),
        lost=sum(lost) if lost else None,
        not_committed=sum(row.committed_offset is None for row in rows),
        unknown=sum(row.committed_offset is not None and row.lag is None for row in rows),
        ahead=sum(ahead) if ahead else None,
        control_records=sum(control) if control else None,
    )
