"""A run's results as values for programs: report.json, -o json. Pure. Keys are an interface; a test pins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kctl.validate.invariants import INVARIANTS
from kctl.validate.report.timeline import Recovery

if TYPE_CHECKING:
    from kctl.validate.matrix import Matrix
    from kctl.validate.plan import Plan, PlannedScenario
    from kctl.validate.run import Result

_COUNTS = (
    "sent", "acked", "failed", "indeterminate", "failed_in_log", "indeterminate_in_log", "log_records", "delivered",
    "missing_offsets",
)  # fmt: skip


def result_value(result: Result) -> dict[str, Any]:
    """One scenario, or one set-up of the matrix."""
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
    """Each without what has rows of its own: what fits a line. values: of `result_value`."""
    return [{key: value for key, value in row.items() if not isinstance(value, (list, dict))} for row in values]


def gaps_around(result: Result) -> tuple[int | None, int | None]:
    """The longest time in ms without an acknowledgement in a partition, before the first fault and after it."""
    before = [gap.gap_ms for gap in result.verdict.gaps if gap.after is None]
    after = [gap.gap_ms for gap in result.verdict.gaps if gap.after is not None]
    return max(before, default=None), max(after, default=None)


def times(recoveries: Sequence[Recovery]) -> dict[str, int | None]:
    """Of all faults, the slowest that was seen; 0 where nothing was to be waited for, None where none was seen."""
    return {
        "to_new_controller_ms": _slowest([each.to_new_controller_ms for each in recoveries]),
        "to_new_leader_ms": _slowest([ms for each in recoveries for ms in each.to_new_leader_ms.values()]),
        "to_full_isr_ms": _slowest([ms for each in recoveries for ms in each.to_full_isr_ms.values()]),
    }


def _slowest(found: Sequence[int | None]) -> int | None:
    seen = [ms for ms in found if ms is not None]
    return max(seen, default=None if found else 0)


def _fault(result: Result, index: int) -> dict[str, Any]:
    """Times until the next fault: None when it had not come by then, 0 where nothing was to be waited for."""
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


def _partitions(result: Result) -> list[dict[str, Any]]:
    """The longest gap of each partition before the first fault and after it."""
    rows: dict[int, dict[str, Any]] = {}
    for gap in result.verdict.gaps:
        row = rows.setdefault(gap.partition, {"partition": gap.partition, "gap_before_ms": None, "gap_after_ms": None})
        key = "gap_before_ms" if gap.after is None else "gap_after_ms"
        row[key] = gap.gap_ms if row[key] is None else max(row[key], gap.gap_ms)
    return list(rows.values())


def run_value(
    plan: Plan, run: str, folder: str, results: Sequence[Result], *, failed: str | None = None
) -> dict[str, Any]:
    """A whole run. failed: why it did not come to its end."""
    unmeasured = unmeasured_by(results)
    return {
        "cluster": plan.cluster,
        "cluster_id": plan.cluster_id,
        "brokers": list(plan.brokers),
        "run": run,
        "ok": failed is None and bool(results) and all(result.verdict.ok for result in results) and not unmeasured,
        "failed": failed,
        "unmeasured": unmeasured,
        "left_out": [{"scenario": row.scenario, "reason": row.impossible} for row in left_out(plan)],
        "scenarios": [result_value(result) for result in results],
        "evidence": folder,
    }


def matrix_value(
    plan: Plan, run: str, folder: str, matrix: Matrix, *, failed: str | None = None
) -> dict[str, Any]:  # fmt: skip
    """A run of the matrix: the table's rows, and each set-up as a scenario is. failed: what could not be taken back."""
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


def unmeasured_by(results: Sequence[Result]) -> list[str]:
    """The budgets that were asked, and that no validation measured: nobody knows whether they are kept."""
    asked = {each.budget: False for result in results for each in result.verdict.budgets}
    for result in results:
        asked |= {each.budget: True for each in result.verdict.budgets if each.kept is not None}
    return [name for name, measured in asked.items() if not measured]


def left_out(plan: Plan) -> list[PlannedScenario]:
    return [row for row in plan.scenarios if row.impossible is not None]
