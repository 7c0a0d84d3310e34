"""Moments for people: ISO 8601, whatever 64 bits say; and what people write for them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from kctl import moments
from kctl.errors import UsageError
from kctl.moments import moment_text

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, None),
        (-2, "1969-12-31T23:59:59.998Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
        # What java.time.Instant.ofEpochMilli prints of the least and the largest.
        (-(2**63), "-292275055-05-16T16:47:04.192Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),
    ],
)
def test_text(ms: int, text: str | None) -> None:
    assert moment_text(ms) == text


def test_the_calendar_is_datetimes() -> None:
    """The calendar for far years, on the years that datetime knows."""
    pick = random.Random(7)
    for _ in range(20_000):
        ms = pick.randrange(-62_135_596_800_000, 253_402_300_800_000)
        moment = EPOCH + timedelta(milliseconds=ms)
        assert moments._far(ms) == f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z".rjust(24, "0")


NOW_MS = 1_700_000_000_123


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("now", NOW_MS),
        ("-90m", NOW_MS - 5_400_000),
        ("90m ago", NOW_MS - 5_400_000),
        ("1.5h ago", NOW_MS - 5_400_000),
        ("1700000000", 1_700_000_000_000),
        ("1700000000123", NOW_MS),
        ("2023-11-14T22:13:20.123Z", NOW_MS),
        ("2023-11-14T23:13:20.123+01:00", NOW_MS),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_what_people_write(text: str, ms: int) -> None:
    assert moments.parse_moment(text, now_ms=NOW_MS) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "-",
        "-5",
        "5 ago",
        "123",
        "-999999999d",
        "2023-13-01",
        "-1x",
        "1..5h ago",
        "9" * 19,
        "253402300800000",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="not a time"):
        moments.parse_moment(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2h", "-2h or '2h ago'"),
        ("1.5D", "-1.5d or '1.5d ago'"),
        ("2", "so long ago -90m"),
        ("2x", "or for so long ago -90m or '90m ago'"),
        ("-2x", "so long ago -90m"),
    ],
)
def test_a_duration_for_a_time(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="is not a time") as caught:
        moments.parse_moment(text, now_ms=NOW_MS)
    assert said in str(caught.value.hint)
