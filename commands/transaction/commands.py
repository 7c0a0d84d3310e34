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

app = CommandGroup("List and describe transactions, find and end hanging ones.")
app.command_of("abort", "kctl.commands.transaction.abort")


@app.command("list")
def list_(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Ongoing, PrepareCommit, CompleteAbort …; repeatable.")
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Only of this producer id; repeatable.")
    ] = None,
    duration_filter: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only those that have been open for longer.")
    ] = None,
    match: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Only transactional ids like this; repeatable.")
    ] = None,
) -> None:
    """List transactional ids with their coordinator, producer id and state.

    Brokers leave out the ids that you may not describe; that there may be such is said.

    Example: kctl transaction list --state Ongoing --duration-filter 5m
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
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty="no such transactions")], row_type=TransactionListing)
    if not complete:
        output.warn(f"there may be more: not every transactional id may be described; {NEEDS_ALL}")
    unseen = failed.pop(STATES_TOPIC, None)
    if unseen is not None:
        output.warn(f"there may be more: {unseen.message}; {unseen.hint}")
    _raise_unseen(failed, "coordinator")


def _raise_unseen(failed: Mapping[Any, KctlError], noun: str) -> None:
    if failed:
        errors = list(dict.fromkeys(error.message for error in failed.values()))
        more = f"; and {len(errors) - 3:,} more" if len(errors) > 3 else ""
        raise OperationFailed(
            f"{counted(len(failed), noun)} could not be seen: {'; '.join(errors[:3])}{more}",
            hint=next(iter(failed.values())).hint,
        )


@app.command()
def describe(ctx: typer.Context, ids: Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID…")]) -> None:
    """Describe transactional ids: state, producer, timeout, since when one is open and in which partitions.

    Example: kctl transaction describe payments-1 -o json
    """
    from kctl.cluster.rights import may_describe_all_topics
    from kctl.transactions.listing import describe_transactions, missing_transactional_id

    inv = invocation(ctx)
    with inv.connect() as client:
        answers = describe_transactions(client, ids)
        whole = may_describe_all_topics(client)
        found = [answer for answer in answers.values() if not isinstance(answer, KctlError)]
        failed = {name: answer for name, answer in answers.items() if isinstance(answer, KctlError)}
        if failed and not found:
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
    inv.emit(found, lambda: [Table(columns, jsonable(found))])
    if whole is False:
        output.warn("partitions of topics that may not be described are not shown; that needs Describe on topic *")
    _raise_unseen(failed, "transactional id")


@app.command()
def producers(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    partition: Annotated[list[str] | None, PARTITION] = None,
    broker: Annotated[
        int | None, typer.Option("--broker", "--broker-id", metavar="ID", help="Ask this replica, not the leaders.")
    ] = None,
) -> None:
    """Show which producers a topic's partitions know, and where their open transactions begin.

    Only those with idempotence, until transactional.id.expiration.ms or producer.id.expiration.ms after their last
    batch.

    Example: kctl transaction producers orders --partition 0
    """
    from kctl.cluster.partition_numbers import parse_each
    from kctl.transactions.producers import Producer, describe_producers

    inv = invocation(ctx)
    numbers = parse_each(partition)
    with inv.connect() as client:
        wanted = partitions_of(client, topic, numbers)
        rows, failed = describe_producers(client, wanted, broker_id=broker)
    if failed and len(failed) == len(wanted):
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
    empty = f"no producers of {topic} are known"
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=empty)], row_type=Producer)
    _raise_unseen(failed, "partition")


def partitions_of(client: ClusterClient, topic: str, numbers: Iterable[int] | None) -> list[PartitionState]:
    """A topic's partitions, all or those of the numbers. Raises NotFound."""
    from kctl.base.name_patterns import select
    from kctl.cluster.partition_numbers import no_partition

    known = client.metadata([topic]).topics
    if topic not in known:
        select(client.metadata().topics, exact=[topic])  # says what was meant
    by_number = {state.partition: state for state in known[topic].partitions} if topic in known else {}
    missing = [number for number in numbers or () if number not in by_number]
    if missing or not by_number:
        raise no_partition(topic, missing, len(by_number))
    return [by_number[number] for number in (sorted(set(numbers)) if numbers else sorted(by_number))]


@app.command()
def hanging(
    ctx: typer.Context,
    topic: Annotated[list[str] | None, typer.Option(help="Only of this topic; repeatable.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    partition: Annotated[list[str] | None, PARTITION] = None,
    broker: Annotated[
        int | None,
        typer.Option("--broker", "--broker-id", metavar="ID", help="Only of partitions that this broker leads."),
    ] = None,
    max_transaction_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="The brokers' transaction.max.timeout.ms: none lasts longer.")
    ] = "15m",
) -> None:
    """Find hanging transactions: open in a partition for longer than any may last, and unknown to all coordinators.

    Consumers with read_committed do not get past one. Exit code 1 when there are some; `abort` ends one.

    Example: kctl transaction hanging --max-transaction-timeout 1h
    """
    from datetime import datetime, timezone

    from kctl.base.units import parse_duration_ms
    from kctl.cluster.partition_numbers import parse_each
    from kctl.cluster.rights import may_describe_all_topics
    from kctl.transactions.hanging import Hanging, find_hanging, old_transactions
    from kctl.transactions.producers import describe_producers

    inv = invocation(ctx)
    if partition and not topic and not match:
        raise UsageError("--partition says which partition, not of which topic", hint="add --topic NAME")
    numbers = parse_each(partition)
    limit_ms = parse_duration_ms(max_transaction_timeout)
    with inv.connect() as client:
        wanted = _searched(client, topic or (), match or (), numbers, broker)
        known, failed = describe_producers(client, wanted)
        if failed and len(failed) == len(wanted):
            raise next(iter(failed.values()))
        now = datetime.now(timezone.utc)
        found = find_hanging(client, old_transactions(known, now=now, longer_than_ms=limit_ms), now=now)
        whole = bool(topic or match) or may_describe_all_topics(client) is not False
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
    empty = "no hanging transactions" if whole and not failed else "no hanging transactions in what could be seen"
    inv.emit(found, lambda: [Table(columns, jsonable(found), empty=empty)], row_type=Hanging)
    _raise_unseen(failed, "partition")
    if not whole:
        raise OperationFailed(
            "there may be more: not every topic may be described",
            hint="it needs an ACL for Describe on topic *; --topic TOPIC looks at one",
        )
    if found:
        raise NotHealthy(
            f"{counted(len(found), 'hanging transaction')}",
            hint="kctl transaction abort TOPIC --partition N --start-offset OFFSET ends one",
        )


def _searched(
    client: ClusterClient,
    topics: Sequence[str],
    match: Sequence[str],
    numbers: Sequence[int] | None,
    broker_id: int | None,
) -> list[PartitionState]:
    from kctl.cluster.topics import chosen_states, only_chosen
    from kctl.transactions.listing import STATES_TOPIC

    state = only_chosen(client, topics, match)
    # Only coordinators write to this one, and never in a transaction; few may read it.
    searched = [state.topics[name] for name in sorted(state.topics) if name != STATES_TOPIC or name in topics]
    found = chosen_states(searched, numbers)
    if broker_id is not None and broker_id not in state.brokers:
        known = ", ".join(map(str, sorted(state.brokers)))
        raise NotFound(f"broker {broker_id} is not in the cluster", hint=f"the brokers now: {known}")
    return [partition for partition in found if broker_id is None or partition.leader == broker_id]
