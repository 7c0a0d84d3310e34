"""`kctl quorum add` and `kctl quorum remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import note_when_interrupted
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from collections.abc import Callable

    from kctl.protocol.client import ClusterClient
    from kctl.quorum.plan import VoterChange

Id = Annotated[int, typer.Argument(metavar="ID", help="Node id of the controller.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]
_RESULTS = {
    "add": (ItemResult.WOULD_ADD, ItemResult.ADDED),
    "remove": (ItemResult.WOULD_REMOVE, ItemResult.REMOVED),
}
_VERBS = {"add": "adds it to the voters", "stop": "stops it", "remove": "removes it from the voters",
          "unregister": "removes its registration"}  # fmt: skip


def add(ctx: typer.Context, node_id: Id, dry_run: DryRun = False) -> None:
    """Make a controller a voter of the metadata quorum.

    The controller must run as an observer, and must have caught up. If kctl has just started the controller, kctl waits
    until it has. Change one voter at a time.

    # Add controller 104 after it has caught up
    kctl quorum add 104
    """
    from kctl.quorum.planning import prepare_add

    _change(invocation(ctx), lambda client: prepare_add(client, node_id), dry_run=dry_run)


def remove(
    ctx: typer.Context,
    node_id: Id,
    while_running: Annotated[
        bool, typer.Option("--while-running", help="Remove a running controller; it becomes an observer.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a controller from the voters of the metadata quorum.

    Stop the controller first, because with controller.quorum.auto.join.enable it would join again. kctl stops dedicated
    controllers of clusters that it set up. The remaining voters that follow the leader must be a majority of the new
    voters. The registration is removed as well if metadata.version is 4.4-IV2 or later and the controller is down. Run
    the same command again to resume.

    # Preview the removal of controller 103
    kctl quorum remove 103 --dry-run
    """
    from kctl.quorum.planning import prepare_remove

    def plan(client: ClusterClient) -> VoterChange:
        return prepare_remove(client, node_id, while_running=while_running)

    _change(invocation(ctx), plan, dry_run=dry_run)


def _change(inv: Invocation, plan: Callable[[ClusterClient], VoterChange], *, dry_run: bool) -> None:
    from kctl.cluster.unchanged import Basis
    from kctl.quorum.change import carry_out

    with inv.connect(controllers=True) as client:
        change = plan(client)
        for warning in change.warnings:
            output.warn(warning)
        planned, done = _RESULTS[change.action.value]
        if not change.changed or dry_run:
            _emit(inv, change, planned if change.changed else ItemResult.UNCHANGED)
            return
        # Plan again after the confirmation: another voter may have died, or another operator changed the voters.
        basis = Basis(_facts(change), lambda: _facts(plan(client)))
        inv.confirm(_question(change, client.target.name), target=client.target, basis=basis)
        unfinished = (
            f"the change of controller {change.node_id} may be unfinished: run the same command again to continue"
        )
        with note_when_interrupted(unfinished), output.progress("changing the voters") as bar:
            carry_out(client, change, timeout_s=inv.timeout_s(60), progress=bar)
    _emit(inv, change, done)


def _facts(change: VoterChange) -> dict[str, dict[str, object]]:
    steps = tuple(step.value for step in change.steps)
    address = None if change.address is None else str(change.address)
    controller: dict[str, object] = {"directory id": change.directory_id, "address": address, "steps": steps}
    return {f"controller {change.node_id}": controller,
            "the metadata quorum": {"voters": change.voters}}  # fmt: skip


def _question(change: VoterChange, cluster: str) -> str:
    before, after = (", ".join(map(str, ids)) for ids in (change.voters, change.voters_after))
    steps = ", ".join(_VERBS[step.value] for step in change.steps)
    voters = f"the voters {before} become {after}" if before != after else f"the voters stay {before}"
    return f"Controller {change.node_id} on {cluster}: kctl {steps}; {voters}. Continue?"


def _emit(inv: Invocation, change: VoterChange, result: ItemResult) -> None:
    row = {**jsonable(change), "result": result.value, "changed": result.changed}
    del row["own"]
    columns = [
        Column("node_id", "CONTROLLER", align="right"),
        Column("result"),
        Column("steps", show=lambda steps: ", ".join(steps) or "none"),
        Column("voters", show=lambda ids: ", ".join(map(str, ids))),
        Column("voters_after", "VOTERS AFTER", show=lambda ids: ", ".join(map(str, ids))),
    ]
    inv.emit(row, lambda: [Table(columns, [row])], changed=result.changed)
