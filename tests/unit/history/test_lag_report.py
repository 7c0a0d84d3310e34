"""Rows of the lag report, their sums, order, limits and explanations; names that are asked for; spans."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from typing import Any

import pytest

from kctl.errors import UsageError
from kctl.history.lag.explain import explain
from kctl.history.lag.limits import broken_limits, parse_limit, unknown
from kctl.history.lag.status import Status
from kctl.history.lag.status_rows import (
    GroupStatus,
    Key,
    Offsets,
    Owner,
    PartitionStatus,
    Surroundings,
    TopicStatus,
    partition_status,
    undecided,
)
from kctl.history.lag.totals import by_group, by_topic, severity, worst
from kctl.history.lag.window import DEFAULT_RULES, MINUTE_MS, Reading
from kctl.history.retention.deletion import Limits
from kctl.history.snapshots.moment import COLUMNS, moment_of
from kctl.lag.selection import names_of
from span_oracle import span_of
from window_oracle import Observation, judge

NOW = 1_790_000_000_000
HOUR_MS = 60 * MINUTE_MS
KEEPS = Limits("delete", 3 * HOUR_MS, -1)


def _readings(
    consumed: int, produced: int, *, count: int = 30, committed: int = 1000, end: int = 1500
) -> list[Reading]:
    """A partition that is looked at each minute; so many messages are consumed and written between two looks."""
    rows = [
        Observation(NOW + n * MINUTE_MS, committed + n * consumed, 900, end + n * produced, "id") for n in range(count)
    ]
    return judge(rows)


def _row(consumed: int = 5, produced: int = 10, **around: Any) -> PartitionStatus:
    readings = _readings(consumed, produced)
    last = readings[-1]
    offsets = Offsets(1000 + 29 * consumed, 900, 1500 + 29 * produced)
    given = {"state": "Stable", "topic_owned": True, "limits": KEEPS, "began_ms": NOW, "size_bytes": 10**6, **around}
    return partition_status(Key("g", "t", 0), offsets, last, span_of(readings), Surroundings(**given))


def test_keys_never_change() -> None:
    assert _names(PartitionStatus) == (
        "group state topic partition at status burrow_status standing committed_offset log_start_offset"
        " log_end_offset lag lost undecided control_records time_lag_ms time_lag_at_least_ms consumed_per_s"
        " produced_per_s catch_up_ms deletion_by_time_ms deletion_by_bytes_ms deletion_ms loss_ms last_commit"
        " unchanged_ms client_id host observations first_at readings lag_before peak_lag worst_status"
        " held_by_transaction ahead"
    )
    shared = (
        "lag max_lag lost control_records not_committed unknown time_lag_ms time_lag_at_least_ms consumed_per_s"
        " produced_per_s catch_up_ms deletion_ms loss_ms last_commit lag_before worst_status held_by_transaction"
        " ahead"
    )
    assert _names(TopicStatus) == f"group state topic partition_count at status standing {shared}"
    assert _names(GroupStatus) == f"group state topic_count partition_count at status {shared}"


def _names(kind: type[Any]) -> str:
    return " ".join(field.name for field in dataclasses.fields(kind))


def test_a_slow_group() -> None:
    row = _row(owner=Owner("client-1", "/10.0.0.1"))
    assert (row.lag, row.lost, row.status, row.standing, row.client_id) == (645, 0, "WARN", "active", "client-1")
    assert row.consumed_per_s == pytest.approx(5 / 60)
    assert row.catch_up_ms is None
    assert (row.lag_before, row.peak_lag, row.worst_status, row.readings) == (500, 645, "WARN", 30)
    # The next message, 1145, was there before all that was seen.
    assert (row.time_lag_ms, row.time_lag_at_least_ms) == (None, 29 * MINUTE_MS)
    assert (row.deletion_ms, row.loss_ms) == (None, None)
    assert row.last_commit == datetime.fromtimestamp((NOW + 29 * MINUTE_MS) / 1000, timezone.utc)


def test_deletion_and_loss_come_from_the_topics_limits() -> None:
    readings = judge([Observation(NOW + n * MINUTE_MS, 1000 + 5 * n, 900, 1000 + 10 * n) for n in range(30)])
    offsets = Offsets(1145, 900, 1290)
    around = Surroundings(state="Stable", limits=KEEPS, size_bytes=390_000)
    row = partition_status(Key("g", "t", 0), offsets, readings[-1], span_of(readings), around)
    assert row.time_lag_ms == 14.5 * MINUTE_MS
    assert row.deletion_by_time_ms == 3 * HOUR_MS - row.time_lag_ms == row.deletion_ms
    assert row.loss_ms == row.deletion_ms * 2  # half of what is written is read
    assert row.deletion_by_bytes_ms is None
    gone = partition_status(
        Key("g", "t", 0), offsets, readings[-1], span_of(readings), around._replace(commit_deleted=True)
    )
    assert (gone.deletion_ms, gone.loss_ms) == (row.deletion_ms, None)  # and nobody waits for it
    # An age that is unknown is at most that of the log's first record: then nothing is deleted before this.
    unseen = dataclasses.replace(readings[-1], time_lag_ms=None)
    oldest = around._replace(oldest_timestamp_ms=readings[-1].at_ms - HOUR_MS)
    row = partition_status(Key("g", "t", 0), offsets, unseen, span_of(readings), oldest)
    assert (row.time_lag_ms, row.deletion_by_time_ms) == (None, 2 * HOUR_MS)
    # The first record is the next one to read.
    row = partition_status(Key("g", "t", 0), Offsets(800, 900, 1290), unseen, span_of(readings), oldest)
    assert (row.time_lag_ms, row.time_lag_at_least_ms, row.deletion_by_time_ms) == (HOUR_MS, HOUR_MS, 2 * HOUR_MS)
    bytes_too = around._replace(limits=Limits("delete", 3 * HOUR_MS, 200_000))
    row = partition_status(Key("g", "t", 0), offsets, readings[-1], span_of(readings), bytes_too)
    # 1,000 bytes each: 55 more may be written until 200 follow, at 10 a minute.
    assert row.deletion_by_bytes_ms == row.deletion_ms == 5.5 * MINUTE_MS


def test_a_group_that_keeps_up_loses_nothing_though_its_last_looks_read_less_than_was_written() -> None:
    """58.0 consumed and 58.5 produced per second, because it commits a little before the last look; kept for 15 s."""
    ends = [58_513 * n for n in range(10)]
    rows = [Observation(NOW + 1000 * n, end, 0, end) for n, end in enumerate(ends)]
    rows[-1] = rows[-1]._replace(committed_offset=ends[-1] - 2)
    readings = judge(rows)
    limits = Limits("delete", 15_000, -1)
    offsets = Offsets(ends[-1] - 2, 0, ends[-1])
    row = partition_status(
        Key("g", "t", 0), offsets, readings[-1], span_of(readings), Surroundings(state="Stable", limits=limits)
    )
    assert row.consumed_per_s is not None
    assert row.produced_per_s is not None
    assert row.consumed_per_s < row.produced_per_s
    assert row.deletion_ms is not None
    assert (row.lag, row.catch_up_ms, row.loss_ms) == (2, 0, None)
    lines = dict(explain(row, DEFAULT_RULES))
    assert "keeps up: lag 2 is at most what is produced between two of its commits" in lines["catch_up_ms"]
    assert "keeps up" in lines["loss_ms"]
    # What may be deleted at once is not safe for that.
    at_once = Surroundings(state="Stable", limits=Limits("delete", 0, -1))
    row = partition_status(Key("g", "t", 0), offsets, readings[-1], span_of(readings), at_once)
    assert row.loss_ms == 0


def test_an_open_transaction_holds_a_group_up() -> None:
    row = _row(consumed=0, owner=Owner("c", "h"), last_stable_offset=1000)
    assert (row.burrow_status, row.undecided, row.lag, row.held_by_transaction) == ("STALL", 790, 790, True)
    lines = dict(explain(row, DEFAULT_RULES))
    assert "an open transaction blocks it" in lines["burrow_status"]
    assert "read_committed" in lines["held_by_transaction"]
    # Some of what is unread can be read; nothing is unread; nobody knows.
    assert _row(consumed=0, last_stable_offset=1001).held_by_transaction is False
    assert _row(consumed=0).held_by_transaction is None
    found = by_group([row, _row(consumed=0)])[0]
    assert found.held_by_transaction is True
    assert by_topic([_row()])[0].held_by_transaction is None


@pytest.mark.parametrize(("undecided_", "words"), [(1, "1 of the lag lies behind"), (2, "2 of the lag lie behind")])
def test_one_lies_and_two_lie(undecided_: int, words: str) -> None:
    assert words in dict(explain(_like(undecided=undecided_), DEFAULT_RULES))["undecided"]


@pytest.mark.parametrize(
    ("around", "status", "standing"),
    [
        ({"owner": Owner("c", "h")}, "STALL", "active"),
        ({"state": "Empty", "topic_owned": False}, "STOP", "empty"),
        ({"state": "Empty", "topic_owned": False, "topic_unchanged_ms": 25 * HOUR_MS}, "OK", "stale"),
        ({"state": "Stable", "topic_owned": False, "topic_unchanged_ms": HOUR_MS}, "OK", "abandoned"),
        ({"commit_deleted": True}, "OK", "dead"),
        ({"deleted": True}, "OK", "deleted"),
        ({"state": None}, "STOP", "unknown"),
        ({"judged": False}, None, "active"),
    ],
)
def test_a_group_that_stands_still_and_what_it_is_to_the_topic(
    around: dict[str, Any], status: str | None, standing: str
) -> None:
    row = _row(consumed=0, **around)
    assert (row.status, row.standing, row.worst_status) == (status, standing, status)
    assert row.burrow_status == (None if status is None else "STALL" if "owner" in around else "STOP")
    assert row.last_commit is None  # it was there when what was read began
    assert row.unchanged_ms == 29 * MINUTE_MS


def test_the_time_of_the_last_commit_where_it_is_known() -> None:
    last_ms = NOW + 29 * MINUTE_MS
    row = _row(consumed=0, commit_ms=NOW - HOUR_MS)
    assert row.last_commit == datetime.fromtimestamp((NOW - HOUR_MS) / 1000, timezone.utc)
    assert row.unchanged_ms == HOUR_MS + 29 * MINUTE_MS
    # A clock that is ahead; and one that commits the same offset again and again.
    assert _row(commit_ms=last_ms + 5).last_commit == datetime.fromtimestamp(last_ms / 1000, timezone.utc)
    assert _row(consumed=0, commit_ms=last_ms - 1000).unchanged_ms == 29 * MINUTE_MS


@pytest.mark.parametrize(
    ("offsets", "stable", "expected"),
    [
        (Offsets(10, 0, 50), 40, 10),
        (Offsets(10, 0, 50), 50, 0),
        (Offsets(45, 0, 50), 40, 5),
        (Offsets(50, 0, 50), 40, 0),
        (Offsets(10, 44, 50), 40, 6),
        (Offsets(None, 0, 50), 40, None),
        (Offsets(10, 0, 50), None, None),
    ],
)
def test_what_open_transactions_hold_back(offsets: Offsets, stable: int | None, expected: int | None) -> None:
    assert undecided(offsets, stable) == expected


# --- sums, order ------------------------------------------------------------------------------------------------------

PLAIN = dataclasses.replace(_row(), group="a")


def _like(**changes: Any) -> PartitionStatus:
    return dataclasses.replace(PLAIN, **changes)


def test_rows_are_added_up() -> None:
    rows = [
        _like(topic="t", partition=0, lag=5, lost=2, status="OK", catch_up_ms=10, loss_ms=None, time_lag_ms=7),
        _like(topic="t", partition=1, lag=6, lost=0, status="WARN", catch_up_ms=20, loss_ms=9, consumed_per_s=None),
        _like(topic="u", partition=0, lag=None, lost=None, status="STOP", committed_offset=None, produced_per_s=1.0),
        _like(group="b", lag=0, lost=0, status=None, worst_status=None, catch_up_ms=0, standing="dead"),
    ]
    t, u, b = by_topic(rows)
    assert (t.group, t.topic, t.partition_count, t.lag, t.max_lag, t.lost) == ("a", "t", 2, 11, 6, 2)
    assert (t.status, t.catch_up_ms, t.loss_ms, t.time_lag_ms) == ("WARN", 20, 9, 7)
    assert t.consumed_per_s == PLAIN.consumed_per_s
    assert (u.lag, u.not_committed, u.status, u.catch_up_ms) == (None, 1, "ERR", None)
    assert (b.status, b.standing, b.worst_status) == (None, "dead", None)
    a, b_group = by_group(rows)
    assert (a.topic_count, a.partition_count, a.lag, a.status, a.not_committed) == (2, 3, 11, "ERR", 1)
    assert (b_group.group, b_group.status) == ("b", None)


def test_one_that_never_catches_up_keeps_its_group_behind() -> None:
    (row,) = by_group([_like(lag=5, catch_up_ms=10), _like(partition=1, lag=5, catch_up_ms=None)])
    assert row.catch_up_ms is None


def test_the_worst_first() -> None:
    rows = [
        _like(partition=0, status="OK", lag=10**9),
        _like(partition=1, status="STOP", lag=1),
        _like(partition=2, status="WARN", lag=1, loss_ms=5),
        _like(partition=3, status="WARN", lag=1, loss_ms=None),
        _like(partition=4, status=None, lag=5),
        _like(partition=5, status="REWIND", lag=1),
    ]
    assert [row.partition for row in sorted(rows, key=severity)] == [5, 1, 2, 3, 4, 0]
    assert [getattr(row, "partition", None) for row in worst(rows, 2)] == [5, 1]


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "changes", "over"),
    [
        ("WARN", {"status": "WARN"}, True),
        ("warn", {"status": "STOP"}, True),
        ("WARN", {"status": "OK"}, False),
        ("WARN", {"status": None}, False),
        ("ERR", {"status": "WARN"}, False),
        ("ERR", {"status": "STALL"}, True),
        ("STOP", {"status": "STOP"}, True),
        ("STOP", {"status": "REWIND"}, False),
        ("lag>100", {"lag": 100}, False),
        ("lag > 100", {"lag": 101}, True),
        ("lag>0", {"lag": None}, False),
        ("lost>0", {"lost": 1}, True),
        ("time-lag>5m", {"time_lag_ms": 300_001}, True),
        ("time-lag>5m", {"time_lag_ms": 300_000, "time_lag_at_least_ms": 10**9}, False),
        ("time-lag>5m", {"time_lag_ms": None, "time_lag_at_least_ms": 300_001}, True),
        ("time-lag>5m", {"time_lag_ms": None, "time_lag_at_least_ms": None}, False),
        ("catch-up>1h", {"catch_up_ms": 3_600_001}, True),
        ("deletion<1h", {"deletion_ms": 3_599_999}, True),
        ("loss<1h", {"loss_ms": 3_600_000}, False),
        ("loss<1h", {"loss_ms": 0}, True),
        ("loss<1h", {"loss_ms": None}, False),
    ],
)
def test_limits(text: str, changes: dict[str, Any], over: bool) -> None:
    limit = parse_limit(text)
    row = _like(**changes)
    assert limit.breaks(row) is over
    found = broken_limits([row], [limit])
    assert len(found) == over
    if over:
        assert found[0].limit.describe(row)


@pytest.mark.parametrize(
    "text",
    ["", "lag", "lag>", "lag<5", "lag>-1", "lag>1e3", "lag>5m", "loss>1h", "loss<soon", "OK", "WARN>1", "lags>5",
     "lag=5", "lag>9999999999999999999", "\x1b[31m"],
)  # fmt: skip
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(UsageError):
        parse_limit(text)


def test_what_cannot_be_held_to_a_limit_is_counted() -> None:
    rows = [
        _like(status=None),
        _like(status="UNKNOWN"),
        _like(status="OK"),
        _like(status="UNKNOWN", committed_offset=None, lag=None),
        _like(lag=None),
    ]
    assert unknown(rows, [parse_limit("ERR")]) == 2
    assert unknown(rows, [parse_limit("lag>5")]) == 1
    assert unknown(rows, [parse_limit("ERR"), parse_limit("lag>5")]) == 3
    assert unknown(rows, []) == 0


def test_the_furthest_over_a_limit_is_named() -> None:
    rows = [_like(partition=n, lag=lag, loss_ms=loss) for n, (lag, loss) in enumerate([(5, 9), (70, 3), (30, 7)])]
    (lag, loss) = broken_limits(rows, [parse_limit("lag>6"), parse_limit("loss<8ms")])
    assert (lag.rows, lag.worst) == (2, rows[1])
    assert (loss.rows, loss.worst) == (2, rows[1])


# --- explanations -----------------------------------------------------------------------------------------------------


def test_explanations_have_the_numbers() -> None:
    lines = dict(explain(_row(consumed=5), DEFAULT_RULES))
    assert lines["lag"] == "log end 1790 − max(committed 1145, log start 900) = 645"
    assert lines["burrow_status"].startswith("WARN: ")
    assert lines["consumed_per_s"].startswith("0.0833333 consumed and 0.166667 produced per second")
    assert "0.0833333/s − 0.166667/s" in lines["catch_up_ms"]
    assert lines["peak_lag"].endswith(": 645; the first: 500")
    assert lines["worst_status"].endswith(": WARN")
    assert "never" in lines["catch_up_ms"]
    far = _like(lag=5, consumed_per_s=2.0, produced_per_s=1.99, catch_up_ms=None)
    assert "not within 30d" in dict(explain(far, DEFAULT_RULES))["catch_up_ms"]
    far = _like(lag=5, consumed_per_s=1.99, produced_per_s=2.0, catch_up_ms=None, deletion_ms=5, loss_ms=None)
    assert "not within 30d" in dict(explain(far, DEFAULT_RULES))["loss_ms"]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ERR])
def test_every_status_is_explained(status: Status) -> None:
    lines = dict(explain(_like(burrow_status=status.name, status=status.name), DEFAULT_RULES))
    assert lines["burrow_status"].startswith(f"{status.name}: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"committed_offset": None, "lag": None, "lost": None},
        {"log_end_offset": None, "lag": None},
        {"status": None, "burrow_status": None},
        {"unchanged_ms": None, "burrow_status": "STOP"},
        {"at": None, "consumed_per_s": None, "time_lag_at_least_ms": None},
        {"deletion_by_bytes_ms": 5, "deletion_ms": 5, "loss_ms": None, "deletion_by_time_ms": 6},
        {"status": "OK", "burrow_status": "STOP", "standing": "stale"},
        {"undecided": 4, "lost": 3, "catch_up_ms": 5, "time_lag_ms": 5},
        {"control_records": 1, "lag": 1, "status": "OK", "burrow_status": "STOP"},
        {"lag_before": None, "last_commit": None},
        {"peak_lag": None, "worst_status": None, "first_at": None},
    ],
)
def test_whatever_is_not_known_can_be_explained(changes: dict[str, Any]) -> None:
    lines = explain(_like(**changes), DEFAULT_RULES)
    assert all(line.text and "None" not in line.text for line in lines), lines


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "chosen", "others"),
    [
        ([], ["", "a", "日本"], []),
        (["billing"], ["billing"], ["billing2", "Billing", ""]),
        (["bill*"], ["bill", "billing"], ["abill"]),
        (["logs-?", "x"], ["logs-1", "x"], ["logs-10", "logs-"]),
        (["!test-*"], ["a", ""], ["test-1"]),
        (["a*", "!ab*"], ["a", "ac"], ["ab", "abc", "b"]),
        (["a[*]b"], ["a*b"], ["axb"]),
        (["a.b"], ["a.b"], ["axb"]),
        (["(a|b)+$"], ["(a|b)+$"], ["a"]),
        (["日*"], ["日本"], ["本"]),
    ],
)
def test_names(patterns: list[str], chosen: list[str], others: list[str]) -> None:
    names = names_of(patterns)
    lower, upper = names.bounds
    assert all(name in names for name in chosen)
    assert not any(name in names for name in others)
    assert all((lower is None or name >= lower) and (upper is None or name < upper) for name in chosen)


def test_bounds_and_names_that_must_exist() -> None:
    names = names_of(["a*", "ab", "c-1"])
    assert names.exact == ["ab", "c-1"]
    assert names.bounds == ("a", "c-2")
    assert "az" in names  # above "ab…", and below "c"
    assert names_of(["a*", "*"]).bounds == (None, None)
    assert names_of(["!a"]).bounds == (None, None)
    assert names_of(["a", "ab*"]).bounds == ("a", "b")
    assert names_of(["\U0010ffff*"]).bounds == ("\U0010ffff", None)
    assert names_of(["a\ud7ff*"]).bounds[1] == "a\ue000"


def test_a_glob_of_many_stars_ends() -> None:
    assert "a" * 60 not in names_of(["*a" * 25 + "b"])


# --- moments, spans ---------------------------------------------------------------------------------------------------


def test_the_newest_row_of_each_key_counts() -> None:
    def owner(at_ms: int, group: str, partition: int, client: str) -> dict[str, Any]:
        return {
            "at_ms": at_ms, "group": group, "topic": "t", "partition": partition, "client_id": client, "host": "h",
        }  # fmt: skip

    def replica(broker: int, size: int, *, future: bool = False, at_ms: int = 1) -> dict[str, Any]:
        return {
            "at_ms": at_ms, "broker": broker, "topic": "t", "partition": 0, "size_bytes": size, "future": future,
        }  # fmt: skip

    def log(at_ms: int, leader: int, stable: int) -> dict[str, Any]:
        return {
            "at_ms": at_ms, "topic": "t", "partition": 0, "leader": leader, "last_stable_offset": stable,
            "oldest_timestamp_ms": stable * 10,
        }  # fmt: skip

    rows: dict[str, list[dict[str, Any]]] = {
        "groups": [
            {"at_ms": 2, "group": "g", "state": "Stable"},
            {"at_ms": 1, "group": "g", "state": "Empty"},
            {"at_ms": 1, "group": "h", "state": "Empty"},
        ],
        "owners": [owner(1, "g", 0, "old"), owner(2, "g", 1, "new"), owner(1, "h", 0, "h")],
        "logs": [
            log(1, 1, 4),
            log(2, 2, 5),
        ],
        "replicas": [replica(1, 10), replica(2, 20), replica(2, 25, at_ms=2), replica(2, 3, future=True, at_ms=2)],
        "configs": [
            {"at_ms": 1, "topic": "t", "cleanup_policy": "delete", "retention_ms": 5, "retention_bytes": -1},
            {"at_ms": 2, "topic": "t", "cleanup_policy": "delete", "retention_ms": 6, "retention_bytes": -1},
        ],
    }
    moment = moment_of({table: [tuple(row[name] for name in COLUMNS[table]) for row in rows[table]] for table in rows})
    assert moment.states == {"g": "Stable", "h": "Empty"}
    # What the newest look at group g does not tell of is not assigned any more.
    assert set(moment.owners) == {("g", "t", 1), ("h", "t", 0)}
    assert moment.owned == {("g", "t"), ("h", "t")}
    assert moment.logs == {("t", 0): (5, 50, 25)}
    assert moment.limits == {"t": Limits("delete", 6, -1)}


def test_a_span_has_the_worst_of_its_readings() -> None:
    readings = _readings(0, 1, committed=1500, end=1500)
    found = span_of(readings)
    assert (found.readings, found.first_at_ms, found.lag_before, found.peak_lag) == (30, NOW, 0, 29)
    assert (found.worst_status, found.worst_owned) == (Status.STOP, Status.STALL)
    assert span_of(readings[:3])[4:] == (Status.OK, Status.OK)
    with pytest.raises(ValueError, match="no readings"):
        span_of([])
