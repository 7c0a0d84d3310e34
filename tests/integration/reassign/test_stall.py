"""A throttle below the produce rate: no progress, said as such, and ended well by a higher one."""

from __future__ import annotations

import re

import pytest

from reassign_testing import Arena

pytestmark = pytest.mark.long


def test_throttle_below_the_produce_rate(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 2]], size=1_000_000)
    configs = arena.configs()
    plan = arena.write_plan({(topic, 0): [1, 3]})
    traffic = arena.traffic(topic, rate=60, record_bytes=10_000)  # 600 kB/s
    try:
        stuck = arena.reassign("apply", plan, "--throttle", "100kB/s", "--stall-after", "6s", timeout=60)
        assert stuck.code == 5, str(stuck)
        assert arena.moving(), "what is in flight stays"
        assert re.search(r"throttle", stuck.err), stuck.err
        assert re.search(r"kctl topic reassign resume --throttle", stuck.err), stuck.err
        assert len(re.findall(r"[\d.]+ ?[kM]B/s", stuck.err)) >= 2, f"both rates are said\n{stuck.err}"
        done = arena.reassign("resume", "--throttle", "20MB/s", timeout=60)
        assert done.code == 0, str(done)
    finally:
        traffic.stop()
    assert arena.replicas(topic) == {0: (1, 3)}
    assert arena.configs() == configs


def test_slow_is_no_stall(arena: Arena) -> None:
    """A move that takes much longer than the limit, and gets on."""
    topic = arena.make_topic("orders", [[1, 2]], size=2_000_000)
    plan = arena.write_plan({(topic, 0): [1, 3]})
    traffic = arena.traffic(topic, rate=20, record_bytes=1_000)
    done = arena.reassign("apply", plan, "--throttle", "200kB/s", "--stall-after", "4s", timeout=60)
    traffic.stop()
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {0: (1, 3)}
