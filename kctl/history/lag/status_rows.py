"""The rows of `kctl history lag` and `kctl spark lag`: a partition of a group at one reading. Pure.

A reading (lag.window) describes how the offsets moved. The rest comes from the cluster: the state of the group, the
owner of the partition, the retention of the topic. A row combines them by the rules of kctl.history.lag.status and
kctl.history.retention.deletion.

- status: Burrow's status of a partition with or without an owner, or OK if the group's standing to the topic raises no
  alarm (stale, dead, abandoned, deleted). burrow_status ignores the standing. Both are None without history.
- undecided: unread messages behind the last stable offset. Open transactions hide them from consumers with
  isolation.level=read_committed: the consumer cannot reduce this lag. held_by_transaction: all unread messages are
  undecided, so such a consumer cannot continue, whatever its status; None: unknown. For topics and groups: true if any
  partition is held.
- control_records: offsets in the lag that hold no message: transaction markers, and records removed by compaction
  (kctl.lag.control_records). If nothing else is unread, the status is OK, and nothing can be late or lost. None:
  unknown, as in all readings that are not live.
- ahead: number of offsets by which the committed offset exceeds the log end, e.g. after a topic was recreated. The lag
  is then 0 and the status does not show the problem; limits on lag and reports do.
- time_lag_ms: from the reading. If unknown there: from points of the log itself (kctl.lag.log_times), or the age of the
  log's first record if that is the next message.
- deletion_by_time_ms: if the time lag is unknown, from the age of the log's first record, the maximum age of a message.
  Like all values of kctl.history.retention.deletion, the earliest possible time.
- last_commit: the commit time from __consumer_offsets if available, else the time when the offset was first read. None:
  the first snapshot had this offset already. unchanged_ms: how long the offset has been unchanged, at least.
- Rates are messages per second. catch_up_ms, deletion_ms and loss_ms are relative to `at`; None: never, or unknown. A
  group that keeps up (kctl.lag.rates.keeps_up) has catch_up_ms 0, and loses at most the messages that may be deleted at
  once. A group whose standing raises no alarm loses nothing.
- peak_lag, lag_before, worst_status: over the time from first_at to `at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kctl.history.lag.span import LagSpan
from kctl.history.lag.status import (
    DEFAULT_STANDING_RULES,
    NOT_ALARMING,
    Standing,
    StandingRules,
    Status,
    alarm_of,
    standing_of,
)
from kctl.history.lag.window import Reading
from kctl.history.retention.deletion import NEVER, Deletion, Limits, Log, deletion, loss_eta_ms
from kctl.lag.control_records import Markers, control_records
from kctl.lag.rates import LogEnd, time_lag
from kctl.lag.retention import at


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition of a group. The field names are JSON keys and never change."""

    group: str
    state: str | None
    topic: str
    partition: int
    at: datetime | None
    status: str | None
    burrow_status: str | None
    standing: str
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    lost: int | None
    undecided: int | None
    control_records: int | None
    time_lag_ms: int | None
    time_lag_at_least_ms: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    catch_up_ms: int | None
    deletion_by_time_ms: int | None
    deletion_by_bytes_ms: int | None
    deletion_ms: int | None
    loss_ms: int | None
    last_commit: datetime | None
    unchanged_ms: int | None
    client_id: str | None
    host: str | None
    observations: int
    first_at: datetime | None
    readings: int
    lag_before: int | None
    peak_lag: int | None
    worst_status: str | None
    held_by_transaction: bool | None = None
    ahead: int | None = None

    @property
    def messages(self) -> int | None:
        return messages_of(self)


@dataclass(frozen=True)
class LagTotals:
    """Aggregates of partitions: sums of known values, otherwise the worst value.

    max_lag: largest lag of a partition. unknown: number of committed partitions whose offsets could not be read.
    """

    lag: int | None
    max_lag: int | None
    lost: int | None
    control_records: int | None
    not_committed: int
    unknown: int
    time_lag_ms: int | None
    time_lag_at_least_ms: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    catch_up_ms: int | None
    deletion_ms: int | None
    loss_ms: int | None
    last_commit: datetime | None
    lag_before: int | None
    worst_status: str | None
    held_by_transaction: bool | None = None
    ahead: int | None = None

    @property
    def messages(self) -> int | None:
        return messages_of(self)


