"""Parse and format sizes, rates and durations."""

from __future__ import annotations

import re
from fractions import Fraction

from kctl.errors import UsageError

_SIZE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_DURATION_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MAX_DURATION_MS = 1000 * 365 * 86_400_000  # avoids overflows in date arithmetic
MIN_RATE = 1000  # bytes per second
_BITS = re.compile(r"([kmgt]?)(?:bit|bps)", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(%?)")
_NUMBER_UNIT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)")


def parse_size(text: str) -> int:
    """Parse "512", "64MB" or "1.5GiB" to bytes. MB is 10⁶, MiB 2²⁰. Raises UsageError."""
    match = _NUMBER_UNIT.fullmatch(text.strip())
    unit = match.group(2).lower().removesuffix("b") if match else "?"
    factor = _SIZE_BINARY.get(unit, _SIZE.get(unit))
    if not match or factor is None:
        raise UsageError(f"{text!r} is not a size", hint="e.g. 512, 64MB or 1.5GiB")
    return round(float(match.group(1)) * factor)


def parse_rate(text: str) -> int:
    """Parse "50MB/s" or "50MB" to bytes per second. Raises UsageError, also without a unit and below 1 kB/s.

    A user who writes 50 means megabytes; at 50 bytes per second, nothing would ever finish.
    """
    amount = text.strip().removesuffix("/s")
    try:
        rate = parse_size(amount)
    except UsageError:
        raise UsageError(f"{text!r} is not a rate", hint="e.g. 50MB/s or 10MiB/s") from None
    if amount.strip()[-1:].isdigit() and rate:
        raise UsageError(f"{text!r} is not a rate: it has no unit", hint=f"write {amount.strip()}MB/s for megabytes")
    if rate < MIN_RATE:
        raise UsageError(f"{text!r} is not a rate of at least 1 kB/s", hint="e.g. 50MB/s")
    return rate


def parse_throughput(text: str) -> int:
    """Parse "100MB/s", "10Gbit/s" or "10Gbps" to bytes per second, rounded down.

    Raises UsageError, also without a unit and for 0.
    """
    match = _NUMBER_UNIT.fullmatch(text.strip().removesuffix("/s").rstrip())
    unit = match.group(2) if match else ""
    if unit.endswith("b"):  # "10Gb/s" is ambiguous
        raise UsageError(f"{text[:40]!r} is ambiguous: bits or bytes", hint="write 10Gbit/s or 10GB/s")
    try:
        if match and (bits := _BITS.fullmatch(unit)):
            rate = int(Fraction(match.group(1)) * _SIZE[bits.group(1).lower()] / 8)
        else:
            rate = parse_size(f"{match.group(1)}{unit}") if match and unit else 0
    except UsageError:
        rate = 0
    if not rate:
        raise UsageError(f"{text[:40]!r} is not a throughput", hint="e.g. 100MB/s or 10Gbit/s")
    return rate


def parse_percent(text: str) -> Fraction:
    """Parse "20%" or "0.2" to a fraction, which may exceed 1. Raises UsageError."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text[:40]!r} is not a percentage", hint="e.g. 20% or 0.2")
    return Fraction(match.group(1)) / (100 if match.group(2) else 1)


def parse_duration_ms(text: str) -> int:
    """Parse "500ms", "30s", "1.5h" or "7d" to milliseconds; a bare number is seconds. Raises UsageError."""
    match = _NUMBER_UNIT.fullmatch(text.strip())
    factor = _DURATION_MS.get(match.group(2).lower() or "s") if match else None
    if not match or factor is None:
        raise UsageError(f"{text!r} is not a duration", hint="e.g. 500ms, 30s, 5m, 2h or 7d")
    duration_ms = float(match.group(1)) * factor
    if duration_ms > _MAX_DURATION_MS:
        raise UsageError(f"{text[:40]!r} is longer than 1,000 years", hint="e.g. 500ms, 30s, 5m, 2h or 7d")
    return round(duration_ms)


def format_size(size_bytes: int) -> str:
    """Format bytes as "0 B", "1.5 kB" or "12 MB": three significant digits, powers of ten."""
    value, unit = float(size_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(value) < 999.5 or unit == "PB":
            break
        value /= 1000
    if unit == "B":
        return f"{size_bytes} B"
    return f"{value:.0f} {unit}" if abs(value) >= 999.5 else f"{value:.3g} {unit}"


def format_duration(duration_ms: int) -> str:
    """Format milliseconds as "350ms", "42s", "1h 3m" or "12d 4h": at most two units."""
    if duration_ms < 1000:
        return f"{duration_ms}ms"
    seconds = duration_ms // 1000
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def format_due(duration_ms: int) -> str:
    """Format the time until an event: "now", "1h 3m"."""
    return "now" if duration_ms <= 0 else format_duration(duration_ms)
