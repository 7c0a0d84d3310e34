"""`kctl topic reassign cancel`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.reassign.run import RunDryRun, TerminalOperator, show, show_dry_run, wait_limit_s
from kctl.commands.reassign.tables import would_cancel
from kctl.commands.terminal.invocation import invocation

if TYPE_CHECKING:
    from kctl.reassign.run.run_status import RunSummary


def cancel(
    ctx: typer.Context,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Cancel the in-flight moves of a plan that was started on another machine."),
    ] = None,
    dry_run: RunDryRun = False,
) -> None:
    """Cancel a run and undo the moves in flight.

    Partitions in flight return to their original replicas. Partitions that reached their target stay there; `rollback`
    moves them back. Throttles are restored; with --plan, they are listed and then deleted.

    # Cancel the run on this machine
    kctl topic reassign cancel
    """
    from kctl.reassign.run import operations

    inv = invocation(ctx)
    if plan is not None:
        from kctl.commands.reassign.take_over import cancel_plan

        cancel_plan(inv, plan, dry_run=dry_run)
        return
    with inv.connect() as client:
        if dry_run:
            operations.unfinished_run(client)
            show_dry_run(inv, client, lambda run: f"would cancel {run.kind} of {run.source}: {would_cancel(run)}")
            return

        def confirm(path: Path, run: RunSummary | None) -> None:
            run_name = path.stem if run is None else f"{run.kind} of {run.source}"
            figures = "" if run is None else f": {would_cancel(run)}"
            inv.confirm(f"Cancel {run_name} on {client.target.name}{figures}?", target=client.target)

        show(inv, operations.cancel(client, TerminalOperator(), confirm, timeout_s=wait_limit_s(inv)))
