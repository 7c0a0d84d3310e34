"""`kctl topic reassign pause`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.reassign.run import DryRun, TerminalOperator, show_dry_run, wait_limit_s
from kctl.commands.reassign.tables import tables, would_pause
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation


def pause(
    ctx: typer.Context,
    now: Annotated[bool, typer.Option("--now", help="Do not end the batch: what is in flight goes back.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Pause a run when its batch is done, and take its throttles away until it is resumed.

    Example: kctl topic reassign pause
    """
    from kctl.reassign.run import operations

    inv = invocation(ctx)
    with inv.connect() as client:
        if dry_run:
            operations.unfinished_run(client)
            show_dry_run(inv, client, lambda run: would_pause(run, now=now))
            return
        result = operations.pause(client, TerminalOperator("pausing"), now=now, timeout_s=wait_limit_s(inv))
    inv.emit(result, lambda: tables(result), changed=True)
    if result.outcome == "paused":
        output.note("`kctl topic reassign resume` goes on")
    else:
        output.note("the run had ended before it could be paused")
