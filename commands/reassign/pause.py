"""`kctl topic reassign pause`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.reassign.run import DryRun, pause_run, show_dry_run, take, unfinished_run
from kctl.commands.reassign.tables import would_pause
from kctl.commands.terminal.invocation import invocation


def pause(
    ctx: typer.Context,
    now: Annotated[bool, typer.Option("--now", help="Do not end the batch: what is in flight goes back.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Pause a run when its batch is done, and take its throttles away until it is resumed.

    Example: kctl topic reassign pause
    """
    from kctl.reassign.run.journals import Request

    inv = invocation(ctx)
    with inv.connect() as client:
        path = unfinished_run(client)
        if dry_run:
            show_dry_run(inv, client, lambda run: would_pause(run, now=now))
            return
        with take(path, inv, Request.PAUSE_NOW if now else Request.PAUSE) as journal:
            pause_run(inv, client, journal, now=now)
