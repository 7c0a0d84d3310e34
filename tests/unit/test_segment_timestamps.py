"""Timestamps of records for people: ISO 8601, whatever 64 bits say."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from kctl.segment import timestamps
from kctl.segment.timestamps import timestamp_text

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
    assert timestamp_text(ms) == text


def test_the_calendar_is_datetimes() -> None:
    """The calendar for far years, on the years that datetime knows."""
    pick = random.Random(7)
    for _ in range(20_000):
        ms = pick.randrange(-62_135_596_800_000, 253_402_300_800_000)
        moment = EPOCH + timedelta(milliseconds=ms)
        assert timestamps._far(ms) == f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z".rjust(24, "0")
