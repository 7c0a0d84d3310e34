"""kctl transaction abort: abort a hanging transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.transaction.commands import partitions_of

if TYPE_CHECKING:
    from kctl.transactions.producers import ProducerState


@dataclass(frozen=True)
class TransactionAbort:
    """An aborted transaction, or one that would be aborted."""

    topic: str
    partition: int
    start_offset: int
    producer_id: int
    producer_epoch: int
    result: ItemResult


def abort(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic of the transaction.")],
    partition: Annotated[int, typer.Option(help="Partition with the open transaction.")],
    start_offset: Annotated[
        int, typer.Option(metavar="OFFSET", help="First offset of the transaction, as shown by `hanging`.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Also abort a transaction that a coordinator still tracks.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be aborted, without aborting it.")
    ] = False,
) -> None:
    """Abort a hanging transaction in one partition.

    Its records stay invisible to read_committed consumers. kctl refuses a transaction that a coordinator still
    tracks: it would be aborted in this partition, but might be committed in others.

    # Check which transaction would be aborted
    kctl transaction abort orders --partition 0 --start-offset 42 --dry-run
    """
    from kctl.cluster import unchanged
    from kctl.transactions.abort import abort_transaction, find_open, refuse_changed, refuse_live

    inv = invocation(ctx)
    with inv.connect() as client:
        basis = unchanged.topics(client, [topic])
        (state,) = partitions_of(client, topic, [partition])
        producer = find_open(client, state, start_offset)
        if not force:
            refuse_live(client, producer)
        if not dry_run:
            if not inv.yes:
                output.note(summary(producer))
            question = f"Abort the transaction in {producer.tp} on {client.target.name}?"
            inv.confirm(question, target=client.target, basis=basis)
            (state,) = partitions_of(client, topic, [partition])  # the leader may have changed
            refuse_changed(client, state, producer)
            if not force:
                refuse_live(client, producer)
            abort_transaction(client, state, producer, timeout_s=inv.timeout_s(30))
    aborted = TransactionAbort(
        topic, partition, start_offset, producer.producer_id, producer.producer_epoch,
        ItemResult.WOULD_ABORT if dry_run else ItemResult.ABORTED,
    )  # fmt: skip
    columns = [
        Column("topic", name=True),
        *(Column(key, align="right") for key in ("partition", "start_offset", "producer_id", "producer_epoch")),
        Column("result"),
    ]
    inv.emit(aborted, lambda: [Table(columns, [jsonable(aborted)])], changed=aborted.result.changed)


def summary(producer: ProducerState) -> str:
    """Return the transaction to abort in one line."""
    last = producer.last_timestamp
    return (
        f"{producer.tp}: from offset {producer.current_transaction_start_offset}, producer id {producer.producer_id},"
        f" epoch {producer.producer_epoch}, last batch"
        f" {f'at {last:%Y-%m-%d %H:%M:%S} UTC' if last is not None else 'without a timestamp'}"
    )
