"""kctl cluster diagnose: what unhealthy partitions have in common."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.base.units import format_duration, parse_duration_ms
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete_after_verdict, ranges

if TYPE_CHECKING:
    from kctl.health.causes import Suspect
    from kctl.health.diagnose import Diagnosis
    from kctl.health.isr_changes import IsrChanges
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

_SHOWN = 10
_POLL_S = 1.0


def diagnose(
    ctx: typer.Context,
    watch_for: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Watch ISRs for this long and list changes, e.g. 30s.")
    ] = None,
) -> None:
    """Find the common cause of unhealthy partitions.

    Suspects are brokers, log dirs, racks and leaders. They are ranked by the share of unhealthy partitions that
    have an out-of-sync replica there, and by the share of their replicas that are out of sync. Partitions with
    records above the high watermark, which consumers cannot read yet, are listed as well. Exits 1 if there is a
    problem.

    # Find the cause, and list ISR changes for five seconds
    kctl cluster diagnose --watch-for 5s
    """
    from kctl.health.diagnose import diagnose as library

    inv = invocation(ctx)
    watch_ms = None if watch_for is None else parse_duration_ms(watch_for)
    with inv.connect() as client:
        state = client.metadata()
        changes: list[IsrChanges] = []
        if watch_ms is not None:
            changes = _watch(client, state, watch_ms / 1000)
            state = client.metadata()
        diagnosis = library(client, state, watched_ms=watch_ms, changes=changes)
    omitted = [] if inv.output == "wide" else fine_leaders(diagnosis)
    inv.emit(diagnosis, lambda: _tables(diagnosis, omitted))
    if omitted and inv.output in {None, "table"}:
        output.note(f"{counted(len(omitted), 'broker')} without missing replicas omitted; -o wide lists all")
    with incomplete_after_verdict(diagnosis.failures):
        diagnosis.require_healthy()
    if inv.output in output.FOR_PEOPLE:
        output.note(f"no problem in {counted(diagnosis.partition_count, 'partition')}")


def _watch(client: ClusterClient, first: ClusterState, seconds: float) -> list[IsrChanges]:
    from kctl.health.isr_changes import watch_isr

    with output.progress("watching ISRs", lines_every_s=10.0) as progress:

        def report(changed: int, left_s: float) -> None:
            message = (
                f"watching ISRs, {format_duration(round(left_s) * 1000)} left: {counted(changed, 'partition')} changed"
            )
            progress.update(message, seconds - left_s, seconds)

        return watch_isr(first, client.metadata, seconds=seconds, pause_s=_POLL_S, sleep=time.sleep, report=report)


def _tables(diagnosis: Diagnosis, omitted: Collection[Suspect]) -> list[Table]:
    tables = (
        _suspects(diagnosis, omitted), _partitions(diagnosis), _eligible(diagnosis), _held_back(diagnosis),
        _changes(diagnosis),
    )  # fmt: skip
    return [table for table in tables if table.rows]


def fine_leaders(diagnosis: Diagnosis) -> list[Suspect]:
    """Return leaders on brokers without missing replicas, if a broker that is down explains all problems."""
    suspects = diagnosis.suspects
    if not any(row.kind == "broker" and row.state == "down" and row.share_percent == 100 for row in suspects):
        return []
    missing = {row.broker for row in suspects if row.kind == "broker"}
    return [row for row in suspects if row.kind == "leader" and row.broker not in missing]


def _suspects(diagnosis: Diagnosis, omitted: Collection[Suspect]) -> Table:
    columns = [
        Column("kind", "IN COMMON"),
        Column("where", name=True),
        Column("state", style=lambda row: "red" if row["state"] == "down" else None),
        Column("of_problems", "UNHEALTHY PARTITIONS", align="right"),
        Column("of_replicas", "MISSING REPLICAS", align="right"),
    ]
    rows = [
        {
            **jsonable(row),
            "where": row.place,
            "of_problems": f"{row.partition_count:,} ({row.share_percent:g} %)",
            "of_replicas": f"{row.missing:,} of {row.replica_count:,} ({row.missing_percent:g} %)",
        }
        for row in [row for row in diagnosis.suspects if row not in omitted][:_SHOWN]
    ]
    return Table(columns, rows)


def _partitions(diagnosis: Diagnosis) -> Table:
    rows = [
        {"problem": problem, "count": len(names), "partitions": _some(names)}
        for problem, names in (
            ("no leader", diagnosis.offline),
            ("under-replicated", diagnosis.under_replicated),
            ("under min ISR", diagnosis.under_min_isr),
        )
        if names
    ]
    return Table([Column("problem"), Column("count", align="right"), Column("partitions")], rows)


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _eligible(diagnosis: Diagnosis) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("leader", align="right"),
        Column("eligible", "ELR"),
        Column("last_known_eligible", "LAST KNOWN ELR"),
    ]
    rows = diagnosis.eligible or ()
    return Table(columns, jsonable(rows[:_SHOWN]), title=_title(rows, "with eligible or last known leader replicas"))


def _held_back(diagnosis: Diagnosis) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("leader", align="right"),
        Column("high_watermark", "HIGH WATERMARK", align="right"),
        Column("leader_log_end_offset", "LOG END", align="right"),
        Column("records", "NOT READABLE", align="right"),
    ]
    return Table(
        columns,
        jsonable(diagnosis.held_back[:_SHOWN]),
        title=_title(diagnosis.held_back, "with records above the high watermark"),
    )


def _changes(diagnosis: Diagnosis) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("changes", "ISR CHANGES", align="right"),
        Column("left", show=_nodes),
        Column("joined", show=_nodes),
        Column("leader_changes", "LEADER CHANGES", align="right"),
    ]
    rows = diagnosis.isr_changes
    return Table(columns, jsonable(rows[:_SHOWN]), title=_title(rows, "with a changed ISR or leader"))


def _nodes(ids: list[int]) -> str:
    return ranges(ids) or "-"


def _title(rows: tuple[Any, ...], what: str) -> str:
    more = f"; the first {_SHOWN}" if len(rows) > _SHOWN else ""
    return f"{counted(len(rows), 'partition')} {what}{more}"
