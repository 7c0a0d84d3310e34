"""The values of expressions and their operators. Values are those of JSON; nothing is converted silently."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from jinja2 import StrictUndefined

from kctl.base.suggestions import did_you_mean
from kctl.playbook.expressions.limits import (
    MAX_TEXT,
    ExpressionError,
    SizeBudget,
    check_size,
    spend,
    text_too_long,
    variables,
)  # fmt: skip

_MAX_EXPONENT = 64
_SHOWN_CHARACTERS = 100  # of a key in a message
_KINDS: dict[str, Any] = {
    "true or false": bool, "a number": (int, float), "a string": str, "a mapping": Mapping, "null": type(None),
}  # fmt: skip
_HINTS = {
    "true or false": "compare it, e.g. `… | length > 0`", "a number": "convert a string with `| int`",
    "a string": "convert it with `| string`", "a list": "convert a mapping with `| items`",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """Return "a string", "a list" and so on, for messages and checks."""
    cls: Any = type(value)
    return _kind_of_type(cls)


@lru_cache(maxsize=256)
def _kind_of_type(cls: type) -> str:
    return next((kind for kind, types in _KINDS.items() if issubclass(cls, types)), "a list")


def _expect(kind: str, value: Any) -> Any:
    if kind_of(value) != kind:
        raise ExpressionError(f"{kind_of(value)} is not {kind}", hint=_HINTS.get(kind))
    if kind in {"a string", "a list", "a mapping"}:
        spend(len(value))
    return value


# Each returns the value and counts it as work. Raises ExpressionError for a value of another kind.
text, items, mapping, number = (partial(_expect, kind) for kind in ("a string", "a list", "a mapping", "a number"))
truth = partial(_expect, "true or false")  # no guessing about the string "false" or an empty list


# --- names and members


class Undefined(StrictUndefined):
    """A name, key or item that does not exist. Only `is defined` and `default` accept it."""

    __slots__ = ()

    def error(self) -> ExpressionError:
        """Return the error. The hint is computed only here, as an expression may access thousands of missing keys."""
        holder, key = self._undefined_obj, self._undefined_name
        if self._undefined_hint is not None:
            return ExpressionError(self._undefined_hint)
        if holder is _NAMES:
            return ExpressionError(f"{key} is not defined", hint=did_you_mean(str(key), variables()))
        key_text = repr(key[:_SHOWN_CHARACTERS]) if isinstance(key, str) else str(key)
        if isinstance(holder, Mapping):
            return ExpressionError(f"key {key_text} does not exist", hint=_similar_keys(holder, key))
        if isinstance(holder, (list, tuple, str)) and is_integer(key):
            return ExpressionError(f"item {key_text} does not exist: the length is {len(holder)}")
        return ExpressionError(f"{kind_of(holder)} has no {key_text}")


_NAMES = object()  # the holder of undefined names


def variable(name: str) -> Any:
    """Return the value of a variable, or Undefined."""
    defined = variables()
    return defined[name] if name in defined else Undefined(obj=_NAMES, name=name)


def require(value: Any) -> Any:
    """Return a value. Raises ExpressionError if it is Undefined."""
    if isinstance(value, Undefined):
        raise value.error()
    return value


def member(holder: Any, key: Any) -> Any:
    """Return the value of a mapping's key or a list's item, or Undefined. Python attributes are never accessed."""
    spend(1)
    if isinstance(holder, Undefined):
        return holder
    if isinstance(holder, Mapping):
        if contains(holder, key):
            return holder[key]
    elif isinstance(holder, (list, tuple, str)) and is_integer(key) and -len(holder) <= key < len(holder):
        return holder[key]
    return Undefined(obj=holder, name=key if kind_of(key) in {"a string", "a number"} else kind_of(key))


def slice_of(value: Any, *bounds: Any) -> Any:
    """Return a slice of a list or string."""
    if not isinstance(value, (str, list, tuple)) or not all(each is None or is_integer(each) for each in bounds):
        raise ExpressionError(f"{kind_of(value)} cannot be sliced like this")
    if bounds[2] == 0:
        raise ExpressionError("the step of a slice must not be 0")
    return check_size(value[slice(*bounds)])


def is_integer(value: Any) -> bool:
    """Return True for integers, but not for booleans."""
    return isinstance(value, int) and not isinstance(value, bool)


def _similar_keys(holder: Mapping[Any, Any], key: Any) -> str | None:
    keys = [each for each in holder if isinstance(each, str)][:1000]
    names = ", ".join(each[:_SHOWN_CHARACTERS] for each in keys[:12])
    return (did_you_mean(key, keys) if isinstance(key, str) else None) or (f"valid keys: {names}" if names else None)


# --- texts


def as_text(value: Any, source: str = "it") -> str:
    """Format a value for insertion into text: scalars as in YAML, lists and mappings as JSON. Null is rejected."""
    if value is None:
        raise ExpressionError(f"{source} is null, not text", hint=f"{source} | default('', true)")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, str)):
        return str(value)
    SizeBudget(values=MAX_TEXT, characters=MAX_TEXT).take(value)
    return json.dumps(value, ensure_ascii=False)


def join_texts(values: Iterable[Any], separator: str = "", source: str = "it") -> str:
    """Join values as text. Raises ExpressionError before the text exceeds its limit."""
    size, texts = -len(separator), []
    for each in values:
        texts.append(as_text(each, source))
        size += len(texts[-1]) + len(separator)
        if size > MAX_TEXT:
            raise text_too_long()
    return str(check_size(separator.join(texts)))


# --- operators

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
}  # fmt: skip


def arithmetic(symbol: str, value: Any, other: Any) -> Any:
    """Return `value symbol other` for numbers, and for `+` also for two strings or two lists."""
    kinds = {kind_of(value), kind_of(other)}
    if symbol == "+" and kinds == {"a string"}:
        return check_size(value + other)
    if symbol == "+" and kinds == {"a list"}:
        return check_size([*value, *other])
    if symbol == "+" and "a string" in kinds:
        raise ExpressionError(f"cannot add {kind_of(value)} and {kind_of(other)}", hint="use `~` to join texts")
    number(value)
    if number(other) == 0 and symbol in {"/", "//", "%"}:
        raise ExpressionError("division by 0")
    if symbol == "**" and not (isinstance(other, int) and 0 <= other <= _MAX_EXPONENT):
        raise ExpressionError(f"an exponent must be an integer from 0 to {_MAX_EXPONENT}")
    try:
        return check_size(_ARITHMETIC[symbol](value, other))
    except OverflowError:
        raise ExpressionError("the number is not finite") from None


def compare(value: Any, *chain: Any) -> bool:
    """Return `value < other <= …`. chain: operator names, each followed by a value."""
    for name, other in zip(chain[::2], chain[1::2], strict=True):
        if not COMPARISONS[name](value, other):
            return False
        value = other
    return True


def _in_order(order: Callable[[Any, Any], bool], value: Any, other: Any) -> bool:
    if isinstance(value, str) and isinstance(other, str):
        spend(len(value) + len(other))
    elif {kind_of(value), kind_of(other)} != {"a number"}:
        raise ExpressionError(f"{kind_of(value)} and {kind_of(other)} cannot be compared", hint=_HINTS["a number"])
    return order(value, other)


def contains(value: Any, what: Any) -> bool:
    """Return True if a list has the item, a mapping the key, or a string the substring."""
    if isinstance(value, str):
        return text(what) in text(value)
    if isinstance(value, Mapping):
        return (isinstance(what, str) or is_integer(what)) and what in value
    if isinstance(value, (list, tuple)):
        return any(same(each, what) for each in value)
    raise ExpressionError(f"{kind_of(value)} cannot contain values")


def same(value: Any, other: Any) -> bool:
    """Return True if two JSON values are equal. true is not equal to 1, at any depth."""
    pairs = [(value, other)]
    while pairs:
        one, another = pairs.pop()
        spend(len(one) if isinstance(one, str) else 1)
        kind = kind_of(one)
        if kind != kind_of(another):
            return False
        if kind == "a list":
            if len(one) != len(another):
                return False
            pairs.extend(zip(one, another, strict=True))
        elif kind == "a mapping":
            if one.keys() != another.keys():
                return False
            pairs.extend((each, another[key]) for key, each in one.items())
        elif one != another:
            return False
    return True


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": same, "ne": lambda value, other: not same(value, other),
    "in": lambda value, other: contains(other, value), "notin": lambda value, other: not contains(other, value),
    "lt": partial(_in_order, operator.lt), "lteq": partial(_in_order, operator.le),
    "gt": partial(_in_order, operator.gt), "gteq": partial(_in_order, operator.ge),
}  # fmt: skip