# The order of the bases is the order of the JSON keys: a dataclass takes the fields of its last base first.


@dataclass(frozen=True)
class _TopicHead:
    group: str
    state: str | None
    topic: str
    partition_count: int
    at: datetime | None
    status: str | None
    standing: str


@dataclass(frozen=True)
class TopicStatus(LagTotals, _TopicHead):
    """The partitions of a topic in a group. Field names are JSON keys."""


@dataclass(frozen=True)
class _GroupHead:
    group: str
    state: str | None
    topic_count: int
    partition_count: int
    at: datetime | None
    status: str | None


@dataclass(frozen=True)
class GroupStatus(LagTotals, _GroupHead):
    """The partitions of a group. Field names are JSON keys."""


class Owner(NamedTuple):
    """The member that a partition is assigned to."""

    client_id: str
    host: str


class Surroundings(NamedTuple):
    """The state of the cluster around a reading. None: unknown, or does not exist.

    state: of the group; "Dead" if it was deleted. commit_deleted: later snapshots do not have the commit. owner: None
    if the partition is not assigned. topic_owned, topic_unchanged_ms: over the group's partitions of the topic, see
    kctl.history.lag.status.standing_of. oldest_timestamp_ms: of the log's first record. size_bytes: of the leader's
    replica. points: known ends of the log, oldest first. markers: control records at its end. allowed_lag: of the
    window rules. began_ms: time of the first snapshot read. judged: there is history. commit_ms: time of the last
    commit.
    """

    state: str | None = None
    commit_deleted: bool = False
    deleted: bool = False
    owner: Owner | None = None
    topic_owned: bool | None = None
    topic_unchanged_ms: int | None = None
    last_stable_offset: int | None = None
    oldest_timestamp_ms: int | None = None
    size_bytes: int | None = None
    points: Sequence[LogEnd] = ()
    markers: Markers | None = None
    allowed_lag: int = 0
    limits: Limits = Limits()
    began_ms: int = 0
    judged: bool = True
    commit_ms: int | None = None
    standing_rules: StandingRules = DEFAULT_STANDING_RULES


class Key(NamedTuple):
    """A partition of a group."""

    group: str
    topic: str
    partition: int


class Offsets(NamedTuple):
    """The offsets of a reading's observation."""

    committed: int | None
    start: int | None
    end: int | None


def partition_status(
    key: Key, offsets: Offsets, reading: Reading, span: LagSpan, around: Surroundings
) -> PartitionStatus:
    """Return the row of a partition."""
    standing = Standing.DEAD if around.commit_deleted else _standing(around)
    owned = around.owner is not None
    verdict = reading.status_owned if owned else reading.status
    undecided_messages = undecided(offsets, around.last_stable_offset)
    worst = span.worst_owned if owned else span.worst_status
    times = _times(offsets, reading, around)
    result, owner = times.deletion, around.owner
    status = Status.OK if times.only_control_records else alarm_of(verdict, standing)
    return PartitionStatus(
        group=key.group,
        state=around.state,
        topic=key.topic,
        partition=key.partition,
        at=at(reading.at_ms),
        status=status.name if around.judged else None,
        burrow_status=verdict.name if around.judged else None,
        standing=standing.value,
        committed_offset=offsets.committed,
        log_start_offset=offsets.start,
        log_end_offset=offsets.end,
        lag=reading.lag,
        lost=reading.lost,
        undecided=undecided_messages,
        control_records=times.control_records,
        time_lag_ms=times.age_ms,
        time_lag_at_least_ms=times.least_ms,
        consumed_per_s=reading.consumed_per_s,
        produced_per_s=reading.produced_per_s,
        catch_up_ms=times.catch_up_ms,
        deletion_by_time_ms=result.by_time_ms,
        deletion_by_bytes_ms=result.by_bytes_ms,
        deletion_ms=result.eta_ms,
        loss_ms=_loss_ms(result, reading, standing),
        last_commit=at(_last_commit(reading, around)),
        unchanged_ms=unchanged_ms(reading, around.commit_ms),
        client_id=owner.client_id if owner else None,
        host=owner.host if owner else None,
        observations=reading.observations,
        first_at=at(span.first_at_ms),
        readings=span.readings,
        lag_before=span.lag_before,
        peak_lag=span.peak_lag,
        worst_status=alarm_of(worst, standing).name if around.judged else None,
        held_by_transaction=None if undecided_messages is None else 0 < undecided_messages == reading.lag,
        ahead=reading.ahead,
    )


