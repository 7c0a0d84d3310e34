"""kctl transaction: list, describe, producers, hanging and abort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.base.units import format_duration
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import MATCH, PARTITION
from kctl.errors import KctlError, NotFound, NotHealthy, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.model import PartitionState
    from kctl.protocol.client import ClusterClient

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
    _raise_unreadable(failed, "coordinator")


def _raise_unreadable(failed: Mapping[Any, KctlError], noun: str) -> None:
    if failed:
        errors = list(dict.fromkeys(error.message for error in failed.values()))
        more = f"; and {len(errors) - 3:,} more" if len(errors) > 3 else ""
        raise OperationFailed(
            f"{counted(len(failed), noun)} could not be read: {'; '.join(errors[:3])}{more}",
            hint=next(iter(failed.values())).hint,
        )


@app.command()
def describe(
    ctx: typer.Context, ids: Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID…", help="Ids to show.")]
) -> None:
    """Describe transactional ids: state, timeout and partitions.

    # Print the state of one transactional id as JSON
    kctl transaction describe payments-1 -o json
    """
    from kctl.cluster.rights import may_describe_all_topics
    from kctl.transactions.listing import describe_transactions, missing_transactional_id

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
    _raise_unreadable(failed, "transactional id")


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
    _raise_unreadable(failed, "partition")


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


@app.command()
def hanging(
    ctx: typer.Context,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; repeatable.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    partition: Annotated[list[str] | None, PARTITION] = None,
    broker: Annotated[
        int | None,
        typer.Option("--broker", "--broker-id", metavar="ID", help="Only partitions led by this broker."),
    ] = None,
    max_transaction_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="The brokers' transaction.max.timeout.ms.")
    ] = "15m",
) -> None:
    """Find hanging transactions: open too long, with no coordinator.

    read_committed consumers cannot read past a hanging transaction. Exits 1 if there are any. To end one, use
    `abort`.

    # Find hanging transactions where producers may set a timeout of one hour
    kctl transaction hanging --max-transaction-timeout 1h
    """
    from datetime import datetime, timezone

    from kctl.base.units import parse_duration_ms
    from kctl.cluster.partition_numbers import parse_each
    from kctl.cluster.rights import may_describe_all_topics
    from kctl.transactions.hanging import HangingTransaction, find_hanging, old_transactions
    from kctl.transactions.producers import describe_producers

    inv = invocation(ctx)
    if partition and not topic and not match:
        raise UsageError("--partition requires a topic", hint="add --topic NAME")
    numbers = parse_each(partition)
    limit_ms = parse_duration_ms(max_transaction_timeout)
    with inv.connect() as client:
        partitions = _partitions_to_search(client, topic or (), match or (), numbers, broker)
        producer_states, failed = describe_producers(client, partitions)
        if failed and len(failed) == len(partitions):
            raise next(iter(failed.values()))
        now = datetime.now(timezone.utc)
        hanging_transactions = find_hanging(
            client, old_transactions(producer_states, now=now, longer_than_ms=limit_ms), now=now
        )
        complete = bool(topic or match) or may_describe_all_topics(client) is not False
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
    empty = (
        "no hanging transactions" if complete and not failed else "no hanging transactions in the readable partitions"
    )
    inv.emit(
        hanging_transactions,
        lambda: [Table(columns, jsonable(hanging_transactions), empty=empty)],
        row_type=HangingTransaction,
    )
    _raise_unreadable(failed, "partition")
    if not complete:
        raise OperationFailed(
            "the result may be incomplete: you may not describe every topic",
            hint="this requires Describe on topic *; --topic TOPIC checks a single topic",
        )
    if hanging_transactions:
        raise NotHealthy(
            f"{counted(len(hanging_transactions), 'hanging transaction')}",
            hint="abort one with `kctl transaction abort TOPIC --partition N --start-offset OFFSET`",
        )


def _partitions_to_search(
    client: ClusterClient,
    topics: Sequence[str],
    match: Sequence[str],
    numbers: Sequence[int] | None,
    broker_id: int | None,
) -> list[PartitionState]:
    from kctl.cluster.topics import chosen_states, only_chosen
    from kctl.transactions.listing import STATES_TOPIC

    state = only_chosen(client, topics, match)
    # Only coordinators write to this topic, and never in a transaction; few users may read it.
    topic_states = [state.topics[name] for name in sorted(state.topics) if name != STATES_TOPIC or name in topics]
    states = chosen_states(topic_states, numbers)
    if broker_id is not None and broker_id not in state.brokers:
        ids = ", ".join(map(str, sorted(state.brokers)))
        raise NotFound(f"broker {broker_id} is not in the cluster", hint=f"the cluster has brokers {ids}")
    return [partition for partition in states if broker_id is None or partition.leader == broker_id]
