"""`kctl topic reassign cancel`."""

from __future__ import annotations

import typer

from kctl.commands.invocation import invocation
from kctl.commands.reassign_run import DryRun, carry, emit_status, take, unfinished_run


def cancel(ctx: typer.Context, dry_run: DryRun = False) -> None:
    """End a run: what is in flight goes back to the replicas of before.

    Throttles go back to what they were. What has been moved already stays; rollback takes it back.

    Example: kctl topic reassign cancel
    """
    from kctl.reassign import run as library
    from kctl.reassign.journals import Request

    inv = invocation(ctx)
    with inv.connect() as client:
        path = unfinished_run(client)
        if dry_run:
            emit_status(inv, client)
            return
        inv.confirm(f"Cancel {path.stem} on {client.target.name}?", target=client.target)
        with take(path, inv, Request.YIELD) as journal:
            carry(inv, client, journal, library.cancel)