def _loss_ms(result: Deletion, reading: Reading, standing: Standing) -> int | None:
    """Return the time until the group loses messages; None for a group whose standing raises no alarm."""
    if standing in NOT_ALARMING:
        return None
    keeps_up = reading.catch_up_ms == 0
    return loss_eta_ms(result, reading.consumed_per_s, reading.produced_per_s, keeps_up=keeps_up)


class _UnreadTimes(NamedTuple):
    """Times of the unread messages.

    only_control_records: without control records, the lag is at most the allowed lag.
    """

    control_records: int | None
    only_control_records: bool
    age_ms: int | None
    least_ms: int | None
    deletion: Deletion
    catch_up_ms: int | None


def _times(offsets: Offsets, reading: Reading, around: Surroundings) -> _UnreadTimes:
    control = _control_records(offsets, around)
    if control and reading.lag == control:
        return _UnreadTimes(control, True, 0, 0, NEVER, 0)
    age, min_age, max_age = _ages(offsets, reading, around)
    log = Log(offsets.start, offsets.end, around.size_bytes, reading.produced_per_s)
    result = deletion(offsets.committed, max_age, log, around.limits)
    only_control = bool(control) and reading.lag is not None and reading.lag - (control or 0) <= around.allowed_lag
    return _UnreadTimes(control, only_control, age, min_age, result, reading.catch_up_ms)


def _last_commit(reading: Reading, around: Surroundings) -> int | None:
    if around.commit_ms is not None:
        return min(around.commit_ms, reading.at_ms)
    if reading.unchanged_ms is None:
        return None
    first_seen = reading.at_ms - reading.unchanged_ms
    return first_seen if first_seen > around.began_ms else None


def unchanged_ms(reading: Reading, commit_ms: int | None) -> int | None:
    """Return how long the committed offset has been unchanged, at least: since it was first read, or committed."""
    if reading.unchanged_ms is None or commit_ms is None:
        return reading.unchanged_ms
    return max(reading.unchanged_ms, reading.at_ms - commit_ms)


def _standing(around: Surroundings) -> Standing:
    return standing_of(
        around.state,
        deleted=around.deleted,
        topic_owned=around.topic_owned,
        unchanged_ms=around.topic_unchanged_ms,
        rules=around.standing_rules,
    )


def _ages(offsets: Offsets, reading: Reading, around: Surroundings) -> tuple[int | None, int | None, int | None]:
    """Return the time lag, its minimum and its maximum."""
    age, min_age = reading.time_lag_ms, reading.time_lag_least_ms
    if age is not None or not reading.lag or offsets.committed is None or offsets.start is None:
        return age, min_age, age
    by_points = time_lag(around.points, max(offsets.committed, offsets.start))
    if by_points.ms is not None:
        return by_points.ms, by_points.ms, by_points.ms
    min_age = max(min_age or 0, by_points.at_least_ms or 0)
    if around.oldest_timestamp_ms is None:
        return None, min_age, None
    oldest_age = max(reading.at_ms - around.oldest_timestamp_ms, 0)
    if offsets.committed <= offsets.start:
        return oldest_age, oldest_age, oldest_age
    return None, min_age, max(oldest_age, min_age)


def undecided(offsets: Offsets, last_stable_offset: int | None) -> int | None:
    """Return the number of unread messages in or behind open transactions. None: unknown."""
    if offsets.committed is None or offsets.start is None or offsets.end is None or last_stable_offset is None:
        return None
    return max(offsets.end - max(last_stable_offset, offsets.committed, offsets.start), 0)


def _control_records(offsets: Offsets, around: Surroundings) -> int | None:
    if offsets.committed is None or offsets.start is None or offsets.end is None:
        return None
    return control_records(around.markers, max(offsets.committed, offsets.start), offsets.end)


LagStatus = PartitionStatus | TopicStatus | GroupStatus


def messages_of(row: PartitionStatus | LagTotals) -> int | None:
    """Return the lag without offsets that are known to hold no message."""
    return None if row.lag is None else row.lag - (row.control_records or 0)
