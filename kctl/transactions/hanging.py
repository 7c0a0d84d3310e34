"""Transactions that are open in a partition and that no coordinator will ever end (KIP-664).

Consumers with read_committed do not get past one, and compaction stops at it. The rule is that of kafka-transactions
find-hanging: of the transactions that have been open in a partition for longer than any may last, those of which no
coordinator says that they are open there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kctl.errors import KctlError, OperationFailed
from kctl.model import TopicPartition
from kctl.transactions.listing import Transaction, TransactionListing, describe_transactions, list_transactions
from kctl.transactions.producers import Producer

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True)
class Hanging:
    """last_timestamp: of its last batch; duration_ms: since then. transactional_id: null where no coordinator knows the
    producer id any more. coordinator_epoch: as Producer has it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp: datetime
    duration_ms: int
    transactional_id: str | None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def old_transactions(producers: Iterable[Producer], *, now: datetime, longer_than_ms: int) -> list[Producer]:
    """Producers with a transaction whose last batch is older than that."""
    limit = now - timedelta(milliseconds=longer_than_ms)
    return [
        producer
        for producer in producers
        if producer.current_transaction_start_offset is not None
        and producer.last_timestamp is not None
        and producer.last_timestamp < limit
    ]


def find_hanging(client: ClusterClient, old: Sequence[Producer], *, now: datetime) -> list[Hanging]:
    """Those of `old` of which no coordinator says that they are open. None is called hanging on the word of a part of
    the coordinators: raises the error of one that could not be asked."""
    if not old:
        return []
    listed, failed = list_transactions(client, producer_ids={producer.producer_id for producer in old})
    if failed:
        node, error = next(iter(failed.items()))
        raise OperationFailed(
            f"whether transactions hang cannot be told: broker {node} could not be asked: {error.message}",
            hint=error.hint,
        )
    described = describe_transactions(client, [row.transactional_id for row in listed])
    return map_hanging(old, listed, described, now=now)


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
        assert producer.last_timestamp is not None
        found.append(
            Hanging(
                producer.topic,
                producer.partition,
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.current_transaction_start_offset,
                producer.last_timestamp,
                round((now - producer.last_timestamp).total_seconds() * 1000),
                name,
            )
        )
    return found


def holds(state: Transaction, producer: Producer) -> bool:
    """Whether a coordinator will end this producer's transaction in the partition."""
    return (
        state.producer_id == producer.producer_id
        and state.transaction_state in _OPEN
        and str(producer.tp) in state.partitions
    )
