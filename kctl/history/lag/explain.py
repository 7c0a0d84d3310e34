"""Explanations of how the values of a row (kctl.history.lag.status_rows) were computed. Pure."""

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
    Standing.EMPTY: "the group has no members: it is stopped, or assigns partitions manually",
    Standing.STALE: "the group has no members and has committed nothing for a long time: no alarm",
    Standing.DEAD: "the group or its commit was deleted: no alarm",
    Standing.ABANDONED: "the group's members read other topics, but no longer this one: no alarm",
    Standing.DELETED: "the topic was deleted, only the commit remains: no alarm",
    Standing.UNKNOWN: "the group's state is unknown",
}


_OPEN_TRANSACTION = "a transaction is open"
HELD = "a consumer with isolation.level=read_committed continues when the producer ends its transaction"


_KEEPS_UP = "at most what is produced between two of its commits"


class Line(NamedTuple):
    """The explanation of one value. name: the JSON key."""

    name: str
    text: str


def explain(row: PartitionStatus, rules: WindowRules) -> list[Line]:
    """Return the explanations of a row. rules: the rules that the row was judged by."""
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
        yield Line("lag", "no committed offset: the lag is undefined, not 0")
        return
    if start is None or end is None:
        yield Line("lag", f"committed {committed}; log start and log end are unknown")
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
        yield Line("undecided", f"{row.undecided} of the lag {lies} behind the last stable offset: {_OPEN_TRANSACTION}")
    if row.held_by_transaction:
        yield Line("held_by_transaction", f"the whole lag does: {HELD}")
    if row.control_records:
        lie = "holds no message" if row.control_records == 1 else "hold no message"
        yield Line(
            "control_records", f"{row.control_records} of the lag {lie}: transaction markers, or removed by compaction"
        )


def _commit(row: PartitionStatus) -> Iterator[Line]:
    if row.committed_offset is None:
        return
    if row.last_commit is not None:
        yield Line("last_commit", f"{_time(row.last_commit)}: commit time, or when the offset was first seen")
    elif row.unchanged_ms is not None:
        yield Line(
            "last_commit", f"unknown: before the snapshots that were read, more than {_duration(row.unchanged_ms)} ago"
        )


def _status(row: PartitionStatus, rules: WindowRules) -> Iterator[Line]:
    if row.burrow_status is None:
        yield Line("status", "a single pass gives no status; use --store DIR for history")
        return
    yield Line("burrow_status", f"{row.burrow_status}: {_verdict(row, rules)}")
    if row.status == row.burrow_status:
        yield Line("status", f"{row.status}: Burrow's status")
    elif Standing(row.standing) in NOT_ALARMING:
        yield Line("status", f"{row.status}: lagging, but {row.standing}")
    else:
        yield Line(
            "status", f"{row.status}: unread messages are within the allowed lag; the rest of the lag holds no messages"
        )


def _verdict(row: PartitionStatus, rules: WindowRules) -> str:
    window = f"the last {row.observations} readings"
    status = Status[row.burrow_status or Status.UNKNOWN.name]
    if status is Status.UNKNOWN:
        return "no commit or no log end"
    if status is Status.STOP:
        return f"no new commit for {_duration(row.unchanged_ms)}: longer than the window's commits span"
    if status is Status.REWIND:
        return f"the committed offset went back within {window} and has not been reached again"
    if status is Status.STALL:
        stalled = f"a member owns the partition and commits the same offset through {window}"
        return f"{stalled}: an open transaction blocks it" if row.held_by_transaction else stalled
    if status is Status.WARN:
        return f"the lag grew through {window} and never decreased"
    if row.observations < rules.observations:
        return f"{row.observations} of {rules.observations} readings: too few for a verdict"
    if not row.lag or row.lag <= rules.allowed_lag:
        return f"the lag is at most {rules.allowed_lag}"
    return f"within {window} the group caught up or its lag decreased"


def _time_lag(row: PartitionStatus) -> Iterator[Line]:
    if row.time_lag_ms is not None and row.time_lag_ms > 0:
        yield Line("time_lag_ms", f"{_duration(row.time_lag_ms)}: the age of the next message to read")
    elif row.time_lag_ms is None and row.time_lag_at_least_ms is not None:
        at_least = _duration(row.time_lag_at_least_ms)
        yield Line("time_lag_ms", f"more than {at_least}: the next message to read is older than the first reading")


def _rates(row: PartitionStatus) -> Iterator[Line]:
    consumed, produced = row.consumed_per_s, row.produced_per_s
    if consumed is None or produced is None:
        return
    scope = f"of the committed offset and of the log end over the last {row.observations} readings"
    yield Line("consumed_per_s", f"{consumed:.6g} consumed and {produced:.6g} produced per second: the change {scope}")
    rates = f"{consumed:.6g}/s − {produced:.6g}/s"
    if row.catch_up_ms:
        yield Line("catch_up_ms", f"lag {row.lag} ÷ ({rates}) = {_duration(row.catch_up_ms)}")
    elif row.lag and row.catch_up_ms == 0:
        yield Line("catch_up_ms", f"keeps up: lag {row.lag} is {_KEEPS_UP}")
    elif row.lag and consumed > produced:
        yield Line("catch_up_ms", f"not within {_duration(FARTHEST_MS)} at these rates: {rates}")
    elif row.lag:
        yield Line("catch_up_ms", f"never at these rates: {rates}")
    else:
        yield Line("catch_up_ms", f"nothing to catch up on: {rates}")


def _deletion(row: PartitionStatus) -> Iterator[Line]:
    if row.deletion_by_time_ms is not None:
        remaining = _duration(row.deletion_by_time_ms)
        age = "time lag" if row.time_lag_ms is not None else "age of the log's first record"
        yield Line("deletion_by_time_ms", f"retention.ms − {age} = {remaining}: the earliest time")
    if row.deletion_by_bytes_ms is not None:
        remaining = _duration(row.deletion_by_bytes_ms)
        yield Line(
            "deletion_by_bytes_ms", f"{remaining} until retention.bytes are produced after the next message to read"
        )
    if row.loss_ms is not None:
        yield Line("loss_ms", f"at these rates, deletion overtakes the group in {_duration(row.loss_ms)}")
    elif row.deletion_ms is not None and Standing(row.standing) in NOT_ALARMING:
        yield Line("loss_ms", f"none: the group or topic is {row.standing}")
    elif row.deletion_ms is not None and row.catch_up_ms == 0:
        yield Line("loss_ms", f"none: the group keeps up; lag {row.lag} is {_KEEPS_UP}")
    elif row.deletion_ms is not None and (row.consumed_per_s or 0) < (row.produced_per_s or 0):
        yield Line("loss_ms", f"not within {_duration(FARTHEST_MS)} at these rates, which cover too short a time")
    elif row.deletion_ms is not None:
        yield Line("loss_ms", "never at these rates: the group reads at least as fast as messages are produced")


def _span(row: PartitionStatus) -> Iterator[Line]:
    if row.readings < 2 or row.first_at is None:
        return
    scope = f"of {row.readings} readings since {_time(row.first_at)}"
    if row.peak_lag is not None:
        yield Line("peak_lag", f"the largest {scope}: {row.peak_lag}; the first: {_or_unknown(row.lag_before)}")
    if row.worst_status is not None:
        yield Line("worst_status", f"the worst {scope}: {row.worst_status}")


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _duration(ms: int | None) -> str:
    return "an unknown time" if ms is None else format_duration(ms)


def _time(at: datetime) -> str:
    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
