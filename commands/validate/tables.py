"""Terminal output of validations: the plan, the question, the results."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import alarm

if TYPE_CHECKING:
    from kctl.commands.terminal.invocation import Invocation
    from kctl.validate.matrix import Matrix
    from kctl.validate.plan import ValidationPlan
    from kctl.validate.run import ScenarioResult

_SHOWN = 5
_TIMES = ("to_new_leader_ms", "to_new_controller_ms", "to_full_isr_ms")
# Must be 0; without idempotence, duplicates and reordering are allowed.
_ALARMING = {"lost": "LOST", "duplicated": "TWICE", "out_of_order": "REORDERED", "holes": "HOLES"}
_WIDEST = 120


def plan_tables(plan: ValidationPlan) -> list[Table]:
    """Return the planned scenarios, and unprotected topics."""
    rows = [
        {"scenario": row.scenario, "does": row.does, "note": "" if row.impossible is None else f"no: {row.impossible}"}
        for row in plan.scenarios
    ]
    tables = [Table([Column("scenario", name=True), Column("does"), Column("note", " ")], rows)]
    if plan.unprotected:
        columns = [
            Column("topic", "NOT PROTECTED", name=True), Column("partition_count", "PARTITIONS", align="right"),
            Column("replication_factor", "RF", align="right"), Column("min_insync_replicas", "MIN ISR", align="right"),
            Column("consequence"),
        ]  # fmt: skip
        tables.append(Table(columns, jsonable(plan.unprotected)))
    return tables


def plan_warnings(plan: ValidationPlan) -> list[str]:
    """Return warnings before a run: skipped scenarios and affected topics."""
    lines = [f"{row.scenario} is skipped: {row.impossible}" for row in plan.scenarios if row.impossible is not None]
    lines += [
        f"topic {row.topic} is affected: {counted(row.partition_count, 'partition')} with "
        f"{counted(row.replication_factor, 'replica')}, min.insync.replicas {row.min_insync_replicas}: "
        f"{row.consequence}"
        for row in plan.unprotected[:_SHOWN]
    ]
    if len(plan.unprotected) > _SHOWN:
        lines.append(f"{counted(len(plan.unprotected) - _SHOWN, 'more topic')} affected; --dry-run lists all")
    return lines


def plan_lines(plan: ValidationPlan) -> list[str]:
    """Return a line for each planned scenario."""
    return [f"{row.scenario}: {row.does}" for row in plan.possible]


def question(plan: ValidationPlan) -> str:
    """Return the confirmation question."""
    what = counted(len(plan.possible), "validation")
    return f"Inject faults into cluster {plan.cluster} ({what}), {plan.by}?"


def result_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables of results; for a single scenario with its partitions. rows: of report.result_value."""
    partitions = [] if len(rows) != 1 else [_partition_table(rows[0])]
    budgets = [_budget_table(rows)] if any(row["budgets"] for row in rows) else []
    return [_guarantees_table(rows), _fault_table(rows), *budgets, *partitions]


def _guarantees_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = [
        Column("scenario", name=True),
        Column("ok", style=lambda row: None if row["ok"] else "red"),
        Column("sent", align="right", wide=True),
        Column("acked", align="right"),
        Column("failed", align="right"),
        Column("indeterminate", "UNKNOWN", align="right"),
        Column("log_records", align="right", wide=True),
        Column("delivered", align="right", wide=True),
        *(Column(key, title, align="right", style=alarm(key)) for key, title in _ALARMING.items()),
        Column("not_delivered", align="right", wide=True, style=alarm("not_delivered")),
        Column("topic", wide=True, name=True),
    ]
    return Table(columns, rows)


