"""Wire format of a classic consumer's assignment and subscription, versions 0–3.

    ConsumerProtocolAssignment                              ConsumerProtocolSubscription

    int16 version                                           int16 version
    int32 topics, each:                                     int32 topics, each:  int16 length, UTF-8 name
      int16 length, UTF-8 name;  int32 partitions, each     int32 length of user data (-1: none), user data
      int32                                                 from 1: owned partitions, encoded as in an assignment
    int32 length of user data (not read here)               from 2: int32 generation
                                                            from 3: int16 length (-1: none), rack

The bytes come from arbitrary clients, so lengths are checked against the data.
Source: clients/src/main/resources/common/message/ConsumerProtocol{Assignment,Subscription}.json, KIP-429, KIP-792,
KIP-881.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kctl.base.binary_layout import INT16, INT32, array_of
from kctl.model import TopicPartition

_OWNED_SINCE, _RACK_SINCE = 1, 3


def decode_assignment(data: bytes | None) -> tuple[TopicPartition, ...] | None:
    """Return the partitions in an assignment, sorted; None if the bytes are in another protocol's format."""
    if not data:
        return ()
    try:
        return tuple(sorted(_decode(memoryview(data))))
    except (struct.error, ValueError):
        return None


def _decode(data: memoryview) -> list[TopicPartition]:
    partitions, _ = _partitions(data, INT16.size)  # skip the version: all versions begin the same
    return partitions


def _partitions(data: memoryview, position: int) -> tuple[list[TopicPartition], int]:
    topics, position = _count(data, position, element=INT16.size + INT32.size)
    partitions: list[TopicPartition] = []
    for _ in range(topics):
        topic, position = _text(data, position)
        partition_count, position = _count(data, position, element=INT32.size)
        numbers = array_of(INT32, partition_count).unpack_from(data, position)
        position += partition_count * INT32.size
        partitions += (TopicPartition(topic, number) for number in numbers)
    return partitions, position


class Subscription(NamedTuple):
    """A consumer's subscription when it joined. owned: None if the version has no such field."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] | None
    rack: str | None


def decode_subscription(data: bytes | None) -> Subscription | None:
    """Return the subscription in a member's metadata; None if the bytes are not a consumer's."""
    try:
        return _subscription(memoryview(data or b""))
    except (struct.error, ValueError):
        return None


def _subscription(data: memoryview) -> Subscription:
    (version,) = INT16.unpack_from(data, 0)
    count, position = _count(data, INT16.size, element=INT16.size)
    topics = []
    for _ in range(count):
        topic, position = _text(data, position)
        topics.append(topic)
    position = _after_user_data(data, position)
    owned: tuple[TopicPartition, ...] | None = None
    rack: str | None = None
    if version >= _OWNED_SINCE:
        partitions, position = _partitions(data, position)
        owned = tuple(sorted(partitions))
    if version >= _RACK_SINCE:
        position += INT32.size  # the generation
        (length,) = INT16.unpack_from(data, position)
        rack = None if length < 0 else _text(data, position)[0]
    return Subscription(tuple(sorted(topics)), owned, rack)


def _after_user_data(data: memoryview, position: int) -> int:
    length: int
    (length,) = INT32.unpack_from(data, position)
    position += INT32.size
    if not -1 <= length <= len(data) - position:
        raise ValueError("user data out of range")
    return position + max(length, 0)


def _count(data: memoryview, position: int, *, element: int) -> tuple[int, int]:
    """Return an array's length, checked against the rest of the data, and the position after the length."""
    (count,) = INT32.unpack_from(data, position)
    position += INT32.size
    if not 0 <= count * element <= len(data) - position:
        raise ValueError("array length out of range")
    return count, position


def _text(data: memoryview, position: int) -> tuple[str, int]:
    (length,) = INT16.unpack_from(data, position)
    position += INT16.size
    if not 0 <= length <= len(data) - position:
        raise ValueError("string length out of range")
    return bytes(data[position : position + length]).decode("utf-8"), position + length
