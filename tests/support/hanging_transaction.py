"""A transaction that no coordinator knows: a transactional batch, sent without adding its partition first.

Brokers accept it with transaction.partition.verification.enable=false (before KIP-890, all did).
"""

from __future__ import annotations

import time

from kctl.protocol.client import ClusterClient
from kctl_testing import eventually
from segment_files import batch


def hang(client: ClusterClient, topic: str, *, minutes: float) -> tuple[int, int]:
    """Write such a batch to partition 0, dated `minutes` ago. Return the producer id and the first offset."""
    from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

    made = None

    def ready() -> bool:
        """Return True once the broker assigns producer ids (at first COORDINATOR_LOAD_IN_PROGRESS)."""
        nonlocal made
        made = client.send(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
        return not made.error_code

    eventually(ready, what="a producer id")
    assert made is not None
    at_ms = round((time.time() - 60 * minutes) * 1000)
    records = batch(0, 1, producer=(made.producer_id, made.producer_epoch, 0), transactional=True, base_timestamp=at_ms)
    data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id="nobody-knows-me",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[data(name=topic, partition_data=[data.PartitionProduceData(index=0, records=records)])],
        max_version=9,
    )
    leader = client.metadata([topic]).topics[topic].partitions[0].leader
    (row,) = client.send(request, node_id=leader).responses[0].partition_responses
    assert not row.error_code, row
    return made.producer_id, row.base_offset
