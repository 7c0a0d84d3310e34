"""kctl controller: the active controller, and with KRaft the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.terminal.quorum_members import ago, members_table
from kctl.commands.terminal.views import incomplete_after_verdict, ranges
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching

if TYPE_CHECKING:
    from kctl.cluster.controller import Controller


def command(
    ctx: typer.Context, watch: Annotated[bool, WATCH] = False, interval: Annotated[str, INTERVAL] = "2s"
) -> None:
    """Show the active controller, its epoch and when it was elected.

    With ZooKeeper, the epoch and time are shown only if --zookeeper or the context has the ZooKeeper address. With
    KRaft, the metadata quorum is shown: voters, observers and their lag. Exits 1 if there is no controller, or if
    brokers report different controllers. Without an active controller, the controllers in the brokers' settings are
    shown.

    # Show the controller
    kctl controller
    """
    from kctl.cluster.controller import read_controller

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect(controllers=True) as client:
        if watching:
            watching.run(
                lambda: read_controller(client),
                lambda snapshot: PassOutput(snapshot, _tables(snapshot), _failures(snapshot)),
            )
        controller = read_controller(client)
    inv.emit(controller, lambda: _tables(controller))
    with incomplete_after_verdict(controller.failures):
        controller.require_healthy()


def _failures(controller: Controller) -> list[str]:
    return [*([controller.problem] if controller.problem else []), *controller.failures]


def _tables(controller: Controller) -> list[Table]:
    address = None if controller.host is None else f"{controller.host}:{controller.port}"
    facts: dict[str, Any] = {"address": address, "metadata": controller.metadata, "epoch": controller.epoch}
    if controller.metadata == "zookeeper":
        facts["since"] = (
            None if controller.since is None else f"{controller.since:%Y-%m-%d %H:%M:%S} UTC ({ago(controller.since)})"
        )
        brokers = sorted(n for n, named in controller.named_by.items() if named == controller.controller_id)
        facts["named by"] = f"broker {ranges(brokers)}"
    else:
        facts["high watermark"] = controller.high_watermark
    columns = [
        Column("key", "CONTROLLER"),
        Column("value", "none" if controller.controller_id is None else str(controller.controller_id)),
    ]
    lines = Table(columns, [{"key": key, "value": value} for key, value in facts.items()])
    members = (*controller.voters, *controller.observers)
    return [lines, members_table(members)] if members else [lines]
