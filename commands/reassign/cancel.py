"""`kctl topic reassign cancel`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.reassign.run import DryRun, carry, show_dry_run, take, unfinished_run
from kctl.commands.reassign.tables import would_cancel
from kctl.commands.terminal.invocation import invocation


def cancel(
    ctx: typer.Context,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take back what is in flight of this plan, begun elsewhere: no journal needed."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """End a run: what is in flight goes back to the replicas of before.

    Throttles go back to what they were; with --plan they are deleted, each named before. What has been moved already
    stays; rollback takes it back.

    Example: kctl topic reassign cancel
    """
    from kctl.reassign.run import run as library
    from kctl.reassign.run.journals import Request
    from kctl.reassign.run.run_status import read_status

    inv = invocation(ctx)
    if plan is not None:
        from kctl.commands.reassign.take_over import cancel_plan

        cancel_plan(inv, plan, dry_run=dry_run)
        return
    with inv.connect() as client:
        path = unfinished_run(client)
        if dry_run:
            show_dry_run(inv, client, lambda run: f"it would cancel {run.kind} of {run.source}: {would_cancel(run)}")
            return
        run = read_status(client).run
        what = path.stem if run is None else f"{run.kind} of {run.source}"
        figures = "" if run is None else f": {would_cancel(run)}"
        inv.confirm(f"Cancel {what} on {client.target.name}{figures}?", target=client.target)
        with take(path, inv, Request.CANCEL) as journal:
            carry(inv, client, journal, library.cancel)
