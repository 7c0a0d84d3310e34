"""`kctl topic reassign pause`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.reassign.run import RunDryRun, TerminalOperator, show_dry_run, wait_limit_s
from kctl.commands.reassign.tables import tables, would_pause
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation


def pause(
    ctx: typer.Context,
    now: Annotated[bool, typer.Option("--now", help="Cancel the batch in flight instead of completing it.")] = False,
    dry_run: RunDryRun = False,
) -> None:
    """Pause a run after its current batch; restores throttles.

    # Pause the run on this machine
    kctl topic reassign pause
    """
    from kctl.reassign.run import operations
    from kctl.reassign.run.steps import ReassignmentOutcome

    inv = invocation(ctx)
    with inv.connect() as client:
        if dry_run:
            operations.unfinished_run(client)
            show_dry_run(inv, client, lambda run: would_pause(run, now=now))
            return
        result = operations.pause(client, TerminalOperator("pausing"), now=now, timeout_s=wait_limit_s(inv))
    inv.emit(result, lambda: tables(result), changed=True)
    if result.outcome is ReassignmentOutcome.PAUSED:
        output.note("to resume: `kctl topic reassign resume`")
    else:
        output.note("the run ended before it could be paused")
