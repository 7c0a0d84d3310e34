"""Tables of the cluster commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kctl.commands.terminal.output import Column, Table


def vertical(result: Mapping[str, Any], *, without: Sequence[str] = ()) -> Table:
    """Return a table with one row per key, so that long values have room."""
    rows = [
        {"key": key.replace("_", " "), "value": value}
        for key, value in result.items()
        if key not in without and value not in ([], None)
    ]
    return Table([Column("key", "CLUSTER"), Column("value", " ")], rows)
