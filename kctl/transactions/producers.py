"""The producers of partitions, as their leaders report them: DescribeProducers (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, KctlError, NotSupported
from kctl.model import PartitionState, TopicPartition
from kctl.protocol.partition_requests import numbers_by_topic
from kctl.transactions.listing import broker_time

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_REQUEST = 2000  # partitions; a response has up to hundreds of producers for each


@dataclass(frozen=True)
class ProducerState:
    """A producer of a partition.

    last_sequence, last_timestamp: of its last batch. coordinator_epoch: of the last marker that ended one of its
    transactions; null if there is none. current_transaction_start_offset: null if no transaction is open.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp: datetime | None
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def describe_producers(
    client: ClusterClient, partitions: Iterable[PartitionState], *, broker_id: int | None = None
) -> tuple[list[ProducerState], dict[TopicPartition, KctlError]]:
    """Return the producers of partitions, in order, and the error of each unreadable partition.

    Sends one request to each leader, or several in rounds if it leads more than 2,000 partitions. broker_id: query this
    replica instead of the leaders. Raises NotSupported.
    """
    states = list(partitions)
    failed: dict[TopicPartition, KctlError] = {}
    by_node: dict[int, list[TopicPartition]] = {}
    for partition in states:
        node = partition.leader if broker_id is None else broker_id
        if node < 0:
            failed[partition.tp] = ConnectionFailed(
                f"{partition.tp} has no leader", hint="check the partition with `kctl topic describe`"
            )
        else:
            by_node.setdefault(node, []).append(partition.tp)
    producers: dict[TopicPartition, list[ProducerState]] = {}
    rounds = max((len(tps) for tps in by_node.values()), default=0)
    for start in range(0, rounds, _PER_REQUEST):
        requested = {node: tps[start : start + _PER_REQUEST] for node, tps in by_node.items() if tps[start:]}
        responses = client.send_each({node: _request(tps) for node, tps in requested.items()})
        _collect(requested, responses, producers, failed)
    return [producer for partition in states for producer in producers.get(partition.tp, ())], failed


def _request(tps: Sequence[TopicPartition]) -> Any:
    from kafka.protocol.admin import DescribeProducersRequest

    topic = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(
        topics=[topic(name=name, partition_indexes=numbers) for name, numbers in numbers_by_topic(tps).items()]
    )


def _collect(
    requested: Mapping[int, Sequence[TopicPartition]],
    responses: Mapping[int, Any],
    producers: dict[TopicPartition, list[ProducerState]],
    failed: dict[TopicPartition, KctlError],
) -> None:
    from kctl.protocol.client import error_for

    for node, tps in requested.items():
        response = responses[node]
        if isinstance(response, NotSupported):
            raise response
        if isinstance(response, KctlError):
            failed.update(dict.fromkeys(tps, response))
            continue
        rows = {
            TopicPartition(topic.name, row.partition_index): row
            for topic in response.topics
            for row in topic.partitions
        }
        for tp in tps:
            row = rows.get(tp)
            if row is None:
                failed[tp] = ConnectionFailed(f"the response of broker {node} does not contain {tp}")
            elif row.error_code:
                failed[tp] = error_for(row.error_code, row.error_message, subject=f"producers of {tp}")
            else:
                producers[tp] = [_producer(tp, each) for each in row.active_producers]


def _producer(tp: TopicPartition, row: Any) -> ProducerState:
    return ProducerState(
        topic=tp.topic,
        partition=tp.partition,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        last_sequence=row.last_sequence if row.last_sequence >= 0 else None,
        last_timestamp=broker_time(row.last_timestamp),
        coordinator_epoch=row.coordinator_epoch if row.coordinator_epoch >= 0 else None,
        current_transaction_start_offset=row.current_txn_start_offset if row.current_txn_start_offset >= 0 else None,
    )
