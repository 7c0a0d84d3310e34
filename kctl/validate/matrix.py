"""acks × idempotence × min.insync.replicas under one and the same unclean election: what each set-up keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.validate.invariants import INVARIANTS
from kctl.validate.plan import PlannedScenario
from kctl.validate.report.verdict import Budgets

if TYPE_CHECKING:
    from kctl.validate.run import Result, ValidationRun

PER_S = 50.0  # of each set-up: all run at once
SCENARIO = "unclean-election"


@dataclass(frozen=True, slots=True)
class Setup:
    """A column of settings."""

    acks: str
    idempotent: bool
    min_insync: int

    @property
    def name(self) -> str:
        return f"acks-{self.acks}{'-idempotent' if self.idempotent else ''}-min-{self.min_insync}"

    @property
    def keeps(self) -> bool:
        """Whether it promises to lose nothing that was acknowledged when a leader and what it alone had is lost."""
        return self.acks == "all" and self.min_insync > 1

    @property
    def promised(self) -> tuple[str, ...]:
        """The invariants that it has to keep. Not those of reading, but that all is delivered by the safest: what was
        read before it was cut off is read again, and older brokers let too much be read too early (KIP-966)."""
        names = {"holes", "foreign"}
        if self.keeps:
            names |= {"lost", "misplaced"}
        if self.keeps and self.idempotent:
            names |= {"duplicated", "out_of_order", "not_delivered"}
        return tuple(name for name in INVARIANTS if name in names)


_PRODUCERS = (("0", False), ("1", False), ("all", False), ("all", True))  # idempotence needs acks=all
# They see the same faults at the same time.
SETUPS = tuple(Setup(acks, idempotent, least) for least in (1, 2) for acks, idempotent in _PRODUCERS)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one set-up. as_expected: it has kept all that it promises."""

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
    """doubts: why it teaches less than it should."""

    rows: list[Row]
    results: list[Result]
    doubts: list[str]

    @property
    def ok(self) -> bool:
        return not self.doubts and all(row.as_expected for row in self.rows)


def run_matrix(run: ValidationRun, planned: PlannedScenario) -> Matrix:
    """Raises OperationFailed when it did not come to its end."""
    planned = run.placed(planned)
    trials = [run.trial(planned, each.acks, each.idempotent, each.min_insync, each.name) for each in SETUPS]
    results = run.trials(trials, SCENARIO, PER_S, Budgets())
    rows = [row_of(setup, result) for setup, result in zip(SETUPS, results, strict=True)]
    return Matrix(rows, results, doubts_of(rows, results))


def row_of(setup: Setup, result: Result) -> Row:
    """Pure."""
    found = result.verdict.findings
    broken = [name for name in setup.promised if getattr(found, name)]
    return Row(
        setup.acks, setup.idempotent, setup.min_insync, found.sent, found.acked, found.failed, found.indeterminate,
        found.lost.count, found.duplicated.count, found.out_of_order.count,
        max((gap.gap_ms for gap in result.verdict.gaps), default=0),
        promise(setup), meaning(setup, found.lost.count, broken), not broken,
    )  # fmt: skip


def doubts_of(rows: Sequence[Row], results: Sequence[Result]) -> list[str]:
    """Those of each set-up; and a fault that costs nothing in any of them was none. results: of the rows."""
    found = [
        f"{_said(row)}: {doubt}" for row, result in zip(rows, results, strict=True) for doubt in result.verdict.doubts
    ]
    if not any(row.lost for row in rows if row.acks == "1"):
        found.append(
            "acks=1 lost nothing: the unclean election did not cost what it should, and the table shows little"
        )
    return found


def promise(setup: Setup) -> str:
    """What a set-up promises, in one line."""
    if setup.acks == "0":
        return "nothing: «acknowledged» means sent"
    if setup.acks == "1":
        return "what one broker has, until it fails"
    if setup.min_insync == 1:
        return "what all in sync have, and one alone is enough"
    return "what two brokers have" + (", once and in order" if setup.idempotent else "")


def meaning(setup: Setup, lost: int, broken: Sequence[str] = ()) -> str:
    """What the figures of a row say. broken: what it promises and did not keep."""
    if "lost" in broken:
        others = [name for name in broken if name != "lost"]
        return "BROKEN: it lost what it had acknowledged" + (f"; {_named(others)}" if others else "")
    if broken:
        return f"BROKEN: {_named(broken)}"
    if lost:
        return "lost what it had acknowledged, as it may"
    return "kept all that it acknowledged" + ("" if setup.keeps else ", this time")


def _named(invariants: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in invariants)


def _said(row: Row) -> str:
    idempotence = ", idempotence" if row.idempotence else ""
    return f"acks={row.acks}{idempotence}, min.insync.replicas={row.min_insync_replicas}"
