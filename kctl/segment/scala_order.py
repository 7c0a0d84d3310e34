"""The order in which a scala.collection.mutable.HashSet of TopicPartitions gives its elements (Scala 2.13).

DumpLogSegments prints the partitions of a transaction in it.
"""

from __future__ import annotations

from collections.abc import Iterable

_FIRST_TABLE = 16
_LOAD = 0.75


def mutable_set_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """(topic, partition), each once, as the set would give them after they were added in this order."""
    unique = list(dict.fromkeys(partitions))
    size = _FIRST_TABLE
    while len(unique) + 1 > size * _LOAD:
        size *= 2
    hashed = [(_improved(_topic_partition_hash(*each)), number, each) for number, each in enumerate(unique)]
    # Buckets in order; within one by hash, equal hashes in the order in which they came.
    hashed.sort(key=lambda item: (item[0] & (size - 1), _signed(item[0]), item[1]))
    return [each for _, _, each in hashed]


def _improved(value: int) -> int:
    return value ^ (value >> 16)


def _topic_partition_hash(topic: str, partition: int) -> int:
    return (31 * (31 + (partition & 0xFFFFFFFF)) + string_hash(topic)) & 0xFFFFFFFF


def string_hash(text: str) -> int:
    """String.hashCode over UTF-16 units, as an unsigned number."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def _signed(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value
