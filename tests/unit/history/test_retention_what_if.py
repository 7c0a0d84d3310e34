"""What another retention frees and who loses by it; compacted logs; what groups lose when a disk is full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth_oracle import SizeSample, growth
from kctl.errors import UsageError
from kctl.history.retention.disk_loss import ConsumingGroup, deleted_in, lag_in, losses
from kctl.history.retention.growth import HOUR_MS
from kctl.history.retention.tombstones import (
    CompactedSegment,
    dedupe_keys,
    dirty,
    due_since_ms,
    is_cleaner_stalled,
    min_dirty_ratio,
    needs_cleaning,
    tombstones_until_ms,
)
from kctl.history.retention.what_if import Change, Freed, KnownLog, freed, lost_unread, offsets_at, parse_change
from kctl.lag.log_config import LogConfig
from kctl.lag.rates import LogEnd

NOW = 1_700_000_000_000
MB = 10**6


def config(policy: str = "delete", **limits: int) -> LogConfig:
    return LogConfig("t", policy, **limits)


def log(
    size: int | None = 1000 * MB,
    start: int | None = 1000,
    oldest: int | None = NOW - 100 * HOUR_MS,
    ends: tuple[LogEnd, ...] = (LogEnd(NOW, 2000),),
) -> KnownLog:
    return KnownLog("t", 0, size, start, oldest, ends)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (["retention.ms=3d"], Change(259_200_000, None)),
        (["retention.ms=500"], Change(500, None)),  # milliseconds, as in Kafka
        (["retention.bytes=10GB", "retention.ms=-1"], Change(-1, 10**10)),
        (["retention.bytes=1024"], Change(None, 1024)),
    ],
)
def test_changes(text: list[str], expected: Change) -> None:
    assert parse_change(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        ["retention.ms"],
        ["retention.ms="],
        ["retention.ms=soon"],
        ["segment.ms=5"],
        ["retention.ms=1d", "retention.ms=2d"],
        ["retention.bytes=-2"],
        ["retention.bytes=999999999999999TB"],
        ["retention.ms=99999999999999999999999"],
    ],
)
def test_what_is_no_change(text: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_change(text)


def test_the_rest_of_the_configs_stays() -> None:
    before = config(retention_ms=5, retention_bytes=6, segment_bytes=7)
    assert Change(retention_ms=1).applied(before) == before._replace(retention_ms=1)


@pytest.mark.parametrize(
    ("before", "limits", "expected"),
    [
        (log(), config(retention_bytes=400 * MB, segment_bytes=100 * MB), Freed(500 * MB, 600 * MB, 1600)),
        (log(), config(retention_bytes=2000 * MB, segment_bytes=100 * MB), Freed(0, 0, 1000)),
        (log(), config(retention_bytes=-1, retention_ms=-1), Freed(0, 0, 1000)),
        (log(), config(retention_ms=25 * HOUR_MS, segment_bytes=100 * MB), Freed(650 * MB, 750 * MB, 1750)),
        (log(), config(retention_ms=200 * HOUR_MS), Freed(0, 0, 1000)),
        (log(), config(retention_ms=0, segment_bytes=MB), Freed(999 * MB, 1000 * MB, 2000)),
        # Both: what goes is the larger part.
        (log(), config(retention_ms=25 * HOUR_MS, retention_bytes=900 * MB), Freed(750 * MB, 750 * MB, 1750)),
        (log(), config("compact", retention_bytes=1, retention_ms=1), Freed(0, 0, 1000)),
        (log(size=None), config(retention_bytes=1), None),
        (log(start=None), config(retention_bytes=1), None),
        (log(ends=()), config(retention_bytes=1), None),
        (log(size=0, ends=(LogEnd(NOW, 1000),), oldest=None), config(retention_bytes=0), Freed(0, 0, 1000)),
    ],
)
def test_freed(before: KnownLog, limits: LogConfig, expected: Freed | None) -> None:
    assert freed(before, limits, NOW) == expected


def test_history_tells_when_messages_were_written() -> None:
    """All but ten messages were written in the last hour: an even spread would free half of the log."""
    late = log(ends=(LogEnd(NOW - HOUR_MS, 1010), LogEnd(NOW, 2000)))
    result = freed(late, config(retention_ms=50 * HOUR_MS), NOW)
    assert result is not None
    assert result.most_bytes < 10 * MB


def test_before_all_that_is_known_it_is_a_range() -> None:
    """Nobody knows how old the first 500 messages are."""
    unknown = log(oldest=None, ends=(LogEnd(NOW - HOUR_MS, 1500), LogEnd(NOW, 2000)))
    assert offsets_at(unknown, NOW - 2 * HOUR_MS) == (1000, 1500)
    assert freed(unknown, config(retention_ms=2 * HOUR_MS), NOW) == Freed(0, 500 * MB, 1500)


def test_ends_before_the_log_start_say_nothing() -> None:
    moved = log(start=1500, oldest=NOW - HOUR_MS, ends=(LogEnd(NOW - 9 * HOUR_MS, 1200), LogEnd(NOW, 2000)))
    assert offsets_at(moved, NOW - HOUR_MS // 2) == (1750, 1750)


@given(
    st.integers(0, 10**12),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=8),
    st.none() | st.integers(NOW - 200 * HOUR_MS, NOW),
    st.integers(-1, 300 * HOUR_MS),
    st.integers(-1, 10**12),
    st.integers(0, 10**9),
)
def test_ranges_are_within_the_log(
    size: int, start: int, steps: list[int], oldest: int | None, ms: int, limit: int, segment: int
) -> None:
    end, ends = start, []
    for number, step in enumerate(steps):
        end += step
        ends.append(LogEnd(NOW - (len(steps) - 1 - number) * HOUR_MS, end))
    known = KnownLog("t", 0, size, start, oldest, tuple(ends))
    limits = config(retention_ms=ms, retention_bytes=limit, segment_bytes=segment)
    result = freed(known, limits, NOW)
    assert result is not None
    assert 0 <= result.least_bytes <= result.most_bytes <= size
    assert start <= result.start_offset_at_most <= end
    shorter = freed(known, limits._replace(retention_ms=ms // 2 if ms > 0 else ms), NOW)
    assert shorter is not None
    assert shorter.most_bytes >= result.most_bytes


@pytest.mark.parametrize(
    ("committed", "start", "expected"), [(1200, 1600, 400), (1800, 1600, 0), (500, 1600, 600), (None, 1600, 0)]
)
def test_what_a_group_loses(committed: int | None, start: int, expected: int) -> None:
    """What was lost before (committed 500, log start 1000) is not lost again."""
    assert lost_unread(committed, log(), start) == expected


# --- compacted logs -------------------------------------------------------------------------------------------------

SEGMENTS = [CompactedSegment(base, 100, NOW - (4 - base // 10) * HOUR_MS) for base in (0, 10, 20, 30)]  # 30: active


@pytest.mark.parametrize(
    ("known", "clean", "cleanable", "ratio", "offsets"),
    [
        ({}, 0, 300, 1.0, 30),
        ({"cleaned_to": 10}, 100, 200, 200 / 300, 20),
        ({"cleaned_to": 30}, 300, 0, 0.0, 0),
        ({"cleaned_to": 10, "last_stable": 25}, 100, 100, 0.5, 10),  # the segment with the last stable offset stays
        ({"cleaned_to": 10, "last_stable": 20}, 100, 100, 0.5, 10),
        ({"cleaned_to": 0, "log_start": 20}, 200, 100, 100 / 300, 10),
        ({"min_compaction_lag_ms": 3 * HOUR_MS}, 0, 200, 1.0, 20),  # the segment of 2 hours ago is too young
        ({"min_compaction_lag_ms": 100 * HOUR_MS}, 0, 0, None, 0),
        ({"cleaned_to": 99}, 400, 0, 0.0, 0),
    ],
)
def test_dirty(known: dict[str, int], clean: int, cleanable: int, ratio: float | None, offsets: int) -> None:
    inputs = {"cleaned_to": None, "log_start": None, "last_stable": None, **known}
    state = dirty(SEGMENTS, now_ms=NOW, **inputs)  # type: ignore[arg-type]
    assert (state.clean_bytes, state.cleanable_bytes, state.ratio, state.offsets) == (clean, cleanable, ratio, offsets)


def test_a_log_has_a_segment() -> None:
    with pytest.raises(ValueError, match="active"):
        dirty([], cleaned_to=None, log_start=None, last_stable=None, now_ms=0)


def test_what_the_cleaner_takes() -> None:
    result = dirty(SEGMENTS, cleaned_to=10, log_start=None, last_stable=None, now_ms=NOW)
    compact = LogConfig("t", "compact", min_cleanable_dirty_ratio=0.5)
    assert needs_cleaning(result, compact)
    assert not needs_cleaning(result, compact._replace(min_cleanable_dirty_ratio=0.7))
    assert not needs_cleaning(result, compact._replace(cleanup_policy="delete"))
    assert needs_cleaning(result, LogConfig("t", "compact"))  # 0.5 is Kafka's default


@pytest.mark.parametrize(
    ("limit", "cleaned_to", "since"),
    [
        (0.4, 10, 10),  # the segment at 10 makes 100 of 200 dirty
        (0.6, 10, 20),
        (0.7, 10, None),  # it does not want cleaning at all
        (0.5, None, 0),
        (0.2, 20, 20),
    ],
)
def test_since_when_it_waits(limit: float, cleaned_to: int | None, since: int | None) -> None:
    segments = [each._replace(closed_ms=each.base_offset) for each in SEGMENTS]
    result = dirty(segments, cleaned_to=cleaned_to, log_start=None, last_stable=None, now_ms=NOW)
    assert due_since_ms(segments, result, LogConfig("t", "compact", min_cleanable_dirty_ratio=limit)) == since


def test_a_cleaner_that_stands_still_shows_in_sizes() -> None:
    compact = LogConfig("t", "compact", segment_bytes=100, min_cleanable_dirty_ratio=0.5)
    grows = growth([SizeSample(0, 100), SizeSample(HOUR_MS, 500), SizeSample(2 * HOUR_MS, 1000)])
    cleaned = growth([SizeSample(0, 100), SizeSample(HOUR_MS, 1500), SizeSample(2 * HOUR_MS, 1000)])
    assert grows is not None
    assert cleaned is not None
    assert min_dirty_ratio(grows, compact) == 0.8  # 900 were added, one segment of them is active
    assert is_cleaner_stalled(grows, compact) is True
    assert is_cleaner_stalled(cleaned, compact) is False
    assert is_cleaner_stalled(grows, compact._replace(cleanup_policy="delete")) is None


def test_keys_that_fit_into_the_buffer() -> None:
    assert dedupe_keys() == 5_033_164  # 128 MiB x 0.9 through 24 B
    assert dedupe_keys(threads=2) == 2_516_581


@pytest.mark.parametrize(
    ("policy", "time_lag", "retained", "min_lag", "expected"),
    [
        ("compact", 10 * HOUR_MS, 24 * HOUR_MS, 0, 14 * HOUR_MS),
        ("compact", 30 * HOUR_MS, 24 * HOUR_MS, 0, 0),
        ("compact", 30 * HOUR_MS, 24 * HOUR_MS, 10 * HOUR_MS, 4 * HOUR_MS),
        ("compact", 0, 24 * HOUR_MS, 0, None),  # nothing unread
        ("compact", None, 24 * HOUR_MS, 0, None),
        ("delete", 10, 24 * HOUR_MS, 0, None),
    ],
)
def test_how_long_deletions_can_be_read(
    policy: str, time_lag: int | None, retained: int, min_lag: int, expected: int | None
) -> None:
    topic_config = LogConfig("t", policy, delete_retention_ms=retained, min_compaction_lag_ms=min_lag)
    assert tombstones_until_ms(time_lag, topic_config) == expected


# --- when the disk is full ------------------------------------------------------------------------------------------


def reader(group: str = "g", **known: object) -> ConsumingGroup:
    rows: dict[str, object] = {
        "topic": "t", "partition": 0, "lag": 100, "consumed_per_s": 1.0, "produced_per_s": 3.0, "loss_eta_ms": None,
        "replicas": 3,
    }  # fmt: skip
    return ConsumingGroup(group, **{**rows, **known})  # type: ignore[arg-type]


def test_lag_goes_on_as_it_does() -> None:
    assert lag_in(reader(), HOUR_MS) == 100 + 2 * 3600
    assert lag_in(reader(consumed_per_s=9.0), HOUR_MS) == 0
    assert lag_in(reader(lag=None), HOUR_MS) is None
    assert lag_in(reader(consumed_per_s=None, produced_per_s=None), HOUR_MS) == 100


def test_what_is_deleted_until_then() -> None:
    assert deleted_in(reader(loss_eta_ms=None), HOUR_MS) == 0
    assert deleted_in(reader(loss_eta_ms=2 * HOUR_MS), HOUR_MS) == 0
    assert deleted_in(reader(loss_eta_ms=HOUR_MS // 2), HOUR_MS) == 3600
    assert deleted_in(reader(loss_eta_ms=0, produced_per_s=0.0, consumed_per_s=0.0), HOUR_MS) == 1
    assert deleted_in(reader(loss_eta_ms=0, lag=0, consumed_per_s=3.0), HOUR_MS) == 0


@pytest.mark.parametrize(
    ("known", "hours", "expected"),
    [
        # 432 are unread, the oldest for 23 h, and nothing is written: the first goes in an hour, the last in a day.
        ({}, 83 * 24, 432),
        ({}, 24, 432),
        ({}, 1 + 11.5, 216),
        ({"produced_per_s": 1.0}, 26, 432 + 2 * 3600),
        (
            {"consumed_per_s": 2.0, "produced_per_s": 3.0},
            2,
            3600,
        ),  # it reads on
    ],
)
def test_a_group_that_stands_still_loses_all_that_is_unread(
    known: dict[str, object], hours: float, expected: int
) -> None:
    still: dict[str, object] = {
        "lag": 432, "consumed_per_s": 0.0, "produced_per_s": 0.0, "loss_eta_ms": HOUR_MS, "by_time_ms": HOUR_MS,
        "time_lag_ms": 23 * HOUR_MS,
    }  # fmt: skip
    (row,) = losses([reader("still", **{**still, **known})], int(hours * HOUR_MS))
    assert row.deleted == expected
    assert row.deleted <= row.unread


def test_the_join_names_who_loses_most_first() -> None:
    result = losses(
        [
            reader("keeps-up", lag=0, consumed_per_s=3.0),
            reader("behind"),
            reader("behind", partition=1, replicas=1),
            reader("overtaken", loss_eta_ms=0),
        ],
        HOUR_MS,
    )
    assert [row.group for row in result] == ["overtaken", "behind"]
    assert (result[1].partition_count, result[1].unread, result[1].sole, result[1].deleted) == (2, 14_600, 7_300, 0)
    assert result[0].loss_eta_ms == 0
