"""Fetch, as a consumer sends it: batches as they lie in the log, markers included.

KIP-227 without a session; up to version 12, where topics still go by name. Needs an ACL for Read on the topics.
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
    patience_ms: int = 0,
    read_committed: bool = False,
) -> object:
    """Ask for the batches from each partition's offset on; with read_committed up to the last stable offset.

    A broker may answer with less than there is: of the first partition at least a batch, whatever its size, of others
    none that is larger than what was asked for.
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
        max_wait_ms=patience_ms,
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
    """The answer by partition: batches, the last of which may be cut off, or why there are none.

    Raises what the code of the whole answer stands for.
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
