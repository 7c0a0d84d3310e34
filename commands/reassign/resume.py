"""`kctl topic reassign resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import parse_rate
from kctl.commands.reassign.run import RunDryRun, TerminalOperator, show, show_dry_run
from kctl.commands.reassign.tables import rest_line
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation

if TYPE_CHECKING:
    from kctl.reassign.run.steps import RunState


def resume(
    ctx: typer.Context,
    throttle: Annotated[str | None, typer.Option(metavar="RATE", help="New throttle, e.g. 50MB/s, or none.")] = None,
    dry_run: RunDryRun = False,
) -> None:
    """Resume a run that was killed, stopped or paused.

    Moves that the brokers completed in the meantime are not repeated; moves in flight continue. If the run was
    being canceled, the cancellation continues.

    # Resume the run on this machine with a new throttle
    kctl topic reassign resume --throttle 100MB/s
    """
    from kctl.reassign.run import operations
    from kctl.reassign.run.run_status import read_run

    inv = invocation(ctx)
    new_rate = None
    if throttle is not None:
        new_rate = operations.NewRate(None if throttle == "none" else parse_rate(throttle))

    def rest(state: RunState) -> str:
        return rest_line(state, rate_bytes=new_rate.rate_bytes if new_rate else state.rate_bytes)

    with inv.connect() as client:
        if dry_run:
            rest_of_run = rest(read_run(operations.unfinished_run(client, reopen=True)).state)
            show_dry_run(inv, client, lambda _run: f"would resume {rest_of_run}")
            return
        result = operations.resume(
            client,
            TerminalOperator(),
            lambda state: inv.confirm_protected(
                f"On {client.target.name}, resume {rest(state)}?", target=client.target
            ),
            begin=lambda state: output.note(f"resuming {rest(state)}"),
            new_rate=new_rate,
        )
        show(inv, result)
