"""How the figures of a row of kctl.history.lag.status_rows came about, in sentences. Pure.

Each line has the figure's name, and what it was made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import NamedTuple

from kctl.base.units import format_duration
from kctl.history.lag.status import NOT_ALARMING, Standing, Status
from kctl.history.lag.status_rows import PartitionStatus
from kctl.history.lag.window import WindowRules
from kctl.lag.rates import FARTHEST_MS

_STANDINGS = {
    Standing.ACTIVE: "the group has members",
    Standing.EMPTY: "the group has no members now: it is stopped, or assigns partitions by hand",
    Standing.STALE: "the group has no members, and has not moved for long: nobody misses it, so it is no alarm",
    Standing.DEAD: "the group, or its commit, is gone since: no alarm",
    Standing.ABANDONED: "the group's members read other topics, and none reads this one any more: no alarm",
    Standing.DELETED: "the topic is gone, and only the commit is left: no alarm",
    Standing.UNKNOWN: "the group's state is not known",
}


_OPEN = "a transaction is open"
HELD = "a consumer with isolation.level=read_committed reads on when the producer ends its transaction"


_KEEPS_UP = "at most what is written from one of its commits to the next"


class Line(NamedTuple):
    """name: of the figure, as in JSON. text: how it came about."""

    name: str
    text: str


def explain(row: PartitionStatus, rules: WindowRules) -> list[Line]:
    """The lines of a row. rules: those that it was judged by."""
    return [
        *_at(row),
        *_lag(row),
        *_commit(row),
        Line("standing", f"{row.standing}: {_STANDINGS[Standing(row.standing)]}"),
        *_status(row, rules),
        *_time_lag(row),
        *_rates(row),
        *_deletion(row),
        *_span(row),
    ]


def _at(row: PartitionStatus) -> Iterator[Line]:
    if row.at is not None:
        yield Line("at", f"read at {_time(row.at)}")


def _lag(row: PartitionStatus) -> Iterator[Line]:
    committed, start, end = row.committed_offset, row.log_start_offset, row.log_end_offset
    if committed is None:
        yield Line("lag", "nothing is committed: there is no lag, which is not 0")
        return
    if start is None or end is None:
        yield Line("lag", f"committed {committed}; where the log begins and ends is not known")
        return
    yield Line("lag", f"log end {end} − max(committed {committed}, log start {start}) = {row.lag}")
    if row.ahead:
        yield Line(
            "ahead", f"committed {committed} − log end {end} = {row.ahead}: a recreated topic, or a truncated log"
        )
    if row.lost:
        yield Line("lost", f"log start {start} − committed {committed} = {row.lost}: deleted before they were read")
    if row.undecided:
        lies = "lies" if row.undecided == 1 else "lie"
        yield Line("undecided", f"{row.undecided} of the lag {lies} behind the last stable offset: {_OPEN}")
    if row.held_by_transaction:
        yield Line("held_by_transaction", f"all of it does: {HELD}")
    if row.control_records:
        lie = "holds no message" if row.control_records == 1 else "hold no message"
        yield Line(
            "control_records", f"{row.control_records} of the lag {lie}: transaction markers, or removed by compaction"
        )


def _commit(row: PartitionStatus) -> Iterator[Line]:
    if row.committed_offset is None:
        return
    if row.last_commit is not None:
        yield Line("last_commit", f"{_time(row.last_commit)}: when it was made, or its offset was first seen")
    elif row.unchanged_ms is not None:
        yield Line("last_commit", f"not known: longer ago than what was read, {_duration(row.unchanged_ms)}")


def _status(row: PartitionStatus, rules: WindowRules) -> Iterator[Line]:
    if row.burrow_status is None:
        yield Line("status", "one look at the cluster tells no status; --store DIR gives it history")
        return
    yield Line("burrow_status", f"{row.burrow_status}: {_verdict(row, rules)}")
    if row.status == row.burrow_status:
        yield Line("status", f"{row.status}: that of Burrow")
    elif Standing(row.standing) in NOT_ALARMING:
        yield Line("status", f"{row.status}: behind, and {row.standing}")
    else:
        yield Line(
            "status", f"{row.status}: unread messages are within the allowed lag; the rest of the lag holds no messages"
        )


def _verdict(row: PartitionStatus, rules: WindowRules) -> str:
    window = f"the last {row.observations} readings"
    status = Status[row.burrow_status or Status.UNKNOWN.name]
    if status is Status.UNKNOWN:
        return "there is no commit, or no log end, to judge by"
    if status is Status.STOP:
        return (
            f"no new commit for {_duration(row.unchanged_ms)}, longer than the commits before took, and messages wait"
        )
    if status is Status.REWIND:
        return f"the committed offset went back within {window}, and has not been reached again"
    if status is Status.STALL:
        stalled = f"a member has it, and commits the same offset through {window}"
        return f"{stalled}: an open transaction holds it up" if row.held_by_transaction else stalled
    if status is Status.WARN:
        return f"the lag has grown through {window}, and was never less than before"
    if row.observations < rules.observations:
        return f"{row.observations} of {rules.observations} readings: too few to judge by"
    if not row.lag or row.lag <= rules.allowed_lag:
        return f"the lag is at most {rules.allowed_lag}"
    return f"within {window} it had caught up, or its lag went down"


def _time_lag(row: PartitionStatus) -> Iterator[Line]:
    if row.time_lag_ms is not None and row.time_lag_ms > 0:
        yield Line("time_lag_ms", f"{_duration(row.time_lag_ms)}: the age of the next message to read")
    elif row.time_lag_ms is None and row.time_lag_at_least_ms is not None:
        least = _duration(row.time_lag_at_least_ms)
        yield Line("time_lag_ms", f"more than {least}: the next message to read is older than what was observed")


def _rates(row: PartitionStatus) -> Iterator[Line]:
    read, written = row.consumed_per_s, row.produced_per_s
    if read is None or written is None:
        return
    ways = f"of the committed offset and of the log end over the last {row.observations} readings"
    yield Line("consumed_per_s", f"{read:.6g} read and {written:.6g} written a second: the way {ways}")
    rates = f"{read:.6g}/s − {written:.6g}/s"
    if row.catch_up_ms:
        yield Line("catch_up_ms", f"lag {row.lag} ÷ ({rates}) = {_duration(row.catch_up_ms)}")
    elif row.lag and row.catch_up_ms == 0:
        yield Line("catch_up_ms", f"it keeps up: lag {row.lag} is {_KEEPS_UP}")
    elif row.lag and read > written:
        yield Line("catch_up_ms", f"not within {_duration(FARTHEST_MS)} at these rates: {rates}")
    elif row.lag:
        yield Line("catch_up_ms", f"never at these rates: {rates}")
    else:
        yield Line("catch_up_ms", f"nothing to catch up with: {rates}")


def _deletion(row: PartitionStatus) -> Iterator[Line]:
    if row.deletion_by_time_ms is not None:
        left = _duration(row.deletion_by_time_ms)
        age = "time lag" if row.time_lag_ms is not None else "age of the log's first record"
        yield Line("deletion_by_time_ms", f"retention.ms − {age} = {left}: not before")
    if row.deletion_by_bytes_ms is not None:
        left = _duration(row.deletion_by_bytes_ms)
        yield Line("deletion_by_bytes_ms", f"{left} until retention.bytes follow the next message to read")
    if row.loss_ms is not None:
        yield Line("loss_ms", f"at these rates the group is overtaken in {_duration(row.loss_ms)}")
    elif row.deletion_ms is not None and Standing(row.standing) in NOT_ALARMING:
        yield Line("loss_ms", f"none: as {row.standing}, it loses nothing that somebody waits for")
    elif row.deletion_ms is not None and row.catch_up_ms == 0:
        yield Line("loss_ms", f"none: the group keeps up; lag {row.lag} is {_KEEPS_UP}")
    elif row.deletion_ms is not None and (row.consumed_per_s or 0) < (row.produced_per_s or 0):
        yield Line("loss_ms", f"not within {_duration(FARTHEST_MS)} at these rates: they are of too short a time")
    elif row.deletion_ms is not None:
        yield Line("loss_ms", "never at these rates: the group reads as fast as is written")


def _span(row: PartitionStatus) -> Iterator[Line]:
    if row.readings < 2 or row.first_at is None:
        return
    said = f"of {row.readings} readings since {_time(row.first_at)}"
    if row.peak_lag is not None:
        yield Line("peak_lag", f"the largest {said}: {row.peak_lag}; the first: {_or_unknown(row.lag_before)}")
    if row.worst_status is not None:
        yield Line("worst_status", f"the worst {said}: {row.worst_status}")


def _or_unknown(value: int | None) -> str:
    return "not known" if value is None else str(value)


def _duration(ms: int | None) -> str:
    return "an unknown time" if ms is None else format_duration(ms)


def _time(at: datetime) -> str:
    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
