"""Decoding a consumer's assignment and subscription; their bytes come from arbitrary clients."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.cluster.groups.assignment import Subscription, decode_assignment, decode_subscription
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


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # version 0: topics b and a, no user data
        ("0000000000020001620001 61ffffffff", Subscription(("a", "b"), None, None)),
        # version 0 with user data of two bytes
        ("00000000000100016100000002beef", Subscription(("a",), None, None)),
        # version 1: owns a-0
        (
            "000100000001000161ffffffff00000001000161 00000001 00000000",
            Subscription(("a",), (TopicPartition("a", 0),), None),
        ),
        # version 3: owns nothing, generation −1, rack r
        ("000300000001000161ffffffff00000000 ffffffff 000172", Subscription(("a",), (), "r")),
        ("000300000001000161ffffffff00000000 ffffffff ffff", Subscription(("a",), (), None)),
    ],
)
def test_subscription(data: str, expected: Subscription) -> None:
    assert decode_subscription(bytes.fromhex(data)) == expected


@pytest.mark.parametrize(
    "data", ["", "0000", "0000ffffffff", "00007fffffff", "000000000000fffffff0", "0003000000000000"]
)
def test_not_a_subscription(data: str) -> None:
    assert decode_subscription(bytes.fromhex(data)) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_subscription_or_not(data: bytes) -> None:
    found = decode_subscription(data)
    assert found is None or isinstance(found, Subscription)
