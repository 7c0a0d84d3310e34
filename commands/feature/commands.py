"""kctl feature: list; upgrade and downgrade have their own module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.feature.tables import features_tables, levels_table
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation

if TYPE_CHECKING:
    from kctl.features.rows import FeatureRow

app = CommandGroup()


@app.command("list")
def list_(
    ctx: typer.Context,
    levels: Annotated[bool, typer.Option("--levels", help="Show every level, and what the level adds.")] = False,
) -> None:
    """Show the features of the cluster and their levels (KRaft).

    LEVEL is the finalized level, which is in force in the whole cluster. HIGHEST is the highest level that all nodes
    support.

    # Show what each level brings
    kctl feature list --levels
    """
    from kctl.features.facts import read_features
    from kctl.features.rows import FeatureRow, LevelRow, feature_rows, level_rows

    inv = invocation(ctx)
    with inv.connect() as client:
        features = read_features(client)
    if levels:
        all_levels = level_rows(features)
        inv.emit(all_levels, lambda: [levels_table(all_levels)], row_type=LevelRow)
    else:
        rows = feature_rows(features)
        inv.emit(rows, lambda: features_tables(rows), row_type=FeatureRow)
        _note_higher_levels(rows)
    for node in features.silent:
        output.warn(f"the levels of {node.name} were not read: {node.reason}")


def _note_higher_levels(rows: Sequence[FeatureRow]) -> None:
    behind = [row.feature for row in rows if row.max_version is not None and row.finalized_version < row.max_version]
    if behind:
        output.note(f"below their highest level: {', '.join(behind)}; see `kctl feature list --levels`")


app.command_of("upgrade", "kctl.commands.feature.change")
app.command_of("downgrade", "kctl.commands.feature.change")
