"""The rows of `kctl spark lag`: a reading of a group's partition, with what is known beside it. Pure.

A reading (kctl.lag.window) tells how the offsets moved. The cluster around it tells the rest: the group's state, who
the partition is assigned to, what the topic keeps and for how long. Here they become one row, by the rules of
kctl.lag.status and kctl.lag.deletion.

- status is the verdict that counts: Burrow's for a partition that is assigned to a member or not, and OK where the
  group's standing to the topic makes it nobody's alarm (stale, dead, abandoned, deleted). burrow_status is without
  that. Both are None where there was no history to judge by.
- undecided: unread messages behind the last stable offset. Transactions that are open hold them back from consumers
  with isolation.level=read_committed: they are lag, and not the consumer's doing.
- time_lag_ms is the reading's. Where that is not known: by points of the log itself (kctl.lag.log_times), or, where
  the next message is the log's first record, that one's age.
- deletion_by_time_ms: where the time lag is not known, by the age of the log's first record, which no message exceeds:
  not before that, as all of kctl.lag.deletion.
- last_commit: when the last commit was made, where __consumer_offsets tells; else when its offset was first seen.
  None: it was there already when what was read began. unchanged_ms: for how long the offset is the same, at least.
- Rates are messages a second; catch_up_ms, deletion_ms and loss_ms are from `at` on, None: never, or not known.
- peak_lag, lag_before, worst_status: of the time from first_at to `at`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from kctl.lag.deletion import Limits, Log, deletion, loss_eta_ms
from kctl.lag.rates import LogEnd, time_lag
from kctl.lag.retention import at
from kctl.lag.span import Span
from kctl.lag.status import (
    DEFAULT_STANDING_RULES,
    Standing,
    StandingRules,
    Status,
    alarm_of,
    group_status,
    standing_of,
)
from kctl.lag.window import Reading


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


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """The partitions of one topic in one group: sums of what is known, the worst of the rest. As JSON has it.

    max_lag: the largest of one partition. unknown: committed partitions whose offsets could not be had.
    """

    group: str
    state: str | None
    topic: str
    partitions: int
    at: datetime | None
    status: str | None
    standing: str
    lag: int | None
    max_lag: int | None
    lost: int | None
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


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group, as TopicStatus."""

    group: str
    state: str | None
    topics: int
    partitions: int
    at: datetime | None
    status: str | None
    lag: int | None
    max_lag: int | None
    lost: int | None
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


class Owner(NamedTuple):
    """The member that a partition is assigned to."""

    client_id: str
    host: str


