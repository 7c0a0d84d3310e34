"""Separators, and records as text."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from kctl.commands.terminal.views import ranges
from kctl.errors import UsageError
from kctl.records.kafka_python_snappy import RawSnappy
from kctl.records.lines import parse_separator
from kctl.records.record import Record, text_of, view


@pytest.mark.parametrize(
    ("text", "expected"), [(":", b":"), ("\\t", b"\t"), ("\\0", b"\0"), ("=>", b"=>"), ("→", "→".encode())]
)
def test_separator(text: str, expected: bytes) -> None:
    assert parse_separator(text) == expected


@pytest.mark.parametrize("text", ["", "a\nb"])
def test_bad_separator(text: str) -> None:
    with pytest.raises(UsageError, match="--key-separator"):
        parse_separator(text)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, (None, None)),
        (b"", ("", "utf-8")),
        ("grün".encode(), ("grün", "utf-8")),
        (b"\x00\x1b[31m", ("\x00\x1b[31m", "utf-8")),  # JSON escapes it
        (b"\xff\x00", ("/wA=", "base64")),
        (b"\xed\xa0\x80", ("7aCA", "base64")),  # a surrogate is no UTF-8
    ],
)
def test_text_of(data: bytes | None, expected: tuple[str | None, str | None]) -> None:
    assert text_of(data) == expected


def test_view() -> None:
    record = Record("t", 1, 42, 1_700_000_000_123, None, b"\xff", (("h", b"v"), ("n", None)))
    output = view(record)
    assert output.timestamp == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=timezone.utc)
    assert (output.key, output.key_encoding, output.value, output.value_encoding) == (None, None, "/w==", "base64")
    assert [(h.key, h.value, h.encoding) for h in output.headers] == [("h", "v", "utf-8"), ("n", None, None)]


@pytest.mark.parametrize("timestamp_ms", [None, 2**63 - 1, 253_402_300_800_000])
def test_a_timestamp_that_no_calendar_has(timestamp_ms: int | None) -> None:
    output = view(Record("t", 0, 0, timestamp_ms, None, None, ()))
    assert output.timestamp is None
    assert output.timestamp_ms == timestamp_ms


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 2, 3, 7], "0,2-3,7"), ([5, 6], "5-6")],
)
def test_ranges(numbers: list[int], expected: str) -> None:
    assert ranges(numbers) == expected


@pytest.mark.parametrize("data", [b"", b"x", b"again and again " * 1000, bytes(range(256)) * 40])
def test_snappy_both_ways(data: bytes) -> None:
    assert RawSnappy.decompress(RawSnappy.compress(data)) == data


@pytest.mark.parametrize("block", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x04" + b"\x00" * 100, b"", b"\xff" * 9])
def test_a_snappy_block_that_claims_too_much(block: bytes) -> None:
    """Four gigabytes in five bytes: refused before anything is allocated."""
    with pytest.raises(ValueError, match="snappy block"):
        RawSnappy.decompress(block)
