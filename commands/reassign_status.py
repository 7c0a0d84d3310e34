"""`kctl topic reassign status`."""

from __future__ import annotations

import typer

from kctl.commands.invocation import invocation
from kctl.commands.reassign_run import emit_status


def status(ctx: typer.Context) -> None:
    """Show the last run of this machine beside what moves in the cluster.

    Example: kctl topic reassign status -o json
    """
    inv = invocation(ctx)
    with inv.connect() as client:
        emit_status(inv, client)
