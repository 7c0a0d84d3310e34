"""`kctl cluster`: clusters on this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands import output
from kctl.commands.invocation import CommandGroup, Invocation, invocation
from kctl.commands.output import Column, Table

if TYPE_CHECKING:
    from kctl.deploy.layout import ClusterSpec, LayoutRequest
    from kctl.deploy.runtime import KafkaRuntime

app = CommandGroup(help="Set up, start, stop and look into clusters on this machine.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The cluster's name.", show_default=False)]


@contextmanager
def _undone_when_terminated() -> Iterator[None]:
    """SIGTERM and SIGHUP end a command as Ctrl-C does, so that what it started is stopped again."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@app.command("create")
def create(
    ctx: typer.Context,
    name: Name,
    layout: Annotated[
        str, typer.Option(help="single, pseudo-distributed or three-node.", show_default=False)
    ],
    brokers: Annotated[int | None, typer.Option(help="How many brokers, for pseudo-distributed (3).")] = None,
    base_port: Annotated[
        int | None, typer.Option(help="The first of consecutive ports; free ones by default.")
    ] = None,
    chroot: Annotated[str, typer.Option(help="Kafka's path in ZooKeeper; / for none.")] = "/kafka",
    rack: Annotated[str | None, typer.Option(help="Racks dealt out to the brokers: r1,r2,… or auto.")] = None,
    log_dirs: Annotated[int, typer.Option(help="Log dirs of each broker.")] = 1,
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A broker setting; repeatable.")
    ] = None,
    config_file: Annotated[Path | None, typer.Option(help="Broker settings, a .properties file.")] = None,
    heap: Annotated[str, typer.Option(help="Java heap of each broker.")] = "512m",
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Where to keep it; a new or empty folder.")
    ] = None,
    kafka_version: Annotated[str | None, typer.Option(help="Kafka's version (3.9.2).")] = None,
    kafka_home: Annotated[str | None, typer.Option(help="A folder with Kafka's libs/ (KAFKA_HOME).")] = None,
    no_start: Annotated[bool, typer.Option("--no-start", help="Only write the files.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show each file that would be written.")] = False,
) -> None:
    """Create a cluster on this machine, start it, and make it the current context.

    Example: kctl cluster create dev --layout pseudo-distributed --brokers 3 --config num.partitions=6
    """
    from kctl.deploy.broker_settings import read_settings
    from kctl.deploy.layout import LayoutRequest, check_request

    inv = invocation(ctx)
    request = LayoutRequest(
        name=name, layout=layout, brokers=brokers, chroot=chroot, rack=rack, log_dirs=log_dirs, heap=heap,
        settings=read_settings(config or (), config_file),
    )  # fmt: skip
    check_request(request)
    if dry_run:
        _dry_run(inv, request, _runtime(kafka_version, kafka_home, install=False), base_port, directory)
        return
    _create(
        inv,
        request,
        kafka_version,
        kafka_home,
        base_port=base_port,
        directory=directory,
        start_it=not no_start,
    )


def _runtime(version: str | None, home: str | None, *, install: bool) -> KafkaRuntime:
    from kctl.deploy import runtime

    if not install:
        return runtime.find_runtime(version, kafka_home=home)
    with output.progress("looking for Kafka") as progress:
        return runtime.ensure_runtime(version, kafka_home=home, progress=progress)


def _create(
    inv: Invocation,
    request: LayoutRequest,
    version: str | None,
    home: str | None,
    *,
    base_port: int | None,
    directory: Path | None,
    start_it: bool,
) -> None:
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost
    from kctl.deploy.start import DEFAULT_TIMEOUT_S

    library.check_new(request.name)
    runtime = _runtime(version, home, install=True)
    with _undone_when_terminated(), output.progress(f"creating {request.name}") as progress:
        result = library.create(
            LocalHost(), request, runtime=runtime, base_port=base_port, directory=directory, start_it=start_it,
            timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), progress=progress,
        )  # fmt: skip
    columns = [
        Column("name"),
        Column("layout"),
        Column("kafka_version", "KAFKA"),
        Column("bootstrap_servers"),
        Column("zookeeper"),
    ]
    inv.emit(result, [Table(columns, [output.jsonable(result)])])
    if not start_it:
        output.note(f"start it with: kctl cluster start {request.name}")


def _dry_run(
    inv: Invocation,
    request: LayoutRequest,
    runtime: KafkaRuntime,
    base_port: int | None,
    directory: Path | None,
) -> None:
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost

    library.check_new(request.name)
    spec = library.plan(LocalHost(), request, runtime=runtime, base_port=base_port, directory=directory)
    files = library.show_files(spec)
    if inv.output in {None, "table"}:
        for file in files:
            output.write_line(f"==> {file.path} <==\n{file.text}")
        output.note("nothing was written (--dry-run)")
    else:
        inv.emit(files, [])


@app.command("start")
def start(ctx: typer.Context, name: Name) -> None:
    """Start what is down, and wait until the cluster is ready.

    Example: kctl cluster start dev
    """
    from kctl.deploy.start import DEFAULT_TIMEOUT_S, StartResult
    from kctl.deploy.lifecycle import start_cluster

    inv = invocation(ctx)
    with _undone_when_terminated(), output.progress(f"starting {name}") as progress:
        result: StartResult = start_cluster(
            name, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), progress=progress
        )
    columns = [Column("name"), Column("started"), Column("already_running"), Column("bootstrap_servers")]
    inv.emit(result, [Table(columns, [output.jsonable(result)])])


@app.command("stop")
def stop(
    ctx: typer.Context,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Kill what has not stopped in time.")] = False,
) -> None:
    """Stop a cluster: brokers by controlled shutdown, then ZooKeeper.

    Example: kctl cluster stop dev
    """
    from kctl.deploy.lifecycle import stop_cluster
    from kctl.deploy.stop import DEFAULT_TIMEOUT_S

    inv = invocation(ctx)
    with output.progress(f"stopping {name}") as progress:
        result = stop_cluster(
            name, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), force=force, progress=progress
        )
    columns = [Column("name"), Column("stopped"), Column("killed"), Column("already_stopped")]
    inv.emit(result, [Table(columns, [output.jsonable(result)])])


@app.command("destroy")
def destroy(ctx: typer.Context, name: Name) -> None:
    """Kill a cluster's processes and remove it with all its data. Asks for its name.

    Example: kctl cluster destroy dev --confirm-cluster dev
    """
    from kctl.commands import confirm
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost
    from kctl.deploy.store import entry_path, exists, load

    inv = invocation(ctx)
    host = LocalHost()
    if not exists(name):
        load(host, name)
    if not inv.yes or inv.confirm_cluster is not None:
        confirm.confirm_name(
            f"this removes cluster {name} with all its data ({entry_path(name)})",
            name,
            given=inv.confirm_cluster,
        )
    result = library.destroy(host, name)
    columns = [Column("name"), Column("directory"), Column("killed"), Column("kept")]
    inv.emit(result, [Table(columns, [output.jsonable(result)])])
