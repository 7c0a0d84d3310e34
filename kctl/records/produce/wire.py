"""Produce requests and their answers, versions 3 to 8 (0.11 to 2.4 and newer; brokers of 4.x take 3 and up).

    request   nullable string transactional_id | int16 acks | int32 timeout_ms | array of: string topic, array of:
              int32 partition, int32 size, record batch
    response  array of: string topic, array of: int32 partition, int16 error_code, int64 base_offset,
              int64 log_append_time_ms, [v5 int64 log_start_offset], [v8 array of: int32 batch_index, nullable string
              message; nullable string error_message] | int32 throttle_time_ms

The layouts are those of kctl.protocol.wire; records are not copied into a request, but sent as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kctl.protocol import wire

PRODUCE = 0
LOWEST, HIGHEST = 3, 8
_ZSTD_SINCE = 7
_HEADER = struct.Struct(">hhih")
_INT32 = struct.Struct(">i")
# org.apache.kafka.common.protocol.Errors
_OUT_OF_ORDER_SEQUENCE, _DUPLICATE_SEQUENCE = 45, 46
_STORAGE_ERROR = 56
_MOVED = frozenset({3, 5, 6, 8, 9, 13, _STORAGE_ERROR, 72, 74, 75, 80, 100})
_PASSING = frozenset({2, 7, 14, 19, 20, 89})
# Whatever offset they come with: the leader has it (7, 20), or its disk may.
_PERHAPS_IN_LOG = frozenset({-1, 7, 20, _STORAGE_ERROR})


class Answer(NamedTuple):
    """What became of one batch. message: why the broker refused it, in its words. base_offset: −1 when it did not get
    as far as the log; with an error behind the append (DelayedProduce) the offset stays."""

    partition: int
    error_code: int
    message: str | None
    base_offset: int = -1

    @property
    def in_log(self) -> bool:
        """Now, or since it was sent before."""
        return self.error_code in (0, _DUPLICATE_SEQUENCE)

    @property
    def out_of_sequence(self) -> bool:
        """A batch that was sent before it is not in the log."""
        return self.error_code == _OUT_OF_ORDER_SEQUENCE

    @property
    def perhaps_in_log(self) -> bool:
        return self.error_code in _PERHAPS_IN_LOG or self.base_offset >= 0

    @property
    def leader_moved(self) -> bool:
        """It can be sent again, to the leader that metadata names then."""
        return self.error_code in _MOVED

    @property
    def passes(self) -> bool:
        """It can be sent again after a while."""
        return self.error_code in _PASSING


def version_for(versions: tuple[int, int] | None, codec: str) -> int | None:
    """The version to speak with a broker that has these; None when there is none."""
    if versions is None:
        return None
    version = min(HIGHEST, versions[1])
    least = max(LOWEST if codec != "zstd" else _ZSTD_SINCE, versions[0])
    return version if version >= least else None


def encode(
    version: int,
    correlation_id: int,
    topic: str,
    acks: int,
    timeout_ms: int,
    batches: Sequence[tuple[int, bytes, bytes]],
) -> list[bytes]:
    """A whole request in pieces. batches: (partition, header, records), at most one of each partition."""
    client = wire.CLIENT_ID.encode()
    head = _HEADER.pack(PRODUCE, version, correlation_id, len(client)) + client
    head += struct.pack(">hhii", -1, acks, timeout_ms, 1) + wire.string(topic) + _INT32.pack(len(batches))
    pieces = [head]
    for partition, header, records in batches:
        pieces.append(struct.pack(">ii", partition, len(header) + len(records)) + header)
        pieces.append(records)
    return [_INT32.pack(sum(map(len, pieces))), *pieces]


def decode(data: bytes, version: int) -> tuple[list[Answer], int]:
    """The answers in a response's body, and throttle_time_ms. Raises kctl.protocol.wire.WireError."""
    reader = wire.Reader(data)
    answers = []
    for _ in range(reader.int32()):
        reader.string()
        for _ in range(reader.int32()):
            partition, code = reader.int32(), reader.int16()
            base_offset = int.from_bytes(reader.take(8), "big", signed=True)
            reader.take(8 if version < 5 else 16)
            said: list[str] = []
            if version >= 8:
                for _ in range(reader.int32()):
                    reader.int32()
                    said.append(reader.string())
                said.insert(0, reader.string())
            answers.append(Answer(partition, code, next(filter(None, said), None), base_offset))
    return answers, reader.int32()
