"""Build the calculation of a capacity plan.

Each line has a formula of names, the same formula with numbers, and a result.
"""

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
    """The lines of a calculation. Names in a formula refer to this sheet, or else to the sheet `above`."""

    def __init__(self, above: Sheet | None = None) -> None:
        self._above = above
        self._values: dict[str, tuple[Number, str]] = {}
        self.terms: list[Term] = []

    def add_inputs(self, inputs: Inputs) -> None:
        """Add a line for each input."""
        for name, each in inputs.items():
            self._values[name] = (each.value, FIELDS[name].unit)
            self.terms.append(Term(name, to_json_number(each.value), FIELDS[name].unit, each.source))

    def add_value(self, name: str, value: Number, unit: str, source: str) -> None:
        """Add a line that is neither an input nor computed."""
        self._values[name] = (value, unit)
        self.terms.append(Term(name, to_json_number(value), unit, source))

    def add_computed(self, name: str, unit: str, formula: str, value: Number) -> None:
        """Add a line with a formula over existing names."""
        numbers = _NAME.sub(lambda match: self._number(match.group()), formula)
        self._values[name] = (value, unit)
        self.terms.append(Term(name, to_json_number(value), unit, COMPUTED, formula, numbers))

    def add_aggregate(self, name: str, unit: str, description: str, values: Sequence[int], value: int) -> None:
        """Add a value over all topics. description: e.g. "sum of disk_bytes", "largest replication_factor"."""
        numbers = (
            ", ".join(format_value(each, unit) for each in values)
            if len(values) <= _MAX_NUMBERS
            else f"of {len(values):,} topics"
        )
        self._values[name] = (value, unit)
        self.terms.append(Term(name, value, unit, COMPUTED, description, numbers))

    def lines(self, *, keep: Collection[str] = ()) -> tuple[Term, ...]:
        """Return the terms in order, without unused defaults. keep: names to include even if unused."""
        used = {name for term in self.terms for name in _NAME.findall(term.formula or "")} | set(keep)
        return tuple(term for term in self.terms if term.source != DEFAULT or term.name in used)

    def has(self, name: str) -> bool:
        """Return True if this sheet has a line with this name."""
        return name in self._values

    def value(self, name: str) -> Number:
        """Return the value of a line in this sheet or a sheet above."""
        return self._line(name)[0]

    def _number(self, name: str) -> str:
        return name if name in _WORDS else format_value(*self._line(name))

    def _line(self, name: str) -> tuple[Number, str]:
        if name not in self._values and self._above is not None:
            return self._above._line(name)  # noqa: SLF001 - same class
        return self._values[name]


_MAX_NUMBERS = 6  # listed in an aggregate line


def to_json_number(value: Number) -> int | float:
    """Return the value as a JSON number."""
    return int(value) if isinstance(value, int) or value.denominator == 1 else float(value)


def format_value(value: Number | float, unit: str) -> str:
    """Format a value for display: four significant digits, decimal units."""
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
