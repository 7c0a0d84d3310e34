"""Reproduce the iteration order of hash tables: of scala.collection.mutable (Scala 2.13), and of java.util.HashMap.

DumpLogSegments prints the partitions of a transaction, and the files with mismatches, in this order: in Scala's up to
3.9, in Java's in Kafka 4.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

_Element = TypeVar("_Element", bound=Hashable)

_FIRST_TABLE = 16
_LOAD = 0.75


def mutable_set_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return distinct (topic, partition) in the order of a HashSet to which they were added in this order."""
    unique = list(dict.fromkeys(partitions))
    return _in_buckets(unique, [_topic_partition_hash(*each) for each in unique], len(unique))


def mutable_map_order(names: Sequence[str], *, put_again: bool = False) -> list[str]:
    """Return distinct keys in the order of a HashMap into which they were put in this order.

    put_again: the last key was put twice, which grows the table like a new key.
    """
    return _in_buckets(names, [string_hash(name) for name in names], len(names) + put_again)


def java_map_order(names: Sequence[str]) -> list[str]:
    """Return distinct keys in the order of a java.util.HashMap into which they were put in this order.

    Buckets with eight keys, which Java turns into trees, keep the order in nearly all cases.
    """
    size = _FIRST_TABLE
    while len(names) > size * _LOAD:
        size *= 2
    return sorted(names, key=lambda name: _improved(string_hash(name)) & (size - 1))


def _in_buckets(elements: Sequence[_Element], hashes: Sequence[int], puts: int) -> list[_Element]:
    size = _FIRST_TABLE
    while puts + 1 > size * _LOAD:
        size *= 2
    hashed = [(_improved(value), number) for number, value in enumerate(hashes)]
    # Buckets in order; within a bucket by hash; equal hashes in insertion order.
    hashed.sort(key=lambda item: (item[0] & (size - 1), _signed(item[0]), item[1]))
    return [elements[number] for _, number in hashed]


def _improved(value: int) -> int:
    return value ^ (value >> 16)


def _topic_partition_hash(topic: str, partition: int) -> int:
    return (31 * (31 + (partition & 0xFFFFFFFF)) + string_hash(topic)) & 0xFFFFFFFF


def string_hash(text: str) -> int:
    """Return String.hashCode (over UTF-16 code units) as an unsigned number."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def _signed(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value
