"""Rates, ends and standstills, from readings at given times. No cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.model import TopicPartition
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.batch import missing
from kctl.reassign.run.progress import (
    Meter,
    MovePhase,
    ReplicaCopy,
    StallCause,
    StallWatch,
    eta_ms,
    move_phase,
    waits_for,
)

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def _copy(copied: int, size: int | None = 1000, broker: int = 4, *, done: bool = False) -> ReplicaCopy:
    return ReplicaCopy(TP, broker, size, copied, done)


def test_the_rate_is_of_the_last_seconds() -> None:
    meter = Meter()
    assert meter.add(0.0, 0) is None
    assert meter.add(0.5, 1000) is None, "too short to tell"
    assert meter.add(2.0, 2000) == 1000
    for second in range(3, 60):
        rate = meter.add(float(second), 2000 + 10 * (second - 2))
    assert rate == pytest.approx(10), "the fast beginning is forgotten"
    assert meter.add(60.0, 0) == 0, "never negative: a leader may delete"


@pytest.mark.parametrize(
    ("rest", "rate", "wanted"), [(1000, 100.0, 10_000), (0, 5.0, 0), (10, 0.0, None), (1, None, None)]
)
def test_eta(rest: int, rate: float | None, wanted: int | None) -> None:
    assert eta_ms(rest, rate) == wanted


@pytest.mark.parametrize(
    ("after", "copies", "phase"),
    [
        ((4, 2), [_copy(10)], MovePhase.COPYING),
        ((4, 2), [_copy(0, None)], MovePhase.COPYING),
        ((4, 2), [_copy(1000)], MovePhase.SYNCING),
        ((4, 2), [_copy(1000, done=True)], MovePhase.REMOVING),
        ((1,), [], MovePhase.REMOVING),  # only removes a replica
        ((2, 1), [], MovePhase.ORDERING),
    ],
)
def test_move_phase(after: tuple[int, ...], copies: list[ReplicaCopy], phase: MovePhase) -> None:
    assert move_phase([Reassignment("t", 0, after=after, before=(1, 2))], copies) is phase
    assert move_phase([], []) is MovePhase.DONE


def _watch(readings: list[list[ReplicaCopy]], waiting: list[int] | None = None) -> StallWatch:
    """One reading each second, a standstill after 10."""
    watch = StallWatch(10_000)
    for second, copies in enumerate(readings):
        watch.add(float(second), copies, waiting[second] if waiting else 1)
    return watch


@pytest.mark.parametrize(
    ("readings", "stalled"),
    [
        ([[_copy(0)]] * 10, False),  # nine seconds
        ([[_copy(0)]] * 11, True),
        ([[_copy(second)] for second in range(30)], False),
        ([[_copy(min(second, 5))] for second in range(12)], False),  # moved within the last ten seconds
        ([[_copy(min(second, 5))] for second in range(16)], True),
        ([[_copy(10 * s, 1000 + 20 * s)] for s in range(12)], True),  # grows faster than it is copied
        ([[_copy(20 * s, 1000 + 10 * s)] for s in range(12)], False),
        ([[_copy(0, broker=3, done=s > 5), _copy(0)] for s in range(12)], False),  # one came to its end
        ([[_copy(0, broker=3, done=s > 5), _copy(0)] for s in range(20)], True),
        ([[_copy(0, None)]] * 12, True),  # size not known
        ([[_copy(1000)]] * 12, True),  # all bytes are there, and it does not get in sync
        ([[]] * 12, True),  # nothing to copy, and the partition waits all the same
    ],
)
def test_stalled(readings: list[list[ReplicaCopy]], stalled: bool) -> None:
    assert _watch(readings).stalled is stalled


def test_partitions_that_come_to_their_end_are_progress() -> None:
    assert not _watch([[_copy(0)]] * 12, waiting=[2] * 6 + [1] * 6).stalled
    assert not _watch([[]] * 12, waiting=[0] * 12).stalled, "nothing is left"


def test_a_cluster_that_was_away_is_given_time() -> None:
    watch = _watch([[_copy(0)]] * 11)
    assert watch.stalled
    watch.reset()
    watch.add(11.0, [_copy(0)], 1)
    assert not watch.stalled


@pytest.mark.parametrize(
    ("copies", "asked", "cause", "said"),
    [
        ([[_copy(0)]] * 12, {"down": {4: 1}}, StallCause.BROKER_DOWN, "broker 4 is down, and 1 partition waits for it"),
        ([[_copy(0)]] * 12, {"leaderless": [TP]}, StallCause.NO_LEADER, "t-0 is without a leader"),
        ([[_copy(0)]] * 12, {"leaderless": [TP, OTHER]}, StallCause.NO_LEADER, "t-0, t-1 are without a leader"),
        (
            [[_copy(10_000 * s, 20_000 * s)] for s in range(12)], {"throttle_bytes": 10_000}, StallCause.THROTTLE,
            "grow by 20 kB/s, but only 10 kB/s are copied (throttle: 10 kB/s per broker)",
        ),
        ([[_copy(0)]] * 12, {"throttle_bytes": 5000, "behind": {4: 1}}, StallCause.THROTTLE, "throttle allows 5 kB/s"),
        ([[_copy(1000)]] * 12, {"throttle_bytes": 5000, "behind": {3: 1}}, StallCause.UNKNOWN, "on broker 3 are not"),
        ([[_copy(0)]] * 12, {"behind": {4: 1}}, StallCause.UNKNOWN, "nothing is copied to broker 4"),
        ([[_copy(0)]] * 12, {"silent": {2}, "throttle_bytes": 5000}, StallCause.NO_LEADER, "broker 2, the source of"),
    ],
)  # fmt: skip
def test_causes(copies: list[list[ReplicaCopy]], asked: dict[str, Any], cause: StallCause, said: str) -> None:
    watch = _watch(copies)
    assert watch.stalled
    known = {"down": {}, "behind": {}, "leaderless": [], "silent": (), "throttle_bytes": None, **asked}
    stall = watch.explain(copies[-1], **known)
    assert stall.cause is cause
    assert said in stall.message
    assert "no progress for 10s" in stall.message


def test_brokers_that_are_down() -> None:
    rows = [
        Reassignment("t", 0, after=(4, 2), before=(1, 2)),
        Reassignment("t", 1, after=(2, 5), before=(1, 2)),
        Reassignment("t", 2, after=(5, 3), before=(1, 3)),
    ]
    assert missing(rows, {1, 2, 3, 4}) == {5: 2}
    assert missing(rows, {1, 3, 5}) == {2: 2, 4: 1}, "also those that have it already: all must be in sync"
    assert waits_for({4: 1, 5: 2}) == "brokers 4, 5 are down, and 3 partitions wait for them"
