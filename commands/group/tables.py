"""Tables of planned and completed offset changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult, any_changed, raise_refusal
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import KctlError, OperationFailed

if TYPE_CHECKING:
    from kctl.commands.terminal.invocation import Invocation
    from kctl.groups.delete import DeletedOffset
    from kctl.groups.reset import OffsetChange


def offset_changes(rows: Sequence[OffsetChange]) -> Table:
    """Return a table with one line per partition."""
    documents = jsonable(rows)
    columns = [
        Column("group", name=True),
        Column("topic", name=True),
        Column("partition", "PART", align="right"),
        Column("old_offset", "OLD", align="right"),
        Column("new_offset", "NEW", align="right"),
        Column("difference", "DIFF", align="right", show=lambda value: f"{value:+}" if value else "0"),
        Column("skipped", align="right", style=lambda row: "yellow" if row["skipped"] else None),
        Column("read_again", "READ AGAIN", align="right"),
        Column("result", style=lambda row: "red" if row["result"] == ItemResult.FAILED else None),
        Column("remark", "NOTE"),
    ]
    visible = [column for column in columns if column.key != "group" or len({row["group"] for row in documents}) > 1]
    return Table(
        visible, [{**row, "remark": row["error"] or row["note"] or ""} for row in documents], empty="no offsets"
    )


def emit_changes(inv: Invocation, rows: Sequence[OffsetChange]) -> None:
    """Emit the rows; `-o kafka` writes the CSV that Kafka's tool exports and reads with --from-file."""
    changed = any_changed(rows)
    if inv.output == "kafka":
        inv.report_change(changed=changed)
        output.write_text(_kafka_csv(rows))
    else:
        inv.emit(rows, lambda: [offset_changes(rows)], changed=changed)


def _kafka_csv(rows: Sequence[OffsetChange]) -> str:
    several = len({row.group for row in rows}) > 1
    lines = (
        output.csv_line([*([row.group] if several else []), row.topic, row.partition, row.new_offset])
        for row in rows
        if row.new_offset is not None
    )
    return "".join(lines).rstrip("\n")


def effect(rows: Sequence[OffsetChange]) -> str:
    """Return the effect of a plan on consumers, for a note or a question."""
    skipped = sum(row.skipped or 0 for row in rows)
    read_again = sum(row.read_again or 0 for row in rows)
    first_commits = sum(row.old_offset is None for row in rows)
    parts = [f"{counted(skipped, 'message')} skipped", f"{counted(read_again, 'message')} read again"]
    return ", ".join(
        [*parts, *([f"{counted(first_commits, 'partition')} without a previous commit"] if first_commits else [])]
    )


def judge_changes(
    rows: Sequence[OffsetChange] | Sequence[DeletedOffset], errors: Sequence[KctlError], *, what: str
) -> None:
    """Raise if a row failed: Refused (4) if all were refused, else OperationFailed (5). errors: why rows failed."""
    failed = [row for row in rows if row.result is ItemResult.FAILED]
    if not failed:
        return
    raise_refusal(errors, requested=sum(row.result not in {ItemResult.UNCHANGED, ItemResult.ABSENT} for row in rows))
    lines = [f"{row.group} {row.topic}-{row.partition}: {row.error}" for row in failed]
    raise OperationFailed(
        f"{len(failed)} of {counted(len(rows), 'offset')} not {what}: {'; '.join(lines[:3])}"
        + (f"; and {len(lines) - 3:,} more" if len(lines) > 3 else ""),
        hint="check with `kctl group describe` before you retry",
        details={"problems": lines},
    )
