"""`kctl topic reassign resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands import output
from kctl.commands.invocation import invocation
from kctl.commands.reassign_run import DryRun, carry, emit_status, take, unfinished_run
from kctl.units import parse_rate


def resume(
    ctx: typer.Context,
    throttle: Annotated[
        str | None, typer.Option(metavar="RATE", help="From now on at this rate: 50MB/s, or none.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Go on with a run that was killed, stopped or paused.

    What the brokers have moved meanwhile counts, what is in flight is waited for. A run that was being cancelled is
    cancelled to its end.

    Example: kctl topic reassign resume --throttle 100MB/s
    """
    from kctl.reassign import run as library

    inv = invocation(ctx)
    rate = None if throttle in {None, "none"} else parse_rate(str(throttle))
    with inv.connect() as client:
        path = unfinished_run(client, reopen=True)
        if dry_run:
            emit_status(inv, client)
            return
        if client.target.protected:
            inv.confirm(f"Go on with {path.stem} on {client.target.name}?", target=client.target)
        with take(path, inv) as journal:
            output.note(f"going on with {path.stem}")
            carry(
                inv,
                client,
                journal,
                lambda run: library.resume(run, rate_bytes=rate, new_rate=throttle is not None),
            )
