"""`kctl cluster restart`: a whole cluster that kctl set up, or the brokers of any cluster one after another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.cluster.commands import Nodes, chosen_nodes, emit_nodes
from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import output
from kctl.commands.terminal.broker_ids import broker_ids
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.errors import UsageError

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="A cluster that kctl set up; omit with --hooks.", autocompletion=cluster_names,
        show_default=False,
    ),
]  # fmt: skip


@dataclass(frozen=True)
class RestartArguments:
    """The arguments and options of the command."""

    name: Name = None
    node: Nodes = None
    force: Annotated[bool, typer.Option("--force", help="Kill processes that do not stop before --timeout.")] = False
    rolling: Annotated[
        bool, typer.Option("--rolling", help="Restart broker by broker, so that the cluster stays available.")
    ] = False
    hooks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML file with the commands that stop and start the context's brokers."),
    ] = None
    brokers: Annotated[
        list[str] | None,
        typer.Option("--brokers", metavar="N,…", help="Only nodes with these ids; repeatable (default: all)."),
    ] = None
    max_unavailable: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of brokers of one rack that are down at once.")
    ] = 1
    stable_checks: Annotated[
        int, typer.Option(metavar="N", min=1, help="Consecutive checks that find all replicas in sync, per broker.")
    ] = 3
    stable_interval: Annotated[str, typer.Option(metavar="DURATION", help="Time between these checks.")] = "2s"
    broker_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Limit for each wait: broker stops, starts, is in sync.")
    ] = "10m"
    no_election: Annotated[
        bool, typer.Option("--no-election", help="Do not elect the preferred leaders at the end.")
    ] = False
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Discard an unfinished rolling restart; start and stop no broker.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")] = False


@takes_options(RestartArguments)
def restart(ctx: typer.Context, options: RestartArguments) -> None:
    """Restart a cluster, one node, or with --rolling broker by broker.

    Changes to config files take effect. A rolling restart stops a broker only if the remaining replicas of all its
    partitions satisfy min.insync.replicas, and continues when all replicas are in sync again. The controller
    restarts last, and the preferred leaders are elected at the end. Partitions that no restart order can protect
    (one replica, or no more replicas than min.insync.replicas) are listed first. Exit code 4 means that nothing was
    stopped; 5, that the restart is unfinished: run the same command again to resume. After --timeout, no more
    brokers are stopped.

    # Restart the brokers one by one, without asking
    kctl cluster restart dev --rolling --yes
    """
    inv = invocation(ctx)
    if options.rolling:
        _restart_rolling(inv, options)
    else:
        _restart_whole(inv, options)


def _restart_rolling(inv: Invocation, options: RestartArguments) -> None:
    from kctl.base.units import parse_duration_ms
    from kctl.commands.cluster.rolling import RollingRequest, abandon_run, restart_rolling
    from kctl.restart.restart_run import DEFAULT_TIMEOUT_S, RestartOptions

    if options.node or options.force:
        raise UsageError("--node and --force cannot be combined with --rolling", hint="select brokers with --brokers")
    if (options.name is None) == (options.hooks is None):
        raise UsageError(
            "set either the NAME of a cluster that kctl set up, or --hooks FILE for the cluster of the context",
            hint="a hooks file has the commands that stop and start brokers; see docs/rolling-restart.md",
        )
    settings = RestartOptions(
        max_unavailable=options.max_unavailable,
        stable_checks=options.stable_checks,
        stable_interval_s=parse_duration_ms(options.stable_interval) / 1000,
        broker_timeout_s=max(1.0, parse_duration_ms(options.broker_timeout) / 1000),
        timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S),
        elect=not options.no_election,
    )
    brokers = broker_ids("--brokers", options.brokers) if options.brokers else None
    request = RollingRequest(options.name, options.hooks, brokers, settings)
    if options.abandon:
        abandon_run(inv, request, dry_run=options.dry_run)
    else:
        restart_rolling(inv, request, dry_run=options.dry_run)


def _restart_whole(inv: Invocation, options: RestartArguments) -> None:
    from kctl.deploy import lifecycle
    from kctl.deploy.start import DEFAULT_TIMEOUT_S

    _refuse_rolling_options(options)
    name, node = options.name, options.node
    if name is None:
        raise UsageError("no cluster was named", hint="list the clusters on this machine with `kctl cluster list`")
    running = lifecycle.running_nodes(lifecycle.load_cluster(name), node)
    if options.dry_run:
        down = [n for n in chosen_nodes(name, node) if n not in running]
        emit_nodes(inv, {ItemResult.WOULD_RESTART: running, ItemResult.WOULD_START: down})
        return
    if running:
        confirm_interruption(inv, name, f"restart {', '.join(running)} of cluster {name}?")
    with interrupt_when_terminated(), output.progress(f"restarting {name}") as progress:
        result = lifecycle.restart_cluster(
            name, nodes=node, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), force=options.force, progress=progress
        )
    groups = {
        ItemResult.RESTARTED: result.started.started,
        ItemResult.ALREADY_RUNNING: result.started.already_running,
    }
    emit_nodes(inv, groups, result)


def _refuse_rolling_options(options: RestartArguments) -> None:
    """Raise UsageError for options that only a rolling restart has."""
    rolling_options = {
        "--hooks": options.hooks,
        "--brokers": options.brokers,
        "--abandon": options.abandon,
        "--no-election": options.no_election,
        "--max-unavailable": options.max_unavailable != 1,
    }
    for option in (option for option, value in rolling_options.items() if value):
        raise UsageError(f"{option} requires --rolling", hint="add --rolling")
