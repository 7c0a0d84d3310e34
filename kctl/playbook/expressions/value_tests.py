"""Tests of expressions (`x is defined`), named as Jinja names them. There are no others."""

from __future__ import annotations

from kctl.playbook.expressions.functions import table
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.expressions.values import COMPARISONS, Undefined, contains, is_integer, kind_of, number, same


def _empty(value: object) -> bool:
    if kind_of(value) in {"text", "a list", "a mapping"}:
        return not value
    raise ExpressionError("only text, lists and mappings can be empty")


TESTS = table({
    "boolean": ("It is true or false.", lambda value: isinstance(value, bool)),
    "contains": ("It has an item, a key or a part of text.", contains),
    "defined": ("It exists.", lambda value: not isinstance(value, Undefined)),
    "empty": ("It has no items or characters.", _empty),
    "endswith": ("It ends with a text.", lambda value, text: isinstance(value, str) and value.endswith(text)),
    "eq": ("It equals another.", same),
    "even": ("A number that 2 divides.", lambda value: number(value) % 2 == 0),
    "false": ("It is false.", lambda value: value is False),
    "ge": ("It is at least another.", COMPARISONS["gteq"]),
    "gt": ("It is more than another.", COMPARISONS["gt"]),
    "in": ("It is in a list, a mapping or a text.", COMPARISONS["in"]),
    "integer": ("It is a whole number.", is_integer),
    "le": ("It is at most another.", COMPARISONS["lteq"]),
    "lt": ("It is less than another.", COMPARISONS["lt"]),
    "mapping": ("It is a mapping.", lambda value: kind_of(value) == "a mapping"),
    "ne": ("It differs from another.", COMPARISONS["ne"]),
    "none": ("It is null.", lambda value: value is None),
    "number": ("It is a number.", lambda value: kind_of(value) == "a number"),
    "odd": ("A number that 2 does not divide.", lambda value: number(value) % 2 == 1),
    "sequence": ("It is a list.", lambda value: kind_of(value) == "a list"),
    "startswith": ("It begins with a text.", lambda value, text: isinstance(value, str) and value.startswith(text)),
    "string": ("It is text.", lambda value: isinstance(value, str)),
    "true": ("It is true.", lambda value: value is True),
    "undefined": ("It does not exist.", lambda value: isinstance(value, Undefined)),
}, accept_undefined=("defined", "undefined"))  # fmt: skip
