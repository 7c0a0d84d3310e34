"""Text and numbers as Java writes them."""

from __future__ import annotations

import codecs
import math


def _malformed(exc: UnicodeError) -> tuple[str, int]:
    """One U+FFFD where Java's decoder has one: a surrogate in UTF-8 is three bytes, or what there is of them."""
    assert isinstance(exc, UnicodeDecodeError)
    data, start, end = exc.object, exc.start, exc.end
    if data[start] == 0xED and start + 1 < len(data) and 0xA0 <= data[start + 1] <= 0xBF:
        third = start + 2 < len(data) and 0x80 <= data[start + 2] <= 0xBF
        end = start + (3 if third else 2)
    return "\ufffd", end


codecs.register_error("kctl-java", _malformed)


def java_utf8(data: bytes) -> str:
    """Text as new String(data, UTF_8) has it."""
    return data.decode("utf-8", "kctl-java")


def java_double(value: float) -> str:
    """A double as Double.toString writes it (its shortest digits, JDK 19 and later): 1.0, 1.0E-5, 1.234E10."""
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
    """«12345678.9» → («1.23456789», «7»)."""
    sign = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("-").partition(".")
    power = len(whole) - 1
    if whole == "0":
        power = -(len(fraction) - len(fraction.lstrip("0")) + 1)
    digits = (whole + fraction).lstrip("0").rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", str(power)
