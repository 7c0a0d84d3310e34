"""JSON from elsewhere as a value of playbooks: what a report could not write down again is refused."""

from __future__ import annotations

import json
from typing import Any

from kctl.playbook.expressions import ExpressionError, Room


def value_of_json(text: str) -> Any:
    """The value. Raises ValueError for what is not JSON: NaN, numbers beyond a double, nesting that is too deep."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
        return Room(characters=len(text)).take(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ExpressionError as exc:
        raise ValueError(exc.message) from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{text[:40]} is too large for a number")
    return number
