"""A validation on the terminal: what is planned, what is asked, what came of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.commands import output
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.views import alarm
from kctl.text import counted

if TYPE_CHECKING:
    from kctl.commands.invocation import Invocation
    from kctl.validate.matrix import Matrix
    from kctl.validate.plan import Plan
    from kctl.validate.run import Result

_NAMED = 5
_WIDEST = 120


def plan_tables(plan: Plan) -> list[Table]:
    """What is done, and what cannot be."""
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


def said_before(plan: Plan) -> list[str]:
    """What to know before: what is left out, and whose topics suffer."""
    lines = [f"{row.scenario} is left out: {row.impossible}" for row in plan.scenarios if row.impossible is not None]
    lines += [
        f"topic {row.topic} suffers: {counted(row.partition_count, 'partition')} with "
        f"{counted(row.replication_factor, 'replica')}, min.insync.replicas {row.min_insync_replicas}: "
        f"{row.consequence}"
        for row in plan.unprotected[:_NAMED]
    ]
    if len(plan.unprotected) > _NAMED:
        lines.append(f"{counted(len(plan.unprotected) - _NAMED, 'more topic')} suffer: --dry-run lists all")
    return lines


def question(plan: Plan) -> str:
    """What is asked before."""
    steps = "; ".join(f"{row.scenario}: {row.does}" for row in plan.possible)
    return f"Break cluster {plan.cluster} on purpose, {plan.by}? {steps}"


def result_tables(results: Sequence[Result]) -> list[Table]:
    """A row for each scenario."""
    from kctl.validate.report import result_value

    rows = [{**result_value(result), "held": "yes" if result.verdict.ok else "NO"} for result in results]
    columns = [
        Column("scenario", name=True),
        Column("held", style=lambda row: None if row["held"] == "yes" else "red"),
        Column("acked", align="right"),
        Column("failed", align="right"),
        Column("indeterminate", "UNKNOWN", align="right"),
        Column("lost", align="right", style=alarm("lost")),
        Column("duplicated", align="right"),
        Column("out_of_order", align="right"),
        Column("gap_before_ms", "GAP BEFORE", _ms, "right"),
        Column("gap_after_ms", "AFTER", _ms, "right"),
        Column("to_new_controller_ms", "CONTROLLER", _ms, "right"),
        Column("to_new_leader_ms", "LEADER", _ms, "right"),
        Column("to_full_isr_ms", "FULL ISR", _ms, "right"),
        Column("sent", align="right", wide=True),
        Column("log_records", align="right", wide=True),
        Column("delivered", align="right", wide=True),
        Column("topic", wide=True, name=True),
    ]
    return [Table(columns, rows)]


def matrix_tables(matrix: Matrix) -> list[Table]:
    """A row for each set-up."""
    columns = [
        Column("acks"),
        Column("idempotence"),
        Column("min_insync_replicas", "MIN ISR", align="right"),
        Column("acked", align="right"),
        Column("failed", align="right"),
        Column("lost", align="right", style=alarm("lost")),
        Column("duplicated", align="right"),
        Column("out_of_order", align="right"),
        Column("longest_gap_ms", "GAP", _ms, "right"),
        Column("meaning"),
        Column("promises", wide=True),
        Column("sent", align="right", wide=True),
        Column("indeterminate", "UNKNOWN", align="right", wide=True),
    ]
    return [Table(columns, jsonable(matrix.rows))]


def _ms(value: Any) -> str:
    return "-" if value is None else f"{value / 1000:.1f} s"


def tell_results(inv: Invocation, results: Sequence[Result], *, matrix: bool) -> None:
    """On stderr, for people: why something did not hold, where lost records are, and the plots on a terminal."""
    from kctl.validate.plot_terminal import plot_lines
    from kctl.validate.report_folder import label
    from kctl.validate.sentences import missing_line, why_not

    for result in results:
        if not matrix:
            for line in why_not(result.verdict):
                output.warn(f"{label(result)}: {line}")
        for each in result.missing[: 1 if matrix else _NAMED]:
            output.note(f"{label(result)}: {missing_line(each)}")
    if inv.output in output.FOR_PEOPLE and sys.stdout.isatty() and not matrix:
        width = min(_WIDEST, shutil.get_terminal_size().columns)
        for result in results:
            output.heading(f"\n{label(result)}: acknowledged writes per second")
            output.write_text("\n".join(plot_lines(result.plot, width=width, plain=_plain())) + "\n")


def _plain() -> bool:
    try:
        "▁│".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
