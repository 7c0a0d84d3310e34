"""Parse JSON as a value of a playbook. JSON that a report could not write again is rejected."""

from __future__ import annotations

import json
import re
from typing import Any

from kctl.base.text import encodable
from kctl.playbook.expressions.limits import ExpressionError, SizeBudget

_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
_MAX_DIGITS = 4300  # Python's own limit, missing in early 3.10 releases; conversion takes quadratic time


def value_of_json(text: str) -> Any:
    """Return the value.

    Raises ValueError for invalid JSON, and for NaN, numbers beyond a double, deep nesting and unpaired surrogates.
    """
    try:
        value = json.loads(text, parse_constant=_reject_constant, parse_float=_parse_float, parse_int=_parse_int)
        if _SURROGATE.search(text) and not encodable(json.dumps(value, ensure_ascii=False)):
            raise ValueError("unpaired surrogate, which UTF-8 cannot encode")
        return SizeBudget(characters=len(text)).take(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ExpressionError as exc:
        raise ValueError(exc.message) from None


def _reject_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _parse_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"{text[:40]}… is too large for a number")
    return int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{text[:40]} is too large for a number")
    return number
