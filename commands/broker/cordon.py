"""`kctl broker cordon` and `kctl broker uncordon`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.base.outcomes import any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable

Id = Annotated[int, typer.Argument(metavar="ID", help="Broker id.")]
Dirs = Annotated[
    list[str] | None, typer.Argument(metavar="[DIR]…", help="Log dirs (default: all log dirs of the broker).")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the broker validate the change, without applying it.")]


def cordon(ctx: typer.Context, broker: Id, dirs: Dirs = None, dry_run: DryRun = False) -> None:
    """Cordon log dirs, so that they receive no new replicas.

    Replicas in cordoned log dirs stay and are served. Without DIR, the broker receives no new replicas at all: do this
    before you remove a broker. Sets the broker's config cordoned.log.dirs (KRaft, metadata.version 4.3 or later).

    # Preview the log dirs of broker 1 that would be cordoned
    kctl broker cordon 1 --dry-run
    """
    _change(ctx, broker, dirs or (), dry_run=dry_run, cordon=True)


def uncordon(ctx: typer.Context, broker: Id, dirs: Dirs = None, dry_run: DryRun = False) -> None:
    """Uncordon log dirs, so that they receive new replicas again.

    # Preview the log dirs of broker 1 that would be uncordoned
    kctl broker uncordon 1 --dry-run
    """
    _change(ctx, broker, dirs or (), dry_run=dry_run, cordon=False)


def _change(ctx: typer.Context, broker: int, dirs: list[str] | tuple[()], *, dry_run: bool, cordon: bool) -> None:
    from kctl.brokers.cordon import apply_cordon, plan_cordon
    from kctl.configs.basis import of_changes

    inv = invocation(ctx)
    with inv.connect() as client:
        plan = plan_cordon(client, broker, dirs, cordon=cordon)
        rows = plan.rows
        for line in plan.warnings:
            output.warn(line)
        if plan.change is not None and not dry_run:
            paths = [row.log_dir for row in rows if row.result.changed]
            verb = "Cordon" if cordon else "Uncordon"
            question = f"{verb} {counted(len(paths), 'log dir')} of broker {broker} on {client.target.name}?"
            if not inv.yes:
                for path in paths:
                    output.note(f"would {verb.lower()} {path}")
            inv.confirm(question, target=client.target, basis=of_changes(client, plan.change))
            rows = apply_cordon(client, plan, timeout_s=inv.timeout_s(30))
    columns = [
        Column("broker", align="right"),
        Column("log_dir", "LOG DIR", name=True),
        Column("replica_count", "REPLICAS", align="right"),
        Column("result"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))], changed=any_changed(rows))
