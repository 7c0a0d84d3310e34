"""kctl cluster export: the state of any reachable cluster as JSON. commands/cluster/commands.py registers it."""

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
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of stdout.")] = None,
) -> None:
    """Write brokers, disks, topics and replicas of any reachable cluster as one JSON document.

    What could not be read is absent from the document, and said on stderr.

    Example: kctl cluster export --out cluster.json
    """
    from kctl.cluster.export import export_cluster

    inv = invocation(ctx)
    if inv.output not in {None, "json", "yaml"}:
        raise UsageError(f"-o {inv.output} is not a format of kctl cluster export", hint="it is JSON, or -o yaml")
    ask_to_replace(inv, out)
    with inv.connect() as client:
        state, lacks = export_cluster(client)
    for line in lacks:
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
    output.note(f"{out}: {len(state['brokers'])} brokers, {len(topics)} topics, {partitions} partitions")


def yaml_of(state: dict[str, Any]) -> str:
    """The document as YAML. JSON is on one line: laid out, 100,000 partitions are millions of lines."""
    import yaml

    text: str = yaml.safe_dump(state, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return text.rstrip("\n")
