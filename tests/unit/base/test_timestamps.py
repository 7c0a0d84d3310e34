"""Moments for people: ISO 8601, whatever 64 bits say; and what people write for them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from kctl.base import timestamps
from kctl.base.timestamps import format_timestamp
from kctl.errors import UsageError

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
    assert format_timestamp(ms) == text


def test_the_calendar_is_datetimes() -> None:
    """The calendar for far years, on the years that datetime knows."""
    pick = random.Random(7)
    for _ in range(20_000):
        ms = pick.randrange(-62_135_596_800_000, 253_402_300_800_000)
        moment = EPOCH + timedelta(milliseconds=ms)
        assert timestamps._far(ms) == f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z".rjust(24, "0")


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
    assert timestamps.parse_timestamp(text, now_ms=NOW_MS) == ms


# Of ISO 8601 and RFC 3339: the same for each version of Python, whose own datetime.fromisoformat reads other forms in
# 3.10, 3.11 and 3.14. 1_767_225_600_000 is the first moment of 2026.
NEW_YEAR = 1_767_225_600_000
FORMS = {
    "2026-01-01": 0,
    "20260101": 0,
    "2026-01-01Z": 0,
    "2026-01-01+02:00": -7_200_000,
    "2026-W01-4": 0,
    "2026W014": 0,
    "2026-W01": -3 * 86_400_000,
    "2025-W53-4": None,
    "2026-W01-0": None,
    "2026-001": None,
    "2026001": None,
    "2026-01": None,
    "2026": None,
    "2026-1-1": None,
    "2026-0101": None,
    "202601-01": None,
    "26-01-01": None,
    "01/01/2026": None,
    "2026-02-29": None,
    "2026-01-00": None,
    "2026-01-01T00": 0,
    "2026-01-01T01": 3_600_000,
    "2026-01-01T01:02": 3_720_000,
    "2026-01-01T0102": 3_720_000,
    "2026-01-01T01:02:03": 3_723_000,
    "20260101T010203": 3_723_000,
    "20260101T010203Z": 3_723_000,
    "20260101T0102Z": 3_720_000,
    "20260101T01Z": 3_600_000,
    "2026-01-01T010203Z": 3_723_000,
    "20260101T01:02:03Z": 3_723_000,
    "2026-01-01T01:0203": None,
    "2026-01-01T0102:03": None,
    "2026-01-01 01:02:03": 3_723_000,
    "2026-01-01t01:02:03z": 3_723_000,
    "2026-01-01 01:02:03 UTC": 3_723_000,
    "2026-01-01 01:02:03 +0000": 3_723_000,
    "2026-01-01 01:02:03Z": 3_723_000,
    "2026-01-01_01:02:03": None,
    "2026-01-01x01:02:03": None,
    "2026-01-01  01:02:03": None,
    " 2026-01-01": None,
    "2026-01-01 ": None,
    "2026-01-01T": None,
    "2026-01-01T1": None,
    "2026-01-01T1:02": None,
    "2026-01-01T00:00:00.5Z": 500,
    "2026-01-01T00:00:00,5Z": 500,
    "2026-01-01T00:00:00.05": 50,
    "2026-01-01T00:00:00.123": 123,
    "2026-01-01T00:00:00.1234": 123,
    "2026-01-01T00:00:00.123456Z": 123,
    "2026-01-01T00:00:00.123456789Z": 123,
    "2026-01-01T00:00:00.9999Z": 1000,
    "20260101T000000.25+0000": 250,
    "2026-01-01T00:00:00.Z": None,
    "2026-01-01T00:00.5": None,
    "2026-01-01T00.5": None,
    "2026-01-01T00:00:00+05:30": -19_800_000,
    "2026-01-01T00:00:00+0530": -19_800_000,
    "2026-01-01T00:00:00+05": -18_000_000,
    "2026-01-01T00:00:00-0800": 28_800_000,
    "2026-01-01T00:00:00\u221208:00": 28_800_000,
    "2026-01-01T00:00+14:00": -50_400_000,
    "2026-01-01T00:00:00-00:00": 0,
    "2026-01-01T00:00:00.5+0530": -19_799_500,
    "20260101T000000+0530": -19_800_000,
    "2026-01-01T00:00:00+5": None,
    "2026-01-01T00:00:00+530": None,
    "2026-01-01T00:00:00+24:00": None,
    "2026-01-01T00:00:00+05:60": None,
    "2026-01-01T00:00:00+05:30:15": None,
    "2026-01-01T00:00:00+": None,
    "2026-01-01T00:00:00ZZ": None,
    "2026-01-01T00:00:00Z+00:00": None,
    "2026-01-01T00:00:00 CET": None,
    "2026-01-01T00:00:00+01:00[Europe/Berlin]": None,
    "2026-01-01T24:00": 86_400_000,
    "2026-01-01T24:00:00Z": 86_400_000,
    "2026-01-01T240000.000Z": 86_400_000,
    "2026-01-01T24": 86_400_000,
    "2026-01-01T24:00:01": None,
    "2026-01-01T24:00:00.1": None,
    "2026-01-01T25:00": None,
    "2026-01-01T00:60": None,
    "2026-01-01T00:00:61": None,
    "2025-12-31T23:59:60Z": 0,
    "2026-01-01T00:59:60+01:00": 0,
    "2025-12-31T23:59:60.5Z": 500,
    "2026-01-01T00:00:60Z": None,
    "\u0662\u0660\u0662\u0666-01-01": None,
    "0000-01-01": None,
    "1969-12-31T23:59:59.999Z": None,
    "+2026-01-01": None,
    "+012026-01-01": None,
    "-2026-01-01": None,
    "10000-01-01": None,
    "20260101000000": None,
    "202601010000": None,
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_forms_of_iso_8601(text: str) -> None:
    offset = FORMS[text]
    if offset is not None:
        assert timestamps.parse_timestamp(text, now_ms=NOW_MS) == NEW_YEAR + offset
        return
    with pytest.raises(UsageError, match=r"is not a time|may be a date"):
        timestamps.parse_timestamp(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("9999-12-31T23:59:59.9996Z", None),
        ("9999-12-31T24:00Z", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("1970-01-01T00:00:00+00:01", None),
        ("2000-02-29", 951_782_400_000),
        ("100000000000", 100_000_000_000),
        ("19991301000000", 19_991_301_000_000),
    ],
)
def test_the_ends_of_time(text: str, ms: int | None) -> None:
    """To brokers -1 and -2 are the ends of a log, so that nothing before 1970 is a time."""
    if ms is not None:
        assert timestamps.parse_timestamp(text, now_ms=NOW_MS) == ms
        return
    with pytest.raises(UsageError, match="is not a time"):
        timestamps.parse_timestamp(text, now_ms=NOW_MS)


def test_every_form_that_python_writes() -> None:
    pick = random.Random(11)
    for _ in range(2000):
        moment = EPOCH + timedelta(milliseconds=pick.randrange(0, 253_402_300_800_000))
        ms = (moment - EPOCH) // timedelta(milliseconds=1)
        zone = timezone(timedelta(minutes=pick.randrange(-14 * 60, 14 * 60)))
        here = moment.astimezone(zone) if 2 < moment.year < 9998 else moment
        for text in (here.isoformat(), here.isoformat(" ", "microseconds"), f"{here:%Y%m%dT%H%M%S.%f%z}".zfill(27)):
            assert timestamps.parse_timestamp(text) == ms, text


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
        timestamps.parse_timestamp(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2h", "-2h or '2h ago'"),
        ("1.5D", "-1.5d or '1.5d ago'"),
        ("2", "now, -90m or '90m ago'"),
        ("2x", "now, -90m or '90m ago'"),
        ("-2x", "now, -90m or '90m ago'"),
    ],
)
def test_a_duration_for_a_time(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="is not a time") as caught:
        timestamps.parse_timestamp(text, now_ms=NOW_MS)
    assert said in str(caught.value.hint)
