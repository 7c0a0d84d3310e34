"""Walks an expression's tree. Values are those of JSON; each step and each size counts against a budget."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kctl.playbook.expressions.expressions import MAX_TEXT, ExpressionError, Room, as_text

if TYPE_CHECKING:
    from jinja2 import nodes

MAX_WORK = 2_000_000  # nodes walked, values and characters touched
MAX_ITEMS = 100_000  # of one list
_WHOLE = range(-(2**63), 2**63)
_MAX_EXPONENT = 64
_CHARACTERS_AT_ONCE = 16  # text is copied many times as fast as nodes are walked
_LONGEST_SHOWN = 100  # characters of a key in a message


class Missing:
    """What is not there. It may be asked whether it is defined, and be given a default; all else raises its error."""

    def __init__(self, message: str, offset: int, hint: Callable[[], str | None] | None = None) -> None:
        """hint: worked out when somebody is told: an expression may ask for thousands of things that are not there."""
        self._message, self._offset, self._hint = message, offset, hint

    @property
    def error(self) -> ExpressionError:
        """What to tell of it."""
        return ExpressionError(self._message, self._offset, hint=self._hint() if self._hint else None)


def kind_of(value: Any) -> str:
    """«text», «a list», … for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def value_of(tree: nodes.Expr, variables: Mapping[str, Any]) -> Any:
    """The value of an expression that was parsed. Raises ExpressionError."""
    evaluator = Evaluator(variables)
    try:
        return evaluator.present(tree)
    except RecursionError:
        raise ExpressionError("nested too deeply") from None


