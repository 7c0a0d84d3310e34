"""Hanging transactions: open in a partition, but no coordinator will ever end them (KIP-664).

read_committed consumers cannot read past one, and compaction stops at it. The rule is that of kafka-transactions
find-hanging: a transaction is hanging if it has been open for longer than the maximum timeout, and no coordinator
reports it as open in this partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotAuthorized, OperationFailed
from kctl.model import TopicPartition
from kctl.transactions.listing import (
    NEEDS_ALL,
    Transaction,
    TransactionListing,
    all_can_be_listed,
    describe_transactions,
    list_transactions,
)
from kctl.transactions.producers import ProducerState, describe_producers

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True)
class HangingTransaction:
    """A hanging transaction.

    last_timestamp: of its last batch; duration_ms: since then; null for a batch without a timestamp. transactional_id:
    null if no coordinator knows the producer id. coordinator_epoch: see ProducerState.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp: datetime | None
    duration_ms: int | None
    transactional_id: str | None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def old_transactions(producers: Iterable[ProducerState], *, now: datetime, longer_than_ms: int) -> list[ProducerState]:
    """Return producers whose open transaction has no batch newer than the limit (TransactionsCommand).

    A last batch without a timestamp counts as old.
    """
    limit = now - timedelta(milliseconds=longer_than_ms)
    return [
        producer
        for producer in producers
        if producer.current_transaction_start_offset is not None
        and (producer.last_timestamp is None or producer.last_timestamp < limit)
    ]


def find_hanging(client: ClusterClient, old: Sequence[ProducerState], *, now: datetime) -> list[HangingTransaction]:
    """Return the transactions that no coordinator reports as open.

    Raises OperationFailed or NotAuthorized if any coordinator or transactional id is unreadable: the result would be
    wrong.
    """
    if not old:
        return []
    listed, failed = list_transactions(client, producer_ids={producer.producer_id for producer in old})
    if failed:
        error = next(iter(failed.values()))
        kind = NotAuthorized if isinstance(error, NotAuthorized) else OperationFailed
        raise kind(f"hanging transactions cannot be determined: {error.message}", hint=error.hint)
    known_ids = {row.producer_id for row in listed}
    if any(producer.producer_id not in known_ids for producer in old) and not all_can_be_listed(client):
        raise NotAuthorized(
            "hanging transactions cannot be determined: you may not describe every transactional id", hint=NEEDS_ALL
        )
    described = describe_transactions(client, [row.transactional_id for row in listed])
    hanging = map_hanging(old, listed, described, now=now)
    return still_open(hanging, _producers_now(client, hanging)) if hanging else []


def _producers_now(
    client: ClusterClient, hanging: Sequence[HangingTransaction]
) -> tuple[list[ProducerState], set[TopicPartition]]:
    partition_keys = {row.tp for row in hanging}
    topics = client.metadata(sorted({row.topic for row in hanging})).topics.values()
    partitions = [state for topic in topics for state in topic.partitions if state.tp in partition_keys]
    producers, failed = describe_producers(client, partitions)
    return producers, {state.tp for state in partitions} - failed.keys()


def still_open(
    hanging: Iterable[HangingTransaction], now: tuple[Iterable[ProducerState], Collection[TopicPartition]]
) -> list[HangingTransaction]:
    """Return the transactions that are still open: some may have ended while coordinators were queried.

    now: current producers, and the partitions that were read again. Transactions in other partitions are kept.
    """
    producers, partitions = now
    open_ = {(producer.tp, producer.producer_id, producer.current_transaction_start_offset) for producer in producers}
    return [row for row in hanging if row.tp not in partitions or (row.tp, row.producer_id, row.start_offset) in open_]


def map_hanging(
    old: Sequence[ProducerState],
    listed: Iterable[TransactionListing],
    described: Mapping[str, Transaction | KctlError],
    *,
    now: datetime,
) -> list[HangingTransaction]:
    """Return the hanging transactions, according to the rule.

    Raises the error of a coordinator that knows the producer but could not describe it.
    """
    by_producer = {row.producer_id: row.transactional_id for row in listed}
    hanging = []
    for producer in old:
        name = by_producer.get(producer.producer_id)
        state = described.get(name) if name is not None else None
        if isinstance(state, KctlError):
            raise state
        if state is not None and will_end(state, producer):
            continue
        assert producer.current_transaction_start_offset is not None
        last = producer.last_timestamp
        hanging.append(
            HangingTransaction(
                producer.topic,
                producer.partition,
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.current_transaction_start_offset,
                last,
                round((now - last).total_seconds() * 1000) if last is not None else None,
                name,
            )
        )
    return hanging


def will_end(state: Transaction, producer: ProducerState) -> bool:
    """Return True if the coordinator will end this producer's transaction in the partition."""
    return (
        state.producer_id == producer.producer_id
        and state.state in _OPEN
        and str(producer.tp) in state.topic_partitions
    )
