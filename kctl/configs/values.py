"""Is a text a value of a config's type? As org.apache.kafka.common.config.ConfigDef.parseType reads them."""

from __future__ import annotations

import re

from kctl.errors import UsageError
from kctl.units import parse_duration_ms, parse_size

_BITS = {"short": 16, "int": 32, "long": 64}
_INTEGER = re.compile(r"[+-]?[0-9]+")


def fault_of(type_: str, text: str) -> str | None:
    """What is wrong with a value of a type (as kctl.configs.describe names them); None: nothing. Pure."""
    text = text.strip()
    if type_ == "boolean" and text.lower() not in {"true", "false"}:
        return "must be true or false"
    if type_ in _BITS:
        limit = 2 ** (_BITS[type_] - 1)
        if not _INTEGER.fullmatch(text):
            return "must be a whole number"
        if not -limit <= int(text) < limit:
            return f"must be between {-limit} and {limit - 1}"
    if type_ == "double":
        try:
            float(text)
        except ValueError:
            return "must be a number"
    if type_ == "class" and (not text or re.search(r"\s", text)):
        return "must be the name of a Java class"
    return None


def number_for(name: str, text: str) -> str | None:
    """The number that somebody meant who wrote «7d» for a config in milliseconds, or «1GB» for one in bytes. Pure."""
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


def same(type_: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a type are the same, however numbers are written: «0.50», «1e6». Pure."""
    if one is None or other is None or type_ not in (*_BITS, "double"):
        return one == other
    try:
        return float(one) == float(other) if type_ == "double" else int(one) == int(other)
    except ValueError:
        return one == other


def items(text: str | None) -> list[str]:
    """The items of a list's value, as ConfigDef splits it."""
    return [item for item in (part.strip() for part in (text or "").split(",")) if item]