class Evaluator:
    """One evaluation. Filters and tests get it, to count what they touch and to call each other."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._work = 0
        self._at = 0

    def fail(self, message: str, *, hint: str | None = None) -> ExpressionError:
        """The error to raise for the node that is being evaluated."""
        return ExpressionError(message, self._at, hint=hint)

    def missing(self, message: str) -> Missing:
        """What the node that is being evaluated gives when there is nothing: `default` may stand in for it."""
        return Missing(message, self._at)

    def touch(self, amount: int) -> None:
        """Count work. Raises ExpressionError when it is too much."""
        self._work += amount
        if self._work > MAX_WORK:
            raise self.fail("the expression takes too much work")

    def sized(self, value: Any) -> Any:
        """A value that was made, within the limits of one. Raises ExpressionError."""
        if isinstance(value, str):
            self.touch(len(value))
            if len(value) > MAX_TEXT:
                raise self.fail(f"a text of more than {MAX_TEXT >> 20} MiB")
        elif isinstance(value, (list, tuple, Mapping)):
            self.touch(len(value))
            if len(value) > MAX_ITEMS:
                raise self.fail(f"more than {MAX_ITEMS:,} items")
        elif isinstance(value, int) and value not in _WHOLE:
            raise self.fail("a number that does not fit into 64 bits")
        elif isinstance(value, float) and not -float("inf") < value < float("inf"):
            raise self.fail("a number that is not finite")
        return value

    def present(self, node: Any) -> Any:
        """The value of a node. Raises ExpressionError, also for what is not there."""
        value = self.evaluate(node)
        if isinstance(value, Missing):
            raise value.error
        return value

    def evaluate(self, node: Any) -> Any:
        """The value of a node, or Missing."""
        self.touch(1)
        self._at = node.lineno
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    # --- names and what is in them

    def _const(self, node: Any) -> Any:
        return self.sized(node.value)

    def _name(self, node: Any) -> Any:
        if node.name in self._variables:
            return self._variables[node.name]
        from kctl.base.suggestions import did_you_mean

        return Missing(f"{node.name} is not defined", node.lineno, lambda: did_you_mean(node.name, self._variables))

    def _getattr(self, node: Any) -> Any:
        return self.member(self.evaluate(node.node), node.attr, node.lineno + 1)

    def _getitem(self, node: Any) -> Any:
        value = self.evaluate(node.node)
        if type(node.arg).__name__ == "Slice":
            return self._slice_of(value, node.arg)
        return self.member(value, self.present(node.arg), node.lineno)

    def _slice_of(self, value: Any, node: Any) -> Any:
        if isinstance(value, Missing):
            raise value.error
        bounds = [None if each is None else self.present(each) for each in (node.start, node.stop, node.step)]
        if not isinstance(value, (str, list, tuple)) or any(not _is_whole(each) for each in bounds if each is not None):
            raise self.fail(f"{kind_of(value)} has no such part")
        if bounds[2] == 0:
            raise self.fail("a step of 0")
        return self.sized(value[slice(*bounds)])

    def member(self, value: Any, key: Any, offset: int) -> Any:
        """What a mapping has by that name, or a list at that place; Missing otherwise."""
        self.touch(1)
        if isinstance(value, Missing):
            return value
        if isinstance(value, Mapping):
            if isinstance(key, (str, int)) and not isinstance(key, bool) and key in value:
                return value[key]
            return Missing(f"there is no {_shown(key)} in it", offset, lambda: _hint_of(value, key))
        if isinstance(value, (list, tuple, str)) and _is_whole(key):
            if -len(value) <= key < len(value):
                return value[key]
            return Missing(f"there is no item {key}: it has {len(value)}", offset)
        return Missing(f"{kind_of(value)} has no {_shown(key)}", offset)

    # --- values written out

    def _list(self, node: Any) -> list[Any]:
        return [self.present(each) for each in node.items]

    _tuple = _list

    def _dict(self, node: Any) -> dict[Any, Any]:
        found = {}
        for pair in node.items:
            key = self.present(pair.key)
            if not isinstance(key, str):
                raise self.fail(f"a key is text, not {kind_of(key)}")
            found[key] = self.present(pair.value)
        return found

    # --- operators

    def _condexpr(self, node: Any) -> Any:
        if self.truth(self.present(node.test)):
            return self.present(node.expr1)
        if node.expr2 is None:
            self._at = node.lineno
            raise self.fail("`if` without `else` has no value otherwise")
        return self.present(node.expr2)

    def truth(self, value: Any) -> bool:
        """Only true and false are; text «false» or an empty list would be guessed."""
        if isinstance(value, bool):
            return value
        raise self.fail(f"{kind_of(value)} is not true or false", hint="compare it, for example `… | length > 0`")

    def _and(self, node: Any) -> bool:
        return self.truth(self.present(node.left)) and self.truth(self.present(node.right))

    def _or(self, node: Any) -> bool:
        return self.truth(self.present(node.left)) or self.truth(self.present(node.right))

    def _not(self, node: Any) -> bool:
        return not self.truth(self.present(node.node))

    def _neg(self, node: Any) -> Any:
        return self.sized(-self.number(self.present(node.node)))

    def _pos(self, node: Any) -> Any:
        return self.number(self.present(node.node))

    def number(self, value: Any) -> Any:
        """The value, when it is a number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fail(f"{kind_of(value)} is no number", hint="a text becomes one by `| int`")
        return value

    def _add(self, node: Any) -> Any:
        left, right = self.present(node.left), self.present(node.right)
        if isinstance(left, str) and isinstance(right, str):
            return self.sized(left + right)
        if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            return self.sized([*left, *right])
        if isinstance(left, str) or isinstance(right, str):
            raise self.fail(f"{kind_of(left)} + {kind_of(right)}", hint="`~` puts texts and numbers together")
        return self.sized(self.number(left) + self.number(right))

    def _mul(self, node: Any) -> Any:
        return self.sized(self.number(self.present(node.left)) * self.number(self.present(node.right)))

    def _sub(self, node: Any) -> Any:
        return self.sized(self.number(self.present(node.left)) - self.number(self.present(node.right)))

    def _div(self, node: Any) -> Any:
        return self._divided(node, operator.truediv)

    def _floordiv(self, node: Any) -> Any:
        return self._divided(node, operator.floordiv)

    def _mod(self, node: Any) -> Any:
        return self._divided(node, operator.mod)

    def _divided(self, node: Any, how: Callable[[Any, Any], Any]) -> Any:
        left, right = self.number(self.present(node.left)), self.number(self.present(node.right))
        if right == 0:
            raise self.fail("division by 0")
        return self.sized(how(left, right))

    def _pow(self, node: Any) -> Any:
        base, exponent = self.number(self.present(node.left)), self.number(self.present(node.right))
        if not isinstance(exponent, int) or not 0 <= exponent <= _MAX_EXPONENT:
            raise self.fail(f"an exponent is a whole number from 0 to {_MAX_EXPONENT}")
        try:
            return self.sized(base**exponent)
        except OverflowError:
            raise self.fail("a number that is not finite") from None

    def _concat(self, node: Any) -> str:
        size, texts = 0, []
        for each in node.nodes:
            texts.append(as_text(self.present(each), "it"))
            size += len(texts[-1])
            if size > MAX_TEXT:
                raise self.fail(f"a text of more than {MAX_TEXT >> 20} MiB")
        return str(self.sized("".join(texts)))

    def _compare(self, node: Any) -> bool:
        left = self.present(node.expr)
        for operand in node.ops:
            right = self.present(operand.expr)
            self._at = operand.expr.lineno
            if not self.compared(operand.op, left, right):
                return False
            left = right
        return True

    def compared(self, how: str, left: Any, right: Any) -> bool:
        """`left how right`, how being eq, ne, lt, lteq, gt, gteq, in or notin."""
        if how in {"in", "notin"}:
            return self._contains(right, left) == (how == "in")
        if how in {"eq", "ne"}:
            return self.same(left, right) == (how == "eq")
        self.touch(_weight(left) + _weight(right))
        if not (_is_number(left) and _is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
            raise self.fail(f"{kind_of(left)} and {kind_of(right)} have no order", hint="a text becomes one by `| int`")
        return bool(_ORDERS[how](left, right))

    def _contains(self, where: Any, what: Any) -> bool:
        if isinstance(where, str):
            if not isinstance(what, str):
                raise self.fail(f"{kind_of(what)} in text", hint="`| string` makes it text")
            self.touch(len(where) + len(what))
            return what in where
        if isinstance(where, Mapping):
            return isinstance(what, (str, int)) and not isinstance(what, bool) and what in where
        if isinstance(where, (list, tuple)):
            return any(self.same(each, what) for each in where)
        raise self.fail(f"{kind_of(where)} has nothing in it")

    def same(self, left: Any, right: Any) -> bool:
        """Equality of JSON's values: true is not 1, at no depth. What is compared counts, however often it is met."""
        waiting = [(left, right)]
        while waiting:
            one, other = waiting.pop()
            self.touch(1)
            if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
                if len(one) != len(other):
                    return False
                waiting.extend(zip(one, other, strict=True))
            elif isinstance(one, Mapping) and isinstance(other, Mapping):
                if one.keys() != other.keys():
                    return False
                waiting.extend((each, other[key]) for key, each in one.items())
            elif isinstance(one, bool) != isinstance(other, bool) or one != other:
                return False
            elif isinstance(one, str):
                self.touch(len(one))
        return True

    def weighed(self, value: Any) -> Any:
        """The value, all that is in it counted: for what goes through all of it at once. Raises ExpressionError."""
        room = Room(values=MAX_WORK - self._work, characters=MAX_TEXT)
        before = room.values
        try:
            room.take(value)
        except ExpressionError as exc:
            raise self.fail(exc.message) from None
        self.touch(before - room.values + (MAX_TEXT - room.characters) // _CHARACTERS_AT_ONCE)
        return value

    # --- functions

    def _filter(self, node: Any) -> Any:
        from kctl.playbook.expressions.filters import FILTERS

        takes_missing = node.name in {"default", "d"}
        value = self.evaluate(node.node) if takes_missing else self.present(node.node)
        return self._called(FILTERS[node.name], node, value)

    def _test(self, node: Any) -> Any:
        from kctl.playbook.expressions.value_tests import TESTS

        takes_missing = node.name in {"defined", "undefined"}
        value = self.evaluate(node.node) if takes_missing else self.present(node.node)
        return self._called(TESTS[node.name], node, value)

    def _call(self, node: Any) -> Any:
        from kctl.playbook.expressions.filters import FUNCTIONS

        return self._called(FUNCTIONS[node.node.name], node)

    def _called(self, function: Callable[..., Any], node: Any, *before: Any) -> Any:
        arguments = [self.present(each) for each in node.args]
        keywords = {each.key: self.present(each.value) for each in node.kwargs}
        self._at = node.lineno
        return self.sized(self.apply(function, *before, *arguments, **keywords))

    def apply(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """A filter's or test's result. Raises ExpressionError for what does not fit it."""
        try:
            return function(self, *arguments, **keywords)
        except (TypeError, ValueError, AttributeError, OverflowError) as exc:
            name = function.__name__.strip("_")
            raise self.fail(
                f"{name} does not fit {kind_of(arguments[0]) if arguments else 'these values'}: {exc}"
            ) from None


_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "lteq": operator.le, "gt": operator.gt, "gteq": operator.ge,
}  # fmt: skip


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(key: Any) -> str:
    return repr(key[:_LONGEST_SHOWN]) if isinstance(key, str) else repr(key) if _is_number(key) else kind_of(key)


def _hint_of(value: Mapping[Any, Any], key: Any) -> str | None:
    from kctl.base.suggestions import did_you_mean

    known = [each for each in value if isinstance(each, str)][:1000]
    named = [each[:_LONGEST_SHOWN] for each in known[:12]]
    return (did_you_mean(key, known) if isinstance(key, str) else None) or (
        f"it has {', '.join(named)}" if named else None
    )


def _weight(value: Any) -> int:
    return len(value) if isinstance(value, (str, list, tuple, Mapping)) else 1
