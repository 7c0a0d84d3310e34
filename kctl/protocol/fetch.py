"""Fetch requests as a consumer sends them: they return batches as stored in the log, markers included.

Without a fetch session (KIP-227), up to version 12, the last one with topic names. Requires Read on the topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kctl.errors import KctlError
from kctl.model import TopicPartition


def fetch_request(
    offsets: Mapping[TopicPartition, int],
    *,
    partition_bytes: int,
    max_bytes: int,
    max_wait_ms: int = 0,
    read_committed: bool = False,
) -> object:
    """Return a request for batches from each partition's offset on; read_committed: up to the last stable offset.

    A broker may return less than it has: at least one batch of the first partition, whatever its size, and no batch
    of other partitions above the requested size.
    """
    from kafka.protocol.consumer import FetchRequest

    topic_class = FetchRequest.FetchTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            topic_class.FetchPartition(
                partition=number,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=partition_bytes,
            )
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        session_id=0,
        session_epoch=-1,
        topics=[topic_class(topic=name, partitions=rows) for name, rows in by_topic.items()],
        forgotten_topics_data=[],
        rack_id="",
        min_version=4,  # batches of magic 2
        max_version=12,
    )


def fetched(response: Any) -> Iterator[tuple[TopicPartition, bytes | KctlError]]:
    """Return the response by partition: batches, of which the last may be incomplete, or an error.

    Raises the error of the whole response.
    """
    from kctl.protocol.client import error_for

    if getattr(response, "error_code", 0):
        raise error_for(response.error_code, None, subject="Fetch")
    for topic in response.responses:
        for row in topic.partitions:
            tp = TopicPartition(topic.topic, row.partition_index)
            if row.error_code:
                yield tp, error_for(row.error_code, None, subject=f"partition {tp}")
            else:
                yield tp, bytes(row.records or b"")
