"""Limits on what one expression may read, build and return. Each size counts, however often a value is reused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from kctl.base.cpu_limit import cpu_limit
from kctl.errors import UsageError

MAX_CHARACTERS = 4096  # of an expression
MAX_NODES = 500  # of an expression's syntax tree
MAX_NESTING = 60  # of nodes in each other; Python compiles no more than 200 brackets in brackets
MAX_TEXT_EXPRESSIONS = 1000  # expressions in one text
MAX_TEXT = 1 << 20  # characters of one text
MAX_ITEMS = 100_000  # of one list
MAX_WORK = 2_000_000  # characters and items that one expression reads or builds
MAX_VALUES = 1_000_000  # in the lists and mappings of a result
MAX_RESULT = 1 << 25  # characters of a result, in all of its texts
MAX_DEPTH = 100  # of lists and mappings in each other
CPU_SECONDS = 10.0  # for all expressions of a value, such as an argument of a step; the work of one ends sooner
_INT64 = range(-(2**63), 2**63)
_CHARACTERS_AT_ONCE = 16  # text is copied many times as fast as items are visited


class ExpressionError(UsageError):
    """An expression that cannot be parsed, or has no value. offset: of the character where a parse error is."""

    def __init__(self, message: str, offset: int = 0, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset


@dataclass
class Evaluation:
    """One evaluation of one expression. work: characters and items so far."""

    variables: Mapping[str, Any]
    work: int = 0


_CURRENT: ContextVar[Evaluation] = ContextVar("evaluation")


@contextmanager
def evaluation(variables: Mapping[str, Any]) -> Iterator[None]:
    """Begin the evaluation of one expression. Names in the block are looked up in `variables`."""
    token = _CURRENT.set(Evaluation(variables))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def variables() -> Mapping[str, Any]:
    """Return the variables of the current evaluation."""
    return _CURRENT.get().variables


def spend(amount: int) -> None:
    """Count work of the current evaluation. Raises ExpressionError when it is too much."""
    current = _CURRENT.get()
    current.work += amount
    if current.work > MAX_WORK:
        raise _too_much_work()


def _too_much_work() -> ExpressionError:
    return ExpressionError("the expression takes too much work")


def limit_cpu() -> Any:
    """Return a context manager that ends expressions after CPU_SECONDS; it works in the main thread only."""
    return cpu_limit(CPU_SECONDS, _too_much_work)


def check_size(value: Any) -> Any:
    """Return a new value if it is within the limits of one value. Raises ExpressionError."""
    if isinstance(value, str):
        spend(len(value))
        if len(value) > MAX_TEXT:
            raise text_too_long()
    elif isinstance(value, (list, tuple, Mapping)):
        spend(len(value))
        if len(value) > MAX_ITEMS:
            raise ExpressionError(f"more than {MAX_ITEMS:,} items")
    elif isinstance(value, int) and value not in _INT64:
        raise ExpressionError("a number that does not fit into 64 bits")
    elif isinstance(value, float) and not -float("inf") < value < float("inf"):
        raise ExpressionError("a number that is not finite")
    return value


def text_too_long() -> ExpressionError:
    """Return the error of a text beyond MAX_TEXT."""
    return ExpressionError(f"a text of more than {MAX_TEXT >> 20} MiB")


def count_all(value: Any) -> Any:
    """Return the value, with everything in it counted as work: for functions that visit all of it at once."""
    most = min(MAX_VALUES, MAX_WORK - _CURRENT.get().work)
    size = SizeBudget(values=most, characters=MAX_TEXT)
    size.take(value)
    spend(most - size.values + (MAX_TEXT - size.characters) // _CHARACTERS_AT_ONCE)
    return value


class SizeBudget:
    """Values and characters that results may have in all. A list may hold the same list or text many times: each
    counts, because each is written out."""

    def __init__(self, *, values: int = MAX_VALUES, characters: int = MAX_RESULT) -> None:
        self.values, self.characters = values, characters  # what is left
        self._most = values, characters

    def take(self, value: Any) -> Any:
        """Return the value. Raises ExpressionError when it is too large or nested too deeply."""
        self._count(value, 1)
        return value

    def _count(self, value: Any, depth: int) -> None:
        inner: Iterable[Any] = ()
        if isinstance(value, str):
            self.characters -= len(value)
        elif isinstance(value, (list, tuple)):
            self.values -= len(value)
            inner = value
        elif isinstance(value, Mapping):
            self.values -= len(value)
            inner = (*value, *value.values())
        if self.values < 0:
            raise ExpressionError(f"a result of more than {self._most[0]:,} values")
        if self.characters < 0:
            raise ExpressionError(f"a result of more than {self._most[1]:,} characters")
        if depth > MAX_DEPTH:
            raise ExpressionError(f"a result nested more than {MAX_DEPTH} levels deep")
        for each in inner:
            self._count(each, depth + 1)
