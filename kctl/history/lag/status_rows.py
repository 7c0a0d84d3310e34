"""The rows of `kctl history lag` and `kctl spark lag`: a group's partition at one reading. Pure.

A reading (lag.window) tells how the offsets moved. The cluster around it tells the rest: the group's state,
who the partition is assigned to, what the topic keeps and for how long. Here they become one row, by the rules of
kctl.history.lag.status and kctl.history.retention.deletion.

- status is the verdict that counts: Burrow's for a partition that is assigned to a member or not, and OK where the
  group's standing to the topic makes it nobody's alarm (stale, dead, abandoned, deleted). burrow_status is without
  that. Both are None where there was no history to judge by.
- undecided: unread messages behind the last stable offset. Transactions that are open hold them back from consumers
  with isolation.level=read_committed: they are lag, and not the consumer's doing. held_by_transaction: all that is
  unread is undecided, so that such a consumer cannot read on, whatever its status is; None: not known. Of topics and
  groups: some partition is held.
- control_records: of the lag, offsets that hold no message: markers of transactions, and what compaction removed
  (kctl.lag.control_records). Where nothing else is unread, the status is OK, and there is nothing to be late with or to
  lose. None: not known, as of all that is not live.
- ahead: the committed offset lies so far beyond the end of the log, as after a topic was recreated. The lag is 0
  then, and the status says nothing of it: limits on lag and reports do.
- time_lag_ms is the reading's. Where that is not known: by points of the log itself (kctl.lag.log_times), or, where
  the next message is the log's first record, that one's age.
- deletion_by_time_ms: where the time lag is not known, by the age of the log's first record, which no message exceeds:
  not before that, as all of kctl.history.retention.deletion.
- last_commit: when the last commit was made, where __consumer_offsets tells; else when its offset was first seen.
  None: it was there already when what was read began. unchanged_ms: for how long the offset is the same, at least.
- Rates are messages a second; catch_up_ms, deletion_ms and loss_ms are from `at` on, None: never, or not known. A group
  that keeps up (kctl.lag.rates.keeps_up) has nothing to catch up with, 0, and loses nothing but what may be deleted
  at once; one whose standing makes it nobody's alarm loses nothing.
- peak_lag, lag_before, worst_status: of the time from first_at to `at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kctl.history.lag.span import Span
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
    """One partition of one group. The field names are the JSON keys and never change."""

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


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """The partitions of one topic in one group: sums of what is known, the worst of the rest. As JSON has it.

    max_lag: the largest of one partition. unknown: committed partitions whose offsets could not be had.
    """

    group: str
    state: str | None
    topic: str
    partition_count: int
    at: datetime | None
    status: str | None
    standing: str
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


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group, as TopicStatus."""

    group: str
    state: str | None
    topic_count: int
    partition_count: int
    at: datetime | None
    status: str | None
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


class Owner(NamedTuple):
    """The member that a partition is assigned to."""

    client_id: str
    host: str


class Surroundings(NamedTuple):
    """What is known beside a reading. None: not known, or there is none.

    state: of the group; «Dead» when it is gone. gone: later snapshots have no such commit any more. owner: None when
    nobody is assigned the partition. topic_owned, topic_unchanged_ms: of the group's partitions of the topic, as
    kctl.history.lag.status.standing_of has them. oldest_timestamp_ms: of the log's first record. size_bytes: of the
    leader's replica. points: of the log, oldest first. markers: of the end of the log. allowed_lag: as the readings
    were judged by. began_ms: when the first snapshot that was read for the reading was made. judged: there was history
    to judge by. commit_ms: when the last commit was made.
    """

    state: str | None = None
    gone: bool = False
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
    """Which partition of which group."""

    group: str
    topic: str
    partition: int


class Offsets(NamedTuple):
    """The offsets of a reading's observation."""

    committed: int | None
    start: int | None
    end: int | None


def partition_status(key: Key, offsets: Offsets, reading: Reading, span: Span, around: Surroundings) -> PartitionStatus:
    """The row of one partition."""
    standing = Standing.DEAD if around.gone else _standing(around)
    owned = around.owner is not None
    verdict = reading.status_owned if owned else reading.status
    open_ = undecided(offsets, around.last_stable_offset)
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
        undecided=open_,
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
        held_by_transaction=None if open_ is None else 0 < open_ == reading.lag,
        ahead=reading.ahead,
    )


def _loss_ms(result: Deletion, reading: Reading, standing: Standing) -> int | None:
    """Nobody waits for what is deleted before a group that is no more has read it."""
    if standing in NOT_ALARMING:
        return None
    keeps_up = reading.catch_up_ms == 0
    return loss_eta_ms(result, reading.consumed_per_s, reading.produced_per_s, keeps_up=keeps_up)


class _Times(NamedTuple):
    """What comes of the messages that are unread. only_control_records: no more of them than are allowed."""

    control_records: int | None
    only_control_records: bool
    age_ms: int | None
    least_ms: int | None
    deletion: Deletion
    catch_up_ms: int | None


def _times(offsets: Offsets, reading: Reading, around: Surroundings) -> _Times:
    control = _control_records(offsets, around)
    if control and reading.lag == control:
        return _Times(control, True, 0, 0, NEVER, 0)
    age, least, most = _ages(offsets, reading, around)
    log = Log(offsets.start, offsets.end, around.size_bytes, reading.produced_per_s)
    result = deletion(offsets.committed, most, log, around.limits)
    few = bool(control) and reading.lag is not None and reading.lag - (control or 0) <= around.allowed_lag
    return _Times(control, few, age, least, result, reading.catch_up_ms)


def _last_commit(reading: Reading, around: Surroundings) -> int | None:
    if around.commit_ms is not None:
        return min(around.commit_ms, reading.at_ms)
    if reading.unchanged_ms is None:
        return None
    first_seen = reading.at_ms - reading.unchanged_ms
    return first_seen if first_seen > around.began_ms else None


def unchanged_ms(reading: Reading, commit_ms: int | None) -> int | None:
    """For how long, at least, the committed offset is the same: since it was first seen, or committed last."""
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
    """The time lag, what it is at least, and at most."""
    age, least = reading.time_lag_ms, reading.time_lag_least_ms
    if age is not None or not reading.lag or offsets.committed is None or offsets.start is None:
        return age, least, age
    visited = time_lag(around.points, max(offsets.committed, offsets.start))
    if visited.ms is not None:
        return visited.ms, visited.ms, visited.ms
    least = max(least or 0, visited.at_least_ms or 0)
    if around.oldest_timestamp_ms is None:
        return None, least, None
    oldest_age = max(reading.at_ms - around.oldest_timestamp_ms, 0)
    if offsets.committed <= offsets.start:
        return oldest_age, oldest_age, oldest_age
    return None, least, max(oldest_age, least)


def undecided(offsets: Offsets, last_stable_offset: int | None) -> int | None:
    """Messages that are not read and belong to, or lie behind, open transactions. None: not known."""
    if offsets.committed is None or offsets.start is None or offsets.end is None or last_stable_offset is None:
        return None
    return max(offsets.end - max(last_stable_offset, offsets.committed, offsets.start), 0)


def _control_records(offsets: Offsets, around: Surroundings) -> int | None:
    if offsets.committed is None or offsets.start is None or offsets.end is None:
        return None
    return control_records(around.markers, max(offsets.committed, offsets.start), offsets.end)


LagStatus = PartitionStatus | TopicStatus | GroupStatus


def messages_of(row: LagStatus) -> int | None:
    """The lag without offsets that are known to hold no message."""
    return None if row.lag is None else row.lag - (row.control_records or 0)
