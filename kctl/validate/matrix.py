"""acks × idempotence × min.insync.replicas under the same unclean election: the records that each combination keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.validate.invariants import INVARIANTS
from kctl.validate.plan import PlannedScenario
from kctl.validate.report.verdict import Budgets

if TYPE_CHECKING:
    from kctl.validate.run import ScenarioResult, ValidationRun

PER_S = 50.0  # per combination: all run at once
SCENARIO = "unclean-election"


@dataclass(frozen=True, slots=True)
class Setup:
    """A combination of settings."""

    acks: str
    idempotent: bool
    min_insync: int

    @property
    def name(self) -> str:
        return f"acks-{self.acks}{'-idempotent' if self.idempotent else ''}-min-{self.min_insync}"

    @property
    def keeps(self) -> bool:
        """Return True if these settings guarantee that no acknowledged record is lost with a leader."""
        return self.acks == "all" and self.min_insync > 1

    @property
    def promised(self) -> tuple[str, ...]:
        """Return the invariants that these settings guarantee.

        Of the invariants about delivery, only not_delivered is guaranteed, with the safest settings: consumers read
        records again after a truncation, and older brokers expose records too early (KIP-966).
        """
        names = {"holes", "foreign"}
        if self.keeps:
            names |= {"lost", "misplaced"}
        if self.keeps and self.idempotent:
            names |= {"duplicated", "out_of_order", "not_delivered"}
        return tuple(name for name in INVARIANTS if name in names)


_PRODUCERS = (("0", False), ("1", False), ("all", False), ("all", True))  # idempotence needs acks=all
# All run under the same faults.
SETUPS = tuple(Setup(acks, idempotent, min_insync) for min_insync in (1, 2) for acks, idempotent in _PRODUCERS)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """The result of one combination. as_expected: all guarantees held."""

    acks: str
    idempotence: bool
    min_insync_replicas: int
    sent: int
    acked: int
    failed: int
    indeterminate: int
    lost: int
    duplicated: int
    out_of_order: int
    longest_gap_ms: int
    promises: str
    meaning: str
    as_expected: bool


@dataclass(frozen=True)
class Matrix:
    """The results of all combinations. doubts: reasons why they prove less than they should."""

    rows: list[MatrixRow]
    results: list[ScenarioResult]
    doubts: list[str]

    @property
    def ok(self) -> bool:
        return not self.doubts and all(row.as_expected for row in self.rows)


def run_matrix(run: ValidationRun, planned: PlannedScenario) -> Matrix:
    """Run all combinations. Raises OperationFailed if they did not complete."""
    planned = run.place(planned)
    trials = [run.trial(planned, each.acks, each.idempotent, each.min_insync, each.name) for each in SETUPS]
    results = run.trials(trials, SCENARIO, PER_S, Budgets())
    rows = [row_of(setup, result) for setup, result in zip(SETUPS, results, strict=True)]
    return Matrix(rows, results, doubts_of(rows, results))


def row_of(setup: Setup, result: ScenarioResult) -> MatrixRow:
    """Return the row of a combination. Pure."""
    findings = result.verdict.findings
    broken = [name for name in setup.promised if getattr(findings, name)]
    return MatrixRow(
        setup.acks, setup.idempotent, setup.min_insync, findings.sent, findings.acked, findings.failed,
        findings.indeterminate, findings.lost.count, findings.duplicated.count, findings.out_of_order.count,
        max((gap.gap_ms for gap in result.verdict.gaps), default=0),
        promise(setup), meaning(setup, findings.lost.count, broken), not broken,
    )  # fmt: skip


def doubts_of(rows: Sequence[MatrixRow], results: Sequence[ScenarioResult]) -> list[str]:
    """Return the doubts of all combinations, and one more if acks=1 lost no record. results: one per row."""
    doubts = [
        f"{_label(row)}: {doubt}" for row, result in zip(rows, results, strict=True) for doubt in result.verdict.doubts
    ]
    if not any(row.lost for row in rows if row.acks == "1"):
        doubts.append("acks=1 lost nothing: the unclean election had no effect, so the table proves little")
    return doubts


def promise(setup: Setup) -> str:
    """Return the guarantee of a combination, in one line."""
    if setup.acks == "0":
        return "nothing: acknowledged means sent"
    if setup.acks == "1":
        return "records, until the leader fails"
    if setup.min_insync == 1:
        return "records, while one replica is in sync"
    return "records on two brokers" + (", once and in order" if setup.idempotent else "")


def meaning(setup: Setup, lost_count: int, broken: Sequence[str] = ()) -> str:
    """Return the meaning of a row. broken: guarantees that did not hold."""
    if "lost" in broken:
        others = [name for name in broken if name != "lost"]
        return "BROKEN: it lost acknowledged records" + (f"; {_text_of(others)}" if others else "")
    if broken:
        return f"BROKEN: {_text_of(broken)}"
    if lost_count:
        return "lost acknowledged records, as allowed"
    return "kept all acknowledged records" + ("" if setup.keeps else ", this time")


def _text_of(invariants: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in invariants)


def _label(row: MatrixRow) -> str:
    idempotence = ", idempotence" if row.idempotence else ""
    return f"acks={row.acks}{idempotence}, min.insync.replicas={row.min_insync_replicas}"
