"""The results of a run as JSON values: report.json, -o json. Pure. Keys are an interface, pinned by a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kctl.validate.invariants import INVARIANTS
from kctl.validate.report.timeline import Recovery

if TYPE_CHECKING:
    from kctl.validate.matrix import Matrix
    from kctl.validate.plan import PlannedScenario, ValidationPlan
    from kctl.validate.run import ScenarioResult

_COUNTS = (
    "sent", "acked", "failed", "indeterminate", "failed_in_log", "indeterminate_in_log", "log_records", "delivered",
    "missing_offsets",
)  # fmt: skip


def result_value(result: ScenarioResult) -> dict[str, Any]:
    """Return the value of a scenario, or of a combination of the matrix."""
    verdict, trial = result.verdict, result.trial
    before, after = gaps_around(result)
    return {
        "scenario": result.scenario,
        "ok": verdict.ok,
        "topic": trial.topic,
        "run": trial.run,
        "acks": trial.acks,
        "idempotence": trial.idempotent,
        "min_insync_replicas": trial.min_insync,
        "unclean_leader_election": trial.unclean,
        "assignment": [list(replicas) for replicas in trial.assignment],
        **{name: getattr(verdict.findings, name) for name in _COUNTS},
        **{name: getattr(verdict.findings, name).count for name in INVARIANTS},
        "gap_before_ms": before,
        "gap_after_ms": after,
        **times(verdict.recoveries),
        "budgets": [asdict(each) for each in verdict.budgets],
        "violated": verdict.violated,
        "breaches": [asdict(breach) for breach in verdict.breaches],
        "doubts": verdict.doubts,
        "faults": [_fault(result, index) for index in range(len(result.plot.marks))],
        "partitions": _partitions(result),
        "records": {
            name: [asdict(each) for each in getattr(verdict.findings, name).first]
            for name in INVARIANTS
            if getattr(verdict.findings, name)
        },
        "missing": [asdict(each) for each in result.missing],
        "writes_per_second": list(result.plot.per_s),
        "evidence": str(result.folder),
        "duration_ms": result.duration_ms,
    }


def csv_rows(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the scalar fields of each value. values: of `result_value`."""
    return [{key: value for key, value in row.items() if not isinstance(value, (list, dict))} for row in values]


def gaps_around(result: ScenarioResult) -> tuple[int | None, int | None]:
    """Return the longest time in ms without an acknowledgment in a partition, before and after the first fault."""
    before = [gap.gap_ms for gap in result.verdict.gaps if gap.after is None]
    after = [gap.gap_ms for gap in result.verdict.gaps if gap.after is not None]
    return max(before, default=None), max(after, default=None)


def times(recoveries: Sequence[Recovery]) -> dict[str, int | None]:
    """Return the slowest times over all faults; 0: nothing to wait for, None: never recovered."""
    return {
        "to_new_controller_ms": _slowest([each.to_new_controller_ms for each in recoveries]),
        "to_new_leader_ms": _slowest([ms for each in recoveries for ms in each.to_new_leader_ms.values()]),
        "to_full_isr_ms": _slowest([ms for each in recoveries for ms in each.to_full_isr_ms.values()]),
    }


def _slowest(times: Sequence[int | None]) -> int | None:
    measured = [ms for ms in times if ms is not None]
    return max(measured, default=None if times else 0)


def _fault(result: ScenarioResult, index: int) -> dict[str, Any]:
    """Return a fault with its recovery times; None: not recovered before the next fault, 0: nothing to wait for."""
    mark, recovery = result.plot.marks[index], result.verdict.recoveries[index]
    gaps = [gap.gap_ms for gap in result.verdict.gaps if gap.after == mark.name]
    return {
        "name": mark.name,
        "at_s": mark.at_s,
        "longest_gap_ms": max(gaps, default=None),
        "to_new_controller_ms": recovery.to_new_controller_ms,
        "to_new_leader_ms": recovery.slowest_leader_ms,
        "to_full_isr_ms": recovery.slowest_isr_ms,
    }


def _partitions(result: ScenarioResult) -> list[dict[str, Any]]:
    """Return the longest gap of each partition before and after the first fault."""
    rows: dict[int, dict[str, Any]] = {}
    for gap in result.verdict.gaps:
        row = rows.setdefault(gap.partition, {"partition": gap.partition, "gap_before_ms": None, "gap_after_ms": None})
        key = "gap_before_ms" if gap.after is None else "gap_after_ms"
        row[key] = gap.gap_ms if row[key] is None else max(row[key], gap.gap_ms)
    return list(rows.values())


def run_value(
    plan: ValidationPlan, run: str, folder: str, results: Sequence[ScenarioResult], *, failed: str | None = None
) -> dict[str, Any]:
    """Return the value of a run. failed: the reason why it did not complete."""
    unmeasured = unmeasured_by(results)
    return {
        "cluster": plan.cluster,
        "cluster_id": plan.cluster_id,
        "brokers": list(plan.brokers),
        "run": run,
        "ok": failed is None and bool(results) and all(result.verdict.ok for result in results) and not unmeasured,
        "failed": failed,
        "unmeasured": unmeasured,
        "left_out": [{"scenario": row.scenario, "reason": row.impossible} for row in skipped_scenarios(plan)],
        "scenarios": [result_value(result) for result in results],
        "evidence": folder,
    }


def matrix_value(
    plan: ValidationPlan, run: str, folder: str, matrix: Matrix, *, failed: str | None = None
) -> dict[str, Any]:  # fmt: skip
    """Return the value of a matrix: its rows, and each combination like a scenario. failed: the clean-up error."""
    return {
        "cluster": plan.cluster,
        "cluster_id": plan.cluster_id,
        "brokers": list(plan.brokers),
        "run": run,
        "ok": failed is None and matrix.ok,
        "failed": failed,
        "doubts": matrix.doubts,
        "matrix": [asdict(row) for row in matrix.rows],
        "setups": [result_value(result) for result in matrix.results],
        "evidence": folder,
    }


def unmeasured_by(results: Sequence[ScenarioResult]) -> list[str]:
    """Return the requested budgets that no scenario measured, so their outcome is unknown."""
    measured_by_name = {each.budget: False for result in results for each in result.verdict.budgets}
    for result in results:
        measured_by_name |= {each.budget: True for each in result.verdict.budgets if each.kept is not None}
    return [name for name, measured in measured_by_name.items() if not measured]


def skipped_scenarios(plan: ValidationPlan) -> list[PlannedScenario]:
    """Return the scenarios that this cluster does not support."""
    return [row for row in plan.scenarios if row.impossible is not None]
