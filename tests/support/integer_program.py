"""Integer programs, solved by HiGHS to the proven optimum.

The solver uses floating point: its result is rounded, every row is checked again in integers, and its bound must
exclude a better integer (all costs are integers)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import highspy

FREE = 1 << 30  # no limit
Terms = Mapping[int, int]


@dataclass(slots=True)
class Program:
    """Integer variables by number, with bounds; rows of integer coefficients: low ≤ Σ coefficient · variable ≤ high."""

    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)
    rows: list[tuple[int, Terms, int]] = field(default_factory=list)

    def variable(self, low: int = 0, high: int = 1) -> int:
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def row(self, low: int, terms: Terms, high: int) -> None:
        self.rows.append((low, terms, high))

    def equal(self, terms: Terms, value: int) -> None:
        self.row(value, terms, value)

    def smallest(self, cost: Terms) -> tuple[int, list[int]] | None:
        """Return the least Σ cost · variable and such variables; None if no values satisfy all rows."""
        make: Any = highspy.Highs  # its constructor has no types
        solver = make()
        for option, setting in {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0}.items():
            solver.setOptionValue(option, setting)
        solver.passModel(self._model(cost))
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, status
        values = [round(value) for value in solver.getSolution().col_value]
        found = sum(amount * values[i] for i, amount in cost.items())
        self._check(values)
        bound = solver.getInfo().mip_dual_bound
        assert ceil(bound - 1e-6) >= found, f"{found} is not proven: {bound}"
        return found, values

    def _model(self, cost: Terms) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        count = len(self.low)
        lp.num_col_, lp.num_row_ = count, len(self.rows)
        lp.col_cost_ = [float(cost.get(i, 0)) for i in range(count)]
        lp.col_lower_, lp.col_upper_ = _floats(self.low), _floats(self.high)
        lp.row_lower_, lp.row_upper_ = _floats(row[0] for row in self.rows), _floats(row[2] for row in self.rows)
        lp.integrality_ = [highspy.HighsVarType.kInteger] * count
        starts, columns = [0], list[int]()
        values = list[float]()
        for _, terms, _ in self.rows:
            columns += terms.keys()
            values += map(float, terms.values())
            starts.append(len(columns))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = count, len(self.rows)
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = starts, columns, values
        return lp

    def _check(self, values: list[int]) -> None:
        for value, low, high in zip(values, self.low, self.high, strict=True):
            assert low <= value <= high
        for low, terms, high in self.rows:
            assert low <= sum(amount * values[i] for i, amount in terms.items()) <= high


def _floats(values: Iterable[int]) -> list[float]:
    return [highspy.kHighsInf if value >= FREE else -highspy.kHighsInf if value <= -FREE else value for value in values]
