"""`kctl topic reassign apply`."""

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


def apply(
    ctx: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file of kctl or Kafka's tool; - reads stdin.")],
    throttle: Throttle = None,
    max_concurrent_moves: MaxMoves = None,
    batch_bytes: BatchBytes = None,
    no_elect: NoElect = False,
    stall_after: StallAfter = "60s",
    dry_run: DryRun = False,
) -> None:
    """Apply a plan in batches; a killed run can be resumed.

    The plan is checked against the cluster before anything changes. At the end, each target is read back, preferred
    leaders are elected, and throttles are restored. Replication is not throttled unless --throttle is set, regardless
    of the rate that the plan's estimate assumes.

    # Apply a plan, with a replication limit per broker
    kctl topic reassign apply plan.json --throttle 50MB/s
    """
    from kctl.reassign.plan_file.read import read_plan
    from kctl.reassign.run.operations import ApplyRequest

    inv = invocation(ctx)
    run_options = options(throttle, max_concurrent_moves, batch_bytes, no_elect=no_elect, stall_after=stall_after)
    request = ApplyRequest(read_plan(plan), str(plan), run_options, dry_run=dry_run)
    with inv.connect() as client:
        apply_request(inv, client, request)
