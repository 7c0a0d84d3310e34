"""Filters, tests and functions of expressions: they check arguments, limit results and name themselves in errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kctl.playbook.expressions.limits import ExpressionError, check_size
from kctl.playbook.expressions.values import kind_of, require


@dataclass(frozen=True, slots=True)
class Function:
    """A filter, test or function.

    summary: for the reference. call: takes the value first. accepts_undefined: the value may be undefined.
    """

    name: str
    summary: str
    call: Callable[..., Any]
    accepts_undefined: bool

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the result. Raises ExpressionError for invalid values and for a result that is too large."""
        for each in (*arguments[self.accepts_undefined :], *keywords.values()):
            require(each)
        try:
            return check_size(self.call(*arguments, **keywords))
        except (TypeError, ValueError, AttributeError, OverflowError) as exc:
            kind = kind_of(arguments[0]) if arguments else "these values"
            raise ExpressionError(f"{self.name} is not defined for {kind}: {exc}") from None


def table(
    entries: Mapping[str, tuple[str, Callable[..., Any]]], *, accept_undefined: Collection[str] = ()
) -> dict[str, Function]:
    """Return functions by name, from their summaries and callables."""
    return {name: Function(name, summary, call, name in accept_undefined) for name, (summary, call) in entries.items()}
