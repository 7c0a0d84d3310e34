"""Transactions that are open in a partition and that no coordinator will ever end (KIP-664).

Consumers with read_committed do not get past one, and compaction stops at it. The rule is that of kafka-transactions
find-hanging: of the transactions that have been open in a partition for longer than any may last, those of which no
coordinator says that they are open there.
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
from kctl.transactions.producers import Producer, describe_producers

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True)
class Hanging:
    """last_timestamp: of its last batch; duration_ms: since then; both null for a batch without a time.
    transactional_id: null where no coordinator knows the producer id any more. coordinator_epoch: as Producer has it.
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


def old_transactions(producers: Iterable[Producer], *, now: datetime, longer_than_ms: int) -> list[Producer]:
    """Producers with a transaction whose last batch is older than that, or has no time (TransactionsCommand)."""
    limit = now - timedelta(milliseconds=longer_than_ms)
    return [
        producer
        for producer in producers
        if producer.current_transaction_start_offset is not None
        and (producer.last_timestamp is None or producer.last_timestamp < limit)
    ]


def find_hanging(client: ClusterClient, old: Sequence[Producer], *, now: datetime) -> list[Hanging]:
    """Those of `old` of which no coordinator says that they are open.

    None is called hanging on the word of a part of the coordinators, or of a part of their transactional ids: raises
    OperationFailed, NotAuthorized.
    """
    if not old:
        return []
    listed, failed = list_transactions(client, producer_ids={producer.producer_id for producer in old})
    if failed:
        error = next(iter(failed.values()))
        kind = NotAuthorized if isinstance(error, NotAuthorized) else OperationFailed
        raise kind(f"whether transactions hang cannot be told: {error.message}", hint=error.hint)
    known = {row.producer_id for row in listed}
    if any(producer.producer_id not in known for producer in old) and not all_can_be_listed(client):
        raise NotAuthorized(
            "whether transactions hang cannot be told: not every transactional id may be described", hint=NEEDS_ALL
        )
    described = describe_transactions(client, [row.transactional_id for row in listed])
    found = map_hanging(old, listed, described, now=now)
    return still_open(found, _producers_now(client, found)) if found else []


def _producers_now(client: ClusterClient, found: Sequence[Hanging]) -> tuple[list[Producer], set[TopicPartition]]:
    wanted = {row.tp for row in found}
    topics = client.metadata(sorted({row.topic for row in found})).topics.values()
    partitions = [state for topic in topics for state in topic.partitions if state.tp in wanted]
    producers, failed = describe_producers(client, partitions)
    return producers, {state.tp for state in partitions} - failed.keys()


def still_open(found: Iterable[Hanging], now: tuple[Iterable[Producer], Collection[TopicPartition]]) -> list[Hanging]:
    """Without those that ended while coordinators were asked: theirs had nothing to say of them any more.

    now: producers, and the partitions that they are of; of others nothing new is known.
    """
    producers, seen = now
    open_ = {(producer.tp, producer.producer_id, producer.current_transaction_start_offset) for producer in producers}
    return [row for row in found if row.tp not in seen or (row.tp, row.producer_id, row.start_offset) in open_]


def map_hanging(
    old: Sequence[Producer],
    listed: Iterable[TransactionListing],
    described: Mapping[str, Transaction | KctlError],
    *,
    now: datetime,
) -> list[Hanging]:
    """The rule alone. A coordinator that knows the producer but could not describe it leaves it undecided: raises."""
    by_producer = {row.producer_id: row.transactional_id for row in listed}
    found = []
    for producer in old:
        name = by_producer.get(producer.producer_id)
        state = described.get(name) if name is not None else None
        if isinstance(state, KctlError):
            raise state
        if state is not None and holds(state, producer):
            continue
        assert producer.current_transaction_start_offset is not None
        last = producer.last_timestamp
        found.append(
            Hanging(
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
    return found


def holds(state: Transaction, producer: Producer) -> bool:
    """Whether a coordinator will end this producer's transaction in the partition."""
    return (
        state.producer_id == producer.producer_id
        and state.state in _OPEN
        and str(producer.tp) in state.topic_partitions
    )
