"""`kctl topic reassign verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.text import counted
from kctl.commands.reassign.tables import counts_table, failures_table, next_steps, shortened, some
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotHealthy

if TYPE_CHECKING:
    from kctl.reassign.run.run_status import LastRun
    from kctl.reassign.run.verify import PlanVerification


def verify(
    ctx: typer.Context,
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="Plan file (default: the last run on this machine).")
    ] = None,
) -> None:
    """Check that a plan is complete, with nothing left behind.

    Exits 0 if it is, 1 if something remains. Changes nothing.

    # Check that all moves of a plan are complete
    kctl topic reassign verify plan.json
    """
    from kctl.reassign.plan_file.read import read_plan
    from kctl.reassign.run import operations

    def report(last: LastRun) -> None:
        output.note(f"last run on this machine: {last.plan.kind} of {last.plan.source}")

    inv = invocation(ctx)
    file = None if plan is None else read_plan(plan)
    with inv.connect() as client:
        verified = operations.verify(client, file, report)
    verification = verified.verification
    inv.emit(verification, lambda: _tables(verification))
    remaining = _remaining(verification)
    if remaining:
        raise NotHealthy(
            f"the plan is not complete: {'; '.join(remaining)}", hint=_hint(verification, verified.own_run)
        )


def _tables(verification: PlanVerification) -> list[Table]:
    tables = [counts_table(verification), *failures_table(verification.failures)]
    columns = [
        Column("kind", "THROTTLED"),
        Column("name", " "),
        Column("setting"),
        Column("value", show=shortened),
        Column("before", show=shortened),
    ]
    return [*tables, Table(columns, jsonable(verification.throttles_left))]


def _remaining(verification: PlanVerification) -> list[str]:
    remaining = []
    if verification.failures:
        remaining.append(
            f"{len(verification.failures):,} of {verification.partition_count:,} partitions are not at the target"
        )
    if verification.throttles_left:
        remaining.append(f"{counted(len(verification.throttles_left), 'throttle setting')} left")
    remaining += [f"broker {row.broker} still holds {some(row.partitions)}" for row in verification.brokers_left]
    return remaining


def _hint(verification: PlanVerification, last: LastRun | None) -> str:
    if last is not None and last.state.outcome is None:
        return "the run has not ended: `kctl topic reassign status` shows its progress"
    steps = (
        next_steps(verification, started=last is not None) if verification.failures or verification.brokers_left else []
    )
    if verification.throttles_left and last is not None and last.state.throttle_left is not None:
        steps.append("once the brokers are up again, restore their throttles with `kctl topic reassign resume`")
    elif verification.throttles_left:
        when = "once the moves have completed, " if verification.in_flight else ""
        steps.append(f"{when}remove the throttles with `kctl topic reassign cancel --plan FILE`")
    return "; ".join(steps)
