"""kctl topic clone."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.topics.clone.plan import ClonedTopic


class Compression(str, Enum):
    """Codecs of batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def clone(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    name: Annotated[str, typer.Argument(metavar="NEW")],
    data: Annotated[bool, typer.Option("--data", help="Copy the records as well.")] = False,
    compression: Annotated[
        Compression, typer.Option(help="With --data: of the batches that are written.")
    ] = Compression.NONE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be made and copied.")] = False,
) -> None:
    """Make a topic like another one: partitions, replication factor, configs; with --data its records as well.

    Records keep partition, order, key, headers and timestamp, and get new offsets. Records written after the start
    are not copied. The new topic must not exist, unless an interrupted copy created it: the same command resumes it.

    Example: kctl topic clone orders orders-test --data --dry-run
    """
    from kctl.cluster import unchanged
    from kctl.topics.basis import of_cloned
    from kctl.topics.clone.plan import plan_clone
    from kctl.topics.clone.run import clone as make

    inv = invocation(ctx)
    if compression is not Compression.NONE and not data:
        raise UsageError("--compression goes with --data")
    with inv.connect() as client:
        basis = unchanged.topics(client, [source])
        timeout_s = inv.timeout_s(30)
        plan = plan_clone(client, source, name, data=data, timeout_s=timeout_s)
        for warning in plan.warnings:
            output.warn(warning)
        if dry_run:
            _emit(inv, plan.clone)
            return
        if plan.journal is None:
            question = f"Create topic {name} of {client.target.name}?"
            basis = basis.also(of_cloned(client, plan.clone))
        else:
            question = f"Resume the copy of {source} into {name} of {client.target.name}?"
            output.note(f"resuming the copy into {name}: {plan.clone.records:,} records are in it")
        inv.confirm_protected(question, target=client.target, basis=basis)
        try:
            with (
                undone_when_terminated(),
                output.progress("copying" if data else "creating", lines_every_s=30) as bar,
            ):
                done = make(client, plan, compression=compression.value, timeout_s=timeout_s, progress=bar.update)
        except KeyboardInterrupt:
            output.warn(f"{name} is incomplete if it exists: {_next_step(source, name, data=data)}")
            raise
    _emit(inv, done)
    if done.error:
        raise OperationFailed(
            f"{name} exists and is incomplete: {done.error}", hint=_next_step(source, name, data=data)
        )


def _next_step(source: str, name: str, *, data: bool) -> str:
    from kctl.topics.clone.plan import resume_command

    delete = f"`kctl topic delete {name}` removes it"
    return f"`{resume_command(source, name)}` resumes the copy, {delete}" if data else f"{delete}, then clone again"


def _emit(inv: Invocation, row: ClonedTopic) -> None:
    columns = [
        Column("source_topic", "SOURCE", name=True),
        Column("topic", "NEW", name=True),
        Column("result"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("configs", show=lambda configs: " ".join(f"{k}={v}" for k, v in configs.items()) or "-"),
        Column("records", align="right"),
    ]
    copied = [
        Column("partition", align="right"),
        Column("source_log_start_offset", "FROM", align="right"),
        Column("source_log_end_offset", "TO", align="right"),
        Column("records", align="right"),
        Column("log_end_offset", "NEW END", align="right"),
    ]
    tables = [Table(columns, [jsonable(row)]), Table(copied, jsonable(row.copied))]
    inv.emit(row, tables, changed=row.result.changed)
