"""Conditions on JSON values, e.g. `user.address[0].city == "Paris"`.

    condition := path [operator literal]            without an operator: the path exists
    path      := ["$"] step …                       "$" or "." alone is the whole value
    step      := ["."] name | '.' '"' … '"' | [N] | ["name"] | [*]       N may be negative; [*]: any element or member
    operator  := == | != | < | <= | > | >= | =~     =~: a string contains a match of the regular expression
    literal   := JSON: "text", number, true, false, null

Numbers compare with numbers, strings with strings; values of different types are neither equal nor less. With [*], a
condition is true if it is true for any of the values. Every condition, including !=, requires that the path exists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kctl.errors import UsageError

_ROOT = re.compile(r"\$|\.(?=\s|[=!<>]|$)")  # the whole value
_QUOTED = r"\"(?:[^\"\\]|\\.)*\""
_STEP = re.compile(rf"\.?([A-Za-z_][A-Za-z0-9_-]*)|\.({_QUOTED})|\[\s*(-?\d{{1,9}}|\*|{_QUOTED})\s*\]")
_OPERATOR = re.compile(r"\s*(==|!=|<=|>=|=~|<|>)\s*")
_EXAMPLE = "for example 'user.tags[0] == \"new\"', 'amount >= 100' or 'error'"
_MAX_LENGTH = 1000
_ANY = object()


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition; call it with a JSON value."""

    steps: tuple[Any, ...]  # str: a member, int: an element, _ANY
    holds: Callable[[Any], bool] | None
    text: str

    def __call__(self, value: Any) -> bool:
        values = _at(value, self.steps)
        if self.holds is None:
            return any(True for _ in values)
        return any(map(self.holds, values))


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises UsageError."""
    if len(text) > _MAX_LENGTH:
        raise _bad(text, f"it is longer than {_MAX_LENGTH} characters")
    source = text.strip()
    root = _ROOT.match(source)
    position = root.end() if root else 0
    steps: list[Any] = []
    while match := _STEP.match(source, position):
        if match[1] is not None and position > 0 and source[position] != ".":
            break  # two names without a dot between them
        steps.append(_step(match))
        position = match.end()
    rest = source[position:]
    if not steps and root is None and (not rest.strip() or _OPERATOR.match(rest)):
        raise _bad(text, "it has no path")
    if not rest.strip():
        return Condition(tuple(steps), None, text)
    operator = _OPERATOR.match(rest)
    if operator is None:
        raise _bad(text, f"{rest.strip()[:20]!r} is not an operator")
    literal = rest[operator.end() :]
    try:
        expected = json.loads(literal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _bad(text, f"{literal[:20]!r} is not a JSON value; strings need double quotes") from None
    return Condition(tuple(steps), _test(operator[1], expected, text), text)


def _step(match: re.Match[str]) -> Any:
    if match[1] is not None:
        return match[1]
    inner = match[2] or match[3]
    if inner == "*":
        return _ANY
    return json.loads(inner)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _bad(text: str, why: str) -> UsageError:
    return UsageError(f"--json-path {text[:80]!r} is not a condition: {why}", hint=_EXAMPLE)


def _at(value: Any, steps: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the values at the end of the path: none, one, or several."""
    for number, step in enumerate(steps):
        if step is _ANY:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            for each in inner:
                yield from _at(each, steps[number + 1 :])
            return
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return
            value = value[step]
        else:
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return
            value = value[step]
    yield value


def _test(operator: str, expected: Any, text: str) -> Callable[[Any], bool]:
    if operator == "=~":
        if not isinstance(expected, str):
            raise _bad(text, "=~ needs a regular expression in double quotes")
        try:
            pattern = re.compile(expected)
        except (re.error, OverflowError, RecursionError) as exc:
            raise _bad(text, f"invalid regular expression: {exc}") from None
        return lambda value: isinstance(value, str) and pattern.search(value) is not None
    if operator == "==":
        return lambda value: _same(value, expected)
    if operator == "!=":
        return lambda value: not _same(value, expected)
    if isinstance(expected, bool) or not isinstance(expected, (int, float, str)):
        raise _bad(text, f"{operator} needs a number or a string")
    compare: Callable[[Any], bool] = {
        "<": lambda value: value < expected,
        "<=": lambda value: value <= expected,
        ">": lambda value: value > expected,
        ">=": lambda value: value >= expected,
    }[operator]
    kinds = (str,) if isinstance(expected, str) else (int, float)
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool) and compare(value)


def _same(value: Any, expected: Any) -> bool:
    """Return True if two JSON values are equal: true is not 1."""
    return isinstance(value, bool) == isinstance(expected, bool) and bool(value == expected)
