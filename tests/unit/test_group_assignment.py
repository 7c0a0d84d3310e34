"""Decoding a consumer's assignment; its bytes come from an arbitrary client."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.groups.assignment import decode_assignment
from kctl.model import TopicPartition


def _encode(topics: dict[str, list[int]], version: int = 0, user_data: bytes | None = None) -> bytes:
    body = struct.pack(">hi", version, len(topics))
    for name, partitions in topics.items():
        raw = name.encode()
        body += struct.pack(">h", len(raw)) + raw + struct.pack(">i", len(partitions))
        body += b"".join(struct.pack(">i", number) for number in partitions)
    return body + (struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ()),
        (None, ()),
        (_encode({}), ()),
        (_encode({"b": [1, 0], "a": [2]}), (("a", 2), ("b", 0), ("b", 1))),
        (_encode({"a": []}, version=3, user_data=b"x"), ()),
        (_encode({"ü": [7]}, version=1), (("ü", 7),)),
        # version 3, written out by hand
        (bytes.fromhex("000300000001000161000000020000000000000001ffffffff"), (("a", 0), ("a", 1))),
    ],
)
def test_decoded(data: bytes | None, expected: tuple[tuple[str, int], ...]) -> None:
    assert decode_assignment(data) == tuple(TopicPartition(*tp) for tp in expected)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        struct.pack(">hi", 0, 1),
        struct.pack(">hi", 0, -5),
        struct.pack(">hi", 0, 2**31 - 1),
        struct.pack(">hih", 0, 1, -1) + b"\x00" * 8,
        struct.pack(">hih", 0, 1, 32767) + b"\x00" * 8,
        struct.pack(">hih", 0, 1, 1) + b"a" + struct.pack(">i", 2**31 - 1),
        struct.pack(">hih", 0, 1, 2) + b"\xff\xfe" + struct.pack(">ii", 1, 0),
        b"{'connect': 'worker'}",
    ],
)
def test_not_an_assignment(data: bytes) -> None:
    assert decode_assignment(data) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_an_assignment_or_not(data: bytes) -> None:
    found = decode_assignment(data)
    assert found is None or all(isinstance(tp, TopicPartition) for tp in found)


@given(st.dictionaries(st.text("abc._-", min_size=1, max_size=9), st.lists(st.integers(0, 2**31 - 1), max_size=9)))
def test_round_trip(topics: dict[str, list[int]]) -> None:
    expected = sorted(TopicPartition(name, number) for name, numbers in topics.items() for number in numbers)
    assert decode_assignment(_encode(topics)) == tuple(expected)
