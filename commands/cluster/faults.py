"""`kctl cluster kill|pause|unpause`: fault injection for experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.deploy.faults import Fault
    from kctl.deploy.layout import ClusterSpec

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.", autocompletion=cluster_names)]
Node = Annotated[
    str,
    typer.Argument(
        metavar="NODE",
        help="A node, e.g. 2, zookeeper-1 or controller-101; or a role: controller (the active one), zookeeper-leader, "
        "leader:TOPIC-PARTITION.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show which process would be affected; change nothing.")]


def kill(ctx: typer.Context, name: Name, node: Node, dry_run: DryRun = False) -> None:
    """Kill a process (SIGKILL), as in a crash.

    Start the process again with `kctl cluster start`.

    # Kill the broker that leads partition 0 of orders
    kctl cluster kill dev leader:orders-0 --yes
    """
    _fault(invocation(ctx), name, node, "kill", dry_run=dry_run)


def pause(ctx: typer.Context, name: Name, node: Node, dry_run: DryRun = False) -> None:
    """Pause a process (SIGSTOP), as in a long GC pause.

    The process keeps its connections but does not respond.

    # Pause the broker that is the controller
    kctl cluster pause dev controller --yes
    """
    _fault(invocation(ctx), name, node, "pause", dry_run=dry_run)


def unpause(ctx: typer.Context, name: Name, node: Node, dry_run: DryRun = False) -> None:
    """Resume a paused process.

    # Resume broker 2
    kctl cluster unpause dev 2
    """
    _fault(invocation(ctx), name, node, "unpause", dry_run=dry_run)


def _fault(inv: Invocation, name: str, selector: str, fault: Fault, *, dry_run: bool) -> None:
    from kctl.commands.cluster.interruption import confirm_interruption
    from kctl.deploy import faults, lifecycle
    from kctl.deploy.host import LocalHost

    host, spec = LocalHost(), lifecycle.load_cluster(name)
    fault_target = faults.choose(host, spec, selector)
    node, pid = fault_target.node, fault_target.identity.pid
    columns = [Column("cluster"), Column("node"), Column("pid", align="right"), Column("state")]
    if dry_run:
        plan = {"cluster": name, "node": node.name, "id": node.id, "pid": pid, "state": f"would {fault}"}
        inv.emit(plan, [Table(columns, [plan])], changed=True)
        return
    if fault != "unpause":
        confirm_interruption(inv, name, f"{fault} {node.name} (pid {pid}) of cluster {name}?")
    result = lifecycle.inflict_fault(name, fault_target, fault)
    inv.emit(result, [Table(columns, [jsonable(result)])], changed=True)
    if fault != "unpause":
        output.note(_reaction(spec))


def _reaction(spec: ClusterSpec) -> str:
    if not spec.uses_kraft:
        return "the cluster reacts when the node's ZooKeeper session expires: after 6 s, unless configured otherwise"
    return (
        "unless configured otherwise, the cluster fences a broker after 6 s without heartbeats, and elects another "
        "controller after 2 s"
    )
