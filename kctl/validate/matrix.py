"""acks × idempotence × min.insync.replicas under one and the same unclean election: what each set-up keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.validate.plan import PlannedScenario
from kctl.validate.verdict import Budgets

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


_PRODUCERS = (("0", False), ("1", False), ("all", False), ("all", True))  # idempotence needs acks=all
# They see the same faults at the same time.
SETUPS = tuple(Setup(acks, idempotent, least) for least in (1, 2) for acks, idempotent in _PRODUCERS)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one set-up. violated, doubts: as in a Verdict, without what it does not promise.

    as_expected: what promises to keep all has lost nothing.
    """

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
    trials = [run.trial(planned, each.acks, each.idempotent, each.min_insync, each.name) for each in SETUPS]
    results = run.trials(trials, SCENARIO, PER_S, Budgets())
    rows = [row_of(setup, result) for setup, result in zip(SETUPS, results, strict=True)]
    return Matrix(rows, results, doubts_of(rows))


def row_of(setup: Setup, result: Result) -> Row:
    """Pure."""
    found = result.verdict.findings
    return Row(
        setup.acks, setup.idempotent, setup.min_insync, found.sent, found.acked, found.failed, found.indeterminate,
        found.lost.count, found.duplicated.count, found.out_of_order.count,
        max((gap.gap_ms for gap in result.verdict.gaps), default=0),
        promise(setup), meaning(setup, found.lost.count),
        not (setup.keeps and found.lost.count) and not (setup.idempotent and setup.keeps and bool(found.duplicated)),
    )  # fmt: skip


def doubts_of(rows: Sequence[Row]) -> list[str]:
    """A fault that costs nothing in any set-up was none."""
    found = []
    if not any(row.lost for row in rows if row.acks == "1"):
        found.append(
            "acks=1 lost nothing: the unclean election did not cost what it should, and the table shows little"
        )
    found += [f"no write was acknowledged with {_said(row)}" for row in rows if not row.acked]
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


def meaning(setup: Setup, lost: int) -> str:
    """What the figures of a row say."""
    if lost and setup.keeps:
        return "BROKEN: it lost what it had acknowledged"
    if lost:
        return "lost what it had acknowledged, as it may"
    return "kept all that it acknowledged" + ("" if setup.keeps else ", this time")


def _said(row: Row) -> str:
    return f"acks={row.acks}, min.insync.replicas={row.min_insync_replicas}"
