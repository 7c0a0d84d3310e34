"""The bytes in which a consumer's assignment travels (ConsumerProtocolAssignment, versions 0–3).

    int16 version
    int32 topics, each:  int16 length, UTF-8 name;  int32 partitions, each int32
    int32 length of user data (not read here)

They come from the group's leader, an arbitrary client: lengths are checked against what is there.
Source: clients/src/main/resources/common/message/ConsumerProtocolAssignment.json, KIP-429.
"""

from __future__ import annotations

import struct

from kctl.model import TopicPartition

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def decode_assignment(data: bytes | None) -> tuple[TopicPartition, ...] | None:
    """The partitions in an assignment, sorted; None when the bytes are not one (other protocols have their own)."""
    if not data:
        return ()
    try:
        return tuple(sorted(_decode(memoryview(data))))
    except (struct.error, ValueError):
        return None


def _decode(data: memoryview) -> list[TopicPartition]:
    position = _INT16.size  # the version: all so far begin alike
    topics, position = _count(data, position, element=_INT16.size + _INT32.size)
    found: list[TopicPartition] = []
    for _ in range(topics):
        length, position = _length(data, position)
        topic = bytes(data[position : position + length]).decode("utf-8")
        partitions, position = _count(data, position + length, element=_INT32.size)
        numbers = struct.unpack_from(f">{partitions}i", data, position)
        position += partitions * _INT32.size
        found += (TopicPartition(topic, number) for number in numbers)
    return found


def _count(data: memoryview, position: int, *, element: int) -> tuple[int, int]:
    """An array's length, at most what the rest of the data can hold; and the position after it."""
    (count,) = _INT32.unpack_from(data, position)
    position += _INT32.size
    if not 0 <= count * element <= len(data) - position:
        raise ValueError("array length out of range")
    return count, position


def _length(data: memoryview, position: int) -> tuple[int, int]:
    (length,) = _INT16.unpack_from(data, position)
    position += _INT16.size
    if not 0 <= length <= len(data) - position:
        raise ValueError("string length out of range")
    return length, position
