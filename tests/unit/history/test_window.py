"""Snapshots of one partition, judged: scenarios of groups, and what goes wrong with snapshots themselves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kctl.history.lag.status import Status
from kctl.history.lag.window import MINUTE_MS, Reading, WindowRules
from kctl.lag.rates import LogEnd, TimeLag, catch_up_ms, consumed, keeps_up, per_second, time_lag
from window_oracle import Observation, judge

OK, WARN, STOP, STALL, REWIND, UNKNOWN = (
    Status.OK, Status.WARN, Status.STOP, Status.STALL, Status.REWIND, Status.UNKNOWN,
)  # fmt: skip


def _each_minute(committed: Sequence[int | None], ends: Sequence[int | None], start: int = 0) -> list[Observation]:
    return [
        Observation(1_000_000 + i * MINUTE_MS, offset, start, end)
        for i, (offset, end) in enumerate(zip(committed, ends, strict=True))
    ]


def _last(committed: Sequence[int | None], ends: Sequence[int | None], start: int = 0) -> Reading:
    return judge(_each_minute(committed, ends, start))[-1]


TEN = range(10)
TRAFFIC = [1000 + 60 * i for i in TEN]

SCENARIOS = {
    # name: committed, log ends, status without an owner, status with one
    "keeps up": (TRAFFIC, TRAFFIC, OK, OK),
    "keeps up at a distance that varies": ([e - 5 - i % 2 for i, e in enumerate(TRAFFIC)], TRAFFIC, OK, OK),
    "keeps up at a steady distance": ([e - 5 for e in TRAFFIC], TRAFFIC, OK, OK),
    "falls behind": ([500 + 30 * i for i in TEN], TRAFFIC, WARN, WARN),
    "catches up": ([100 + 90 * i for i in TEN], TRAFFIC, OK, OK),
    "no progress": ([500] * 10, TRAFFIC, STOP, STALL),
    "no progress, no traffic": ([500] * 10, [600] * 10, STOP, STALL),
    "no progress, nothing to read": ([600] * 10, [600] * 10, OK, OK),
    "silent for less than half of the window": ([500, 510, 520, 530, 540, *[550] * 5], TRAFFIC, WARN, WARN),
    "silent for longer": ([500, 510, 520, 530, *[540] * 6], TRAFFIC, STOP, WARN),
    "low traffic: a message a moment ago": ([600] * 10, [600] * 9 + [601], OK, OK),
    "low traffic: a message within the window": ([600] * 10, [600] + [601] * 9, OK, OK),
    "low traffic: a message that nobody reads": ([600] * 10, [601] * 10, STOP, STALL),
    "rewound": ([900, 910, 920, 100, 110, 120, 130, 140, 150, 160], TRAFFIC, REWIND, REWIND),
    "rewound and there again": ([900, 910, 920, 915, 925, 935, 945, 955, 965, 975], TRAFFIC, WARN, WARN),
    "rewound for good": ([920, *[100] * 9], TRAFFIC, STOP, REWIND),
    "overtaken by retention": ([500] * 10, [9000 + i for i in TEN], STOP, STALL),
    "nobody knows the log end": ([500] * 10, [*TRAFFIC[:9], None], UNKNOWN, UNKNOWN),
    "a log end that is unknown meanwhile": ([500 + 30 * i for i in TEN], [*TRAFFIC[:4], None, *TRAFFIC[5:]],
                                              WARN, WARN),
    "nothing committed": ([None] * 10, TRAFFIC, UNKNOWN, UNKNOWN),
    "committed beyond the end": ([9999] * 10, TRAFFIC, OK, OK),
}  # fmt: skip


@pytest.mark.parametrize(("committed", "ends", "status", "owned"), SCENARIOS.values(), ids=SCENARIOS)
def test_scenarios(committed: Sequence[int | None], ends: Sequence[int | None], status: Status, owned: Status) -> None:
    reading = _last(committed, ends)
    assert (reading.status, reading.status_owned) == (status, owned)
    assert reading.observations == (10 if committed[0] is not None else 1)


def test_an_incomplete_window_is_ok() -> None:
    readings = judge(_each_minute([500] * 10, TRAFFIC))
    assert [r.status for r in readings] == [OK] * 9 + [STOP]
    assert [r.observations for r in readings] == list(range(1, 11))


def test_all_deleted_unread_is_still_behind() -> None:
    reading = _last([500] * 10, [600] * 10, start=600)
    assert (reading.lag, reading.lost, reading.status) == (0, 100, STOP)


def test_an_allowed_lag() -> None:
    rows = _each_minute([500] * 10, [510] * 10)
    assert judge(rows, WindowRules(allowed_lag=10))[-1].status is OK
    assert judge(rows, WindowRules(allowed_lag=9))[-1].status is STOP


def test_commit_times_tell_a_stop_from_a_stall_whoever_owns_it() -> None:
    rows = _each_minute([500] * 10, TRAFFIC)
    still = [row._replace(commit_ms=row.at_ms - 3000) for row in rows]
    gone = [row._replace(commit_ms=rows[0].at_ms - 3000) for row in rows]
    for known, status in ((still, STALL), (gone, STOP)):
        assert {judge(known)[-1].status, judge(known)[-1].status_owned} == {status}


def test_a_brokers_clock_ahead_of_the_collectors() -> None:
    """A commit is not later than the look that saw it: the silence of a stopped group is not made shorter."""
    rows = [
        row._replace(commit_ms=row.at_ms + (3_600_000 if i < 4 else 0) - max(i - 3, 0) * MINUTE_MS)
        for i, row in enumerate(_each_minute([500, 510, 520, *[530] * 7], TRAFFIC))
    ]
    assert judge(rows)[-1].status is STOP


# --- what goes wrong with snapshots ---------------------------------------------------------------------------------


def test_order_and_duplicates_do_not_matter() -> None:
    rows = _each_minute([500 + 30 * i for i in TEN], TRAFFIC)
    again = [row._replace(committed_offset=0) for row in rows]
    assert judge([*reversed(rows), *again]) == judge(rows)


def test_missing_snapshots_are_made_up_for_by_older_ones_and_not_without_limit() -> None:
    rows = _each_minute([500] * 25, [1000 + 60 * i for i in range(25)])
    assert judge(rows[::2])[-1].status is STOP  # every other one: the window is longer
    assert judge(rows[:12] + [row._replace(at_ms=row.at_ms + 86_400_000) for row in rows[12:15]])[-1].observations == 3


def test_a_topic_made_anew_is_no_rewind() -> None:
    """By its log end, and by its id where the new log is longer already."""
    old = _each_minute([900 + i for i in TEN], [1000 + i for i in TEN])
    new = [
        Observation(row.at_ms + 10 * MINUTE_MS, 10 * i, 0, 100 + 20 * i, topic_id="b")
        for i, row in enumerate(_each_minute([0] * 10, [0] * 10))
    ]
    readings = judge([*old, *new])
    assert {r.status for r in readings[10:19]} == {OK}
    assert readings[10].observations == 1
    assert readings[-1].status is WARN
    longer = [row._replace(log_end_offset=5000) for row in new]
    assert judge([*old, *longer])[10].status is REWIND  # nobody knew the old topic's id
    known = [row._replace(topic_id="a" if i < 8 else None) for i, row in enumerate(old)]
    assert judge([*known, *longer])[10].observations == 1


def test_commits_that_were_deleted_cut_history() -> None:
    readings = judge(_each_minute([900, 910, None, 100, 110], TRAFFIC[:5]))
    assert [r.observations for r in readings] == [1, 2, 1, 1, 2]
    assert [r.unchanged_ms for r in readings] == [0, 0, None, 0, 0]


def test_offsets_that_are_none() -> None:
    reading = judge([Observation(1, -1, -1, -1)])[0]
    assert (reading.lag, reading.status, reading.unchanged_ms) == (None, UNKNOWN, None)


@pytest.mark.parametrize(
    "rules",
    [WindowRules(observations=1), WindowRules(span_ms=0), WindowRules(history=5), WindowRules(allowed_lag=-1)],
)
def test_rules_without_a_window(rules: WindowRules) -> None:
    with pytest.raises(ValueError, match="invalid window rules"):
        judge([], rules)


# --- rates and times ------------------------------------------------------------------------------------------------


def test_rates_and_when_it_is_caught_up() -> None:
    reading = _last([0 + 90 * i for i in TEN], TRAFFIC)  # 1.5 messages consumed and 1 written a second
    assert reading.consumed_per_s == pytest.approx(1.5)
    assert reading.produced_per_s == pytest.approx(1.0)
    assert reading.lag == 1540 - 810
    assert reading.catch_up_ms == pytest.approx(730 / 0.5 * 1000, abs=1)
    assert _last(TRAFFIC, TRAFFIC).catch_up_ms == 0
    assert _last([0] * 10, TRAFFIC).catch_up_ms is None
    assert _last([5 * i for i in TEN], [500] * 10).produced_per_s == 0


@pytest.mark.parametrize(
    ("committed", "keeps_up"),
    [
        ([0, *[60 * i - 20 for i in range(1, 10)]], True),  # a third of a minute's messages behind
        ([*[60 * i for i in range(9)], 481], True),  # it has just begun to read
        ([60 * i for i in range(9)] + [480], True),  # one look without a commit: 60 behind, of 60 and more
        ([60 * i for i in range(8)] + [420, 420], False),  # two: it may have stopped
        ([0, 0, 120, 120, 240, 240, 360, 360, 480, 480], True),  # a commit in two minutes
        ([0, 0, 120, 120, 120, 120, 120, 420, 420, 420], True),  # and in five
        ([0, 0, 0, 0, 240, 240, 240, 240, 240], False),  # one in so long a time is no habit
        ([54 * i for i in range(11)], True),  # it loses a tenth: in ten minutes one minute's messages
        ([54 * i for i in range(13)], False),
    ],
)
def test_a_group_that_keeps_up_has_nothing_to_catch_up_with(committed: list[int], keeps_up: bool) -> None:
    reading = _last(committed, [60 * i for i in range(len(committed))])
    assert reading.lag
    assert (reading.catch_up_ms == 0) is keeps_up


def test_what_was_deleted_unread_counts_as_behind() -> None:
    assert keeps_up(60, 540, 9, 9)
    assert not keeps_up(61, 540, 9, 9)
    assert keeps_up(3, 5, 1, 1)  # two looks
    assert not keeps_up(0, 0, 0, 0)  # one look
    assert not keeps_up(2**62, 2**62, 1000, 1000)
    rows = [Observation(n * MINUTE_MS, 60 * n - 1000, 60 * n - 10, 60 * n) for n in range(20, 30)]
    assert judge(rows)[-1].catch_up_ms is None  # 10 unread, 990 lost


def test_unchanged_since_it_was_first_seen() -> None:
    assert _last([1, 2, *[3] * 8], TRAFFIC).unchanged_ms == 7 * MINUTE_MS
    assert _last([3, 4, *[3] * 8], TRAFFIC).unchanged_ms == 7 * MINUTE_MS


@pytest.mark.parametrize(
    ("before", "start", "after", "read"),
    [
        (10, 0, 30, 20),
        (10, None, 30, 20),
        (10, 25, 30, 5),  # 15 had been deleted before
        (10, 99, 30, 0),
        (30, 0, 10, 0),  # a rewind
        (30, 0, 30, 0),
    ],
)
def test_consumed(before: int, start: int | None, after: int, read: int) -> None:
    assert consumed(before, start, after) == read


POINTS = [LogEnd(0, 100), LogEnd(60_000, 100), LogEnd(120_000, 160), LogEnd(180_000, 160), LogEnd(240_000, 220)]


@pytest.mark.parametrize(
    ("points", "offset", "age"),
    [
        (POINTS, 220, (0, 0)),  # nothing to read
        (POINTS, 300, (0, 0)),
        (POINTS, 190, (30_000, 30_000)),
        (POINTS, 160, (60_000, 60_000)),  # written after the quiet minute
        (POINTS, 130, (150_000, 150_000)),
        (POINTS, 100, (180_000, 180_000)),
        (POINTS, 99, (None, 240_000)),  # older than all that was seen: never extrapolated
        ([LogEnd(7, 100)], 99, (None, 0)),
        ([LogEnd(7, 100)], 100, (0, 0)),
        ([], 5, (None, None)),
    ],
)
def test_time_lag(points: list[LogEnd], offset: int, age: tuple[int | None, int | None]) -> None:
    assert time_lag(points, offset) == TimeLag(*age)


def test_the_time_lag_of_what_is_left_where_messages_were_deleted() -> None:
    rows = [row._replace(log_start_offset=1500) for row in _each_minute([500] * 10, TRAFFIC)]
    reading = judge(rows)[-1]
    assert (reading.lost, reading.lag) == (1000, 40)
    assert reading.time_lag_ms == 40_000  # one message a second


def test_no_rate_without_a_duration_and_no_catching_up_in_300_000_years() -> None:
    assert per_second(5, 0) is None
    assert catch_up_ms(2**62, 1e-9, 0.0) is None
    assert catch_up_ms(None, 1.0, 0.0) is None
    assert catch_up_ms(0, None, None) == 0
