"""JSON from elsewhere as a value of playbooks: what a report could not write down again is refused."""

from __future__ import annotations

import json
import re
from typing import Any

from kctl.base.text import encodable
from kctl.playbook.expressions.expressions import ExpressionError, Room

_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


def value_of_json(text: str) -> Any:
    """The value. Raises ValueError for what is not JSON: NaN, numbers beyond a double, nesting that is too deep, half
    of a surrogate pair."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
        if _HALF.search(text) and not encodable(json.dumps(value, ensure_ascii=False)):
            raise ValueError("half of a surrogate pair, which UTF-8 has not")
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
