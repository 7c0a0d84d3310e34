"""kctl topic reassign show: a saved plan, as `plan` shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation


def show(
    ctx: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file; - reads stdin.")],
) -> None:
    """Show a saved plan. Sends no request to a broker.

    The cluster may have changed since the plan was made: `apply --dry-run` checks the plan against the cluster, and
    `verify` checks the result of a run. -o json prints the file itself, -o wide shows every row. Exits 0 even if
    the plan does not reach its goals.

    # Show the moves of a plan
    kctl topic reassign show plan.json
    """
    from kctl.commands.reassign.plan_tables import change_rows, plan_tables, unknown_tables
    from kctl.reassign.plan_file.read import load_document, parse_plan, read_bytes, text_of_file
    from kctl.reassign.plan_file.restore import restore

    inv = invocation(ctx)
    data, name = read_bytes(plan)
    file = parse_plan(data, name)
    saved = restore(file, name)
    if inv.output == "json":
        output.write_text(text_of_file(data))
        return
    if inv.output == "yaml":
        inv.emit(load_document(data, name), [])
        return
    if inv.output == "csv":
        inv.emit(change_rows(saved.plan), [])
        return
    wide = inv.output == "wide"
    if file.has_before:
        output.emit(None, lambda: plan_tables(saved.plan, saved.goals, saved.execution, wide=wide), "table")
    else:
        output.emit(None, lambda: unknown_tables(saved.plan, wide=wide), "table")
    for line in saved.plan.warnings:
        output.warn(line)
    for line in saved.plan.unmet:
        output.warn(f"the plan does not reach its goals: {line}")
