"""kctl topic clone: copy a topic's configuration, and optionally its records, to a new topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.codecs import Compression
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.topics.clone.plan import ClonedTopic


def clone(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Topic to copy.")],
    name: Annotated[str, typer.Argument(metavar="NEW", help="Name of the new topic.")],
    data: Annotated[bool, typer.Option("--data", help="Also copy the records.")] = False,
    compression: Annotated[
        Compression, typer.Option(help="Compression of the copied batches, with --data.")
    ] = Compression.NONE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be created and copied, without doing it.")
    ] = False,
) -> None:
    """Create a copy of a topic; --data also copies its records.

    With --data, records are copied with their partition, order, key, headers and timestamp; they get new offsets.
    Records written after the start are not copied. The new topic must not exist, unless an interrupted copy is resumed.

    # Preview a copy of a topic with its records
    kctl topic clone orders orders-test --data --dry-run
    """
    from kctl.cluster import unchanged
    from kctl.topics.basis import of_cloned
    from kctl.topics.clone.plan import next_step, plan_clone, require_complete
    from kctl.topics.clone.run import clone as create_clone

    inv = invocation(ctx)
    if compression is not Compression.NONE and not data:
        raise UsageError("--compression requires --data")
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
            question = f"Create topic {name} on {client.target.name}?"
            basis = basis.also(of_cloned(client, plan.clone))
        else:
            question = f"Resume the copy of {source} into {name} on {client.target.name}?"
            output.note(f"resuming the copy into {name}: {plan.clone.records:,} records are already copied")
        inv.confirm_protected(question, target=client.target, basis=basis)
        try:
            with (
                interrupt_when_terminated(),
                output.progress("copying" if data else "creating", lines_every_s=30) as bar,
            ):
                cloned = create_clone(
                    client, plan, compression=compression.value, timeout_s=timeout_s, progress=bar.update
                )
        except KeyboardInterrupt:
            output.warn(f"topic {name} may exist and is incomplete: {next_step(source, name, data=data)}")
            raise
    _emit(inv, cloned)
    require_complete(cloned, data=data)


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
