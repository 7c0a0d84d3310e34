"""Filters and functions of expressions: a white list, named as Jinja and Ansible name them.

Each takes the evaluator first, then the value; what it returns is bounded by the evaluator. `attribute` is a path of
names with dots.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kctl.base.units import format_duration, format_size, parse_duration_ms, parse_size
from kctl.errors import KctlError
from kctl.playbook.expressions.evaluation import MAX_ITEMS, Evaluator, Missing, kind_of
from kctl.playbook.expressions.expressions import MAX_TEXT, as_text
from kctl.playbook.expressions.json_text import value_of_json

_MAX_RANGE = 10_000


def _items(run: Evaluator, value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        run.touch(len(value))
        return list(value)
    raise run.fail(f"a list is wanted, not {kind_of(value)}")


def _text(run: Evaluator, value: Any) -> str:
    if isinstance(value, str):
        run.touch(len(value))
        return value
    raise run.fail(f"text is wanted, not {kind_of(value)}", hint="`| string` makes it text")


def _mapping(run: Evaluator, value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        run.touch(len(value))
        return value
    raise run.fail(f"a mapping is wanted, not {kind_of(value)}")


def _of(run: Evaluator, value: Any, attribute: Any) -> Any:
    """The value itself, or what it has by that path."""
    if attribute is None:
        return value
    for part in str(attribute).split("."):
        value = run.member(value, int(part) if part.isdecimal() and len(part) < 10 else part, 0)
    if isinstance(value, Missing):
        raise run.fail(value.error.message, hint=value.error.hint)
    return value


def default(run: Evaluator, value: Any, instead: Any = "", boolean: bool = False) -> Any:  # noqa: ARG001 - each takes it
    """`instead` of what is not there; with a second `true` also of null, false, 0 and what is empty."""
    return instead if isinstance(value, Missing) or (boolean and not value) else value


def length(run: Evaluator, value: Any) -> int:
    """How many items or characters it has."""
    if isinstance(value, (str, list, tuple, Mapping)):
        return len(value)
    raise run.fail(f"{kind_of(value)} has no length")


def join(run: Evaluator, value: Any, separator: str = "", attribute: Any = None) -> str:
    """The items as one text."""
    separator = _text(run, separator)
    texts, size = [], 0
    for each in _items(run, value):
        texts.append(as_text(_of(run, each, attribute), "an item"))
        size += len(texts[-1]) + len(separator)
        if size > MAX_TEXT + len(separator):
            raise run.fail(f"a text of more than {MAX_TEXT >> 20} MiB")
    return separator.join(texts)


def list_(run: Evaluator, value: Any) -> list[Any]:
    """A list as it is; the keys of a mapping."""
    return list(value) if isinstance(value, Mapping) else _items(run, value)


def first(run: Evaluator, value: Any) -> Any:
    """The first item; of none, what `default` stands in for."""
    return _at_end(run, value, 0)


def last(run: Evaluator, value: Any) -> Any:
    """The last item; of none, what `default` stands in for."""
    return _at_end(run, value, -1)


def _at_end(run: Evaluator, value: Any, index: int) -> Any:
    items = value if isinstance(value, str) else _items(run, value)
    if not items:
        return run.missing("it is empty")
    return items[index]


def _ordered(run: Evaluator, values: list[Any]) -> list[Any]:
    """Values that have an order among each other: all numbers, or all texts."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    if not numbers and not all(isinstance(each, str) for each in values):
        raise run.fail("only numbers, or only texts, have an order", hint="attribute='…' orders mappings")
    if not numbers:
        run.touch(sum(map(len, values)))  # long texts that begin alike are compared to their ends
    return values


def sort(run: Evaluator, value: Any, reverse: bool = False, attribute: Any = None) -> list[Any]:
    """The items in order."""
    items = _items(run, value)
    run.touch(len(items) * max(len(items).bit_length(), 1))
    keys = _ordered(run, [_of(run, each, attribute) for each in items])
    order = sorted(range(len(items)), key=lambda index: keys[index], reverse=bool(reverse))
    return [items[index] for index in order]


def max_(run: Evaluator, value: Any, attribute: Any = None) -> Any:
    """The largest item."""
    return last(run, sort(run, value, attribute=attribute))


def min_(run: Evaluator, value: Any, attribute: Any = None) -> Any:
    """The smallest item."""
    return first(run, sort(run, value, attribute=attribute))