def _fault_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return a row for the time before the first fault, and one for each fault."""
    rows = []
    for result in results:
        before = {"scenario": result["scenario"], "name": "(before)", "at": ""}
        rows.append({**before, "longest_gap_ms": seconds(result["gap_before_ms"]), **dict.fromkeys(_TIMES, "")})
        rows += [_fault_row(result["scenario"], fault) for fault in result["faults"]]
    columns = [
        *([Column("scenario", name=True)] if len(results) > 1 else []),
        Column("name", "FAULT"),
        Column("at", align="right"),
        Column("longest_gap_ms", "LONGEST GAP", align="right"),
        Column("to_new_leader_ms", "LEADER", align="right"),
        Column("to_new_controller_ms", "CONTROLLER", align="right"),
        Column("to_full_isr_ms", "FULL ISR", align="right"),
    ]
    return Table(columns, rows)


def _fault_row(scenario: str, fault: Mapping[str, Any]) -> dict[str, str]:
    times = {key: "not yet" if fault[key] is None else seconds(fault[key]) for key in _TIMES}
    gap = seconds(fault["longest_gap_ms"])
    return {"scenario": scenario, "name": fault["name"], "at": f"{fault['at_s']:.1f} s", "longest_gap_ms": gap, **times}


def _budget_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return a row for each scenario and budget."""
    from kctl.validate.report.sentences import OPTIONS, budget_status

    rows = [
        {**each, "scenario": result["scenario"], "budget": OPTIONS[each["budget"]], "status": budget_status(each)}
        for result in results
        for each in result["budgets"]
    ]
    columns = [
        *([Column("scenario", name=True)] if len(results) > 1 else []),
        Column("budget"),
        Column("limit_ms", "LIMIT", _tenths, "right"),
        Column("longest_ms", "LONGEST", _tenths, "right"),
        Column("status", "KEPT", style=lambda row: "red" if row["kept"] is False else None),
    ]
    return Table(columns, rows)


def _partition_table(result: Mapping[str, Any]) -> Table:
    rows = [{**row, "replicas": result["assignment"][row["partition"]]} for row in result["partitions"]]
    columns = [
        Column("partition", align="right"),
        Column("replicas"),
        Column("gap_before_ms", "LONGEST GAP BEFORE", seconds, "right"),
        Column("gap_after_ms", "AFTER", seconds, "right"),
    ]
    return Table(columns, rows)


def matrix_tables(matrix: Matrix) -> list[Table]:
    """Return a row for each setup."""
    columns = [
        Column("acks"),
        Column("idempotence"),
        Column("min_insync_replicas", "MIN ISR", align="right"),
        Column("acked", align="right"),
        Column("failed", align="right"),
        Column("lost", align="right", style=alarm("lost")),
        Column("duplicated", "TWICE", align="right"),
        Column("out_of_order", "REORDERED", align="right"),
        Column("longest_gap_ms", "LONGEST GAP", seconds, "right"),
        Column("meaning"),
        Column("promises", wide=True),
        Column("sent", align="right", wide=True),
        Column("indeterminate", "UNKNOWN", align="right", wide=True),
    ]
    return [Table(columns, jsonable(matrix.rows))]


def seconds(value: int | None) -> str:
    """Format milliseconds; empty for 0 or None."""
    return _tenths(value) if value else ""


def _tenths(value: int) -> str:
    return f"{value / 1000:.1f} s"


def print_verdicts(inv: Invocation, results: Sequence[ScenarioResult], *, matrix: bool) -> None:
    """Print reasons of violations and lost records on stderr, and plots on a terminal."""
    from kctl.validate.report.plot_terminal import plot_lines
    from kctl.validate.report.report_folder import label
    from kctl.validate.report.sentences import missing_line, why_not

    for result in results:
        if not matrix:
            for line in why_not(result.verdict):
                output.warn(f"{label(result)}: {line}")
        for each in result.missing[: 1 if matrix else _SHOWN]:
            output.note(f"{label(result)}: {missing_line(each)}")
    if inv.output in output.FOR_PEOPLE and sys.stdout.isatty() and not matrix:
        width = min(_WIDEST, shutil.get_terminal_size().columns)
        for result in results:
            output.write_text("")
            output.heading(f"{label(result)}: acknowledged writes per second")
            output.write_text("\n".join(plot_lines(result.plot, width=width, plain=_plain())))


def _plain() -> bool:
    try:
        "▁│".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
