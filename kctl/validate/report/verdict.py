"""The verdict of a run: figures, violations, and doubts. Pure.

A run that could not have failed proves nothing. So a verdict is not ok if a partition has no acknowledged write, or
none after the last fault; if a process did not exit cleanly; or if a fault had no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from kctl.validate.invariants import INVARIANTS, Findings, check
from kctl.validate.report.gaps import Fault, WriteGap, find_gaps
from kctl.validate.report.timeline import Recovery
from kctl.validate.workload.history import DeliveredRecords, Log, SentRecords

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Budgets:
    """Maximum times; None: no limit. Gaps before the first fault count too."""

    max_gap_ms: int | None = None
    max_isr_ms: int | None = None
    max_leader_ms: int | None = None
    max_controller_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Breach:
    """An exceeded budget.

    name: of the budget. took_ms: None if not recovered by the end. partition: None for the cluster. fault: None before
    the first fault.
    """

    name: str
    fault: str | None
    partition: int | None
    took_ms: int | None
    limit_ms: int


@dataclass(frozen=True, slots=True)
class BudgetResult:
    """The result of a requested budget.

    longest_ms: None if not recovered by the end, or not measured. kept: None if not measured: no fault hit a leader, or
    the controller.
    """

    budget: str
    limit_ms: int
    longest_ms: int | None
    kept: bool | None


@dataclass(frozen=True)
class Verdict:
    """The verdict of a run. gaps: of each partition, before the first fault and after each fault. recoveries:
    after each fault.

    violated: invariants that were violated and not tolerated. doubts: reasons why the run proves less than it should.
    """

    topic: str
    run: str
    findings: Findings
    gaps: list[WriteGap]
    recoveries: list[Recovery]
    violated: list[str] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    budgets: list[BudgetResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.violated or self.breaches or self.doubts)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a run. delivered: None without a consumer; doubts: reasons observed during the run."""

    sent_records: SentRecords
    log: Log
    delivered: DeliveredRecords | None
    faults: Sequence[Fault] = ()
    recoveries: Sequence[Recovery] = ()
    doubts: Sequence[str] = ()


def judge(
    topic: str, run: str, evidence: Evidence, *, budgets: Budgets | None = None, tolerated: Collection[str] = ()
) -> Verdict:
    """Return the verdict on a run.

    tolerated: invariants that the settings do not guarantee, e.g. duplicated and out_of_order without idempotence.
    Raises ValueError for an unknown invariant.
    """
    if set(tolerated) - set(INVARIANTS):
        raise ValueError(f"unknown invariant: {', '.join(sorted(set(tolerated) - set(INVARIANTS)))}")
    findings = check(evidence.sent_records, evidence.log, evidence.delivered)
    gaps, recoveries = find_gaps(evidence.sent_records, evidence.faults), evidence.recoveries
    budgets = budgets or Budgets()
    return Verdict(
        topic=topic,
        run=run,
        findings=findings,
        gaps=gaps,
        recoveries=list(recoveries),
        violated=[name for name in INVARIANTS if name not in tolerated and getattr(findings, name)],
        breaches=breaches(gaps, recoveries, budgets),
        doubts=[*_doubts(evidence), *_without_effect(recoveries), *evidence.doubts],
        budgets=budget_results(gaps, recoveries, budgets),
    )


def _measurements(
    gaps: Sequence[WriteGap], recoveries: Sequence[Recovery]
) -> Iterator[tuple[str, str | None, int | None, int | None]]:
    """Yield all measurements: the budget, the fault, the partition, and the time; None: not recovered."""
    for gap in gaps:
        yield "max_gap_ms", gap.after, gap.partition, gap.gap_ms
    for recovery in recoveries:
        yield "max_controller_ms", recovery.fault, None, recovery.to_new_controller_ms
        for number, duration_ms in recovery.to_new_leader_ms.items():
            yield "max_leader_ms", recovery.fault, number, duration_ms
        for number, duration_ms in recovery.to_full_isr_ms.items():
            yield "max_isr_ms", recovery.fault, number, duration_ms


def breaches(gaps: Sequence[WriteGap], recoveries: Sequence[Recovery], budgets: Budgets) -> list[Breach]:
    """Return each partition and fault that exceeds a limit."""
    limits: dict[str, int | None] = asdict(budgets)
    return [
        Breach(name, fault, partition, duration_ms, limit)
        for name, fault, partition, duration_ms in _measurements(gaps, recoveries)
        if (limit := limits[name]) is not None and (duration_ms is None or duration_ms > limit)
    ]


def budget_results(gaps: Sequence[WriteGap], recoveries: Sequence[Recovery], budgets: Budgets) -> list[BudgetResult]:
    """Return the result of each requested budget."""
    limits: dict[str, int | None] = asdict(budgets)
    measured: dict[str, list[int | None]] = {name: [] for name in limits}
    for name, _, _, duration_ms in _measurements(gaps, recoveries):
        if name != "max_controller_ms" or duration_ms != 0:  # 0: the controller stayed, so no election was measured
            measured[name].append(duration_ms)
    results = []
    for name, limit in limits.items():
        if limit is None:
            continue
        times = [duration_ms for duration_ms in measured[name] if duration_ms is not None]
        longest = max(times) if times and len(times) == len(measured[name]) else None
        is_kept = None if not measured[name] else longest is not None and longest <= limit
        results.append(BudgetResult(name, limit, longest, is_kept))
    return results


def _doubts(evidence: Evidence) -> list[str]:
    partitions, log, delivered = evidence.sent_records.partitions, evidence.log, evidence.delivered
    doubts = []
    unacknowledged = [number for number in sorted(log) if number not in partitions or not partitions[number].ack_ns]
    if not log:
        doubts.append("the topic has no partition")
    if unacknowledged:
        doubts.append(f"no write was acknowledged in {_partitions_text(unacknowledged)}")
    for fault in evidence.faults[-1:]:
        stopped_partitions = [
            n for n, each in sorted(partitions.items()) if each.ack_ns and each.ack_ns[-1] <= fault.at_ns
        ]
        if stopped_partitions:
            doubts.append(f"no write was acknowledged after '{fault.name}' in {_partitions_text(stopped_partitions)}")
    if not evidence.sent_records.ended:
        doubts.append("the producer did not exit cleanly")
    if delivered is not None and not delivered.ended:
        doubts.append("the consumer did not exit cleanly")
    return doubts


def _without_effect(recoveries: Sequence[Recovery]) -> list[str]:
    """Return doubts for faults without effect: a command may succeed without doing anything."""
    return [
        f"'{each.fault}' had no effect: its broker led {_partitions_text(each.unmoved)} all the time"
        for each in recoveries
        if each.unmoved
    ]


def _partitions_text(partitions: Sequence[int]) -> str:
    if len(partitions) == 1:
        return f"partition {partitions[0]}"
    more = f" and {len(partitions) - _SHOWN} more" if len(partitions) > _SHOWN else ""
    return f"partitions {', '.join(map(str, partitions[:_SHOWN]))}{more}"
