"""What was waited for in vain shortens the waits of the same command, and is forgotten with time."""

from __future__ import annotations

import pytest

from kctl.errors import ConnectionTimedOut
from kctl.protocol.silence import Silence

ERROR = ConnectionTimedOut("broker 1: no answer")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("limit", "lost", "meanwhile", "next_limit"),
    [
        (4.0, 0.0, 0.0, 4.0),
        (4.0, 1.0, 0.0, 3.0),
        (4.0, 4.0, 0.0, 1.0),  # a second is left in any case
        (4.0, 40.0, 0.0, 1.0),
        (30.0, 30.0, 0.0, 7.5),  # or a quarter
        (0.5, 0.5, 0.0, 0.5),
        (4.0, 4.0, 2.0, 2.0),  # time that passes otherwise gives it back
        (4.0, 4.0, 100.0, 4.0),
    ],
)
def test_limits(limit: float, lost: float, meanwhile: float, next_limit: float) -> None:
    clock = Clock()
    silence = Silence(clock)
    began = clock.now
    clock.now += lost
    if lost:
        silence.add_lost_time(began)
    clock.now += meanwhile
    assert silence.limit_s(limit) == pytest.approx(next_limit)


def test_several_waits_add_up() -> None:
    clock = Clock()
    silence = Silence(clock)
    for _ in range(3):
        began = clock.now
        clock.now += 2.0
        silence.add_lost_time(began)
        clock.now += 0.5
    assert silence.limit_s(10.0) == pytest.approx(5.5)  # 6 s lost, 1.5 s given back
    assert silence.limit_s(10.0) == pytest.approx(5.5)


def test_a_broker_is_left_alone_for_as_long_as_it_was_waited_for() -> None:
    clock = Clock()
    silence = Silence(clock)
    clock.now += 4.0
    silence.skip(1, ERROR, clock.now - 4.0)
    assert silence.of(1) is ERROR
    assert silence.of(2) is None
    clock.now += 3.9
    assert silence.of(1) is ERROR
    clock.now += 0.2
    assert silence.of(1) is None
    silence.skip_permanently = True
    silence.skip(1, ERROR, clock.now - 4.0)
    clock.now += 1e6
    assert silence.of(1) is ERROR
    silence.forget()
    assert silence.of(1) is None
