"""Produce requests and responses, versions 3 to 8 (0.11 to 2.4 and newer; brokers of 4.x support 3 and up).

    request   nullable string transactional_id | int16 acks | int32 timeout_ms | array of: string topic, array of:
              int32 partition, int32 size, record batch
    response  array of: string topic, array of: int32 partition, int16 error_code, int64 base_offset,
              int64 log_append_time_ms, [v5 int64 log_start_offset], [v8 array of: int32 batch_index, nullable string
              message; nullable string error_message] | int32 throttle_time_ms

The layouts are those of kctl.protocol.wire. Records are sent without copying them into a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kctl.base.binary_layout import INT16, INT32, Layout
from kctl.protocol import wire
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.error_meanings import MAY_BE_APPLIED

LOWEST, HIGHEST = 3, 8
_ZSTD_SINCE = 7
# The fields after the request header, for one topic. The topic's name and its partitions follow.
_REQUEST = Layout(
    transactional_id_length=INT16,  # -1: null
    acks=INT16,
    timeout_ms=INT32,
    topic_count=INT32,
)
_PARTITION = Layout(
    partition=INT32,
    batch_size=INT32,  # bytes of the batch that follows
)
_MOVED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.LISTENER_NOT_FOUND, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID,
    }
)  # fmt: skip
_TRANSIENT = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)  # fmt: skip


class Answer(NamedTuple):
    """The response for one batch.

    message: the broker's reason for rejecting it. base_offset: -1 if the batch was not appended; an error after the
    append (DelayedProduce) has the offset.
    """

    partition: int
    error_code: int
    message: str | None
    base_offset: int = -1

    @property
    def in_log(self) -> bool:
        """Return True if the batch was written, now or by an earlier attempt."""
        return self.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    @property
    def out_of_sequence(self) -> bool:
        """Return True if an earlier batch is missing from the log."""
        return self.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @property
    def perhaps_in_log(self) -> bool:
        """Return True if the leader has the batch, or may have it on disk."""
        return self.error_code in MAY_BE_APPLIED or self.base_offset >= 0

    @property
    def leader_moved(self) -> bool:
        """Return True if the batch can be retried after a lookup of the leader."""
        return self.error_code in _MOVED

    @property
    def transient(self) -> bool:
        """Return True if the batch can be retried after a pause."""
        return self.error_code in _TRANSIENT


def version_for(versions: tuple[int, int] | None, codec: str) -> int | None:
    """Return the version to use with a broker that supports this range; None if there is none."""
    if versions is None:
        return None
    version = min(HIGHEST, versions[1])
    lowest = max(LOWEST if codec != "zstd" else _ZSTD_SINCE, versions[0])
    return version if version >= lowest else None


def encode(
    version: int,
    correlation_id: int,
    topic: str,
    acks: int,
    timeout_ms: int,
    batches: Sequence[tuple[int, bytes, bytes]],
) -> list[bytes]:
    """Return a complete request in pieces. batches: partition, header, records; at most one per partition."""
    head = wire.request_header(ApiKey.PRODUCE, version, correlation_id)
    head += _REQUEST.pack(-1, acks, timeout_ms, 1) + wire.string(topic) + INT32.pack(len(batches))
    pieces = [head]
    for partition, header, records in batches:
        pieces.append(_PARTITION.pack(partition, len(header) + len(records)) + header)
        pieces.append(records)
    return [INT32.pack(sum(map(len, pieces))), *pieces]


def decode(data: bytes, version: int) -> tuple[list[Answer], int]:
    """Return the response for each batch, and throttle_time_ms. Raises kctl.protocol.wire.WireError."""
    reader = wire.Reader(data)
    answers = []
    for _ in range(reader.int32()):
        reader.string()
        for _ in range(reader.int32()):
            partition, code, base_offset = reader.int32(), reader.int16(), reader.int64()
            reader.int64()  # log_append_time_ms
            if version >= 5:
                reader.int64()  # log_start_offset
            messages: list[str] = []
            if version >= 8:
                for _ in range(reader.int32()):
                    reader.int32()
                    messages.append(reader.string())
                messages.insert(0, reader.string())
            answers.append(Answer(partition, code, next(filter(None, messages), None), base_offset))
    return answers, reader.int32()
