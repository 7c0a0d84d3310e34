"""`kctl broker unregister`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.brokers.unregister import Unregistration


def unregister(
    ctx: typer.Context,
    broker: Annotated[int, typer.Argument(metavar="ID", help="Broker id.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")] = False,
) -> None:
    """Remove the registration of a lost broker (KRaft).

    The broker must be down and host no replicas. Until it is unregistered, health checks report that it is down.
    Requires KRaft, and Kafka 4.0 or later.

    # Preview the removal of broker 4
    kctl broker unregister 4 --dry-run
    """
    from kctl.brokers.unregister import plan_unregister
    from kctl.brokers.unregister import unregister as carry_out
    from kctl.cluster.unchanged import Basis

    inv = invocation(ctx)
    with inv.connect() as client:
        plan = plan_unregister(client, broker)
        if not dry_run:
            basis = Basis(_facts(plan), lambda: _facts(plan_unregister(client, broker)))
            inv.confirm(f"Unregister broker {broker} on {client.target.name}?", target=client.target, basis=basis)
            carry_out(client, plan, timeout_s=inv.timeout_s(30))
    result = ItemResult.WOULD_REMOVE if dry_run else ItemResult.REMOVED
    row = {**jsonable(plan), "result": result.value, "changed": result.changed}
    columns = [Column("broker", align="right"), Column("host"), Column("port", align="right"), Column("result")]
    inv.emit(row, lambda: [Table(columns, [row])], changed=True)


def _facts(plan: Unregistration) -> dict[str, dict[str, object]]:
    return {f"broker {plan.broker}": {"host": plan.host, "port": plan.port}}
