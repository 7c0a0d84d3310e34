"""The filters and functions of expressions, named as in Jinja and Ansible.

The first argument is the value. `attribute` is a path of keys separated by dots.
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
_MAX_DIGITS = 64  # of a number in a string


def _attribute(value: Any, path: Any, instead: Any = None) -> Any:
    """Return the value at a path (None: the value itself), or `instead` if it does not exist."""
    for key in str(path).split(".") if path is not None else ():
        value = values.member(value, int(key) if key.isdecimal() and len(key) < 10 else key)
    return instead if isinstance(value, Undefined) and instead is not None else require(value)


def _default(value: Any, instead: Any = "", boolean: bool = False) -> Any:
    return instead if isinstance(value, Undefined) or (boolean and not value) else value


def _length(value: Any) -> int:
    if kind_of(value) in {"a string", "a list", "a mapping"}:
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
    if kinds == {"a string"}:
        spend(sum(map(len, keys)))  # comparing strings with a long common prefix is expensive
    elif kinds and kinds != {"a number"}:
        raise ExpressionError("only numbers or only strings can be sorted", hint="sort mappings with attribute='…'")
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
    """Return the unique items that are in `other`; with expected=False those that are not."""
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
        hint = "use attribute='name', or the name of a filter in quotes"
        raise ExpressionError(f"map: unknown filter {filter}", hint=hint)
    return [require(function(each, *arguments)) for each in items(value)]


def _select(value: Any, attribute: Any, test: Any, arguments: tuple[Any, ...], *, expected: bool) -> list[Any]:
    """Return the items that pass a test, or whose attribute is true; with expected=False the others."""
    function = values.truth if test is None else TESTS.get(str(test))
    if function is None:
        raise ExpressionError(f"unknown test {test}", hint=f"valid tests: {', '.join(sorted(TESTS))}")
    return [each for each in items(value) if function(_attribute(each, attribute), *arguments) == expected]


def _replace(value: Any, old: str, new: str) -> str:
    if not text(old):
        raise ExpressionError("replace: the text to replace is empty")
    if len(text(value)) + value.count(old) * (len(text(new)) - len(old)) > MAX_TEXT:
        raise text_too_long()
    return str(value.replace(old, new))


def _to_number(make: Callable[[Any], Any], kind: str) -> Callable[..., Any]:
    def convert(value: Any, default: Any = None) -> Any:
        if kind_of(value) == "a number" or (isinstance(value, str) and len(value) <= _MAX_DIGITS):
            with suppress(ValueError, OverflowError):
                return make(value)
        if default is None:
            value_text = repr(value[:40]) if isinstance(value, str) else kind_of(value)
            raise ExpressionError(f"{value_text} is not {kind}", hint="set a default as the argument, e.g. `| int(0)`")
        return default

    return convert


def _round(value: Any, digits: int = 0) -> Any:
    if digits not in range(16):
        raise ExpressionError("round: digits must be 0 to 15")
    return round(number(value), digits or None)


def _from_json(value: Any) -> Any:
    try:
        return count_all(value_of_json(text(value)))
    except ValueError as exc:
        raise ExpressionError(f"fromjson: invalid JSON: {exc}") from None


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
            message = f"expected a non-negative integer, not {kind_of(value)}"
            raise ExpressionError(message, hint="convert it with `| int`")
        return show(value)

    return convert


def _range(start: int, stop: int | None = None, step: int = 1) -> list[int]:
    numbers = range(start) if stop is None else range(start, stop, step)
    if len(numbers) > _MAX_RANGE:
        raise ExpressionError(f"range: more than {_MAX_RANGE:,} numbers")
    return list(numbers)


_DEFAULT = ("`instead` if the value does not exist; with `true` also if it is null, false, 0 or empty.", _default)
_LENGTH = ("Number of items or characters.", _length)

FILTERS = table({
    "abs": ("Absolute value.", lambda value: abs(number(value))),
    "count": _LENGTH,
    "d": _DEFAULT,
    "default": _DEFAULT,
    "difference": ("Items that are not in `other`.", lambda value, other: _common(value, other, expected=False)),
    "duration_ms": ("Milliseconds of a duration, e.g. `30s` or `5m`.", _from_unit(parse_duration_ms)),
    "first": ("First item; does not exist if the list is empty.", lambda value: _item(value, 0)),
    "flatten": ("Items of nested lists, at all levels, as one list.", _flatten),
    "float": ("Convert to a number; `default` if that fails.", _to_number(float, "a number")),
    "fromjson": ("Parse JSON.", _from_json),
    "human_duration": ("Format milliseconds: `7d`, `1h 30m`.", _to_unit(format_duration)),
    "human_size": ("Format bytes: `12.3 MB`.", _to_unit(format_size)),
    "int": ("Convert to an integer; `default` if that fails.", _to_number(int, "an integer")),
    "intersect": ("Items that are also in `other`.", lambda value, other: _common(value, other, expected=True)),
    "items": ("Convert a mapping to a list of {key, value}.",
              lambda value: [{"key": key, "value": each} for key, each in mapping(value).items()]),
    "join": ("Join the items, or the `attribute` of each, into one string.", _join),
    "keys": ("Keys of a mapping.", lambda value: list(mapping(value))),
    "last": ("Last item; does not exist if the list is empty.", lambda value: _item(value, -1)),
    "length": _LENGTH,
    "lines": ("Lines of a string.", lambda value: text(value).splitlines()),
    "list": ("The list itself; for a mapping, its keys.",
             lambda value: list(mapping(value) if kind_of(value) == "a mapping" else items(value))),
    "lower": ("Convert to lowercase.", lambda value: text(value).lower()),
    "map": ("For each item the value of `attribute` (or `default`), or the result of a named filter.", _map),
    "max": ("Largest item.", lambda value, attribute=None: _item(_sort(value, attribute=attribute), -1)),
    "min": ("Smallest item.", lambda value, attribute=None: _item(_sort(value, attribute=attribute), 0)),
    "reject": ("Items that fail a named test.",
               lambda value, test, *arguments: _select(value, None, str(test), arguments, expected=False)),
    "rejectattr": ("Items whose attribute is false, or fails a test.",
                   lambda value, attribute, test=None, *arguments: _select(
                       value, attribute, test, arguments, expected=False)),
    "replace": ("Replace each `old` with `new`.", _replace),
    "reverse": ("Items or characters in reverse order.",
                lambda value: (value if isinstance(value, str) else items(value))[::-1]),
    "round": ("Round to this many digits (default: 0).", _round),
    "select": ("Items that pass a named test.",
               lambda value, test, *arguments: _select(value, None, str(test), arguments, expected=True)),
    "selectattr": ("Items whose attribute is true, or passes a test.",
                   lambda value, attribute, test=None, *arguments: _select(
                       value, attribute, test, arguments, expected=True)),
    "size_bytes": ("Bytes of a size, e.g. `64MB` or `1GiB`.", _from_unit(parse_size)),
    "sort": ("Items in ascending order.", _sort),
    "split": ("Split at a separator (default: whitespace).",
              lambda value, separator=None: text(value).split(separator, MAX_ITEMS)),
    "string": ("Convert to a string.", lambda value: values.as_text(value)),  # noqa: PLW0108 - without its second parameter
    "sum": ("Sum of the numbers.", _sum),
    "tojson": ("Format as JSON.", lambda value: json.dumps(count_all(value), ensure_ascii=False)),
    "trim": ("Remove leading and trailing whitespace.", lambda value: text(value).strip()),
    "unique": ("Items without duplicates.", _unique),
    "upper": ("Convert to uppercase.", lambda value: text(value).upper()),
    "values": ("Values of a mapping.", lambda value: list(mapping(value).values())),
}, accept_undefined=("d", "default"))  # fmt: skip
FUNCTIONS = table({"range": ("Integers from `start` (default: 0) up to, but not including, `stop`.", _range)})
