"""Sizes, durations and terminal-safe text."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from kctl.base.text import printable, printable_json
from kctl.base.units import format_duration, format_size, parse_duration_ms, parse_rate, parse_size
from kctl.errors import UsageError

SIZES = [("0", 0), ("512", 512), ("1k", 1000), ("64MB", 64_000_000), ("1.5GiB", 1_610_612_736), ("1 KiB", 1024)]


@pytest.mark.parametrize(("text", "expected"), SIZES)
def test_parse_size(text: str, expected: int) -> None:
    assert parse_size(text) == expected


DURATIONS = [("250ms", 250), ("5", 5000), ("5s", 5000), ("1.5m", 90_000), ("2h", 7_200_000), ("7d", 604_800_000)]


@pytest.mark.parametrize(("text", "expected"), DURATIONS)
def test_parse_duration(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "x", "-5", "1e9", "5 parsecs", "9" * 40, "٣s"])
def test_nonsense_is_a_usage_error(text: str) -> None:
    for parse in (parse_size, parse_duration_ms):
        with pytest.raises(UsageError):
            parse(text)


def test_no_duration_is_longer_than_times_can_be() -> None:
    with pytest.raises(UsageError, match="longer than 1,000 years"):
        parse_duration_ms("999999999d")


FORMATTED = [
    (0, "0 B"),
    (999, "999 B"),
    (1500, "1.5 kB"),
    (12_000_000, "12 MB"),
    (999_600, "1 MB"),
    (10**18, "1000 PB"),
]


@pytest.mark.parametrize(("size", "expected"), FORMATTED)
def test_format_size(size: int, expected: str) -> None:
    assert format_size(size) == expected


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(0, "0ms"), (350, "350ms"), (42_000, "42s"), (3_780_000, "1h 3m"), (86_400_000, "1d"), (90_061_000, "1d 1h")],
)
def test_format_duration(duration: int, expected: str) -> None:
    assert format_duration(duration) == expected


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("orders", "orders"),
        ("żółć 注文 🙂", "żółć 注文 🙂"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\udcff", "\\udcff"),
        ("a\u061cb\u200bc\ufeffd", "a\\u061cb\\u200bc\\ufeffd"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("\u2764\ufe0f", "\u2764\\ufe0f"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\\u200d\U0001f4bb"),
    ],
)
def test_nothing_steers_the_terminal(raw: str, shown: str) -> None:
    assert printable(raw) == shown


def test_nothing_is_hidden() -> None:
    """Every control, format character, separator and half of a pair; but for the few format characters of scripts that
    are seen: the number signs of Arabic, Kaithi and Egyptian."""
    seen = {*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and code not in seen:
            assert printable(char).isascii(), hex(code)
            if char != "\n":
                assert json.loads(f'"{printable_json(char)}"') == char
                assert printable_json(char).isascii()
    selectors = [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
    for code in (0x034F, 0x115F, 0x1160, 0x17B4, 0x180B, 0x3164, 0xFFA0, *selectors):
        assert printable(chr(code)).isascii(), hex(code)
    for text in ("Łódź", "注文", "заказы", "طلبات", "🙂", "résumé", "ＡＢＣ", "\u00a0"):
        assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "rate"), [("50MB/s", 50_000_000), ("10MiB/s", 10 * 2**20), ("1kB/s", 1000), ("2 kB", 2000)]
)
def test_rates(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "0", "0MB/s", "fast", "-1MB/s", "1/s/s", "50MB/h", "50", "50/s", "50000000", "999B/s", "0.5kB/s"]
)
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate"):
        parse_rate(text)
