"""kctl transaction: list, describe, producers, hanging and abort."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import format_duration
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import MATCH, PARTITION
from kctl.errors import KctlError, NotFound, UsageError

if TYPE_CHECKING:
    from kctl.model import PartitionState
    from kctl.protocol.client import ClusterClient
    from kctl.transactions.hanging_search import HangingReport

app = CommandGroup()
app.command_of("abort", "kctl.commands.transaction.abort")


@app.command("list")
def list_(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help="Only this state: Ongoing, PrepareCommit, CompleteAbort …; repeatable."),
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Only this producer id; repeatable.")
    ] = None,
    duration_filter: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only transactions open for longer than this, e.g. 5m.")
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Only transactional ids whose whole name matches; repeatable."),
    ] = None,
) -> None:
    """List transactional ids: coordinator, producer id and state.

    Brokers omit ids that you may not describe. kctl prints a warning if this is possible.

    # List transactions that are open for more than five minutes
    kctl transaction list --state Ongoing --duration-filter 5m
    """
    from kctl.base.name_patterns import matches, parse_patterns
    from kctl.base.units import parse_duration_ms
    from kctl.transactions.listing import (
        NEEDS_ALL,
        STATES_TOPIC,
        TransactionListing,
        all_can_be_listed,
        list_transactions,
        parse_states,
        require_readable,
    )

    inv = invocation(ctx)
    states = parse_states(state or [])
    patterns = parse_patterns("--match", match or [])
    duration_ms = parse_duration_ms(duration_filter) if duration_filter is not None else None
    with inv.connect() as client:
        rows, failed = list_transactions(client, states=states, producer_ids=producer_id or [], duration_ms=duration_ms)
        complete = all_can_be_listed(client)
    if patterns:
        rows = [row for row in rows if matches(row.transactional_id, patterns)]
        if not (rows or failed or states or producer_id) and complete and duration_ms is None:
            raise NotFound(f"no transactional id matches {' or '.join(match or ())}")
    columns = [
        Column("transactional_id", name=True),
        Column("coordinator", align="right"),
        Column("producer_id", align="right"),
        Column("state"),
    ]
    inv.emit(
        rows, lambda: [Table(columns, jsonable(rows), empty="no matching transactions")], row_type=TransactionListing
    )
    if not complete:
        output.warn(f"the list may be incomplete: you may not describe every transactional id; {NEEDS_ALL}")
    unlisted = failed.pop(STATES_TOPIC, None)
    if unlisted is not None:
        output.warn(f"the list may be incomplete: {unlisted.message}; {unlisted.hint}")
    require_readable(failed, "coordinator")


@app.command()
def describe(
    ctx: typer.Context, ids: Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID…", help="Ids to show.")]
) -> None:
    """Describe transactional ids: state, timeout and partitions.

    # Print the state of one transactional id as JSON
    kctl transaction describe payments-1 -o json
    """
    from kctl.cluster.rights import may_describe_all_topics
    from kctl.transactions.listing import describe_transactions, missing_transactional_id, require_readable

    inv = invocation(ctx)
    with inv.connect() as client:
        responses = describe_transactions(client, ids)
        complete = may_describe_all_topics(client)
        transactions = [response for response in responses.values() if not isinstance(response, KctlError)]
        failed = {name: response for name, response in responses.items() if isinstance(response, KctlError)}
        if failed and not transactions:
            name, error = next(iter(failed.items()))
            raise missing_transactional_id(client, error, name) if isinstance(error, NotFound) else error
    columns = [
        Column("transactional_id", name=True),
        Column("coordinator", align="right"),
        Column("producer_id", align="right"),
        Column("producer_epoch", "EPOCH", align="right"),
        Column("state"),
        Column("transaction_timeout_ms", "TIMEOUT", show=format_duration, align="right"),
        Column("transaction_start_time", "OPEN SINCE", wide=True),
        Column("duration_ms", "OPEN FOR", show=format_duration, align="right"),
        Column("topic_partitions", "PARTITIONS", name=True),
    ]
    inv.emit(transactions, lambda: [Table(columns, jsonable(transactions))])
    if complete is False:
        output.warn("partitions of topics that you may not describe are omitted; this requires Describe on topic *")
    require_readable(failed, "transactional id")


@app.command()
def producers(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic of the partitions.")],
    partition: Annotated[list[str] | None, PARTITION] = None,
    broker: Annotated[
        int | None,
        typer.Option(
            "--broker", "--broker-id", metavar="ID", help="Query the replica on this broker instead of the leaders."
        ),
    ] = None,
) -> None:
    """Show the producers of partitions and their open transactions.

    Brokers track only idempotent producers, and forget them transactional.id.expiration.ms or
    producer.id.expiration.ms after their last batch.

    # Show the producers of one partition
    kctl transaction producers orders --partition 0
    """
    from kctl.cluster.partition_numbers import parse_each
    from kctl.transactions.listing import require_readable
    from kctl.transactions.producers import ProducerState, describe_producers

    inv = invocation(ctx)
    numbers = parse_each(partition)
    with inv.connect() as client:
        partitions = partitions_of(client, topic, numbers)
        rows, failed = describe_producers(client, partitions, broker_id=broker)
    if failed and len(failed) == len(partitions):
        raise next(iter(failed.values()))
    columns = [
        Column("topic", name=True, wide=True),
        Column("partition", align="right"),
        Column("producer_id", align="right"),
        Column("producer_epoch", "EPOCH", align="right"),
        Column("last_sequence", align="right"),
        Column("last_timestamp"),
        Column("coordinator_epoch", align="right", wide=True),
        Column("current_transaction_start_offset", "TRANSACTION FROM", align="right"),
    ]
    empty = f"no producers of topic {topic} are known"
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=empty)], row_type=ProducerState)
    require_readable(failed, "partition")


def partitions_of(client: ClusterClient, topic: str, numbers: Iterable[int] | None) -> list[PartitionState]:
    """Return the partitions of a topic, all or the selected numbers. Raises NotFound."""
    from kctl.base.name_patterns import select
    from kctl.cluster.partition_numbers import no_partition

    topics = client.metadata([topic]).topics
    if topic not in topics:
        select(client.metadata().topics, exact=[topic])  # raises NotFound with a suggestion
    by_number = {state.partition: state for state in topics[topic].partitions} if topic in topics else {}
    missing = [number for number in numbers or () if number not in by_number]
    if missing or not by_number:
        raise no_partition(topic, missing, len(by_number))
    return [by_number[number] for number in (sorted(set(numbers)) if numbers else sorted(by_number))]


@dataclass(frozen=True)
class HangingOptions:
    """The options of the command."""

    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; repeatable.")] = None
    match: Annotated[list[str] | None, MATCH] = None
    partition: Annotated[list[str] | None, PARTITION] = None
    broker: Annotated[
        int | None,
        typer.Option("--broker", "--broker-id", metavar="ID", help="Only partitions led by this broker."),
    ] = None
    max_transaction_timeout: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Ignore younger transactions; set it to the brokers' transaction.max.timeout.ms."
        ),
    ] = "15m"


@app.command()
@takes_options(HangingOptions)
def hanging(ctx: typer.Context, options: HangingOptions) -> None:
    """Find hanging transactions, which no coordinator will end.

    read_committed consumers cannot read past a hanging transaction. Exits 1 if there are any. To end one, use
    `abort`.

    # Find hanging transactions if transaction.max.timeout.ms is one hour
    kctl transaction hanging --max-transaction-timeout 1h
    """
    from kctl.base.units import parse_duration_ms
    from kctl.cluster.partition_numbers import parse_each
    from kctl.transactions.hanging import HangingTransaction
    from kctl.transactions.hanging_search import HangingRequest, search_hanging

    inv = invocation(ctx)
    if options.partition and not options.topic and not options.match:
        raise UsageError("--partition requires a topic", hint="add --topic NAME")
    request = HangingRequest(
        topics=options.topic or (),
        patterns=options.match or (),
        partitions=parse_each(options.partition),
        broker=options.broker,
        longer_than_ms=parse_duration_ms(options.max_transaction_timeout),
    )
    with inv.connect() as client:
        report = search_hanging(client, request)
    inv.emit(report.transactions, lambda: [_hanging_table(report)], row_type=HangingTransaction)
    report.require_none()


def _hanging_table(report: HangingReport) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("start_offset", align="right"),
        Column("producer_id", align="right"),
        Column("producer_epoch", "EPOCH", align="right"),
        Column("coordinator_epoch", align="right", wide=True),
        Column("transactional_id", name=True),
        Column("last_timestamp", wide=True),
        Column("duration_ms", "FOR", show=format_duration, align="right"),
    ]
    empty = "no hanging transactions" if report.complete else "no hanging transactions in the readable partitions"
    return Table(columns, jsonable(report.transactions), empty=empty)
