"""`kctl topic reassign verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.text import counted
from kctl.commands.reassign.tables import counts_table, failures_table, shortened, some, ways_on
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotHealthy

if TYPE_CHECKING:
    from kctl.reassign.run.run_status import LastRun
    from kctl.reassign.run.verify import Verification


def verify(
    ctx: typer.Context,
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="A plan file; without, the last run on this machine.")
    ] = None,
) -> None:
    """Say whether a plan has come true: replicas, log dirs, throttles, emptied brokers.

    Exit code 0 when it has, 1 when something is left. Changes nothing.

    Example: kctl topic reassign verify plan.json
    """
    from kctl.reassign.plan_file.read import read_plan
    from kctl.reassign.run import operations

    def report(last: LastRun) -> None:
        output.note(f"the last run on this machine: {last.plan.kind} of {last.plan.source}")

    inv = invocation(ctx)
    file = None if plan is None else read_plan(plan)
    with inv.connect() as client:
        verified = operations.verify(client, file, report)
    found = verified.verification
    inv.emit(found, lambda: _tables(found))
    left = _left(found)
    if left:
        raise NotHealthy(f"the plan has not come true: {'; '.join(left)}", hint=_hint(found, verified.own_run))


def _tables(found: Verification) -> list[Table]:
    tables = [counts_table(found), *failures_table(found.failures)]
    columns = [
        Column("kind", "THROTTLED"),
        Column("name", " "),
        Column("setting"),
        Column("value", show=shortened),
        Column("before", show=shortened),
    ]
    return [*tables, Table(columns, jsonable(found.throttles_left))]


def _left(found: Verification) -> list[str]:
    left = []
    if found.failures:
        left.append(f"{len(found.failures):,} of {found.partition_count:,} partitions are not there")
    if found.throttles_left:
        left.append(f"{counted(len(found.throttles_left), 'throttle setting')} left")
    left += [f"broker {row.broker} still holds {some(row.partitions)}" for row in found.brokers_left]
    return left


def _hint(found: Verification, ours: LastRun | None) -> str:
    if ours is not None and ours.state.outcome is None:
        return "the run has not ended: `kctl topic reassign status` shows it"
    ways = ways_on(found, begun=ours is not None) if found.failures or found.brokers_left else []
    if found.throttles_left and ours is not None and ours.state.throttle_left is not None:
        ways.append("`kctl topic reassign resume` restores throttles of brokers that are up again")
    elif found.throttles_left:
        when = "when nothing is in flight any more, " if found.in_flight else ""
        ways.append(f"{when}`kctl topic reassign cancel --plan FILE` takes its throttles away")
    return "; ".join(ways)
