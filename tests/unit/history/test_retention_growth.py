"""How logs grow and when volumes are full: tables of cases, and laws over random ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth_oracle import SizeSample, growth
from kctl.history.retention.disk_full import ReplicaGrowth, ceiling_bytes, disk_full, grown_by, never_stops
from kctl.history.retention.growth import HOUR_MS, Growth, added
from kctl.history.retention.skew import skew
from kctl.lag.log_config import LogConfig, compacts

GB = 10**9
DAY_MS = 24 * HOUR_MS


def samples(*sizes: int, every_ms: int = HOUR_MS) -> list[SizeSample]:
    return [SizeSample(number * every_ms, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "net", "written", "freed"),
    [
        ((100, 200, 300), 100.0, 100.0, 0.0),
        ((100, 100), 0.0, 0.0, 0.0),
        ((100, 200, 50, 150), 50 / 3, 100.0, 100 - 50 / 3),  # the step down says nothing of what was written
        ((300, 200, 100), -100.0, None, None),
        ((100,), None, None, None),
    ],
)
def test_growth(sizes: tuple[int, ...], net: float | None, written: float | None, freed: float | None) -> None:
    found = growth(samples(*sizes))
    assert found is not None
    assert found.net_per_hour == (None if net is None else pytest.approx(net))
    assert found.written_per_hour == (None if written is None else pytest.approx(written))
    assert found.freed_per_hour == (None if freed is None else pytest.approx(freed))


@pytest.mark.parametrize(
    ("sizes", "lasting"),
    [
        ((65, 220, 376, 65, 220, 376), 0.0),  # it swings: at its highest it is no larger than before
        ((200, 376, 65, 220, 376), 0.0),
        ((100, 200, 120, 220, 140, 240), 10.0),  # 40 in 4 hours are left when it has been cleaned
        ((100, 200, 300), 100.0),  # never cleaned
        ((300, 200, 100), 0.0),
        ((100,), None),
    ],
)
def test_the_swing_of_compaction_is_no_growth(sizes: tuple[int, ...], lasting: float | None) -> None:
    found = growth(samples(*sizes))
    assert found is not None
    assert found.lasting_per_hour == lasting


def test_since_it_last_shrank() -> None:
    found = growth(samples(500, 700, 100, 250, 300))
    assert found is not None
    assert (found.shrunk_at_ms, found.since_shrunk_bytes) == (2 * HOUR_MS, 200)
    never = growth(samples(500, 700))
    assert never is not None
    assert (never.shrunk_at_ms, never.since_shrunk_bytes) == (None, 200)


def test_no_samples_and_those_of_one_moment() -> None:
    assert growth([]) is None
    found = growth([SizeSample(5, 10), SizeSample(5, 99), SizeSample(HOUR_MS + 5, 30)])
    assert found is not None
    assert (found.samples, found.first_bytes, found.net_per_hour) == (2, 10, 20.0)
    assert added([None, None]) is None
    assert added([1.0, None, 2.0]) == 3.0


sizes_over_time = st.lists(st.integers(0, 10**13), min_size=2, max_size=30)


@given(sizes_over_time)
def test_what_is_written_less_what_is_freed_is_the_net(sizes: list[int]) -> None:
    found = growth(samples(*sizes))
    assert found is not None
    assert found.net_per_hour == pytest.approx((sizes[-1] - sizes[0]) / (len(sizes) - 1), abs=1e-3)
    if found.written_per_hour is not None and found.freed_per_hour is not None:
        assert found.written_per_hour >= 0
        assert found.written_per_hour - found.freed_per_hour == pytest.approx(found.net_per_hour, rel=1e-9, abs=1e-2)
    if all(after >= before for before, after in pairwise(sizes)):
        assert found.freed_per_hour == pytest.approx(0, abs=1e-2)


@given(st.permutations(samples(5, 9, 2, 2, 7)))
def test_order_does_not_matter(mixed: list[SizeSample]) -> None:
    assert growth(mixed) == growth(samples(5, 9, 2, 2, 7))


# --- ceilings -------------------------------------------------------------------------------------------------------


def config(policy: str = "delete", **limits: int) -> LogConfig:
    return LogConfig("t", policy, **limits)


@pytest.mark.parametrize(
    ("found", "rate", "expected"),
    [
        (config(retention_bytes=10 * GB, segment_bytes=GB), None, 11 * GB),
        (config(retention_bytes=10 * GB, segment_bytes=GB), 12.0 * GB, 12 * GB),  # it is looked at every 5 minutes
        (config(retention_ms=DAY_MS, retention_bytes=-1, segment_bytes=GB), GB, 25 * GB + GB / 12),
        # Little is written: the segment is closed by time, before it is full.
        (config(retention_ms=DAY_MS, segment_bytes=GB, segment_ms=DAY_MS), 120.0, 5770.0),
        (config(retention_ms=DAY_MS, retention_bytes=2 * GB, segment_bytes=GB), GB, 3 * GB + GB / 12),
        (config(retention_ms=DAY_MS, retention_bytes=-1), None, None),  # its write rate is unknown
        (config(retention_ms=-1, retention_bytes=-1, segment_bytes=GB), GB, None),
        (config("compact", retention_ms=1, retention_bytes=1), GB, None),
        (config("compact,delete", retention_bytes=5, segment_bytes=5), 12.0, 11.0),
        (config(retention_ms=0, segment_bytes=GB), GB, GB + GB / 12),
        (None, GB, None),
        (config(retention_ms=2**63 - 1, retention_bytes=-1, segment_bytes=GB), GB, None),
        (config(retention_ms=2**63 - 1, retention_bytes=2**63 - 1), GB, None),
    ],
)
def test_ceiling(found: LogConfig | None, rate: float | None, expected: float | None) -> None:
    assert ceiling_bytes(found, rate) == (None if expected is None else pytest.approx(expected))


def test_the_active_segment_stays_when_nothing_is_written() -> None:
    limits = config(retention_ms=DAY_MS, retention_bytes=-1, segment_bytes=GB, segment_ms=DAY_MS)
    assert ceiling_bytes(limits, 0.0, 22_500) == 22_500
    assert ceiling_bytes(limits, 0.0, 5 * GB) == GB  # the segments before it go
    assert ceiling_bytes(limits, 24.0 * GB, 22_500) == pytest.approx(24 * 24 * GB + GB + 2 * GB)


def test_logs_that_nothing_ends() -> None:
    assert never_stops(config(retention_ms=-1, retention_bytes=-1))
    assert never_stops(config(retention_ms=2**63 - 1, retention_bytes=-1))
    assert not never_stops(config(retention_ms=1, retention_bytes=-1))
    assert not never_stops(config(retention_ms=-1))  # retention.bytes is unknown
    assert not never_stops(config("compact"))
    assert not never_stops(config("compact,delete", retention_ms=-1, retention_bytes=-1))
    assert not never_stops(None)
    assert compacts("compact, delete")
    assert not compacts("compacted")


# --- full disks -----------------------------------------------------------------------------------------------------


def test_one_log_without_limits_is_a_straight_line() -> None:
    found = disk_full(10 * GB, [ReplicaGrowth("t", 5 * GB, float(GB))])
    assert found.eta_ms == 10 * HOUR_MS
    assert found.growing_to_bytes is None
    assert [(c.topic, c.bytes, c.share) for c in found.causes] == [("t", 10 * GB, 1.0)]


def test_a_log_at_its_limit_fills_nothing() -> None:
    """A straight line says 10 hours here; the log is where its retention keeps it."""
    found = disk_full(10 * GB, [ReplicaGrowth("t", 5 * GB, float(GB), ceiling_bytes=5.0 * GB)])
    assert (found.eta_ms, found.growing_to_bytes, found.growth_per_hour, found.causes) == (None, 5 * GB, 0.0, [])


def test_one_stops_on_the_way_and_the_other_goes_on() -> None:
    replicas = [
        ReplicaGrowth("stops", 0, 2.0 * GB, ceiling_bytes=4.0 * GB),  # in 2 hours
        ReplicaGrowth("on", 0, 1.0 * GB),
    ]
    found = disk_full(10 * GB, replicas)
    assert found.eta_ms == 6 * HOUR_MS  # 6 GB in the first two hours, then 1 GB an hour
    assert [(c.topic, c.bytes, c.share, c.written_per_hour) for c in found.causes] == [
        ("on", 6 * GB, 0.6, GB),
        ("stops", 4 * GB, 0.4, 2 * GB),
    ]


def test_copies_that_are_behind_take_their_part_at_once() -> None:
    found = disk_full(10 * GB, [ReplicaGrowth("t", GB, float(GB), outstanding_bytes=4 * GB)])
    assert found.eta_ms == 6 * HOUR_MS
    assert disk_full(3 * GB, [ReplicaGrowth("t", GB, None, outstanding_bytes=4 * GB)]).eta_ms == 0


def test_what_others_write_counts_and_what_they_remove_does_not() -> None:
    found = disk_full(10 * GB, [ReplicaGrowth("t", 0, float(GB))], other_per_hour=float(GB))
    assert found.eta_ms == 5 * HOUR_MS
    assert {c.topic: c.share for c in found.causes} == {"t": 0.5, None: 0.5}
    assert disk_full(10 * GB, [], other_per_hour=-5.0).eta_ms is None


def test_what_was_observed_for_a_minute_says_nothing_of_months() -> None:
    log = ReplicaGrowth("t", 0, float(GB))
    assert disk_full(90 * GB, [log]).after_ms is None
    far = disk_full(90 * GB, [log], observed_ms=HOUR_MS // 2)
    assert (far.eta_ms, far.after_ms) == (None, 50 * HOUR_MS)
    near = disk_full(90 * GB, [log], observed_ms=HOUR_MS)
    assert (near.eta_ms, near.after_ms) == (90 * HOUR_MS, None)
    never = disk_full(90 * GB, [log._replace(ceiling_bytes=1.0)], observed_ms=1)
    assert (never.eta_ms, never.after_ms) == (None, None)
    assert disk_full(0, [log], observed_ms=0).eta_ms == 0


def test_what_is_not_known() -> None:
    found = disk_full(None, [ReplicaGrowth("t", 1, 5.0), ReplicaGrowth("u", 1, None)])
    assert (found.eta_ms, found.unknown) == (None, 1)
    assert [(c.topic, c.bytes, c.share) for c in found.causes] == [("t", 0, 1.0)]  # of the growth without an end
    assert disk_full(0, []).eta_ms == 0
    assert disk_full(GB, []).eta_ms is None


replicas_of_a_disk = st.lists(
    st.builds(
        ReplicaGrowth,
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 10**12),
        st.none() | st.floats(0, 1e12),
        st.none() | st.floats(0, 1e13),
        st.sampled_from([0, 0, 10**9]),
    ),
    max_size=12,
)


@given(replicas_of_a_disk, st.integers(0, 10**14), st.floats(0, 1e9))
def test_at_its_eta_a_disk_is_full_and_not_before(replicas: list[ReplicaGrowth], usable: int, other: float) -> None:
    found = disk_full(usable, replicas, other_per_hour=other)

    def taken(ms: float) -> float:
        return sum(grown_by(each, ms / HOUR_MS) for each in replicas) + other * ms / HOUR_MS

    slack = 1e-6 * usable + 1e-3
    if found.eta_ms is None:
        assert taken(2.0**53) <= usable + slack
    else:
        assert taken(found.eta_ms + 1) >= usable - slack
        if found.eta_ms > 0:
            assert taken(found.eta_ms) <= usable + slack
        if found.causes:
            assert sum(cause.share for cause in found.causes) == pytest.approx(1.0)


def test_many_logs_are_no_matter_of_minutes() -> None:
    replicas = [ReplicaGrowth(f"t{i % 100}", i, float(i), ceiling_bytes=float(i * (i % 7 + 1))) for i in range(20_000)]
    found = disk_full(5 * 10**8, replicas)
    assert found.eta_ms is not None
    assert len(found.causes) == 100


# --- skew -----------------------------------------------------------------------------------------------------------


def test_skew() -> None:
    even, odd = skew([5, 5, 5]), skew([0, 0, 9])
    assert even is not None
    assert odd is not None
    assert (even.ratio, even.spread) == (1.0, 0.0)
    assert (odd.places, odd.least, odd.most, odd.mean, odd.ratio) == (3, 0, 9, 3.0, 3.0)
    assert odd.spread == pytest.approx(2**0.5)
    nothing = skew([0, 0])
    assert nothing is not None
    assert (nothing.ratio, nothing.spread) == (None, None)
    assert skew([]) is None


def test_growth_is_a_plain_value() -> None:
    assert Growth(2, 0, HOUR_MS, 1, 2, 1, HOUR_MS, None, 1).net_per_hour == 1.0