def sum_(run: Evaluator, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """The numbers together."""
    total = run.number(start)
    for each in _items(run, value):
        total = run.sized(total + run.number(_of(run, each, attribute)))
    return total


def unique(run: Evaluator, value: Any, attribute: Any = None) -> list[Any]:
    """The items without those that were there before."""
    found: dict[str, Any] = {}
    for each in _items(run, value):
        found.setdefault(_key(run, _of(run, each, attribute)), each)
    return list(found.values())


def _key(run: Evaluator, value: Any) -> str:
    """The same for values that are the same."""
    return json.dumps(run.weighed(value), sort_keys=True)


def reverse(run: Evaluator, value: Any) -> Any:
    """The items, or characters, from the last to the first."""
    return value[::-1] if isinstance(value, str) else _items(run, value)[::-1]


def flatten(run: Evaluator, value: Any) -> list[Any]:
    """The items of the lists in it, all levels, as one list."""
    found: list[Any] = []
    waiting = _items(run, value)[::-1]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting.extend(reversed(_items(run, each)))
        else:
            run.touch(1)
            found.append(each)
    return found


def difference(run: Evaluator, value: Any, other: Any) -> list[Any]:
    """The items that `other` does not have."""
    taken = {_key(run, each) for each in _items(run, other)}
    return [each for each in unique(run, value) if _key(run, each) not in taken]


def intersect(run: Evaluator, value: Any, other: Any) -> list[Any]:
    """The items that `other` has as well."""
    taken = {_key(run, each) for each in _items(run, other)}
    return [each for each in unique(run, value) if _key(run, each) in taken]


def map_(
    run: Evaluator,
    value: Any,
    filter: str | None = None,  # noqa: A002 - Jinja's
    *arguments: Any,
    attribute: Any = None,
    default: Any = None,
) -> list[Any]:
    """What each item has by `attribute` (or `default`), or what a filter, by name, makes of it."""
    items = _items(run, value)
    if attribute is not None:
        return [_of_or(run, each, attribute, default) for each in items]
    function = FILTERS.get(str(filter))
    if function is None or function is map_:
        raise run.fail(f"map: there is no filter {filter}", hint="attribute='name', or the name of a filter in quotes")
    return [run.sized(run.apply(function, each, *arguments)) for each in items]


def _of_or(run: Evaluator, value: Any, attribute: Any, instead: Any) -> Any:
    if instead is None:
        return _of(run, value, attribute)
    for part in str(attribute).split("."):
        value = run.member(value, part, 0)
    return instead if isinstance(value, Missing) else value


def _chosen(run: Evaluator, value: Any, attribute: Any, test: Any, given: tuple[Any, ...], wanted: bool) -> list[Any]:
    from kctl.playbook.expressions.value_tests import TESTS

    items = _items(run, value)
    if test is None:
        return [each for each in items if run.truth(_of(run, each, attribute)) == wanted]
    function = TESTS.get(str(test))
    if function is None:
        raise run.fail(f"there is no test {test}", hint=", ".join(sorted(TESTS)))
    return [each for each in items if run.apply(function, _of(run, each, attribute), *given) == wanted]


def select(run: Evaluator, value: Any, test: str, *arguments: Any) -> list[Any]:
    """The items that fulfil a test, by name."""
    return _chosen(run, value, None, test, arguments, wanted=True)


def reject(run: Evaluator, value: Any, test: str, *arguments: Any) -> list[Any]:
    """The items that do not fulfil a test, by name."""
    return _chosen(run, value, None, test, arguments, wanted=False)


def selectattr(run: Evaluator, value: Any, attribute: str, test: str | None = None, *arguments: Any) -> list[Any]:
    """The items whose attribute is true, or fulfils a test."""
    return _chosen(run, value, attribute, test, arguments, wanted=True)


def rejectattr(run: Evaluator, value: Any, attribute: str, test: str | None = None, *arguments: Any) -> list[Any]:
    """The items whose attribute is false, or does not fulfil a test."""
    return _chosen(run, value, attribute, test, arguments, wanted=False)


def items(run: Evaluator, value: Any) -> list[dict[str, Any]]:
    """A mapping as a list of {key, value}."""
    return [{"key": key, "value": each} for key, each in _mapping(run, value).items()]


def keys(run: Evaluator, value: Any) -> list[Any]:
    """The keys of a mapping."""
    return list(_mapping(run, value))


def values(run: Evaluator, value: Any) -> list[Any]:
    """The values of a mapping."""
    return list(_mapping(run, value).values())


def lower(run: Evaluator, value: Any) -> str:
    """In small letters."""
    return _text(run, value).lower()


def upper(run: Evaluator, value: Any) -> str:
    """In capital letters."""
    return _text(run, value).upper()


def trim(run: Evaluator, value: Any) -> str:
    """Without space around it."""
    return _text(run, value).strip()


def replace(run: Evaluator, value: Any, old: str, new: str) -> str:
    """With `new` instead of each `old`."""
    text, old, new = _text(run, value), _text(run, old), _text(run, new)
    if not old:
        raise run.fail("replace: what is replaced is empty")
    if len(text) + text.count(old) * (len(new) - len(old)) > MAX_TEXT:
        raise run.fail(f"a text of more than {MAX_TEXT >> 20} MiB")
    return text.replace(old, new)


def split(run: Evaluator, value: Any, separator: str | None = None) -> list[str]:
    """The parts between separators, or between white space."""
    text = _text(run, value)
    return text.split(separator, MAX_ITEMS)


def lines(run: Evaluator, value: Any) -> list[str]:
    """The lines of a text."""
    return _text(run, value).splitlines()


def string(run: Evaluator, value: Any) -> str:  # noqa: ARG001 - each takes it
    """As text."""
    return as_text(value, "it")


def int_(run: Evaluator, value: Any, default: Any = None) -> Any:
    """A whole number of a text or a number; `default` where it is none."""
    return _numeric(run, int, value, default, "whole number")


def float_(run: Evaluator, value: Any, default: Any = None) -> Any:
    """A number of a text; `default` where it is none."""
    return _numeric(run, float, value, default, "number")


def _numeric(run: Evaluator, make: Callable[[Any], Any], value: Any, default: Any, what: str) -> Any:
    short = isinstance(value, str) and len(value) <= 64  # no number is longer
    if short or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        with suppress(ValueError, OverflowError):
            return make(value)
    return _or_default(run, value, default, what)


def _or_default(run: Evaluator, value: Any, default: Any, what: str) -> Any:
    if default is None:
        shown = repr(value[:40]) if isinstance(value, str) else kind_of(value)
        raise run.fail(f"{shown} is no {what}", hint="a second value in the brackets is taken instead")
    return default


def round_(run: Evaluator, value: Any, digits: int = 0) -> Any:
    """Rounded to so many digits; a whole number without."""
    number = run.number(value)
    if digits not in range(16):
        raise run.fail("round: digits are a number from 0 to 15")
    return round(number, digits) if digits else round(number)


def abs_(run: Evaluator, value: Any) -> Any:
    """Without its sign."""
    return abs(run.number(value))


def tojson(run: Evaluator, value: Any) -> str:
    """As JSON."""
    return json.dumps(run.weighed(value), ensure_ascii=False)


def fromjson(run: Evaluator, value: Any) -> Any:
    """What a JSON text says."""
    text = _text(run, value)
    try:
        found = value_of_json(text)
    except ValueError as exc:
        raise run.fail(f"fromjson: not JSON: {exc}") from None
    return run.weighed(found)


def duration_ms(run: Evaluator, value: Any) -> int:
    """«30s», «5m» in milliseconds."""
    return _parsed(run, parse_duration_ms, value)


def size_bytes(run: Evaluator, value: Any) -> int:
    """«64MB», «1GiB» in bytes."""
    return _parsed(run, parse_size, value)


def human_duration(run: Evaluator, value: Any) -> str:
    """Milliseconds for people: «7d», «1h 30m»."""
    return format_duration(_not_negative(run, value))


def human_size(run: Evaluator, value: Any) -> str:
    """Bytes for people: «12.3 MB»."""
    return format_size(_not_negative(run, value))


def _not_negative(run: Evaluator, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise run.fail(f"a whole number that is not negative is wanted, not {kind_of(value)}", hint="`| int` makes it")
    return value


def _parsed(run: Evaluator, parse: Callable[[str], int], value: Any) -> int:
    try:
        return parse(_text(run, value))
    except KctlError as exc:
        raise run.fail(exc.message, hint=exc.hint) from None


def range_(run: Evaluator, start: int, stop: int | None = None, step: int = 1) -> list[int]:
    """Whole numbers from `start` (or 0) to below `stop`."""
    found = range(start) if stop is None else range(start, stop, step)
    if len(found) > _MAX_RANGE:
        raise run.fail(f"range: more than {_MAX_RANGE:,} numbers")
    return list(found)


FILTERS: dict[str, Callable[..., Any]] = {
    "abs": abs_, "count": length, "d": default, "default": default, "difference": difference,
    "duration_ms": duration_ms, "first": first, "flatten": flatten, "float": float_, "fromjson": fromjson,
    "human_duration": human_duration, "human_size": human_size, "int": int_, "intersect": intersect, "items": items,
    "join": join, "keys": keys, "last": last, "length": length, "lines": lines, "list": list_, "lower": lower,
    "map": map_, "max": max_, "min": min_, "reject": reject, "rejectattr": rejectattr, "replace": replace,
    "reverse": reverse, "round": round_, "select": select, "selectattr": selectattr, "size_bytes": size_bytes,
    "sort": sort, "split": split, "string": string, "sum": sum_, "tojson": tojson, "trim": trim, "unique": unique,
    "upper": upper, "values": values,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {"range": range_}
