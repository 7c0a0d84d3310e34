"""Which offset a partition gets, and what it means: tables of cases."""

from __future__ import annotations

import pytest

from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import Refused, UsageError
from kctl.groups.reset_rules import (
    ResetTarget,
    To,
    new_offset,
    parse_ago,
    parse_offset,
    parse_shift,
    parse_time,
    read_again,
    skipped,
)

LOG = LogOffsets(5, 20)
NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("target", "committed", "at_time", "given", "expected", "note"),
    [
        (ResetTarget(To.EARLIEST), 12, None, None, 5, None),
        (ResetTarget(To.LATEST), None, None, None, 20, None),
        (ResetTarget(To.CURRENT), 12, None, None, 12, None),
        (ResetTarget(To.CURRENT), 2, None, None, 2, None),
        (ResetTarget(To.CURRENT), None, None, None, 20, "no commit: set to the log end"),
        (ResetTarget(To.OFFSET, 5), 12, None, None, 5, None),
        (ResetTarget(To.OFFSET, 20), 12, None, None, 20, None),
        (ResetTarget(To.OFFSET, 21), 12, None, None, 20, "21 is after the log end"),
        (ResetTarget(To.OFFSET, 4), 12, None, None, 5, "4 is before the log start"),
        (ResetTarget(To.SHIFT, 3), 12, None, None, 15, None),
        (ResetTarget(To.SHIFT, -3), 12, None, None, 9, None),
        (ResetTarget(To.SHIFT, 9), 12, None, None, 20, "21 is after the log end"),
        (ResetTarget(To.SHIFT, -13), 12, None, None, 5, "-1 is before the log start"),
        (ResetTarget(To.TIME, NOW), 12, 7, None, 7, None),
        (ResetTarget(To.TIME, NOW), 12, -1, None, 20, "no message since 2023-11-14T22:13:20.000Z: set to the log end"),
        (ResetTarget(To.GIVEN), 12, None, 0, 5, "0 is before the log start"),
        (ResetTarget(To.GIVEN), None, None, 19, 19, None),
    ],
)
def test_new_offset(
    target: ResetTarget, committed: int | None, at_time: int | None, given: int | None, expected: int, note: str | None
) -> None:
    new = new_offset(target, committed, LOG, at_time=at_time, explicit=given)
    assert (new.offset, new.note) == (expected, note)


def test_no_commit_cannot_be_shifted() -> None:
    with pytest.raises(Refused, match="no commit to shift"):
        new_offset(ResetTarget(To.SHIFT, 1), None, LOG)


@pytest.mark.parametrize(
    ("old", "new", "passed_over", "again"),
    [
        (12, 20, 8, 0),
        (12, 5, 0, 7),
        (12, 12, 0, 0),
        (None, 20, None, None),
        (2, 20, 15, 0),  # 2 to 4 were lost before: nobody skips them
        (2, 5, 0, 0),
        (25, 20, 0, 0),  # behind the end: nothing there was read
        (25, 10, 0, 10),
    ],
)
def test_what_it_means(old: int | None, new: int, passed_over: int | None, again: int | None) -> None:
    assert (skipped(old, new, LOG), read_again(old, new, LOG)) == (passed_over, again)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2h", 7_200_000), ("90m", 5_400_000), ("PT2H", 7_200_000), ("P1DT1H1M1.5S", 90_061_500), ("P7D", 604_800_000),
        ("PT0.5S", 500), ("0s", 0),
    ],
)  # fmt: skip
def test_so_long_ago(text: str, ms: int) -> None:
    assert parse_ago(text, NOW) == NOW - ms


@pytest.mark.parametrize(
    "text", ["P", "PT", "PT1", "1y", "", "-2h", "P1M", "2h ago", "P" + "9" * 400 + "D", "PT" + "9" * 10 + "S"]
)
def test_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        parse_ago(text, NOW)


def test_times_of_kafkas_own_tool() -> None:
    assert parse_time("2023-11-14T22:13:20.000", NOW) == NOW
    assert parse_time("2023-11-14T23:13:20.000+01:00", NOW) == NOW
    with pytest.raises(UsageError, match="is not a time"):  # to a broker, -1 and -2 are the ends of a log
        parse_time("1969-12-31T23:59:59.999", NOW)


@pytest.mark.parametrize(("text", "offset"), [("0", 0), ("9223372036854775807", 2**63 - 1)])
def test_offset(text: str, offset: int) -> None:
    assert parse_offset(text) == offset


@pytest.mark.parametrize("text", ["-1", "", "1.0", "9223372036854775808", "1" * 5000, "٣", "latest", " 1"])
def test_no_offset(text: str) -> None:
    with pytest.raises(UsageError, match="is not an offset"):
        parse_offset(text)


@pytest.mark.parametrize(("text", "shift"), [("5", 5), ("+5", 5), ("-5", -5), ("0", 0)])
def test_shift(text: str, shift: int) -> None:
    assert parse_shift(text) == shift


@pytest.mark.parametrize("text", ["", "--5", "5.0", "1" * 19, "all", "٣"])
def test_no_shift(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number of messages"):
        parse_shift(text)
