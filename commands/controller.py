"""kctl controller: who it is, since when, and with KRaft the quorum behind it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.units import format_duration
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete_after_verdict, ranges
from kctl.commands.terminal.watching import INTERVAL, WATCH, Shown, Watching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kctl.cluster.controller import Controller, Voter


def command(
    ctx: typer.Context, watch: Annotated[bool, WATCH] = False, interval: Annotated[str, INTERVAL] = "2s"
) -> None:
    """Show the controller: its broker and epoch, and since when it is.

    With ZooKeeper the epoch and the time are read there, when --zookeeper or the context names it. With KRaft the
    metadata quorum is shown: voters, observers, and how far each is behind. Exit 1 when there is no controller, or
    brokers name different ones.

    Example: kctl controller
    """
    from kctl.cluster.controller import read_controller

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect() as client:
        if watching:
            watching.run(lambda: read_controller(client), lambda seen: Shown(seen, _tables(seen), seen.failures))
        found = read_controller(client)
    inv.emit(found, lambda: _tables(found))
    with incomplete_after_verdict(found.failures):
        found.require_healthy()


def _tables(found: Controller) -> list[Table]:
    where = None if found.host is None else f"{found.host}:{found.port}"
    facts: dict[str, Any] = {"address": where, "metadata": found.metadata, "epoch": found.epoch}
    if found.metadata == "zookeeper":
        facts["since"] = None if found.since is None else f"{found.since:%Y-%m-%d %H:%M:%S} UTC ({_ago(found.since)})"
        facts["named by"] = (
            f"broker {ranges(sorted(n for n, named in found.named_by.items() if named == found.controller_id))}"
        )
    else:
        facts["high watermark"] = found.high_watermark
    columns = [
        Column("key", "CONTROLLER"),
        Column("value", "none" if found.controller_id is None else str(found.controller_id)),
    ]
    lines = Table(columns, [{"key": key, "value": value} for key, value in facts.items()])
    members = (*found.voters, *found.observers)
    return [lines, _members(members)] if members else [lines]


def _members(rows: Sequence[Voter]) -> Table:
    columns = [
        Column("node_id", "ID", align="right"),
        Column("role"),
        Column("address"),
        Column("log_end_offset", "LOG END", align="right"),
        Column("lag", align="right"),
        Column("fetched", "LAST FETCH"),
        Column("caught_up", "CAUGHT UP"),
    ]
    shown = [
        {
            **jsonable(row),
            "address": None if row.host is None else f"{row.host}:{row.port}",
            "fetched": None if row.last_fetch is None else _ago(row.last_fetch),
            "caught_up": None if row.last_caught_up is None else _ago(row.last_caught_up),
        }
        for row in rows
    ]
    return Table(columns, shown)


def _ago(moment: datetime) -> str:
    passed_ms = (datetime.now(timezone.utc) - moment).total_seconds() * 1000
    return "now" if passed_ms < 1000 else f"{format_duration(round(passed_ms))} ago"
