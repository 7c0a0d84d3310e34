"""`kctl quorum convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import note_when_interrupted
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.quorum.convert import Conversion

_STEPS = {
    "kraft.version": "raises kraft.version to 1, which cannot be undone",
    "settings": "writes controller.quorum.bootstrap.servers to the config files of the nodes",
    "restart": "restarts the nodes one after another",
}


def convert(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")] = False,
) -> None:
    """Convert static voters (controller.quorum.voters) to dynamic ones.

    Raises the feature kraft.version to 1, which cannot be lowered afterwards. Then each node needs
    controller.quorum.bootstrap.servers in place of controller.quorum.voters, and a restart. kctl does this in clusters
    that it set up. In other clusters, it lists the nodes. Run the same command again to resume. Requires Kafka 4.1.

    # Preview the conversion
    kctl quorum convert --dry-run
    """
    from kctl.cluster.unchanged import Basis
    from kctl.commands.cluster.rolling import TerminalReporter
    from kctl.quorum.convert import carry_out, plan_conversion
    from kctl.restart.restart_run import RestartOptions

    inv = invocation(ctx)
    with inv.connect() as client:
        plan = plan_conversion(client)
        if not plan.changed or dry_run:
            _emit(inv, plan, ItemResult.WOULD_ALTER if plan.changed else ItemResult.UNCHANGED)
            _note_remaining(plan)
            return
        steps = "; ".join(_STEPS[step.value] for step in plan.steps)
        basis = Basis(_facts(plan), lambda: _facts(plan_conversion(client)))
        question = f"Convert the voters of {client.target.name}: kctl {steps}. Continue?"
        inv.confirm(question, target=client.target, basis=basis)
        unfinished = "the conversion is unfinished: run the same command again to continue"
        with note_when_interrupted(unfinished), output.progress("converting the voters") as bar:
            options = RestartOptions(broker_timeout_s=inv.timeout_s(600))
            remainder = carry_out(client, plan, options, TerminalReporter(bar))
    _emit(inv, remainder, ItemResult.ALTERED)
    _note_remaining(remainder)


def _facts(plan: Conversion) -> dict[str, dict[str, object]]:
    steps = tuple(step.value for step in plan.steps)
    return {"the metadata quorum": {"kraft.version": plan.kraft_version, "voters": plan.voters, "steps": steps}}


def _emit(inv: Invocation, plan: Conversion, result: ItemResult) -> None:
    row = {**jsonable(plan), "result": result.value, "changed": result.changed}
    versions = {0: "0 (static voters)", 1: "1 (dynamic voters)"}
    facts = {
        "kraft.version": versions.get(plan.kraft_version, str(plan.kraft_version)),
        "voters": ", ".join(map(str, plan.voters)),
        "steps": ", ".join(step.value for step in plan.steps) or "none",
    }
    summary = Table(
        [Column("key", "RESULT"), Column("value", result.value)],
        [{"key": key, "value": value} for key, value in facts.items()],
    )
    columns = [Column("node_id", "NODE", align="right"), Column("role"), Column("voter_source", "VOTERS")]
    columns += [Column("problem")] if any(node.problem for node in plan.nodes) else []
    inv.emit(row, lambda: [summary, Table(columns, row["nodes"])], changed=result.changed)


def _note_remaining(plan: Conversion) -> None:
    """Print the remaining steps for each node of a cluster that kctl did not set up."""
    if not plan.remaining:
        return
    nodes = ", ".join(map(str, plan.remaining))
    output.note(
        f"still to do on node {nodes}, one node at a time: in server.properties, replace controller.quorum.voters with"
    )
    output.note(f"  controller.quorum.bootstrap.servers={plan.bootstrap_servers}")
    output.note("then restart the node: `kctl cluster restart --rolling --hooks FILE` restarts brokers")
