"""kctl spark snapshot: alias of `kctl history snapshot`."""

from __future__ import annotations

import typer

from kctl.commands.history.snapshot import SnapshotOptions, collect_snapshots
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.option_sets import takes_options


@takes_options(SnapshotOptions)
def snapshot(ctx: typer.Context, options: SnapshotOptions) -> None:
    """Collect snapshots: alias of `kctl history snapshot`.

    # Collect a snapshot each minute for an hour
    kctl spark snapshot --store ./snapshots --every 60s --for 1h
    """
    collect_snapshots(invocation(ctx), options)
