"""Filters and functions of expressions, named as Jinja and Ansible name them. There are no others.

Each takes the value first. `attribute` is a path of keys with dots.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kctl.base.units import format_duration, format_size, parse_duration_ms, parse_size
from kctl.errors import KctlError
from kctl.playbook.expressions import values
from kctl.playbook.expressions.functions import table
from kctl.playbook.expressions.json_text import value_of_json
from kctl.playbook.expressions.limits import (
    MAX_ITEMS,
    MAX_TEXT,
    ExpressionError,
    check_size,
    count_all,
    spend,
    text_too_long,
)
from kctl.playbook.expressions.value_tests import TESTS
from kctl.playbook.expressions.values import Undefined, items, kind_of, mapping, number, require, text

_MAX_RANGE = 10_000
_MAX_DIGITS = 64  # of a number in a text


def _attribute(value: Any, path: Any, instead: Any = None) -> Any:
    """Return the value at a path, or the value itself without one; `instead` of one that does not exist."""
    for key in str(path).split(".") if path is not None else ():
        value = values.member(value, int(key) if key.isdecimal() and len(key) < 10 else key)
    return instead if isinstance(value, Undefined) and instead is not None else require(value)


def _default(value: Any, instead: Any = "", boolean: bool = False) -> Any:
    return instead if isinstance(value, Undefined) or (boolean and not value) else value


def _length(value: Any) -> int:
    if kind_of(value) in {"text", "a list", "a mapping"}:
        return len(value)
    raise ExpressionError(f"{kind_of(value)} has no length")


def _join(value: Any, separator: str = "", attribute: Any = None) -> str:
    return values.join_texts((_attribute(each, attribute) for each in items(value)), text(separator), "an item")


def _item(value: Any, index: int) -> Any:
    return (value if isinstance(value, str) else items(value))[index] if value else Undefined(hint="it is empty")


def _sort(value: Any, reverse: bool = False, attribute: Any = None) -> list[Any]:
    spend(len(items(value)) * len(value).bit_length())
    keys = [_attribute(each, attribute) for each in value]
    kinds = set(map(kind_of, keys))
    if kinds == {"text"}:
        spend(sum(map(len, keys)))  # long texts that begin alike are compared to their ends
    elif kinds and kinds != {"a number"}:
        raise ExpressionError("only numbers, or only texts, have an order", hint="attribute='…' orders mappings")
    return [value[index] for index in sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse))]


def _sum(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    total = number(start)
    for each in items(value):
        total = check_size(total + number(_attribute(each, attribute)))
    return total


def _identity(value: Any) -> str:
    return json.dumps(count_all(value), sort_keys=True)


def _unique(value: Any, attribute: Any = None) -> list[Any]:
    first: dict[str, Any] = {}
    for each in items(value):
        first.setdefault(_identity(_attribute(each, attribute)), each)
    return list(first.values())


def _common(value: Any, other: Any, *, expected: bool) -> list[Any]:
    """Return the unique items that `other` has, or does not have."""
    others = {_identity(each) for each in items(other)}
    return [each for each in _unique(value) if (_identity(each) in others) == expected]


def _flatten(value: Any) -> list[Any]:
    flat, stack = [], [*reversed(items(value))]
    while stack:
        each = stack.pop()
        spend(1)
        if kind_of(each) == "a list":
            stack.extend(reversed(items(each)))
        else:
            flat.append(each)
    return flat


def _map(value: Any, filter: Any = None, *arguments: Any, attribute: Any = None, default: Any = None) -> list[Any]:  # noqa: A002 - Jinja's
    if attribute is not None:
        return [_attribute(each, attribute, default) for each in items(value)]
    function = FILTERS.get(str(filter))
    if function is None or function.call is _map:
        hint = "attribute='name', or the name of a filter in quotes"
        raise ExpressionError(f"map: there is no filter {filter}", hint=hint)
    return [require(function(each, *arguments)) for each in items(value)]


def _select(value: Any, attribute: Any, test: Any, arguments: tuple[Any, ...], *, expected: bool) -> list[Any]:
    """Return the items that fulfil a test, or whose attribute is true; with expected=False the others."""
    function = values.truth if test is None else TESTS.get(str(test))
    if function is None:
        raise ExpressionError(f"there is no test {test}", hint=", ".join(sorted(TESTS)))
    return [each for each in items(value) if function(_attribute(each, attribute), *arguments) == expected]


def _replace(value: Any, old: str, new: str) -> str:
    if not text(old):
        raise ExpressionError("replace: what is replaced is empty")
    if len(text(value)) + value.count(old) * (len(text(new)) - len(old)) > MAX_TEXT:
        raise text_too_long()
    return str(value.replace(old, new))


def _to_number(make: Callable[[Any], Any], kind: str) -> Callable[..., Any]:
    def convert(value: Any, default: Any = None) -> Any:
        if kind_of(value) == "a number" or (isinstance(value, str) and len(value) <= _MAX_DIGITS):
            with suppress(ValueError, OverflowError):
                return make(value)
        if default is None:
            shown = repr(value[:40]) if isinstance(value, str) else kind_of(value)
            raise ExpressionError(f"{shown} is no {kind}", hint="a second value in the brackets is taken instead")
        return default

    return convert


def _round(value: Any, digits: int = 0) -> Any:
    if digits not in range(16):
        raise ExpressionError("round: digits are a number from 0 to 15")
    return round(number(value), digits or None)


def _from_json(value: Any) -> Any:
    try:
        return count_all(value_of_json(text(value)))
    except ValueError as exc:
        raise ExpressionError(f"fromjson: not JSON: {exc}") from None


def _from_unit(parse: Callable[[str], int]) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        try:
            return parse(text(value))
        except KctlError as exc:
            raise ExpressionError(exc.message, hint=exc.hint) from None

    return convert


def _to_unit(show: Callable[[int], str]) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if not values.is_integer(value) or value < 0:
            message = f"a whole number that is not negative is wanted, not {kind_of(value)}"
            raise ExpressionError(message, hint="`| int` makes it")
        return show(value)

    return convert


def _range(start: int, stop: int | None = None, step: int = 1) -> list[int]:
    numbers = range(start) if stop is None else range(start, stop, step)
    if len(numbers) > _MAX_RANGE:
        raise ExpressionError(f"range: more than {_MAX_RANGE:,} numbers")
    return list(numbers)


_DEFAULT = ("`instead` of what is not there; with a second `true` also of null, false, 0 and what is empty.", _default)
_LENGTH = ("How many items or characters it has.", _length)

FILTERS = table({
    "abs": ("Without its sign.", lambda value: abs(number(value))),
    "count": _LENGTH,
    "d": _DEFAULT,
    "default": _DEFAULT,
    "difference": ("The items that `other` does not have.", lambda value, other: _common(value, other, expected=False)),
    "duration_ms": ("A duration such as `30s` or `5m` in milliseconds.", _from_unit(parse_duration_ms)),
    "first": ("The first item; of none, what `default` stands in for.", lambda value: _item(value, 0)),
    "flatten": ("The items of the lists in it, all levels, as one list.", _flatten),
    "float": ("A number of a text; `default` where it is none.", _to_number(float, "number")),
    "fromjson": ("The value of a JSON text.", _from_json),
    "human_duration": ("Milliseconds for people: `7d`, `1h 30m`.", _to_unit(format_duration)),
    "human_size": ("Bytes for people: `12.3 MB`.", _to_unit(format_size)),
    "int": ("A whole number of a text or a number; `default` where it is none.", _to_number(int, "whole number")),
    "intersect": ("The items that `other` has as well.", lambda value, other: _common(value, other, expected=True)),
    "items": ("A mapping as a list of {key, value}.",
              lambda value: [{"key": key, "value": each} for key, each in mapping(value).items()]),
    "join": ("The items as one text.", _join),
    "keys": ("The keys of a mapping.", lambda value: list(mapping(value))),
    "last": ("The last item; of none, what `default` stands in for.", lambda value: _item(value, -1)),
    "length": _LENGTH,
    "lines": ("The lines of a text.", lambda value: text(value).splitlines()),
    "list": ("A list as it is; the keys of a mapping.",
             lambda value: list(mapping(value) if kind_of(value) == "a mapping" else items(value))),
    "lower": ("In lowercase.", lambda value: text(value).lower()),
    "map": ("What each item has by `attribute` (or `default`), or what a filter, by name, makes of it.", _map),
    "max": ("The largest item.", lambda value, attribute=None: _item(_sort(value, attribute=attribute), -1)),
    "min": ("The smallest item.", lambda value, attribute=None: _item(_sort(value, attribute=attribute), 0)),
    "reject": ("The items that do not fulfil a test, by name.",
               lambda value, test, *arguments: _select(value, None, str(test), arguments, expected=False)),
    "rejectattr": ("The items whose attribute is false, or does not fulfil a test.",
                   lambda value, attribute, test=None, *arguments: _select(
                       value, attribute, test, arguments, expected=False)),
    "replace": ("With `new` instead of each `old`.", _replace),
    "reverse": ("The items, or characters, from the last to the first.",
                lambda value: (value if isinstance(value, str) else items(value))[::-1]),
    "round": ("Rounded to so many digits; a whole number without.", _round),
    "select": ("The items that fulfil a test, by name.",
               lambda value, test, *arguments: _select(value, None, str(test), arguments, expected=True)),
    "selectattr": ("The items whose attribute is true, or fulfils a test.",
                   lambda value, attribute, test=None, *arguments: _select(
                       value, attribute, test, arguments, expected=True)),
    "size_bytes": ("A size such as `64MB` or `1GiB` in bytes.", _from_unit(parse_size)),
    "sort": ("The items in order.", _sort),
    "split": ("The parts between separators, or between white space.",
              lambda value, separator=None: text(value).split(separator, MAX_ITEMS)),
    "string": ("As text.", lambda value: values.as_text(value)),  # noqa: PLW0108 - without its second parameter
    "sum": ("The numbers together.", _sum),
    "tojson": ("As JSON.", lambda value: json.dumps(count_all(value), ensure_ascii=False)),
    "trim": ("Without space around it.", lambda value: text(value).strip()),
    "unique": ("The items without those that were there before.", _unique),
    "upper": ("In uppercase.", lambda value: text(value).upper()),
    "values": ("The values of a mapping.", lambda value: list(mapping(value).values())),
}, accept_undefined=("d", "default"))  # fmt: skip
FUNCTIONS = table({"range": ("Whole numbers from `start` (or 0) to below `stop`.", _range)})
