"""Voters and observers of the metadata quorum as rows of tables."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from kctl.base.units import format_duration
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kctl.cluster.controller import Voter


def members_table(rows: Sequence[Voter]) -> Table:
    """Return a table of voters and observers."""
    columns = [
        Column("node_id", "ID", align="right"),
        Column("role"),
        Column("address"),
        Column("log_end_offset", "LOG END", align="right"),
        Column("lag", align="right"),
        Column("fetched", "LAST FETCH"),
        Column("caught_up", "CAUGHT UP"),
    ]
    return Table(columns, [member_row(row) for row in rows])


def member_row(row: Voter) -> dict[str, Any]:
    """Return a voter or an observer as a row with texts for a table."""
    return {
        **jsonable(row),
        "address": None if row.host is None else f"{row.host}:{row.port}",
        "fetched": None if row.last_fetch is None else ago(row.last_fetch),
        "caught_up": None if row.last_caught_up is None else ago(row.last_caught_up),
    }


def ago(timestamp: datetime) -> str:
    """Return how long ago something happened."""
    elapsed_ms = (datetime.now(timezone.utc) - timestamp).total_seconds() * 1000
    return "now" if elapsed_ms < 1000 else f"{format_duration(round(elapsed_ms))} ago"
