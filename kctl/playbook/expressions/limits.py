"""Limits on what one expression may read, build and return. A value that is used repeatedly counts each time."""

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
MAX_NESTING = 60  # levels of nodes; Python compiles at most 200 nested brackets
MAX_TEXT_EXPRESSIONS = 1000  # expressions in one string
MAX_TEXT = 1 << 20  # characters of one string
MAX_ITEMS = 100_000  # of one list
MAX_WORK = 2_000_000  # characters and items that one expression reads or builds
MAX_VALUES = 1_000_000  # in the lists and mappings of a result
MAX_RESULT = 1 << 25  # characters of a result, in all of its strings
MAX_DEPTH = 100  # levels of lists and mappings
CPU_SECONDS = 10.0  # for all expressions of a value, such as an argument; MAX_WORK stops a single one sooner
_INT64 = range(-(2**63), 2**63)
_CHARACTERS_AT_ONCE = 16  # copying characters is this much faster than visiting items


class ExpressionError(UsageError):
    """An expression that cannot be parsed or evaluated. offset: of a parse error, in characters."""

    def __init__(self, message: str, offset: int = 0, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset


@dataclass
class Evaluation:
    """One evaluation of one expression. work: characters and items read or built so far."""

    variables: Mapping[str, Any]
    work: int = 0


_CURRENT: ContextVar[Evaluation] = ContextVar("evaluation")


@contextmanager
def evaluation(variables: Mapping[str, Any]) -> Iterator[None]:
    """Start the evaluation of one expression. Names in the block are looked up in `variables`."""
    token = _CURRENT.set(Evaluation(variables))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def variables() -> Mapping[str, Any]:
    """Return the variables of the current evaluation."""
    return _CURRENT.get().variables


def spend(amount: int) -> None:
    """Count work of the current evaluation. Raises ExpressionError if it exceeds MAX_WORK."""
    current = _CURRENT.get()
    current.work += amount
    if current.work > MAX_WORK:
        raise _too_much_work()


def _too_much_work() -> ExpressionError:
    return ExpressionError("the expression takes too long")


def limit_cpu() -> Any:
    """Return a context manager that stops expressions after CPU_SECONDS; only in the main thread."""
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
            raise ExpressionError(f"the value has more than {MAX_ITEMS:,} items")
    elif isinstance(value, int) and value not in _INT64:
        raise ExpressionError("the number does not fit into 64 bits")
    elif isinstance(value, float) and not -float("inf") < value < float("inf"):
        raise ExpressionError("the number is not finite")
    return value


def text_too_long() -> ExpressionError:
    """Return the error for a string longer than MAX_TEXT."""
    return ExpressionError(f"the string is longer than {MAX_TEXT >> 20} MiB")


def count_all(value: Any) -> Any:
    """Return the value after counting everything in it as work, for functions that visit all of it."""
    limit = min(MAX_VALUES, MAX_WORK - _CURRENT.get().work)
    size = SizeBudget(values=limit, characters=MAX_TEXT)
    size.take(value)
    spend(limit - size.values + (MAX_TEXT - size.characters) // _CHARACTERS_AT_ONCE)
    return value


class SizeBudget:
    """A limit for values and characters of results.

    A list or string that occurs repeatedly counts each time, because each occurrence is written out.
    """

    def __init__(self, *, values: int = MAX_VALUES, characters: int = MAX_RESULT) -> None:
        self.values, self.characters = values, characters  # remaining
        self._limits = values, characters

    def take(self, value: Any) -> Any:
        """Return the value. Raises ExpressionError if it is too large or nested too deeply."""
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
            raise ExpressionError(f"the result has more than {self._limits[0]:,} values")
        if self.characters < 0:
            raise ExpressionError(f"the result has more than {self._limits[1]:,} characters")
        if depth > MAX_DEPTH:
            raise ExpressionError(f"the result is nested deeper than {MAX_DEPTH} levels")
        for each in inner:
            self._count(each, depth + 1)
