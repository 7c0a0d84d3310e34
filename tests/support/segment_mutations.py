"""Damage to log files, drawn by hypothesis: cuts, flipped bits, zeros, garbage, absurd lengths and counts.

A mutation is a tuple of plain numbers, so that a failing input shrinks to the few bytes that matter.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c
from hypothesis import strategies as st

# Header fields: (offset in the batch, width).
_V2_FIELDS = ((0, 8), (8, 4), (12, 4), (16, 1), (17, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4),
              (57, 4), (61, 1), (62, 4))  # fmt: skip
_FORMATS = {1: "b", 2: ">h", 4: ">i", 8: ">q"}
_ABSURD = (-5, -1, 0, 1, 5, 14, 60, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_DRAWN = struct.Struct(">BBHH")
KINDS = ("cut", "flip", "zeros", "garbage", "field", "number", "insert", "remove", "repeat")


class Mutation(NamedTuple):
    """A mutation. where: modulo the file's size; size: number of bytes; value: of a field, or a seed for garbage."""

    kind: str
    where: int
    size: int
    value: int


def mutations() -> st.SearchStrategy[list[Mutation]]:
    """Draw one to three mutations, as bytes at once: a strategy for each number would take most of the time."""
    return st.binary(min_size=_DRAWN.size, max_size=3 * _DRAWN.size).map(_mutations)


def _mutations(drawn: bytes) -> list[Mutation]:
    whole = len(drawn) // _DRAWN.size * _DRAWN.size
    return [
        Mutation(KINDS[kind % len(KINDS)], where, 1 + size % 64, value)
        for kind, size, where, value in _DRAWN.iter_unpack(drawn[:whole])
    ]


def apply(data: bytes, changes: Sequence[Mutation], starts: Sequence[int]) -> bytes:
    """Return `data` after all mutations. starts: positions of batches, whose fields are changed."""
    for change in changes:
        if data:
            data = _apply(data, change, starts)
    return data


def _apply(data: bytes, change: Mutation, starts: Sequence[int]) -> bytes:
    kind, size, value = change.kind, change.size, change.value
    at = change.where % len(data)
    if kind == "cut":
        return data[:at]
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ 1 << value % 8]) + data[at + 1 :]
    if kind == "insert":
        return data[:at] + _garbage(size, value) + data[at:]
    if kind == "remove":
        return data[:at] + data[at + size :]
    if kind == "repeat":
        return data[:at] + data[at : at + size * 8] * 2 + data[at + size * 8 :]
    if kind == "field" and starts:
        start, (offset, width) = starts[change.where % len(starts)], _V2_FIELDS[value % len(_V2_FIELDS)]
        return _put(data, start + offset, width, _absurd(value // len(_V2_FIELDS), width))
    if kind == "number":
        width = (1, 2, 4, 8)[value % 4]
        return _put(data, at, width, _absurd(value // 4, width))
    return _over(data, at, bytes(size) if kind == "zeros" else _garbage(size, value))


def _absurd(number: int, width: int) -> bytes:
    value = _ABSURD[number % len(_ABSURD)] if number % 3 else number
    bits = width * 8
    wrapped = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    return struct.pack(_FORMATS[width], wrapped)


def _put(data: bytes, at: int, width: int, new: bytes) -> bytes:
    return data if at + width > len(data) else _over(data, at, new)


def _over(data: bytes, at: int, new: bytes) -> bytes:
    return (data[:at] + new + data[at + len(new) :])[: len(data)]


def _garbage(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def with_right_crcs(data: bytes, starts: Sequence[int]) -> bytes:
    """Return `data` with correct CRCs of the batches at `starts` that are complete by their headers."""
    made = bytearray(data)
    for start in starts:
        if start + 61 > len(made):
            continue
        (length,) = struct.unpack_from(">i", made, start + 8)
        end = start + 12 + length
        if length < 14 or end > len(made):
            continue
        if made[start + 16] in {0, 1}:
            struct.pack_into(">I", made, start + 12, zlib.crc32(made[start + 16 : end]))
        elif length >= 49:
            struct.pack_into(">I", made, start + 17, crc32c(bytes(made[start + 21 : end])))
    return bytes(made)
