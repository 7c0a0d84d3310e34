"""Quota changes: confirmation, table and errors, for `kctl quota` and `kctl acl apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import OperationFailed

if TYPE_CHECKING:
    from kctl.access.quotas import QuotaChange
    from kctl.commands.terminal.invocation import Invocation
    from kctl.protocol.client import ClusterClient


def confirm_quotas(inv: Invocation, client: ClusterClient, plan: Sequence[QuotaChange]) -> None:
    """Ask before a change: it throttles clients, or lets them exceed an intended limit."""
    from kctl.access.basis import of_quotas

    changed = [row for row in plan if row.result.planned]
    if not changed:
        return
    if not inv.yes:
        for row in changed:
            output.note(f"{row.entity}: {row.key} {number_text(row.before)} → {number_text(row.after)}")
    question = f"Change {counted(len(changed), 'quota')} on {client.target.name}?"
    inv.confirm(question, target=client.target, basis=of_quotas(client, changed))


def quotas_table(rows: Sequence[QuotaChange]) -> Table:
    """Return the table with each quota before and after."""
    columns = [
        Column("entity", name=True),
        Column("key"),
        Column("before", show=number_text, align="right"),
        Column("after", show=number_text, align="right"),
        Column("result", style=lambda row: "red" if row["result"] == ItemResult.FAILED else None),
    ]
    return Table(columns, jsonable(rows))


def number_text(value: float | None) -> str:
    """Format a quota: "10,485,760", "12.5", or "-" if it is not set."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value % 1 == 0 else f"{value:,}"


def raise_failed(rows: Sequence[QuotaChange]) -> None:
    """Raise OperationFailed if any row failed."""
    failed = [f"{row.entity}, {row.key}: {row.error}" for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'quota')} failed: {'; '.join(failed[:3])}")
