"""`kctl cluster create`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.cluster.tables import vertical
from kctl.commands.terminal import confirm, output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import jsonable
from kctl.commands.terminal.views import warn_if_overruled

if TYPE_CHECKING:
    from kctl.deploy.create import CreateResult
    from kctl.deploy.layout_request import LayoutRequest


@dataclass(frozen=True)
class CreateArguments:
    """The options of the command."""

    layout: Annotated[
        str,
        typer.Option(
            help="ZooKeeper: single (1 broker), pseudo-distributed (1 ZooKeeper, N brokers) or three-node (3 of each). "
            "KRaft: kraft-single (1 node), kraft-combined (N nodes) or kraft-separate (controllers and N brokers).",
            show_default=False,
        ),
    ]
    brokers: Annotated[
        int | None,
        typer.Option(
            help="Number of brokers with kraft-combined (up to 9), kraft-separate and pseudo-distributed (up to 50) "
            "(default: 3)."
        ),
    ] = None
    controllers: Annotated[
        int | None, typer.Option(help="Number of controllers with kraft-separate: 1, 3 or 5 (default: 3).")
    ] = None
    base_port: Annotated[
        int | None, typer.Option(help="First port; the others follow it (default: the first free range).")
    ] = None
    chroot: Annotated[str, typer.Option(help="Path of the cluster in ZooKeeper; / for no chroot.")] = "/kafka"
    rack: Annotated[
        str | None, typer.Option(help="Racks assigned to the brokers in turn, e.g. r1,r2; auto: one per broker.")
    ] = None
    log_dirs: Annotated[int, typer.Option(help="Number of log dirs per broker.")] = 1
    config: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A broker setting; repeatable.")] = None
    config_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .properties file with broker settings.")
    ] = None
    heap: Annotated[str, typer.Option(metavar="SIZE", help="Java heap of each broker, e.g. 512m or 2g.")] = "512m"
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="Folder of the cluster; must be new or empty (default: in kctl's data folder)."
        ),
    ] = None
    kafka_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Kafka version (default: KAFKA_HOME's, else 4.4.0 with KRaft, 3.9.2 with ZooKeeper).",
        ),
    ] = None
    kafka_home: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of an unpacked Kafka release (default: KAFKA_HOME).")
    ] = None
    no_start: Annotated[bool, typer.Option("--no-start", help="Write the files; do not start the cluster.")] = False
    use: Annotated[
        bool | None,
        typer.Option(
            "--use/--no-use",
            help="Make the cluster the current context (default: only on a terminal).",
            show_default=False,
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the files; write nothing.")] = False


@takes_options(CreateArguments)
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.")],
    options: CreateArguments,
) -> None:
    """Create and start a cluster.

    The cluster gets a context of the same name. On a terminal, or with --use, it becomes the current context.

    # Create a KRaft cluster of three nodes
    kctl cluster create dev --layout kraft-combined

    # Create a cluster with ZooKeeper and three brokers
    kctl cluster create dev --layout pseudo-distributed --brokers 3 --config num.partitions=6
    """
    inv = invocation(ctx)
    request, default = _request(name, options)
    if options.dry_run:
        _show_plan(inv, request, options, default)
    else:
        _create(inv, request, options, default)


def _request(name: str, options: CreateArguments) -> tuple[LayoutRequest, str]:
    """Return the request, and the Kafka version that is used if none is chosen."""
    from kctl.deploy.config.broker_settings import read_settings
    from kctl.deploy.layout_request import LayoutRequest, check_request, default_version
    from kctl.deploy.runtime.runtime import expected_version

    request = LayoutRequest(
        name=name, layout=options.layout, brokers=options.brokers, controllers=options.controllers,
        chroot=options.chroot, rack=options.rack, log_dirs=options.log_dirs, heap=options.heap,
    )  # fmt: skip
    check_request(request)
    default = default_version(options.layout)
    version = expected_version(options.kafka_version, options.kafka_home, default)
    return replace(request, settings=read_settings(options.config or (), options.config_file, version)), default


def _create(inv: Invocation, request: LayoutRequest, options: CreateArguments, default: str) -> None:
    from kctl.contexts import config
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost
    from kctl.deploy.runtime.runtime import ensure_runtime
    from kctl.deploy.start import DEFAULT_TIMEOUT_S

    library.check_new(LocalHost(), request.name)
    make_current = confirm.interactive() if options.use is None else options.use
    before = config.read().current_context
    if make_current and options.use is None:
        was = f", instead of {before}" if before not in (None, request.name) else ""
        output.note(f"{request.name} becomes the current context{was}; use --no-use to keep the current context")
    with output.progress("looking for Kafka") as progress:
        runtime = ensure_runtime(
            options.kafka_version, kafka_home=options.kafka_home, default=default, progress=progress, note=output.note
        )
    with interrupt_when_terminated(), output.progress(f"creating {request.name}") as progress:
        result = library.create(
            LocalHost(), request, runtime=runtime, base_port=options.base_port, directory=options.directory,
            start_it=not options.no_start, make_current=make_current, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S),
            progress=progress,
        )  # fmt: skip
    inv.emit(result, lambda: [vertical(jsonable(result), without=("started", "duration_ms"))], changed=True)
    _note_result(result, make_current=make_current, before=before)


def _note_result(result: CreateResult, *, make_current: bool, before: str | None) -> None:
    if make_current:
        current = f"{result.name} is the current context"
        warn_if_overruled(result.name)
    else:
        unchanged = f"the current context is still {before}" if before else "no context is current"
        current = f"{unchanged}; switch with: kctl context use {result.name}"
    if result.started:
        output.note(f"ready in {result.duration_ms / 1000:.1f} s; {current}")
    else:
        output.note(f"not started; start it with: kctl cluster start {result.name}; {current}")


def _show_plan(inv: Invocation, request: LayoutRequest, options: CreateArguments, default: str) -> None:
    from kctl.deploy import create as library
    from kctl.deploy.host import LocalHost
    from kctl.deploy.runtime.runtime import find_runtime

    runtime = find_runtime(options.kafka_version, kafka_home=options.kafka_home, default=default)
    library.check_new(LocalHost(), request.name)
    spec = library.plan(LocalHost(), request, runtime=runtime, base_port=options.base_port, directory=options.directory)
    files = library.show_files(spec)
    inv.report_change(changed=True)
    if inv.output in output.FOR_PEOPLE:
        for file in files:
            output.write_line(f"==> {file.path} <==\n{file.text}")
    else:
        inv.emit(files, [])
    output.note("nothing was written (--dry-run); without --base-port, the ports may differ next time")
