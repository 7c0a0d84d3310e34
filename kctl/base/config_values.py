"""Config values by type, parsed like org.apache.kafka.common.config.ConfigDef.parseType.

Brokers return parsed values: "compact, delete" as "compact,delete", "0.50" as "0.5", "TRUE" as "true".
"""

from __future__ import annotations

import re

from kctl.base.units import parse_duration_ms, parse_size
from kctl.errors import UsageError

_BITS = {"short": 16, "int": 32, "long": 64}
_INTEGER = re.compile(r"[+-]?\d+")  # any script's digits, as Integer.parseInt
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?\d+", re.ASCII | re.IGNORECASE)
_SPECIAL = {"NaN": "NaN", "+NaN": "NaN", "-NaN": "NaN", "Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}
_CONTROLS_AND_BLANK = "".join(map(chr, range(0x21)))  # what String.trim removes
_COMMA = re.compile(r"[ \t\n\v\f\r]*,[ \t\n\v\f\r]*")

Value = bool | int | float | str | tuple[str, ...]


def fault_of(type_: str, text: str) -> str | None:
    """Return the problem with a value of a type (see kctl.configs.describe); None if it is valid. Pure."""
    try:
        _parse(type_, text)
    except ValueError as exc:
        return str(exc)
    return None


def same(type_: str, one: str | None, other: str | None) -> bool:
    """Return True if a broker parses two texts to the same value of a type. Pure."""
    if one is None or other is None:
        return one == other
    return comparable(type_, one) == comparable(type_, other)


def comparable(type_: str, text: str) -> Value:
    """Return a key that is equal for texts that a broker parses to the same value. Pure.

    Since 4.0, brokers drop duplicate list items (KIP-1161). The key of an invalid value is the trimmed text.
    """
    try:
        value = _parse(type_, text)
    except ValueError:
        return _trimmed(text)
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value


def _parse(type_: str, text: str) -> Value:
    """Parse a value. Raises ValueError with the requirement, e.g. "must be true or false"."""
    text = _trimmed(text)
    if type_ == "boolean":
        return _boolean(text)
    if type_ in _BITS:
        return _integer(text, _BITS[type_])
    if type_ == "double":
        return _double(text)
    if type_ == "list":
        return tuple(_COMMA.split(text)) if text else ()
    if type_ == "class" and (not text or re.search(r"\s", text)):
        raise ValueError("must be the name of a Java class")
    return text


def _trimmed(text: str) -> str:
    return text.strip(_CONTROLS_AND_BLANK)


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("must be a whole number")
    limit = 2 ** (bits - 1)
    # Python is slow to parse many digits; a valid number this long could only have leading zeros.
    value = int(text) if len(text) <= 4000 else limit
    if not -limit <= value < limit:
        raise ValueError(f"must be between {-limit} and {limit - 1}")
    return value


def _double(text: str) -> float | str:
    """Parse a number. NaN is returned as text, so that it equals itself."""
    number = text[:-1] if text[-1:] in {"f", "F", "d", "D"} else text
    if _DECIMAL.fullmatch(number):
        return float(number)
    if _HEXADECIMAL.fullmatch(number):
        return float.fromhex(number)
    special = _SPECIAL.get(text)
    if special is None:
        raise ValueError("must be a number")
    return special if special == "NaN" else float(special)


def number_for(name: str, text: str) -> str | None:
    """Return the number for "7d" in a config in milliseconds, or for "1GB" in one in bytes; else None. Pure."""
    try:
        if name.endswith(".ms"):
            return str(parse_duration_ms(text))
        if name.endswith((".seconds", ".minutes", ".hours")):
            factor = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000}[name.rpartition(".")[2]]
            return str(parse_duration_ms(text) // factor)
        if "bytes" in name.split(".") or name.endswith((".rate", ".bytes.per.second", "_byte_rate")):
            return str(parse_size(text))
    except UsageError:
        return None
    return None


def items(text: str | None) -> list[str]:
    """Return the items of a list value, split as by ConfigDef."""
    return [item for item in (part.strip() for part in (text or "").split(",")) if item]
