"""`kctl playbook status`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable


def status(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Run id (default: all runs).")] = None,
) -> None:
    """Show the state of playbook runs.

    # List all runs
    kctl playbook status
    """
    from kctl.playbook.run.resume import RunOverview, overview, overviews
    from kctl.playbook.run.run_journal import path_of, state_of

    inv = invocation(ctx)
    if run is not None:
        path = path_of(run)
        run_overview = overview(path, state_of(path))
        inv.emit(run_overview, lambda: [Table(_columns(), [jsonable(run_overview)])], lambda: [run_overview])
        return
    runs, errors = overviews()
    for error in errors:
        output.warn(error.message)
    inv.emit(
        runs,
        lambda: [Table(_columns(), jsonable(runs), empty="no playbook has been run on this machine")],
        row_type=RunOverview,
    )


def _columns() -> list[Column]:
    return [
        Column("run", name=True),
        Column("playbook", name=True),
        Column("state", style=lambda row: "red" if row["state"] in {"failed", "stopped"} else None),
        Column("target"),
        Column("steps_done", "DONE", align="right"),
        Column("steps", "OF", align="right"),
        Column("at"),
        Column("message", wide=True),
        Column("began_at", wide=True),
        Column("cluster_id", wide=True),
    ]
