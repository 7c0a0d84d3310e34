"""Tables of features and their levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import ranges

if TYPE_CHECKING:
    from kctl.features.rows import FeatureRow, LevelRow


def features_tables(rows: Sequence[FeatureRow]) -> Sequence[Table]:
    """Return the table of features, and one of the nodes if they do not all support the same levels."""
    columns = [
        Column("feature", name=True),
        Column("finalized_name", "LEVEL"),
        Column("max_name", "HIGHEST"),
        Column("brings", words=True),
        Column("finalized_epoch", "EPOCH", align="right", wide=True),
        Column("finalized_version", "NUMBER", align="right", wide=True),
    ]
    tables = [Table(columns, jsonable(rows), empty="no features")]
    differing = [row for row in rows if len(row.supported) > 1]
    if differing:
        tables.append(_nodes_table(differing))
    return tables


def _nodes_table(rows: Sequence[FeatureRow]) -> Table:
    columns = [
        Column("feature", name=True),
        Column("levels"),
        Column("brokers", show=ranges),
        Column("controllers", show=ranges),
        Column("releases", "KAFKA", show=", ".join),
    ]
    ranges_of_nodes: Sequence[dict[str, Any]] = [
        {**jsonable(each), "feature": row.feature, "levels": f"{each.min_name} to {each.max_name}"}
        for row in rows
        for each in row.supported
    ]
    return Table(columns, ranges_of_nodes, title="Nodes support different levels:")


def levels_table(rows: Sequence[LevelRow]) -> Table:
    """Return the table of all levels."""
    columns = [
        Column("feature", name=True),
        Column("name", "LEVEL"),
        Column("status"),
        Column("brings", words=True),
        Column("changes_metadata", "NO WAY BACK", wide=True),
        Column("level", "NUMBER", align="right", wide=True),
    ]
    return Table(columns, jsonable(rows), empty="no features")
