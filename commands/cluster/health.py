"""kctl cluster health: all health checks of a cluster on one screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import brokers_up, incomplete_after_verdict
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.health.model import Health, HealthLimits

_WAIT_S = 300.0
_MAX_NAMES = 5
_STYLES = {"problem": "red", "warning": "yellow", "unknown": "yellow"}


def health(
    ctx: typer.Context,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the cluster is healthy, up to --timeout (default: 5m).")
    ] = False,
    brokers: Annotated[int | None, typer.Option(min=1, help="Expected number of brokers; fewer is unhealthy.")] = None,
    max_disk_percent: Annotated[
        float,
        typer.Option(metavar="PERCENT", min=0, max=100, help="Unhealthy if the disk of a log dir is fuller than this."),
    ] = 90.0,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """Check the health of brokers, partitions and disks.

    Exits 1 if the cluster is not healthy.

    Warnings (unevenly spread leaders or replicas, partitions at min.insync.replicas) do not make a cluster unhealthy.
    If something cannot be read, the checks are incomplete and the exit code is 5.

    # Wait up to two minutes until the cluster is healthy
    kctl cluster health --wait --timeout 2m
    """
    from kctl.health.model import HealthLimits

    inv = invocation(ctx)
    limits = HealthLimits(brokers=brokers, disk_percent=max_disk_percent)
    if watch and wait:
        raise UsageError("--watch and --wait cannot be combined", hint="use --wait to stop when the cluster is healthy")
    if watch:
        Watching(inv, interval).run(
            lambda: _check(inv, limits), lambda result: PassOutput(result, [_table(result)], failures=result.unknown)
        )
    result = _wait(inv, limits) if wait else _check(inv, limits)
    inv.emit(result, lambda: [_table(result)], lambda: result.checks)
    with incomplete_after_verdict(result.unknown):
        result.require_healthy()


def _check(inv: Invocation, limits: HealthLimits) -> Health:
    from kctl.health.assess import assess
    from kctl.health.collect import collect_facts

    with inv.connect() as client:
        return assess(collect_facts(client), limits)


def _wait(inv: Invocation, limits: HealthLimits) -> Health:
    from kctl.health.wait import wait_until_healthy

    target = inv.target()
    with output.progress("waiting", lines_every_s=10.0) as progress:
        return wait_until_healthy(target, limits, timeout_s=inv.timeout_s(_WAIT_S), progress=progress.update)


def _table(result: Health) -> Table:
    columns = [
        Column("check", show=lambda name: str(name).replace("_", " ")),
        Column("status", style=_style),
        Column("summary", "RESULT"),
        Column("subjects", "WHERE", show=_first_names),
    ]
    title = (
        f"cluster {result.cluster_id}: {brokers_up(result.broker_count, result.brokers_down)}, "
        f"{counted(result.topic_count, 'topic')}"
        f"{f' ({result.internal_topics:,} of them internal)' if result.internal_topics else ''}, "
        f"{counted(result.partition_count, 'partition')}"
    )
    return Table(columns, jsonable(result.checks), title=title)


def _style(row: Mapping[str, Any]) -> str | None:
    return _STYLES.get(row["status"])


def _first_names(subjects: list[str]) -> str:
    more = f" and {len(subjects) - _MAX_NAMES:,} more" if len(subjects) > _MAX_NAMES else ""
    return ", ".join(subjects[:_MAX_NAMES]) + more
