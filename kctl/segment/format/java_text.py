"""Decode and format text and numbers like Java."""

from __future__ import annotations

import math
import re

# A surrogate in UTF-8, possibly cut short. Java's decoder replaces it with one U+FFFD, Python's with one per byte.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def java_utf8(data: bytes) -> str:
    """Decode UTF-8 like new String(data, UTF_8)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")


def java_double(value: float) -> str:
    """Format a double like Double.toString of JDK 19 and later (shortest digits): 1.0, 1.0E-5, 1.234E10."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}".rstrip("0")
    mantissa, _, power = repr(value).partition("e")
    if not power:  # Python writes up to 1e16 without an exponent
        mantissa, power = _scientific(mantissa)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(power)}"


def _scientific(text: str) -> tuple[str, str]:
    """Return mantissa and exponent: "12345678.9" → ("1.23456789", "7")."""
    sign = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("-").partition(".")
    power = len(whole) - 1
    if whole == "0":
        power = -(len(fraction) - len(fraction.lstrip("0")) + 1)
    digits = (whole + fraction).lstrip("0").rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", str(power)
