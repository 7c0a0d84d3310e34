"""Burrow's verdicts on its own test cases (core/internal/evaluator/caching_test.go: the figures, and what came out),
and what is made of them here: groups, ghosts, alarms.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

import window_oracle
from kctl.history.lag.status import Standing, Status, alarm_of, group_status, standing_of
from window_oracle import Commit, commit_status


class Case(NamedTuple):
    """commits: (offset, time in ms, lag). The verdict of each rule on its own, and of all in order."""

    commits: list[tuple[int, int, int | None]]
    log_ends: list[int]
    lag: int
    now_s: int
    allowed_lag: int
    always_behind: bool
    rewind: int | None
    stopped: bool
    stalled: bool
    never_less: bool
    caught_up: bool
    verdict: Status


def _steps(offsets: list[int], lags: list[int | None], step_ms: int = 100_000) -> list[tuple[int, int, int | None]]:
    times = range(100_000, 100_000 + step_ms * len(offsets), step_ms)
    return list(zip(offsets, times, lags, strict=True))


FORWARD, STILL, BACK = [1000, 2000, 3000, 4000, 5000], [1000] * 5, [1000, 2000, 3000, 2000, 4000]
FROM_0, FROM_50, FROM_100 = [0, 50, 100, 150, 200], [50, 100, 150, 200, 250], [100, 150, 200, 250, 300]
REWOUND = [100, 150, 200, 1250, 300]
GAPS: list[int | None] = [0, None, 50, None, 100, None, 150, None, 200, None]
# Fifteen commits a second apart, each caught up.
_TIMES = [
    618356, 619362, 620366, 621367, 622370, 623373, 624378, 625379, 626383, 627383, 628383, 629388, 630391, 631394,
    632397,
]  # fmt: skip
BUSY: list[tuple[int, int, int | None]] = [(792748079 + i, 1512224000000 + t, 0) for i, t in enumerate(_TIMES)]
STOP, STALL, REWIND, OK = Status.STOP, Status.STALL, Status.REWIND, Status.OK

CASES = {
    "0 lag was zero": Case(
        _steps(FORWARD, [*FROM_0]), [5200], 200, 600, 0, False, None, False, False, True, False, OK),
    "1 as long silent as the commits took": Case(
        _steps(FORWARD, [*FROM_0]), [5200], 200, 900, 0, False, None, False, False, True, False, OK),
    "2 longer silent, though lag was zero": Case(
        _steps(FORWARD, [*FROM_0]), [5200], 200, 1000, 0, False, None, True, False, True, False, STOP),
    "3 longer silent, always behind": Case(
        _steps(FORWARD, [*FROM_50]), [5250], 250, 1000, 0, True, None, True, False, True, False, STOP),
    "4 one offset, lag was zero": Case(
        _steps(STILL, [*FROM_0]), [1200], 200, 600, 0, False, None, False, True, True, False, OK),
    "5 one offset, always behind": Case(
        _steps(STILL, [*FROM_100]), [1300], 300, 600, 0, True, None, False, True, True, False, STALL),
    "6 one offset, one lag": Case(
        _steps(STILL, [100] * 5), [1100], 100, 600, 0, True, None, False, True, True, False, STALL),
    "7 went back and caught up": Case(
        _steps(BACK, [*REWOUND]), [4300], 300, 600, 0, True, 3, False, False, False, False, OK),
    "8 no lag now": Case(
        _steps(FORWARD, [*FROM_50]), [5250], 0, 1000, 0, True, None, True, False, True, False, OK),
    "9 new messages, long unread": Case(
        BUSY, [792749024, 792749000, 792748800, 792748600, 792748500], 931, 1512224650, 0,
        False, None, True, False, True, False, STOP),
    "10 new messages, caught up a moment ago": Case(
        BUSY, [792748094, 792748093, 792748093, 792748093], 1, 1512224650, 0,
        False, None, True, False, True, True, OK),
    "11 lags that are unknown": Case(
        _steps(list(range(1000, 6000, 500)), GAPS, 50_000), [5700], 200, 600, 0,
        False, None, False, False, True, False, OK),
    "12 an allowed lag": Case(
        _steps([1000, 2000, 2000], [2, 1, 1]), [2001], 1, 550, 1, False, None, True, False, False, False, OK),
    "13 more than an allowed lag": Case(
        _steps(STILL, [*FROM_100]), [1300], 300, 600, 99, True, None, False, True, True, False, STALL),
    "14 went back and caught up, with an allowed lag": Case(
        _steps(BACK, [*REWOUND]), [4300], 300, 600, 99, True, 3, False, False, False, False, OK),
    "15 went back and did not catch up": Case(
        _steps([1000, 2000, 3000, 2000, 2500], [*REWOUND]), [4300], 300, 600, 0,
        True, 3, False, False, False, False, REWIND),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_burrows_own_cases(case: Case) -> None:
    commits = [Commit(*row) for row in case.commits]
    now_ms = case.now_s * 1000
    assert window_oracle.is_always_behind(commits, case.allowed_lag) == case.always_behind
    assert window_oracle.first_rewind(commits) == case.rewind
    assert window_oracle.is_stopped(commits, now_ms) == case.stopped
    assert window_oracle.is_stalled(commits) == case.stalled
    assert window_oracle.never_less_behind(commits) == case.never_less
    assert window_oracle.was_caught_up(commits, case.log_ends) == case.caught_up
    assert commit_status(commits, case.log_ends, case.lag, now_ms, allowed_lag=case.allowed_lag) == case.verdict


def test_a_growing_lag_warns_and_a_steady_one_only_in_burrow() -> None:
    growing = [Commit(*row) for row in _steps(FORWARD, [10, 10, 20, None, 30])]
    steady = [Commit(*row) for row in _steps(FORWARD, [10, 10, 10, None, 10])]
    for commits, here in ((growing, Status.WARN), (steady, Status.OK)):
        assert commit_status(commits, [5030], 30, 600_000) is Status.WARN
        assert commit_status(commits, [5030], 30, 600_000, steady_is_ok=True) is here


def test_no_commits_have_no_verdict() -> None:
    with pytest.raises(ValueError, match="no commits"):
        commit_status([], [], 1, 0)


@pytest.mark.parametrize(
    ("partitions", "group"),
    [
        ([], Status.UNKNOWN),
        ([Status.UNKNOWN], Status.UNKNOWN),
        ([Status.UNKNOWN, Status.OK], Status.OK),
        ([Status.OK, Status.WARN], Status.WARN),
        *[([Status.WARN, bad, Status.OK], Status.ERR) for bad in (Status.STOP, Status.STALL, Status.REWIND)],
    ],
)
def test_a_group_is_as_bad_as_its_worst_partition(partitions: list[Status], group: Status) -> None:
    assert group_status(partitions) is group


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("state", "deleted", "owned", "unchanged", "standing"),
    [
        ("Stable", False, True, 0, Standing.ACTIVE),
        ("Stable", False, True, 99 * HOUR, Standing.ACTIVE),  # stalled: an alarm
        ("Stable", False, False, 0, Standing.ACTIVE),  # another way of committing
        ("Stable", False, False, HOUR, Standing.ABANDONED),
        ("Stable", False, None, HOUR, Standing.ACTIVE),  # nobody could be asked
        ("Stable", False, False, None, Standing.ACTIVE),
        ("PreparingRebalance", False, False, HOUR, Standing.ACTIVE),  # nobody has anything now
        ("Empty", False, False, HOUR, Standing.EMPTY),
        ("Empty", False, False, 24 * HOUR, Standing.STALE),
        ("Empty", False, False, None, Standing.EMPTY),
        ("Dead", False, False, 0, Standing.DEAD),
        (None, False, None, HOUR, Standing.UNKNOWN),
        ("Unknown", False, None, HOUR, Standing.UNKNOWN),
        ("Stable", True, True, 0, Standing.DELETED),
        ("Empty", True, False, 99 * HOUR, Standing.DELETED),
    ],
)
def test_standing(
    state: str | None, deleted: bool, owned: bool | None, unchanged: int | None, standing: Standing
) -> None:
    assert standing_of(state, deleted=deleted, topic_owned=owned, unchanged_ms=unchanged) is standing


@pytest.mark.parametrize("standing", Standing)
def test_ghosts_are_nobodys_alarm(standing: Standing) -> None:
    ghost = standing in {Standing.STALE, Standing.DEAD, Standing.ABANDONED, Standing.DELETED}
    assert alarm_of(Status.STOP, standing) is (Status.OK if ghost else Status.STOP)
