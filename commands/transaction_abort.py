"""kctl transaction abort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from kctl.commands import output
from kctl.commands.invocation import invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.transaction import partitions_of


@dataclass(frozen=True)
class Aborted:
    """result: aborted, would abort."""

    topic: str
    partition: int
    start_offset: int
    producer_id: int
    producer_epoch: int
    result: str


def abort(
    ctx: typer.Context,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="Where it is open.")],
    partition: Annotated[int, typer.Option(help="Where it is open.")],
    start_offset: Annotated[int, typer.Option(metavar="OFFSET", help="Where it begins, as `hanging` tells it.")],
    force: Annotated[bool, typer.Option("--force", help="Also one of which a coordinator knows.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be aborted, abort nothing.")] = False,
) -> None:
    """Abort a hanging transaction in one partition. Its records stay unread by consumers with read_committed.

    One of which a coordinator knows is refused: it would be aborted here, and could be committed elsewhere.

    Example: kctl transaction abort --topic orders --partition 0 --start-offset 42 --dry-run
    """
    from kctl.transactions.abort import abort_transaction, find_open, refuse_live

    inv = invocation(ctx)
    with inv.connect() as client:
        (state,) = partitions_of(client, topic, [partition])
        producer = find_open(client, state, start_offset)
        if not force:
            refuse_live(client, producer)
        if not dry_run:
            if not inv.yes:
                output.note(
                    f"{producer.tp}: from offset {start_offset}, producer id {producer.producer_id}, epoch"
                    f" {producer.producer_epoch}, last batch at {producer.last_timestamp:%Y-%m-%d %H:%M:%S} UTC"
                )
            inv.confirm(f"Abort the transaction in {producer.tp} of {client.target.name}?", target=client.target)
            abort_transaction(client, state, producer, timeout_s=inv.timeout_s(30))
    done = Aborted(
        topic, partition, start_offset, producer.producer_id, producer.producer_epoch,
        "would abort" if dry_run else "aborted",
    )  # fmt: skip
    columns = [
        Column("topic", name=True),
        *(Column(key, align="right") for key in ("partition", "start_offset", "producer_id", "producer_epoch")),
        Column("result"),
    ]
    inv.emit(done, lambda: [Table(columns, [jsonable(done)])])
