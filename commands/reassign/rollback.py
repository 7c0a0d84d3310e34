"""`kctl topic reassign rollback`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.reassign.run import (
    BatchBytes,
    DryRun,
    MaxMoves,
    NoElect,
    StallAfter,
    Throttle,
    apply_request,
    options,
)
from kctl.commands.terminal.invocation import invocation


def rollback(
    ctx: typer.Context,
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="Plan file (default: the last run on this machine).")
    ] = None,
    throttle: Throttle = None,
    max_concurrent_moves: MaxMoves = None,
    batch_bytes: BatchBytes = None,
    no_elect: NoElect = False,
    stall_after: StallAfter = "60s",
    dry_run: DryRun = False,
) -> None:
    """Reverse a plan: restore the original replicas and their order.

    Checks, confirmation and batches are the same as for apply.

    # Reverse the last run on this machine
    kctl topic reassign rollback --throttle 50MB/s
    """
    from kctl.reassign.plan_file.read import read_plan, reversed_plan
    from kctl.reassign.run.operations import ApplyRequest, last_run_reversed

    inv = invocation(ctx)
    run_options = options(throttle, max_concurrent_moves, batch_bytes, no_elect=no_elect, stall_after=stall_after)
    reverse = None if plan is None else (reversed_plan(read_plan(plan)), str(plan))
    with inv.connect() as client:
        file, source = reverse or last_run_reversed(client)
        apply_request(inv, client, ApplyRequest(file, source, run_options, kind="rollback", dry_run=dry_run))
