"""`kctl cluster kill|pause|unpause`: faults on purpose, for experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.deploy.faults import Fault

Name = Annotated[str, typer.Argument(metavar="NAME", help="The cluster's name.", autocompletion=cluster_names)]
Node = Annotated[
    str,
    typer.Argument(
        metavar="NODE",
        help="A broker's id, zookeeper-1, controller, zookeeper-leader or leader:TOPIC-PARTITION.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say which process it would be.")]


def kill(ctx: typer.Context, name: Name, node: Node, dry_run: DryRun = False) -> None:
    """Kill a process as a crash would.

    With SIGKILL; kctl cluster start brings it back.

    Example: kctl cluster kill dev leader:orders-0 --yes
    """
    _fault(invocation(ctx), name, node, "kill", dry_run=dry_run)


def pause(ctx: typer.Context, name: Name, node: Node, dry_run: DryRun = False) -> None:
    """Pause a process as a long GC would.

    With SIGSTOP: it keeps its connections and is silent.

    Example: kctl cluster pause dev controller --yes
    """
    _fault(invocation(ctx), name, node, "pause", dry_run=dry_run)


def unpause(ctx: typer.Context, name: Name, node: Node, dry_run: DryRun = False) -> None:
    """Let a paused process go on.

    Example: kctl cluster unpause dev 2
    """
    _fault(invocation(ctx), name, node, "unpause", dry_run=dry_run)


def _fault(inv: Invocation, name: str, selector: str, fault: Fault, *, dry_run: bool) -> None:
    from kctl.commands.cluster.interruption import confirm_interruption
    from kctl.deploy import faults, lifecycle
    from kctl.deploy.host import LocalHost

    host, spec = LocalHost(), lifecycle.load_cluster(name)
    chosen = faults.choose(host, spec, selector)
    columns = [Column("cluster"), Column("node"), Column("pid", align="right"), Column("state")]
    if dry_run:
        plan = {"cluster": name, "node": chosen.node.name, "id": chosen.node.id, "pid": chosen.identity.pid,
                "state": f"would {fault}"}  # fmt: skip
        inv.emit(plan, [Table(columns, [plan])], changed=True)
        return
    if fault != "unpause":
        confirm_interruption(inv, name, f"{fault} {chosen.node.name} (pid {chosen.identity.pid}) of cluster {name}?")
    result = lifecycle.inflict_fault(name, chosen, fault)
    inv.emit(result, [Table(columns, [jsonable(result)])], changed=True)
    if fault != "unpause":
        output.note("the cluster notices when its session ends: a broker's after 6 s, unless configured otherwise")
