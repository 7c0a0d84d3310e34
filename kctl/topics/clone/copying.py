"""Copying records from one topic to another, partition by partition, with keys, headers and timestamps.

Read with read_committed, so that what transactions aborted stays behind; written idempotently with acks=all, so that
nothing comes twice. Memory is bounded by what is under way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import KctlError, OperationFailed
from kctl.model import TopicPartition
from kctl.records.kafka_python_snappy import prepare_codecs

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_MS = 500
_POLL_RECORDS = 2000
_UNDER_WAY_RECORDS, _UNDER_WAY_BYTES = 20_000, 32 << 20
_FETCH_BYTES = 8 << 20
_BATCH_BYTES = 256 << 10
_LARGEST_REQUEST = 1 << 30  # the broker's max.message.bytes decides
_MAX_SILENCE_S = 60.0


def copy_records(
    client: ClusterClient,
    logs: Mapping[TopicPartition, LogOffsets],
    target: str,
    *,
    compression: str,
    timeout_s: float,
    progress: Callable[[str, float, float], None] | None = None,
) -> tuple[dict[TopicPartition, int], str | None]:
    """How many records of each partition were acknowledged, and why it ended early (None: it did not).

    logs: from where to where. The target has partitions of the same numbers.
    """
    from kafka.errors import KafkaError

    from kctl.protocol.client import error_from

    prepare_codecs()
    copying = _Copying(client, target, compression, timeout_s, total=sum(log.end - log.start for log in logs.values()))
    problem = None
    try:
        for tp, log in sorted(logs.items()):
            copying.partition(tp, log, progress)
    except KafkaError as exc:
        problem = error_from(exc, subject=f"the copy into {target}").message
    except UnicodeDecodeError:  # kafka-python's consumer takes the names of headers for text
        problem = "a record has a header whose name is not UTF-8, which cannot be copied"
    except KctlError as exc:
        problem = exc.message
    finally:
        copying.close()
    return copying.counts, problem


class _Copying:
    """A consumer, a producer, and the records between them."""

    def __init__(self, client: ClusterClient, target: str, compression: str, timeout_s: float, *, total: int) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._total, self._passed = total, 0
        self._under_way: deque[tuple[TopicPartition, int, Any]] = deque()
        self._bytes = 0
        self.counts: dict[TopicPartition, int] = {}
        timeout_ms = int(timeout_s * 1000)
        self._consumer = client.consumer(
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
            max_poll_records=_POLL_RECORDS,
            fetch_max_bytes=_FETCH_BYTES,
            max_partition_fetch_bytes=_FETCH_BYTES,
        )
        self._producer = client.producer(
            acks="all",
            enable_idempotence=True,
            compression_type=None if compression == "none" else compression,
            linger_ms=5,
            batch_size=_BATCH_BYTES,
            max_request_size=_LARGEST_REQUEST,
            max_block_ms=timeout_ms,
            delivery_timeout_ms=max(timeout_ms, 2000) + 5,
            request_timeout_ms=max(timeout_ms // 2, 1000),
            allow_auto_create_topics=False,
        )

    def partition(
        self, tp: TopicPartition, log: LogOffsets, progress: Callable[[str, float, float], None] | None
    ) -> None:
        """Copy one partition, and wait until all of it is acknowledged."""
        from kafka.structs import TopicPartition as KafkaTopicPartition

        self.counts.setdefault(tp, 0)
        if log.start >= log.end:
            return
        source = KafkaTopicPartition(*tp)
        self._consumer.assign([source])
        self._consumer.seek(source, log.start)
        position, heard = log.start, time.monotonic()
        while position < log.end:
            records = self._consumer.poll(timeout_ms=_POLL_MS).get(source, [])
            for record in records:
                if record.offset < log.end:
                    self._send(tp, record)
            before, position = position, self._consumer.position(source) or position
            if position > before:
                heard = time.monotonic()
                self._passed += min(position, log.end) - before
            elif time.monotonic() - heard > _MAX_SILENCE_S:
                raise OperationFailed(f"{tp} cannot be read on at offset {position} of {log.end}")
            if progress:
                progress(f"copying {tp}", self._passed, self._total)
        self._settle(0, 0)

    def _send(self, tp: TopicPartition, record: Any) -> None:
        size = len(record.key or b"") + len(record.value or b"")
        future = self._producer.send(
            self._target,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            partition=tp.partition,
            timestamp_ms=record.timestamp if record.timestamp >= 0 else None,
        )
        self._under_way.append((tp, size, future))
        self._bytes += size
        self._settle(_UNDER_WAY_RECORDS, _UNDER_WAY_BYTES)

    def _settle(self, records: int, size_bytes: int) -> None:
        """Wait until no more than so much is under way. Raises the producer's error of the first that failed."""
        while self._under_way and (len(self._under_way) > records or self._bytes > size_bytes or not records):
            tp, size, future = self._under_way[0]
            future.get(timeout=self._timeout_s * 2)
            self._under_way.popleft()
            self._bytes -= size
            self.counts[tp] += 1

    def close(self) -> None:
        """Without waiting for what is under way: what was not acknowledged is not counted."""
        from contextlib import suppress

        from kafka.errors import KafkaError

        with suppress(KafkaError):
            self._producer.close(timeout=0 if self._under_way else 5)
        with suppress(KafkaError):
            self._consumer.close(autocommit=False)
