"""kctl topic export: write topics to a file."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.topic_options import ALL_NAMES, MATCH
from kctl.errors import UsageError


def export(
    ctx: typer.Context,
    names: Annotated[list[str] | None, ALL_NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
) -> None:
    """Export topics as YAML or JSON for `kctl topic apply`.

    Only configs that are set on the topics themselves are exported.

    # Save the settings of all topics that start with orders
    kctl topic export --match 'orders.*' > topics.yaml
    """
    from kctl.cluster.topics import choose
    from kctl.topics.export import export_topics

    inv = invocation(ctx)
    if inv.output not in {None, "yaml", "json"}:
        raise UsageError(f"-o {inv.output} is not supported: the file is YAML or JSON", hint="omit -o, or use -o json")
    with inv.connect() as client:
        state, chosen = choose(client, names or (), match or ())
        document = export_topics(client, state, chosen)
    dataclasses.replace(inv, output=inv.output or "yaml").emit(document, [])
