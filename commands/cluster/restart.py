"""`kctl cluster restart`: a cluster of kctl's as a whole, or any cluster's brokers one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.cluster.commands import Nodes, chosen_nodes, emit_nodes
from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import output
from kctl.commands.terminal.broker_ids import broker_ids
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.errors import UsageError

_ROLLING_ONLY = "is for --rolling"

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="A cluster that kctl set up. None with --hooks.", autocompletion=cluster_names,
        show_default=False,
    ),
]  # fmt: skip


def restart(
    ctx: typer.Context,
    name: Name = None,
    node: Nodes = None,
    force: Annotated[bool, typer.Option("--force", help="Kill what has not stopped in time.")] = False,
    rolling: Annotated[
        bool, typer.Option("--rolling", help="Brokers one after the other, so that the cluster goes on serving.")
    ] = False,
    hooks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Commands that stop and start the brokers of the chosen cluster (YAML)."),
    ] = None,
    brokers: Annotated[
        list[str] | None, typer.Option("--brokers", metavar="N,…", help="Only these brokers; repeatable.")
    ] = None,
    max_unavailable: Annotated[
        int, typer.Option(metavar="N", min=1, help="Brokers of one rack that are down at once at most.")
    ] = 1,
    stable_checks: Annotated[
        int, typer.Option(metavar="N", min=1, help="Looks in a row with all in sync before the next broker.")
    ] = 3,
    stable_interval: Annotated[str, typer.Option(metavar="DURATION", help="Between two looks.")] = "2s",
    broker_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="The longest wait for one broker: to stop, to start, to be in sync.")
    ] = "10m",
    no_election: Annotated[bool, typer.Option("--no-election", help="Leave leaders as they are at the end.")] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Forget a rolling restart that has not ended, and do no more.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Stop and start, the whole, one node, or with --rolling each broker in its turn.

    Edited config files take effect then. A rolling restart takes a broker down when for each of its partitions
    min.insync.replicas others are in sync, waits until it is back and nothing is behind any more, takes the controller
    last, and elects the preferred leaders at the end. What no order can protect (one replica, or no more than
    min.insync.replicas) is told before. Exit 4 when nothing was begun, 5 when it stopped on its way: the same command
    goes on there. --timeout: no broker is taken down after it.

    Example: kctl cluster restart dev --rolling --yes
    """
    inv = invocation(ctx)
    if not rolling:
        given = {
            "--hooks": hooks, "--brokers": brokers, "--abandon": abandon, "--no-election": no_election,
            "--max-unavailable": max_unavailable != 1,
        }  # fmt: skip
        for option in (option for option, value in given.items() if value):
            raise UsageError(f"{option} {_ROLLING_ONLY}", hint="add --rolling")
        if name is None:
            raise UsageError("which cluster?", hint="kctl cluster list shows those that kctl set up")
        _restart_whole(inv, name, node, force=force, dry_run=dry_run)
        return
    from kctl.base.units import parse_duration_ms
    from kctl.commands.cluster.rolling import Wanted, abandon_run, restart_rolling
    from kctl.restart.running import DEFAULT_TIMEOUT_S, Options

    if node or force:
        raise UsageError("--node and --force are not for --rolling", hint="--brokers 1,3 restarts only these")
    if (name is None) == (hooks is None):
        raise UsageError(
            "either the NAME of a cluster that kctl set up, or --hooks FILE for the cluster of the context",
            hint="hooks are the commands that stop and start brokers; docs/rolling-restart.md shows them",
        )
    options = Options(
        max_unavailable=max_unavailable,
        stable_checks=stable_checks,
        stable_interval_s=parse_duration_ms(stable_interval) / 1000,
        broker_timeout_s=max(1.0, parse_duration_ms(broker_timeout) / 1000),
        timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S),
        elect=not no_election,
    )
    wanted = Wanted(name, hooks, broker_ids("--brokers", brokers) if brokers else None, options)
    if abandon:
        abandon_run(inv, wanted, dry_run=dry_run)
    else:
        restart_rolling(inv, wanted, dry_run=dry_run)


def _restart_whole(inv: Invocation, name: str, node: list[str] | None, *, force: bool, dry_run: bool) -> None:
    from kctl.deploy import lifecycle
    from kctl.deploy.start import DEFAULT_TIMEOUT_S

    running = lifecycle.running_nodes(lifecycle.load_cluster(name), node)
    if dry_run:
        down = [n for n in chosen_nodes(name, node) if n not in running]
        emit_nodes(inv, {ItemResult.WOULD_RESTART: running, ItemResult.WOULD_START: down})
        return
    if running:
        confirm_interruption(inv, name, f"restart {', '.join(running)} of cluster {name}?")
    with undone_when_terminated(), output.progress(f"restarting {name}") as progress:
        result = lifecycle.restart_cluster(
            name, nodes=node, timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S), force=force, progress=progress
        )
    groups = {
        ItemResult.RESTARTED: result.started.started,
        ItemResult.ALREADY_RUNNING: result.started.already_running,
    }
    emit_nodes(inv, groups, result)
