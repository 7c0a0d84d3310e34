"""kctl group export and import: committed offsets in a file."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from kctl.base.text import counted
from kctl.commands.group.choice import MATCH, TYPE, choose
from kctl.commands.group.reset_offsets import DRY_RUN, TOPIC, carry_out
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation, more_formats
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError


def export(
    ctx: typer.Context,
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…", help="Groups to export.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
    topic: Annotated[list[str] | None, TOPIC] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JSON to this file.")] = None,
) -> None:
    """Export committed offsets for `kctl group import`.

    Without --out, writes to stdout: a table on a terminal, otherwise JSON, or the format of -o.

    # Save the committed offsets of one group
    kctl group export billing > billing.json
    """
    from kctl.commands.terminal.out_file import ask_to_replace, write_whole
    from kctl.groups.export import exported
    from kctl.groups.topic_choice import parse_choices

    inv = invocation(ctx)
    choices = parse_choices(topic or ())
    if out is not None:
        if inv.output not in {None, "json"}:
            raise UsageError(f"--out writes JSON, not {inv.output}", hint="for other formats, use -o without --out")
        ask_to_replace(inv, out)
    elif inv.output is None and not sys.stdout.isatty():
        inv = dataclasses.replace(inv, output="json")  # so that `> FILE` is a file for import
    with inv.connect() as client:
        names = choose(client, groups, match, type_, with_commits=True)
        rows = exported(client, names, choices)
    inv.report_change(changed=out is not None)
    empty = sorted(set(names) - {row.group for row in rows})
    if out is not None:
        write_whole(out, json.dumps(jsonable(rows), ensure_ascii=False, indent=2))
        output.note(f"{counted(len(rows), 'offset')} of {counted(len(names), 'group')} written to {out}")
    else:
        columns = [
            Column("group", name=True),
            Column("topic", name=True),
            Column("partition", "PART", align="right"),
            Column("committed_offset", "COMMITTED", align="right"),
            Column("leader_epoch", "EPOCH", align="right"),
            Column("metadata"),
        ]
        inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty="no commits")])
    if empty:
        output.note(f"no commits: {', '.join(empty)}")


@more_formats("kafka")
def import_(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File from `kctl group export`, or a CSV file of kafka-consumer-groups; - is stdin."
        ),
    ],
    group: Annotated[list[str] | None, typer.Option(help="Only this group; repeatable.")] = None,
    topic: Annotated[list[str] | None, TOPIC] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
) -> None:
    """Commit the offsets in a file; creates missing groups.

    # Show which offsets would be committed
    kctl group import offsets.json --dry-run
    """
    from kctl.cluster.groups.names import check_group_id
    from kctl.groups.offsets_file import by_group, read_offsets_file
    from kctl.groups.reset import plan_reset
    from kctl.groups.reset_rules import ResetTarget, To
    from kctl.groups.topic_choice import parse_choices

    inv = invocation(ctx)
    choices = parse_choices(topic or ())
    only = [check_group_id(name) for name in group or ()]
    offsets = by_group(read_offsets_file(file), default_group=only[0] if len(only) == 1 else None)
    names = only or sorted(offsets)
    missing = [name for name in names if name not in offsets]
    if missing:
        raise UsageError(f"{file} has no offsets for group {missing[0]!r}")
    with inv.connect() as client:
        plan = plan_reset(client, names, ResetTarget(To.GIVEN), choices, offsets=offsets, create=True)
        carry_out(inv, client, plan, dry_run=dry_run)
