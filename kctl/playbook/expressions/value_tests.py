"""The tests of expressions (`x is defined`), named as in Jinja."""

from __future__ import annotations

from kctl.playbook.expressions.functions import table
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.expressions.values import COMPARISONS, Undefined, contains, is_integer, kind_of, number, same


def _empty(value: object) -> bool:
    if kind_of(value) in {"a string", "a list", "a mapping"}:
        return not value
    raise ExpressionError("only strings, lists and mappings can be empty")


TESTS = table({
    "boolean": ("True or false.", lambda value: isinstance(value, bool)),
    "contains": ("Contains an item, a key or a substring.", contains),
    "defined": ("Exists.", lambda value: not isinstance(value, Undefined)),
    "empty": ("Has no items or characters.", _empty),
    "endswith": ("Ends with a string.", lambda value, text: isinstance(value, str) and value.endswith(text)),
    "eq": ("Equals another value.", same),
    "even": ("Even number.", lambda value: number(value) % 2 == 0),
    "false": ("False.", lambda value: value is False),
    "ge": ("Greater than or equal to another value.", COMPARISONS["gteq"]),
    "gt": ("Greater than another value.", COMPARISONS["gt"]),
    "in": ("Contained in a list, mapping or string.", COMPARISONS["in"]),
    "integer": ("Integer.", is_integer),
    "le": ("Less than or equal to another value.", COMPARISONS["lteq"]),
    "lt": ("Less than another value.", COMPARISONS["lt"]),
    "mapping": ("Mapping.", lambda value: kind_of(value) == "a mapping"),
    "ne": ("Differs from another value.", COMPARISONS["ne"]),
    "none": ("Null.", lambda value: value is None),
    "number": ("Number.", lambda value: kind_of(value) == "a number"),
    "odd": ("Odd number.", lambda value: number(value) % 2 == 1),
    "sequence": ("List.", lambda value: kind_of(value) == "a list"),
    "startswith": ("Starts with a string.", lambda value, text: isinstance(value, str) and value.startswith(text)),
    "string": ("String.", lambda value: isinstance(value, str)),
    "true": ("True.", lambda value: value is True),
    "undefined": ("Does not exist.", lambda value: isinstance(value, Undefined)),
}, accept_undefined=("defined", "undefined"))  # fmt: skip
