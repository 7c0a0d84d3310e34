"""Why figures of a report may be old: brokers that did not answer, times without passes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from kctl.history.report.model import Gap, SilentBroker
from kctl.history.report.silent import gaps_of, silent_brokers
from kctl.history.snapshots.passes import PassInfo

DOWN = "broker 1 is down: 32 replicas of it were not read"


def when(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)


def some(*at_ms: int, interval_ms: int | None = 1000, failing: tuple[int, ...] = ()) -> list[PassInfo]:
    return [PassInfo(at, at not in failing, (DOWN,) if at in failing else (), interval_ms) for at in at_ms]


def test_a_broker_that_stopped_responding() -> None:
    passes = some(0, 1000, 2000, 3000, failing=(2000, 3000))
    assert silent_brokers(passes, {1: 1000, 2: 3000}, [1, 1, 2]) == [SilentBroker(1, when(2000), 2)]


def test_a_broker_missing_from_a_complete_pass_has_left() -> None:
    passes = some(0, 1000, 2000, 3000, failing=(1000, 3000))
    assert silent_brokers(passes, {1: 3000, 2: 0}, [1]) == []


def test_a_broker_without_any_response_in_the_span() -> None:
    assert silent_brokers(some(0, 1000, failing=(0, 1000)), {2: 1000}, [2]) == [SilentBroker(1, None, 0)]
    assert silent_brokers(some(0, 1000, failing=(0,)), {2: 1000}, [2]) == []


@pytest.mark.parametrize(
    ("at_ms", "missed", "gaps"),
    [
        ((0, 1000, 2000), {}, []),
        ((0, 1000, 2400), {}, []),  # late
        ((0, 1000, 5000, 6000), {}, [Gap(when(1000), when(5000), 3, open=False)]),
        ((0, 1000, 5000, 6000), {5000: 3}, []),  # one pass took too long
        ((0, 1000, 5000, 6000), {5000: 1}, [Gap(when(1000), when(5000), 2, open=False)]),
    ],
)
@pytest.mark.parametrize("interval_ms", [1000, None])
def test_times_without_passes(
    at_ms: tuple[int, ...], missed: dict[int, int], gaps: list[Gap], interval_ms: int | None
) -> None:
    if interval_ms is None and len(at_ms) < 4:
        at_ms = (-2000, -1000, *at_ms)  # the usual interval is seen
    passes = some(*at_ms, interval_ms=interval_ms)
    assert gaps_of(passes, missed, until_ms=at_ms[-1]) == gaps


def test_a_changed_interval_is_not_a_gap() -> None:
    passes = [*some(0, 60_000, interval_ms=60_000), *some(120_000, 123_000, 126_000, interval_ms=3000)]
    assert gaps_of(passes, {}, until_ms=126_000) == []


def test_both_ends_of_a_span() -> None:
    passes = some(5000, 6000, 7000)
    assert gaps_of(passes, {}, until_ms=66_000) == []  # a collector that runs may be as late
    later = gaps_of(passes, {}, until_ms=90_000, ended=False)
    assert later == [Gap(when(7000), when(90_000), 82, open=False)]
    assert gaps_of(passes, {}, from_ms=1000, until_ms=70_000) == [
        Gap(when(1000), when(5000), 3, open=False),
        Gap(when(7000), when(70_000), 62, open=True),
    ]
    assert gaps_of(some(5000, interval_ms=None), {}, from_ms=0, until_ms=10**6) == []
