"""Time in buckets, and series as lines of text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.commands.terminal.sparkline import sparkline, state_line
from kctl.history.report.buckets import MAX_BUCKETS, TimeBuckets, buckets_of, status_spans
from kctl.history.report.model import State, StatusSpan

MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([5], TimeBuckets(5, 1, 1)),
        ([0, 60_000], TimeBuckets(0, 60_000, 2)),
        ([0, 60_000, 120_000], TimeBuckets(0, 90_000, 2)),
        (list(range(0, 3_600_000, MINUTE_MS)), TimeBuckets(0, 90_000, 40)),
        (list(range(0, 86_400_000, MINUTE_MS)), TimeBuckets(0, 359_751, 240)),
    ],
)
def test_buckets(times: list[int], expected: TimeBuckets) -> None:
    assert buckets_of(times) == expected


def test_buckets_need_passes() -> None:
    with pytest.raises(ValueError, match="no passes"):
        buckets_of([])


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=50, unique=True).map(sorted))
def test_each_pass_has_a_bucket_and_buckets_are_few(times: list[int]) -> None:
    found = buckets_of(times)
    assert found.size <= MAX_BUCKETS
    assert found.of(times[0]) == 0
    assert found.of(times[-1]) == found.size - 1


@given(st.integers(1, 3_600_000), st.integers(3, 2_000))
def test_evenly_spaced_passes_leave_no_bucket_empty(every_ms: int, count: int) -> None:
    times = [every_ms * i for i in range(count)]
    found = buckets_of(times)
    assert {found.of(at) for at in times} == set(range(found.size))


@given(st.lists(st.sampled_from([None, State.OK, State.ERR]), max_size=30))
def test_spans_expand_to_the_states(states: list[State | None]) -> None:
    spans = status_spans(states)
    assert [span.status for span in spans for _ in range(span.count)] == states
    assert [span.first for span in spans] == [sum(s.count for s in spans[:i]) for i in range(len(spans))]
    assert all(a.status != b.status for a, b in pairwise(spans))


def test_a_span() -> None:
    assert status_spans([State.OK, State.OK, None]) == [StatusSpan(0, 2, State.OK), StatusSpan(2, 1, None)]


@pytest.mark.parametrize(
    ("series", "text"),
    [
        ([], ""),
        ([None, None], ""),
        ([7], "0"),
        ([5, 5, 5], "000"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "01234567"),
        ([0, None, 7], "0 7"),
        ([0, 9, 0, 0, 4, 0, 0, 2, None, None], "7031"),
        ([10**15, 0], "70"),
    ],
)
def test_sparklines(series: list[int | None], text: str) -> None:
    assert sparkline(series, 5 if len(series) == 10 else 24, blocks="01234567").rstrip() == text.rstrip()


@given(st.lists(st.none() | st.integers(0, 10**18), max_size=300), st.integers(1, 40))
def test_a_sparkline_fits_the_width_and_shows_the_peak(series: list[int | None], width: int) -> None:
    text = sparkline(series, width, blocks="abcdefgh")
    known = [value for value in series if value is not None]
    assert len(text) == (min(width, len(series)) if known else 0)
    if len(set(known)) > 1:
        assert "h" in text


def test_states_as_letters() -> None:
    spans = [(2, "OK"), (1, None), (1, "UNKNOWN"), (2, "WARN"), (1, "ERR"), (1, "STALL")]
    assert state_line(spans) == ".. ?WWEE"
    assert state_line(spans, 4) == ".?WE"
    assert state_line([]) == ""
