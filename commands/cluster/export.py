"""kctl cluster export: the state of any reachable cluster as JSON. Registered in commands/cluster/commands.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import formats_are, invocation
from kctl.commands.terminal.out_file import ask_to_replace, write_whole
from kctl.errors import UsageError


@formats_are("json, or yaml.")
def export(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file (default: stdout).")] = None,
) -> None:
    """Export brokers, disks, topics and replicas as JSON.

    Parts that cannot be read are absent from the document; a warning on stderr names them.

    # Save the layout of the cluster for offline planning
    kctl cluster export --out cluster.json
    """
    from kctl.base.text import counted
    from kctl.cluster.export import export_cluster

    inv = invocation(ctx)
    if inv.output not in {None, "json", "yaml"}:
        raise UsageError(
            f"kctl cluster export does not support -o {inv.output}", hint="use -o json (the default) or -o yaml"
        )
    ask_to_replace(inv, out)
    with inv.connect() as client:
        state, missing = export_cluster(client)
    for line in missing:
        output.warn(line)
    indent = 2 if out is None and sys.stdout.isatty() else None
    text = yaml_of(state) if inv.output == "yaml" else json.dumps(state, ensure_ascii=False, indent=indent)
    if out is None:
        output.write_line(text)
        return
    write_whole(out, text)
    inv.report_change(changed=True)
    topics = state["topics"]
    partitions = sum(len(topic["partitions"]) for topic in topics)
    counts = [(len(state["brokers"]), "broker"), (len(topics), "topic"), (partitions, "partition")]
    output.note(f"{out}: {', '.join(counted(*each) for each in counts)}")


def yaml_of(state: dict[str, Any]) -> str:
    """Return the document as compact YAML; in block style, 100,000 partitions would take millions of lines."""
    import yaml

    text: str = yaml.safe_dump(state, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return text.rstrip("\n")
