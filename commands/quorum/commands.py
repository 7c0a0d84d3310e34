"""kctl quorum: show and change the voters of the metadata quorum (KRaft)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from collections.abc import Callable

    from kctl.quorum.facts import QuorumFacts
    from kctl.quorum.plan import VoterChange

app = CommandGroup()
app.command_of("status", "kctl.commands.quorum.status")
app.command_of("recover", "kctl.commands.quorum.recover")

_ID = typer.Argument(metavar="ID", help="Node id of the controller.")
_RESULTS = {
    "add": (ItemResult.WOULD_ADD, ItemResult.ADDED),
    "remove": (ItemResult.WOULD_REMOVE, ItemResult.REMOVED),
}
_DRY_RUN = typer.Option("--dry-run", help="Show what would be done; change nothing.")


@app.command("add")
def add(ctx: typer.Context, node_id: Annotated[int, _ID], dry_run: Annotated[bool, _DRY_RUN] = False) -> None:
    """Make a controller a voter of the metadata quorum.

    The controller must run as an observer, and must have caught up. Change one voter at a time.

    # Add controller 104 after it has caught up
    kctl quorum add 104
    """
    from kctl.quorum.plan import plan_add

    _change(invocation(ctx), lambda facts: plan_add(facts, node_id), dry_run=dry_run)


@app.command("remove")
def remove(
    ctx: typer.Context,
    node_id: Annotated[int, _ID],
    while_running: Annotated[
        bool, typer.Option("--while-running", help="Also remove a controller that still runs; it becomes an observer.")
    ] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Remove a controller from the voters of the metadata quorum.

    Stop the controller first: with controller.quorum.auto.join.enable, it would join again. A majority of the
    remaining voters must follow the leader.

    # Preview the removal of controller 103
    kctl quorum remove 103 --dry-run
    """
    from kctl.quorum.plan import plan_remove

    _change(invocation(ctx), lambda facts: plan_remove(facts, node_id, while_running=while_running), dry_run=dry_run)


def _change(inv: Invocation, plan: Callable[[QuorumFacts], VoterChange], *, dry_run: bool) -> None:
    from kctl.quorum.change import carry_out
    from kctl.quorum.facts import read_facts

    with inv.connect() as client:
        change = plan(read_facts(client))
        for warning in change.warnings:
            output.warn(warning)
        if not change.changed:
            _emit(inv, change, ItemResult.UNCHANGED)
            return
        planned, done = _RESULTS[change.action.value]
        if dry_run:
            _emit(inv, change, planned)
            return
        before, after = (", ".join(map(str, ids)) for ids in (change.voters, change.voters_after))
        question = f"Change the voters on {client.target.name} from {before} to {after}?"
        inv.confirm(question, target=client.target)
        carry_out(client, change, timeout_s=inv.timeout_s(30))
    _emit(inv, change, done)


def _emit(inv: Invocation, change: VoterChange, result: ItemResult) -> None:
    row = {**jsonable(change), "result": result.value, "changed": result.changed}
    columns = [
        Column("node_id", "CONTROLLER", align="right"),
        Column("result"),
        Column("voters", show=lambda ids: ", ".join(map(str, ids))),
        Column("voters_after", "VOTERS AFTER", show=lambda ids: ", ".join(map(str, ids))),
    ]
    inv.emit(row, lambda: [Table(columns, [row])], changed=result.changed)
