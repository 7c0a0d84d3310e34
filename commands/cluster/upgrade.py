"""`kctl cluster upgrade` and `rollback`: plan → show → confirm → carry out → report the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.cluster.rolling import TerminalReporter
from kctl.commands.cluster.upgrade_tables import (
    closing_lines,
    plan_notes,
    plan_tables,
    plan_warnings,
    question,
    result_tables,
)
from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.errors import KctlError, NotFound

if TYPE_CHECKING:
    from kctl.deploy.layout import Release
    from kctl.restart.restart_run import RestartOptions
    from kctl.upgrade.finalize import FinalizationPlan
    from kctl.upgrade.plan import UpgradePlan
    from kctl.upgrade.rolling import RollingChange, RollingWork
    from kctl.upgrade.run import Progress, UpgradeResult

_LINES_EVERY_S = 15.0

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.", autocompletion=cluster_names)]
BrokerTimeout = Annotated[
    str,
    typer.Option(metavar="DURATION", help="Limit for each step: stop, start, replicas in sync (default: 10m)."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


def upgrade(
    ctx: typer.Context,
    name: Name,
    to: Annotated[str, typer.Option("--to", metavar="VERSION", help="Kafka version to upgrade to, e.g. 4.4.0.")],
    soak: Annotated[
        str, typer.Option(metavar="DURATION", help="Time to watch the cluster's health after the last node.")
    ] = "30s",
    kafka_home: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of an unpacked Kafka release (default: installed by kctl)."),
    ] = None,
    broker_timeout: BrokerTimeout = "10m",
    dry_run: DryRun = False,
) -> None:
    """Upgrade a cluster that kctl created, node by node.

    Restarts each node with the jars of the new release: ZooKeeper servers, then controllers, then brokers, the active
    controller last among its kind. A node is stopped only if the remaining replicas satisfy min.insync.replicas. The
    features of the old release stay in use until `kctl cluster finalize`, so `kctl cluster rollback` can return to it.
    Exit code 4: nothing was changed. Exit code 5: the upgrade is unfinished; run the same command again to resume.

    # Show the order of the nodes, and the settings that change
    kctl cluster upgrade dev --to 4.4.0 --dry-run

    # Upgrade, then watch the cluster for ten minutes
    kctl cluster upgrade dev --to 4.4.0 --soak 10m --yes
    """
    from kctl.base.units import parse_duration_ms
    from kctl.deploy.host import LocalHost
    from kctl.restart.restart_run import SystemClock
    from kctl.upgrade.plan import plan_upgrade
    from kctl.upgrade.run import carry_out_upgrade, unchanged_result

    inv, host, clock = invocation(ctx), LocalHost(), SystemClock()
    soak_s = parse_duration_ms(soak) / 1000
    options = restart_options(inv, broker_timeout)
    unchanged = unchanged_result(host, name, to)
    if unchanged is not None:
        inv.emit(unchanged, lambda: result_tables(unchanged), changed=False)
        output.note(f"{name} already runs Kafka {to}")
        return
    release = _release(name, to, kafka_home, install=not dry_run)
    with output.progress("checking the cluster"):
        plan, change = plan_upgrade(host, name, release, options, clock)

    def work_on(work: RollingWork, progress: Progress) -> None:
        carry_out_upgrade(change, release, soak_s, work, progress)

    _perform(inv, plan, change, options, work_on, dry_run=dry_run)


def rollback(ctx: typer.Context, name: Name, broker_timeout: BrokerTimeout = "10m", dry_run: DryRun = False) -> None:
    """Return a cluster to the release that it ran before an upgrade.

    Possible until the upgrade is finalized. Nodes that run the new release restart with the jars and settings of the
    previous release. Nodes that are down are started. Run the same command again to resume.

    # Show the nodes that would be restarted
    kctl cluster rollback dev --dry-run
    """
    from kctl.deploy.host import LocalHost
    from kctl.restart.restart_run import SystemClock
    from kctl.upgrade.levels import check_way_back
    from kctl.upgrade.plan import plan_rollback
    from kctl.upgrade.run import carry_out_rollback

    inv, host = invocation(ctx), LocalHost()
    options = restart_options(inv, broker_timeout)
    with output.progress("checking the cluster"):
        plan, change = plan_rollback(host, name, options, SystemClock())
        check_way_back(host, name)

    def work_on(work: RollingWork, progress: Progress) -> None:
        carry_out_rollback(change, work, progress)

    _perform(inv, plan, change, options, work_on, dry_run=dry_run)


def restart_options(inv: Invocation, broker_timeout: str) -> RestartOptions:
    from kctl.base.units import parse_duration_ms
    from kctl.restart.restart_run import DEFAULT_TIMEOUT_S, RestartOptions

    return RestartOptions(
        broker_timeout_s=max(1.0, parse_duration_ms(broker_timeout) / 1000),
        timeout_s=inv.timeout_s(DEFAULT_TIMEOUT_S),
    )


def _release(name: str, version: str, kafka_home: str | None, *, install: bool) -> Release:
    """Return the target. Check that the upgrade is possible before anything is downloaded."""
    from kctl.deploy.layout import Release
    from kctl.deploy.lifecycle import load_cluster
    from kctl.deploy.runtime.jars import LIBS
    from kctl.deploy.runtime.runtime import checked_version, ensure_runtime, find_runtime, home_of
    from kctl.upgrade.paths import check_path

    spec = load_cluster(name)
    if spec.upgrade is None:
        check_path(spec, checked_version(version))
    if not install:
        try:
            runtime = find_runtime(version, kafka_home=kafka_home)
        except NotFound:
            if kafka_home:
                raise
            output.note(f"Kafka {version} is not installed; the upgrade downloads it")
            return Release(version, home_of(version) / LIBS)
    else:
        with output.progress("looking for Kafka") as progress:
            runtime = ensure_runtime(version, kafka_home=kafka_home, progress=progress, note=output.note)
    return Release(runtime.version, runtime.libs)


def _perform(
    inv: Invocation,
    plan: UpgradePlan,
    change: RollingChange,
    options: RestartOptions,
    work_on: Callable[[RollingWork, Progress], None],
    *,
    dry_run: bool,
) -> None:
    from kctl.upgrade.plan import refuse_blocked

    for line in plan_warnings(plan):
        output.warn(line)
    if dry_run:
        inv.emit(plan, lambda: plan_tables(plan), changed=bool(plan.nodes))
        output.note("nothing was changed (--dry-run)")
    refuse_blocked(plan)
    if dry_run:
        return
    for line in plan_notes(plan):
        output.note(line)
    confirm_interruption(inv, plan.cluster, question(plan))
    result, failure = carry_out(plan, change, options, work_on)
    inv.emit(result, lambda: result_tables(result), changed=result.changed)
    if failure is not None:
        raise failure
    for line in closing_lines(result):
        output.note(line)


def carry_out(
    plan: UpgradePlan | FinalizationPlan,
    change: RollingChange,
    options: RestartOptions,
    work_on: Callable[[RollingWork, Progress], None],
) -> tuple[UpgradeResult, KctlError | None]:
    """Carry out a confirmed plan. Return the result of this process, and the error that ended it, if any."""
    from kctl.deploy.host import LocalHost
    from kctl.restart.restart_run import SystemClock
    from kctl.upgrade.rolling import RollingWork
    from kctl.upgrade.run import Progress, as_unfinished, result_of

    failure: KctlError | None = None
    clock = SystemClock()
    began, progress = clock.now(), Progress()
    with interrupt_when_terminated(), output.progress(change.purpose, lines_every_s=_LINES_EVERY_S) as bar:
        work = RollingWork(LocalHost(), options, TerminalReporter(bar), clock)
        with _interruptible(work, change):
            try:
                work_on(work, progress)
            except KctlError as exc:
                failure = as_unfinished(exc, change, work, progress)
    return result_of(plan, work, progress, began), failure


@contextmanager
def _interruptible(work: RollingWork, change: RollingChange) -> Iterator[None]:
    """On Ctrl-C, report the state of each node and how to resume."""
    from kctl.restart.run import current_situation

    try:
        yield
    except KeyboardInterrupt:
        if work.current is not None and work.current.state.outcome is None:
            output.note(current_situation(work.current))
        output.note(change.how_to_resume)
        raise
