"""`kctl cluster`: create, start, stop, warm and destroy. The other commands are in the modules beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.cluster import create as cluster_create
from kctl.commands.cluster import export as cluster_export
from kctl.commands.cluster import faults as cluster_faults
from kctl.commands.cluster import view as cluster_view
from kctl.commands.cluster.interruption import confirm_interruption, own_target
from kctl.commands.cluster.tables import vertical
from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import confirm, output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import NONE_CURRENT, warn_if_overruled

if TYPE_CHECKING:
    from kctl.deploy.lifecycle import RestartResult
    from kctl.deploy.start import StartResult
    from kctl.deploy.stop import StopResult

app = CommandGroup()

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.", autocompletion=cluster_names)]
Nodes = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NODE", help="Only this node, e.g. 2, broker-2 or zookeeper-1; repeatable."),
]
Force = Annotated[bool, typer.Option("--force", help="Kill processes that do not stop before --timeout.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


app.command("create")(cluster_create.create)


@app.command("start")
def start(ctx: typer.Context, name: Name, node: Nodes = None, dry_run: DryRun = False) -> None:
    """Start the stopped processes of a cluster.

    Waits until the cluster is ready. Paused processes resume.

    # Start all stopped processes
    kctl cluster start dev
    """
    from kctl.deploy import lifecycle
    from kctl.deploy.start import DEFAULT_TIMEOUT_S

    inv = invocation(ctx)
    if dry_run:
        running = lifecycle.running_nodes(lifecycle.load_cluster(name), node)
        chosen = chosen_nodes(name, node)
        emit_nodes(
            inv,
            {
                ItemResult.WOULD_START: [n for n in chosen if n not in running],
                ItemResult.RUNS: running,
            },
        )
        return
    with interrupt_when_terminated(), output.progress(f"starting {name}") as progress:
        result = lifecycle.start_cluster(
            name, nodes=node, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), progress=progress
        )
    emit_nodes(
        inv,
        {
            ItemResult.STARTED: result.started,
            ItemResult.RESUMED: result.resumed,
            ItemResult.ALREADY_RUNNING: result.already_running,
        },
        result,
    )


def chosen_nodes(name: str, nodes: list[str] | None) -> list[str]:
    """Return the names of the nodes selected with --node, in the order of the cluster's description."""
    from kctl.deploy import lifecycle

    spec = lifecycle.load_cluster(name)
    only = lifecycle.node_names(spec, nodes)
    return [n.name for n in spec.nodes if only is None or n.name in only]


def emit_nodes(
    inv: Invocation,
    groups: Mapping[ItemResult, Sequence[str]],
    result: StartResult | StopResult | RestartResult | None = None,
) -> None:
    """Emit the result, and a table with one row per node. Without a result (a dry run), emit the rows."""
    rows = [{"node": node, "result": outcome} for outcome, nodes in groups.items() for node in nodes]
    changed = any(outcome.changed and nodes for outcome, nodes in groups.items()) if result is None else result.changed
    tables = [Table([Column("node"), Column("result")], jsonable(rows))]
    inv.emit(rows if result is None else result, tables, changed=bool(changed))


@app.command("stop")
def stop(ctx: typer.Context, name: Name, node: Nodes = None, force: Force = False, dry_run: DryRun = False) -> None:
    """Stop a cluster: brokers, then ZooKeeper or KRaft controllers.

    Brokers shut down gracefully. In ZooKeeper mode, the active controller is the last broker to stop.

    # Stop all processes without asking
    kctl cluster stop dev --yes
    """
    from kctl.deploy import lifecycle
    from kctl.deploy.stop import DEFAULT_TIMEOUT_S

    inv = invocation(ctx)
    running = lifecycle.running_nodes(lifecycle.load_cluster(name), node)
    if dry_run:
        emit_nodes(inv, {ItemResult.WOULD_STOP: running})
        return
    if running:
        confirm_interruption(inv, name, f"stop {', '.join(running)} of cluster {name}?")
    with output.progress(f"stopping {name}") as progress:
        result = lifecycle.stop_cluster(
            name, nodes=node, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), force=force, progress=progress
        )
    groups = {
        ItemResult.STOPPED: result.stopped,
        ItemResult.KILLED: result.killed,
        ItemResult.ALREADY_STOPPED: result.already_stopped,
    }
    emit_nodes(inv, groups, result)


