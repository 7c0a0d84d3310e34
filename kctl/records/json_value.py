"""A strict JSON parser for untrusted data, with a nesting limit that the output can handle."""

from __future__ import annotations

import json
import math
from typing import Any

_MAX_DEPTH = 200  # levels


def parse_json(data: bytes) -> Any:
    """Parse JSON. Raises ValueError for invalid JSON, including NaN and infinity, and for deep nesting."""
    try:
        value = json.loads(data, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep") from None
    # Counting brackets is quick; only text with many brackets is scanned.
    if data.count(b"[") + data.count(b"{") > _MAX_DEPTH and _too_deep(value):
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
    return value


def _too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH + 1):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
