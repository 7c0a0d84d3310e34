"""Lines of arithmetic: a formula of names, the same with numbers, and the result."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fractions import Fraction

from kctl.base.units import format_duration
from kctl.capacity.fields import (
    BYTES,
    BYTES_PER_S,
    COMPUTED,
    COUNT,
    DEFAULT,
    FIELDS,
    MS,
    PER_S,
    SHARE,
    Inputs,
    Number,
)
from kctl.capacity.model import Term

_NAME = re.compile(r"[a-z][a-z_]+[a-z]")
_WORDS = frozenset({"max", "min"})
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")


class Sheet:
    """Collects terms. A formula takes its names from this sheet, then from `above`."""

    def __init__(self, above: Sheet | None = None) -> None:
        self._above = above
        self._known: dict[str, tuple[Number, str]] = {}
        self.terms: list[Term] = []

    def given(self, inputs: Inputs) -> None:
        """A line for each input."""
        for name, each in inputs.items():
            self._known[name] = (each.value, FIELDS[name].unit)
            self.terms.append(Term(name, plain(each.value), FIELDS[name].unit, each.source))

    def fact(self, name: str, value: Number, unit: str, source: str) -> None:
        """A line that is neither an input nor computed."""
        self._known[name] = (value, unit)
        self.terms.append(Term(name, plain(value), unit, source))

    def computed(self, name: str, unit: str, formula: str, value: Number) -> None:
        """A line whose formula is of names that are there."""
        numbers = _NAME.sub(lambda match: self._number(match.group()), formula)
        self._known[name] = (value, unit)
        self.terms.append(Term(name, plain(value), unit, COMPUTED, formula, numbers))

    def over_topics(self, name: str, unit: str, how: str, values: Sequence[int], value: int) -> None:
        """What comes of a term of each topic: «sum of disk_bytes», «largest replication_factor»."""
        few = len(values) <= _FEW
        numbers = ", ".join(shown(each, unit) for each in values) if few else f"of {len(values):,} topics"
        self._known[name] = (value, unit)
        self.terms.append(Term(name, value, unit, COMPUTED, how, numbers))

    def lines(self, *, keep: Collection[str] = ()) -> tuple[Term, ...]:
        """The terms in their order, without defaults that nothing is made of. keep: names that stay all the same."""
        used = {name for term in self.terms for name in _NAME.findall(term.formula or "")} | set(keep)
        return tuple(term for term in self.terms if term.source != DEFAULT or term.name in used)

    def has(self, name: str) -> bool:
        """Whether this sheet has such a line."""
        return name in self._known

    def value(self, name: str) -> Number:
        """Of a line of this sheet or of those above."""
        return self._line(name)[0]

    def _number(self, name: str) -> str:
        return name if name in _WORDS else shown(*self._line(name))

    def _line(self, name: str) -> tuple[Number, str]:
        if name not in self._known and self._above is not None:
            return self._above._line(name)  # noqa: SLF001 - of the same class
        return self._known[name]


_FEW = 6


def plain(value: Number) -> int | float:
    """As JSON has it."""
    return int(value) if isinstance(value, int) or value.denominator == 1 else float(value)


def shown(value: Number | float, unit: str) -> str:
    """For people: four significant digits, powers of ten. Rounded for the eye only."""
    if unit == BYTES:
        return _size(value)
    if unit == BYTES_PER_S:
        return f"{_size(value)}/s"
    if unit == MS:
        return format_duration(int(value))
    if unit == SHARE:
        return f"{float(value * 100):g} %"
    if unit in {COUNT, PER_S}:
        text = f"{int(value):,}" if value == int(value) else f"{float(value):,.4g}"
        return f"{text}/s" if unit == PER_S else text
    return f"{float(value):.6g}"


def _size(value: Number | float) -> str:
    amount, unit = Fraction(value), "B"
    for unit in _UNITS:
        if amount < Fraction(9_999_500, 10_000_000) * 1000 or unit == _UNITS[-1]:
            break
        amount /= 1000
    return f"{float(amount):.4g} {unit}"
