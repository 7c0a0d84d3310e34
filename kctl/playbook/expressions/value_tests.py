"""Tests of expressions (`x is defined`): a white list, named as Jinja names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kctl.playbook.expressions.evaluation import Evaluator, Missing


def defined(run: Evaluator, value: Any) -> bool:  # noqa: ARG001 - all tests take it
    """It is there."""
    return not isinstance(value, Missing)


def undefined(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is not there."""
    return isinstance(value, Missing)


def none(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is null."""
    return value is None


def true(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is true."""
    return value is True


def false(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is false."""
    return value is False


def boolean(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is true or false."""
    return isinstance(value, bool)


def number(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def integer(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def string(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is text."""
    return isinstance(value, str)


def mapping(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is a mapping."""
    return isinstance(value, Mapping)


def sequence(run: Evaluator, value: Any) -> bool:  # noqa: ARG001
    """It is a list."""
    return isinstance(value, (list, tuple))


def empty(run: Evaluator, value: Any) -> bool:
    """It has no items or characters."""
    if isinstance(value, (str, list, tuple, Mapping)):
        return not value
    raise run.fail("only text, lists and mappings can be empty")


def even(run: Evaluator, value: Any) -> bool:
    """A number that 2 divides."""
    return bool(run.number(value) % 2 == 0)


def odd(run: Evaluator, value: Any) -> bool:
    """A number that 2 does not divide."""
    return bool(run.number(value) % 2 == 1)


def startswith(run: Evaluator, value: Any, text: str) -> bool:  # noqa: ARG001
    """It begins with a text."""
    return isinstance(value, str) and value.startswith(text)


def endswith(run: Evaluator, value: Any, text: str) -> bool:  # noqa: ARG001
    """It ends with a text."""
    return isinstance(value, str) and value.endswith(text)


def contains(run: Evaluator, value: Any, what: Any) -> bool:
    """It has an item, a key or a part of text."""
    return run.compared("in", what, value)


def _comparing(how: str, says: str) -> Callable[..., bool]:
    def test(run: Evaluator, value: Any, other: Any) -> bool:
        return run.compared(how, value, other)

    test.__name__, test.__doc__ = how, says
    return test


TESTS: dict[str, Callable[..., bool]] = {
    "boolean": boolean, "contains": contains, "defined": defined, "empty": empty, "endswith": endswith,
    "eq": _comparing("eq", "It equals another."), "even": even, "false": false,
    "ge": _comparing("gteq", "It is at least another."), "gt": _comparing("gt", "It is more than another."),
    "in": _comparing("in", "It is in a list, a mapping or a text."), "integer": integer,
    "le": _comparing("lteq", "It is at most another."), "lt": _comparing("lt", "It is less than another."),
    "mapping": mapping, "ne": _comparing("ne", "It differs from another."), "none": none, "number": number, "odd": odd,
    "sequence": sequence, "startswith": startswith, "string": string, "true": true, "undefined": undefined,
}  # fmt: skip
