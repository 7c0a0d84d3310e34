"""Avro's logical types in JSON: dates and times in ISO 8601, decimals and UUIDs as text.

A logical type that does not fit the type that it annotates is ignored (specification, "Logical Types"). A date or time
out of range is shown as its number.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from kctl.base.binary_layout import LITTLE_ENDIAN, UINT32, Layout

Show = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone; others get it as a suffix
_DAY = 86_400
_MAX_DECIMAL = 1024  # bytes
_MAX_SCALE = 10_000
_DURATION = Layout(LITTLE_ENDIAN, months=UINT32, days=UINT32, milliseconds=UINT32)
_UNITS = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}  # per second


def logical_type(schema: dict[str, Any], kind: str) -> Show | None:
    """Return the formatter for a schema's logical type; None if it has none, or one that kctl does not know."""
    name = schema.get("logicalType")
    if not isinstance(name, str):
        return None
    base, _, unit = name.rpartition("-")
    if name == "date" and kind == "int":
        return _date
    if unit in _UNITS and base in {"timestamp", "local-timestamp"} and kind == "long":
        return lambda value: _timestamp(value, _UNITS[unit], "Z" if base == "timestamp" else "")
    if (name, kind) in {("time-millis", "int"), ("time-micros", "long"), ("time-nanos", "long")}:
        return lambda value: _time(value, _UNITS[unit])
    if name == "decimal" and kind in {"bytes", "fixed"}:
        return _decimal(schema)
    if name == "uuid" and kind == "string":
        return _uuid_text
    if name == "uuid" and kind == "fixed" and schema.get("size") == 16:
        return lambda value: str(UUID(bytes=value))
    if name == "duration" and kind == "fixed" and schema.get("size") == _DURATION.size:
        return lambda value: dict(zip(_DURATION.fields, _DURATION.unpack(value), strict=True))
    return None


def _date(days: int) -> Any:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return days


def _timestamp(value: int, per_second: int, zone: str) -> Any:
    seconds, rest = divmod(value, per_second)
    try:
        date_time = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return value
    return date_time.isoformat() + _fraction(rest, per_second) + zone


def _time(value: int, per_second: int) -> Any:
    seconds, rest = divmod(value, per_second)
    if not 0 <= seconds < _DAY:
        return value
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60).isoformat() + _fraction(rest, per_second)


def _fraction(rest: int, per_second: int) -> str:
    """Format a fraction as datetime does: six digits or none; nine digits for nanoseconds."""
    if not rest:
        return ""
    nanos = rest * (_UNITS["nanos"] // per_second)
    return f".{nanos:09}" if nanos % 1000 else f".{nanos // 1000:06}"


def _decimal(schema: dict[str, Any]) -> Show | None:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        return None
    if precision <= 0 or scale > _MAX_SCALE:
        return None

    def show(data: bytes) -> str:
        if len(data) > _MAX_DECIMAL:
            return base64.b64encode(data).decode()
        unscaled = int.from_bytes(data, "big", signed=True)
        digits = tuple(map(int, str(abs(unscaled))))
        return str(Decimal((int(unscaled < 0), digits, -scale)))

    return show


def _uuid_text(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        return text