class Surroundings(NamedTuple):
    """What is known beside a reading. None: not known, or there is none.

    state: of the group; «Dead» when it is gone. gone: later snapshots have no such commit any more. owner: None when
    nobody is assigned the partition. topic_owned, topic_unchanged_ms: of the group's partitions of the topic, as
    kctl.lag.status.standing_of has them. oldest_timestamp_ms: of the log's first record. size_bytes: of the leader's
    replica. points: of the log, oldest first. began_ms: when the first snapshot that was read for the reading was made.
    judged: there was history to judge by. commit_ms: when the last commit was made.
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
    worst = span.worst_owned if owned else span.worst_status
    log = Log(offsets.start, offsets.end, around.size_bytes, reading.produced_per_s)
    age, least, most = _ages(offsets, reading, around)
    found = deletion(offsets.committed, most, log, around.limits)
    owner = around.owner
    return PartitionStatus(
        group=key.group,
        state=around.state,
        topic=key.topic,
        partition=key.partition,
        at=at(reading.at_ms),
        status=alarm_of(verdict, standing).name if around.judged else None,
        burrow_status=verdict.name if around.judged else None,
        standing=standing.value,
        committed_offset=offsets.committed,
        log_start_offset=offsets.start,
        log_end_offset=offsets.end,
        lag=reading.lag,
        lost=reading.lost,
        undecided=undecided(offsets, around.last_stable_offset),
        time_lag_ms=age,
        time_lag_at_least_ms=least,
        consumed_per_s=reading.consumed_per_s,
        produced_per_s=reading.produced_per_s,
        catch_up_ms=reading.catch_up_ms,
        deletion_by_time_ms=found.by_time_ms,
        deletion_by_bytes_ms=found.by_bytes_ms,
        deletion_ms=found.eta_ms,
        loss_ms=loss_eta_ms(found, reading.consumed_per_s, reading.produced_per_s),
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
    )


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
    seen = time_lag(around.points, max(offsets.committed, offsets.start))
    if seen.ms is not None:
        return seen.ms, seen.ms, seen.ms
    least = max(least or 0, seen.at_least_ms or 0)
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


# --- added up ---------------------------------------------------------------------------------------------------------


def by_topic(rows: Iterable[PartitionStatus]) -> list[TopicStatus]:
    """Rows added up per group and topic, in the order of first appearance."""
    return [
        TopicStatus(
            group=first.group,
            state=first.state,
            topic=first.topic,
            standing=_least_alarming(members),
            **_added_up(members)._asdict(),
        )
        for first, members in _grouped(rows, lambda row: (row.group, row.topic))
    ]


def by_group(rows: Iterable[PartitionStatus]) -> list[GroupStatus]:
    """Rows added up per group, in the order of first appearance."""
    return [
        GroupStatus(
            group=first.group, state=first.state, topics=len({m.topic for m in members}), **_added_up(members)._asdict()
        )
        for first, members in _grouped(rows, lambda row: row.group)
    ]


class _AddedUp(NamedTuple):
    partitions: int
    at: datetime | None
    status: str | None
    lag: int | None
    max_lag: int | None
    lost: int | None
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


def _added_up(rows: Sequence[PartitionStatus]) -> _AddedUp:
    lags = _known(row.lag for row in rows)
    return _AddedUp(
        partitions=len(rows),
        at=max(_known(row.at for row in rows), default=None),
        status=_worst(row.status for row in rows),
        lag=sum(lags) if lags else None,
        max_lag=max(lags, default=None),
        lost=_total(row.lost for row in rows),
        not_committed=sum(row.committed_offset is None for row in rows),
        unknown=sum(row.committed_offset is not None and row.lag is None for row in rows),
        time_lag_ms=max(_known(row.time_lag_ms for row in rows), default=None),
        time_lag_at_least_ms=max(_known(row.time_lag_at_least_ms for row in rows), default=None),
        consumed_per_s=_total(row.consumed_per_s for row in rows),
        produced_per_s=_total(row.produced_per_s for row in rows),
        catch_up_ms=_last_to_catch_up(rows),
        deletion_ms=min(_known(row.deletion_ms for row in rows), default=None),
        loss_ms=min(_known(row.loss_ms for row in rows), default=None),
        last_commit=max(_known(row.last_commit for row in rows), default=None),
        lag_before=_total(row.lag_before for row in rows),
        worst_status=_worst(row.worst_status for row in rows),
    )


def _worst(names: Iterable[str | None]) -> str | None:
    """Of partitions' verdicts, their group's."""
    known = _known(names)
    return group_status(Status[name] for name in known).name if known else None


def _last_to_catch_up(rows: Sequence[PartitionStatus]) -> int | None:
    """None as soon as one of those that are behind never catches up, or nobody knows."""
    found = [row.catch_up_ms for row in rows if row.lag is not None]
    known = _known(found)
    return max(known) if known and len(known) == len(found) else None


def _least_alarming(rows: Sequence[PartitionStatus]) -> str:
    """Of a topic's partitions: active unless all are something else."""
    found = {row.standing for row in rows}
    return found.pop() if len(found) == 1 else next(s.value for s in Standing if s.value in found)


_Number = TypeVar("_Number", int, float)
_Value = TypeVar("_Value")
_Key = TypeVar("_Key", bound=Hashable)


def _known(values: Iterable[_Value | None]) -> list[_Value]:
    return [value for value in values if value is not None]


def _total(values: Iterable[_Number | None]) -> _Number | None:
    known = _known(values)
    return sum(known[1:], known[0]) if known else None


def _grouped(
    rows: Iterable[PartitionStatus], key: Callable[[PartitionStatus], _Key]
) -> list[tuple[PartitionStatus, list[PartitionStatus]]]:
    found: dict[_Key, list[PartitionStatus]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [(members[0], members) for members in found.values()]


# --- order ------------------------------------------------------------------------------------------------------------

LagStatus = PartitionStatus | TopicStatus | GroupStatus


def severity(row: LagStatus) -> tuple[float, ...]:
    """What sorts the worst row first: by status (Burrow's numbers), soonest loss, messages lost, time lag, lag."""
    loss = float("inf") if row.loss_ms is None else float(row.loss_ms)
    age = row.time_lag_ms if row.time_lag_ms is not None else row.time_lag_at_least_ms
    status = Status[row.status] if row.status is not None else Status.UNKNOWN
    rank = 1.5 if status is Status.UNKNOWN else float(status)  # what cannot be judged comes before what is well
    return (-rank, loss, -float(row.lost or 0), -float(age or 0), -float(row.lag or 0))


def worst(rows: Iterable[LagStatus], count: int) -> list[LagStatus]:
    """The `count` worst rows, the worst first."""
    import heapq

    return heapq.nsmallest(count, rows, key=severity)
