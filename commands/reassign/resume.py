"""`kctl topic reassign resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import parse_rate
from kctl.commands.reassign.run import DryRun, carry, show_dry_run, take, unfinished_run
from kctl.commands.reassign.tables import rest_line
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation

if TYPE_CHECKING:
    from kctl.reassign.run.run_state import Run
    from kctl.reassign.run.steps import RunState


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
    from kctl.reassign.run import run as library
    from kctl.reassign.run.run_status import read_run

    inv = invocation(ctx)
    rate = None if throttle in {None, "none"} else parse_rate(str(throttle))
    new_rate = throttle is not None

    def go_on(run: Run) -> None:
        output.note(f"going on with {rest(run.state)}")
        library.resume(run, rate_bytes=rate, new_rate=new_rate)

    def rest(state: RunState) -> str:
        return rest_line(state, rate_bytes=rate if new_rate else state.rate_bytes)

    with inv.connect() as client:
        path = unfinished_run(client, reopen=True)
        if dry_run:
            left = rest(read_run(path).state)
            show_dry_run(inv, client, lambda _run: f"it would go on with {left}")
            return
        question = f"On {client.target.name}, go on with {rest(read_run(path).state)}?"
        inv.confirm_protected(question, target=client.target)
        with take(path, inv) as journal:
            carry(inv, client, journal, go_on)
