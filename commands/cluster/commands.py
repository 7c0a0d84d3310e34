"""`kctl cluster`: create, start, stop, warm and destroy. The other commands are in the modules beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.cluster import export as cluster_export
from kctl.commands.cluster import faults as cluster_faults
from kctl.commands.cluster import view as cluster_view
from kctl.commands.cluster.interruption import confirm_interruption, own_target
from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import confirm, output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import NONE_CURRENT, warn_if_overruled

if TYPE_CHECKING:
    from kctl.deploy.layout_request import LayoutRequest
    from kctl.deploy.lifecycle import RestartResult
    from kctl.deploy.runtime.runtime import KafkaRuntime
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


@app.command("create")
def create(
    ctx: typer.Context,
    name: Name,
    layout: Annotated[
        str,
        typer.Option(
            help="ZooKeeper: single (1 broker), pseudo-distributed (1 ZooKeeper, N brokers) or three-node (3 of each). "
            "KRaft: kraft-single (1 node), kraft-combined (N nodes) or kraft-separate (controllers and N brokers).",
            show_default=False,
        ),
    ],
    brokers: Annotated[
        int | None,
        typer.Option(
            help="Number of brokers with kraft-combined (up to 9), kraft-separate and pseudo-distributed (up to 50) "
            "(default: 3)."
        ),
    ] = None,
    controllers: Annotated[
        int | None, typer.Option(help="Number of controllers with kraft-separate: 1, 3 or 5 (default: 3).")
    ] = None,
    base_port: Annotated[
        int | None, typer.Option(help="First port; the others follow it (default: the first free range).")
    ] = None,
    chroot: Annotated[str, typer.Option(help="Path of the cluster in ZooKeeper; / for no chroot.")] = "/kafka",
    rack: Annotated[
        str | None, typer.Option(help="Racks assigned to the brokers in turn, e.g. r1,r2; auto: one per broker.")
    ] = None,
    log_dirs: Annotated[int, typer.Option(help="Number of log dirs per broker.")] = 1,
    config: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A broker setting; repeatable.")] = None,
    config_file: Annotated[Path | None, typer.Option(help="A .properties file with broker settings.")] = None,
    heap: Annotated[str, typer.Option(help="Java heap of each broker, e.g. 512m or 2g.")] = "512m",
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Folder of the cluster; must be new or empty (default: kctl's own).")
    ] = None,
    kafka_version: Annotated[
        str | None, typer.Option(help="Kafka version (default: 4.4.0 with KRaft, 3.9.2 with ZooKeeper).")
    ] = None,
    kafka_home: Annotated[
        str | None, typer.Option(help="Folder of an unpacked Kafka release (default: KAFKA_HOME).")
    ] = None,
    no_start: Annotated[bool, typer.Option("--no-start", help="Write the files; do not start the cluster.")] = False,
    use: Annotated[
        bool | None,
        typer.Option(
            "--use/--no-use",
            help="Make the cluster the current context (default: only on a terminal).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the files; write nothing.")] = False,
) -> None:
    """Create and start a cluster.

    The cluster gets a context of the same name. On a terminal, or with --use, it becomes the current context.

    # Create a KRaft cluster of three nodes
    kctl cluster create dev --layout kraft-combined

    # Create a cluster with ZooKeeper and three brokers
    kctl cluster create dev --layout pseudo-distributed --brokers 3 --config num.partitions=6
    """
    from kctl.deploy.broker_settings import read_settings
    from kctl.deploy.layout_request import LayoutRequest, check_request, default_version
    from kctl.deploy.runtime.runtime import expected_version

    inv = invocation(ctx)
    request = LayoutRequest(
        name=name, layout=layout, brokers=brokers, controllers=controllers, chroot=chroot, rack=rack,
        log_dirs=log_dirs, heap=heap,
    )  # fmt: skip
    check_request(request)
    default = default_version(layout)
    version = expected_version(kafka_version, kafka_home, default)
    request = replace(request, settings=read_settings(config or (), config_file, version))
    if dry_run:
        runtime = _runtime(kafka_version, kafka_home, install=False, default=default)
        _show_plan(inv, request, runtime, base_port, directory)
    else:
        _create(
            inv,
            request,
            kafka_version,
            kafka_home,
            base_port=base_port,
            directory=directory,
            start_it=not no_start,
            use=use,
        )


def _runtime(version: str | None, home: str | None, *, install: bool, default: str) -> KafkaRuntime:
    from kctl.deploy.runtime import runtime

    if not install:
        return runtime.find_runtime(version, kafka_home=home, default=default)
    with output.progress("looking for Kafka") as progress:
        return runtime.ensure_runtime(version, kafka_home=home, default=default, progress=progress, note=output.note)


def _create(
    inv: Invocation,
    request: LayoutRequest,
    version: str | None,
    home: str | None,
    *,
    base_port: int | None,
    directory: Path | None,
    start_it: bool,
    use: bool | None,
) -> None:
    from kctl.contexts import config
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost
    from kctl.deploy.layout_request import default_version
    from kctl.deploy.start import DEFAULT_TIMEOUT_S

    library.check_new(LocalHost(), request.name)
    make_current = confirm.interactive() if use is None else use
    before = config.read().current_context
    if make_current and use is None:
        was = f", instead of {before}" if before not in (None, request.name) else ""
        output.note(f"{request.name} becomes the current context{was}; use --no-use to keep the current context")
    runtime = _runtime(version, home, install=True, default=default_version(request.layout))
    with interrupt_when_terminated(), output.progress(f"creating {request.name}") as progress:
        result = library.create(
            LocalHost(), request, runtime=runtime, base_port=base_port, directory=directory, start_it=start_it,
            make_current=make_current, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), progress=progress,
        )  # fmt: skip
    inv.emit(result, lambda: [_vertical(jsonable(result), without=("started", "duration_ms"))], changed=True)
    if make_current:
        current = f"{request.name} is the current context"
        warn_if_overruled(request.name)
    else:
        unchanged = f"the current context is still {before}" if before else "no context is current"
        current = f"{unchanged}; switch with: kctl context use {request.name}"
    if start_it:
        output.note(f"ready in {result.duration_ms / 1000:.1f} s; {current}")
    else:
        output.note(f"not started; start it with: kctl cluster start {request.name}; {current}")


def _vertical(result: dict[str, Any], *, without: Sequence[str] = ()) -> Table:
    """Return a table with one row per key, so that long values have room."""
    rows = [
        {"key": key.replace("_", " "), "value": value}
        for key, value in result.items()
        if key not in without and value != []
    ]
    return Table([Column("key", "CLUSTER"), Column("value", " ")], rows)


def _show_plan(
    inv: Invocation,
    request: LayoutRequest,
    runtime: KafkaRuntime,
    base_port: int | None,
    directory: Path | None,
) -> None:
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost

    library.check_new(LocalHost(), request.name)
    spec = library.plan(LocalHost(), request, runtime=runtime, base_port=base_port, directory=directory)
    files = library.show_files(spec)
    inv.report_change(changed=True)
    if inv.output in output.FOR_PEOPLE:
        for file in files:
            output.write_line(f"==> {file.path} <==\n{file.text}")
    else:
        inv.emit(files, [])
    output.note("nothing was written (--dry-run); without --base-port, the ports may differ next time")


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
    rows = [{"node": node, "result": what} for what, nodes in groups.items() for node in nodes]
    changed = any(what.changed and nodes for what, nodes in groups.items()) if result is None else result.changed
    tables = [Table([Column("node"), Column("result")], jsonable(rows))]
    inv.emit(rows if result is None else result, tables, changed=bool(changed))


@app.command("stop")
def stop(ctx: typer.Context, name: Name, node: Nodes = None, force: Force = False, dry_run: DryRun = False) -> None:
    """Stop the brokers of a cluster, then its ZooKeeper.

    Brokers shut down gracefully, the controller last.

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
    kafka_version: Annotated[str | None, typer.Option(help="Kafka version (default: 3.9.2).")] = None,
    kafka_home: Annotated[
        str | None, typer.Option(help="Folder of an unpacked Kafka release (default: KAFKA_HOME).")
    ] = None,
) -> None:
    """Create the Java class archives that make clusters start faster.

    Starting a cluster then takes a third less CPU. To create them, a small cluster runs for a few seconds.

    # Create the archives for clusters with ZooKeeper
    kctl cluster warm

    # Create the archive for KRaft clusters
    kctl cluster warm --kafka-version 4.4.0
    """
    from kctl.deploy.host import LocalHost
    from kctl.deploy.runtime.java import find_java
    from kctl.deploy.runtime.runtime import DEFAULT_VERSION
    from kctl.deploy.runtime.training_run import make_archives

    runtime = _runtime(kafka_version, kafka_home, install=False, default=DEFAULT_VERSION)
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
    inv.emit(result, lambda: [_vertical(jsonable(result), without=("current_context",))], changed=True)
    if result.kept:
        output.warn(f"{result.directory} was not removed: kctl did not create {', '.join(result.kept)}")
    if was_current:
        output.note(NONE_CURRENT)
    warn_if_overruled(result.current_context or "")


app.command_of("restart", "kctl.commands.cluster.restart")
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