@app.command("warm")
def warm(
    ctx: typer.Context,
    kafka_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Kafka version (default: that of KAFKA_HOME, else 3.9.2).")
    ] = None,
    kafka_home: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of an unpacked Kafka release (default: KAFKA_HOME).")
    ] = None,
) -> None:
    """Create Java class archives, so that clusters start faster.

    Cluster starts then need a third less CPU time. To create the archives, kctl runs a small cluster for a few seconds.

    # Create the archives for clusters with ZooKeeper
    kctl cluster warm

    # Create the archive for KRaft clusters
    kctl cluster warm --kafka-version 4.4.0
    """
    from kctl.deploy.host import LocalHost
    from kctl.deploy.runtime.java import find_java
    from kctl.deploy.runtime.runtime import find_runtime
    from kctl.deploy.runtime.training_run import make_archives

    runtime = find_runtime(kafka_version, kafka_home=kafka_home)
    with interrupt_when_terminated(), output.progress("creating the Java class archives") as progress:
        archives = make_archives(
            LocalHost(),
            java=find_java(),
            libs=runtime.libs,
            kafka_version=runtime.version,
            progress=progress,
        )
    rows = [{"process": kind, "archive": path} for kind, path in archives.items()]
    invocation(ctx).emit(rows, lambda: [Table([Column("process"), Column("archive")], jsonable(rows))], changed=True)


@app.command("destroy")
def destroy(ctx: typer.Context, name: Name, dry_run: DryRun = False) -> None:
    """Remove a cluster and all its data.

    Kills the cluster's processes. Asks for the cluster's name as confirmation.

    # Remove the cluster dev without asking
    kctl cluster destroy dev --confirm-cluster dev
    """
    from kctl.contexts import config
    from kctl.deploy import destroy as library
    from kctl.deploy.host import LocalHost

    inv = invocation(ctx)
    host = LocalHost()
    plan = library.destroy_plan(host, name)
    if dry_run:
        emit_nodes(inv, {ItemResult.WOULD_BE_KILLED: plan.killed, ItemResult.WOULD_BE_REMOVED: plan.removed})
        return
    question = f"this removes cluster {name} and all its data: {plan.directory}"
    protectors = inv.protectors(own_target(name))
    if protectors:
        inv.confirm(question, target=own_target(name))
    elif inv.confirm_cluster is not None or not inv.yes:
        confirm.confirm_name(question, name, typed=inv.confirm_cluster)
    was_current = config.read().current_context == name
    result = library.destroy(host, name)
    inv.emit(result, lambda: [vertical(jsonable(result), without=("current_context",))], changed=True)
    if result.kept:
        output.warn(f"{result.directory} was not removed: kctl did not create {', '.join(result.kept)}")
    if was_current:
        output.note(NONE_CURRENT)
    warn_if_overruled(result.current_context or "")


app.command_of("restart", "kctl.commands.cluster.restart")
app.command_of("upgrade", "kctl.commands.cluster.upgrade")
app.command_of("finalize", "kctl.commands.cluster.finalize")
app.command_of("rollback", "kctl.commands.cluster.upgrade")
app.command("status")(cluster_view.status)
app.command("list")(cluster_view.list_)
app.command("logs")(cluster_view.logs)
app.command("env")(cluster_view.env)
app.command("export")(cluster_export.export)
app.command("kill")(cluster_faults.kill)
app.command("pause")(cluster_faults.pause)
app.command("unpause")(cluster_faults.unpause)
app.command_of("health", "kctl.commands.cluster.health")
app.command_of("diagnose", "kctl.commands.cluster.diagnose")
