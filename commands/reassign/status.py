"""`kctl topic reassign status`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.reassign.run import emit_status, report_status
from kctl.commands.reassign.tables import status_tables
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching


def status(
    ctx: typer.Context, watch: Annotated[bool, WATCH] = False, interval: Annotated[str, INTERVAL] = "2s"
) -> None:
    """Show the last run on this machine and all moves in the cluster.

    # Print the state of the run and of all moves as JSON
    kctl topic reassign status -o json
    """
    from kctl.reassign.run.run_status import read_status

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect() as client:
        if watching:
            watching.run(
                lambda: read_status(client),
                lambda latest: PassOutput(latest, status_tables(latest), remarks=lambda: report_status(latest)),
            )
        emit_status(inv, client)
