"""Topic names as org.apache.kafka.common.internals.Topic checks them, and the options of `topic create`."""

from __future__ import annotations

import pytest

from kctl.cluster.topic_names import check_name, collisions, fault_of, is_internal
from kctl.errors import UsageError
from kctl.topics.new_topic import parse_assignment


@pytest.mark.parametrize(
    "name", ["a", "orders", "billing.orders-v2", "_x", "-", "...", "A1_b.c-d", "__consumer_offsets", "x" * 249]
)
def test_accepted(name: str) -> None:
    assert fault_of(name) is None
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        (".", "not allowed"),
        ("..", "not allowed"),
        ("x" * 250, "250 characters"),
        ("a b", "only ASCII"),
        ("a/b", "only ASCII"),
        ("a\n", "only ASCII"),
        ("\n", "only ASCII"),
        ("ü", "only ASCII"),
        ("١", "only ASCII"),  # a digit, but not an ASCII one
        ("a:b", "only ASCII"),
        ("a\x00", "only ASCII"),
    ],
)
def test_refused(name: str, why: str) -> None:
    assert why in (fault_of(name) or "")
    with pytest.raises(UsageError, match="is not a topic name"):
        check_name(name)


def test_a_long_name_is_not_repeated_in_full() -> None:
    with pytest.raises(UsageError) as caught:
        check_name("y" * 10_000)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("name", "existing", "expected"),
    [
        ("a.b", ["a_b"], ["a_b"]),
        ("a_b", ["a.b", "a-b", "ab"], ["a.b"]),
        ("a.b", ["a.b"], []),
        ("a.b_c", ["a_b.c", "a.b.c", "a_b_c", "a.b_c"], ["a.b.c", "a_b.c", "a_b_c"]),
        ("a", [], []),
    ],
)
def test_collisions(name: str, existing: list[str], expected: list[str]) -> None:
    assert collisions(name, existing) == expected


def test_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__my_topic")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", ((1,),)),
        ("1:2,2:3", ((1, 2), (2, 3))),
        ("0 : 1 , 1 : 0", ((0, 1), (1, 0))),
        ("1001:1002:1003", ((1001, 1002, 1003),)),
    ],
)
def test_assignment(text: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert parse_assignment(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a replica assignment"),
        ("1:", "not a replica assignment"),
        ("1,,2", "not a replica assignment"),
        ("a:b", "not a replica assignment"),
        ("-1:2", "not a replica assignment"),
        ("1:1", "a duplicate broker"),
        ("1:2,3", "must have the same number of replicas"),
        ("99999999999", "not a list of broker ids"),
        ("²:1", "not a replica assignment"),
    ],
)
def test_bad_assignment(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_assignment(text)


def test_a_pattern_in_the_place_of_a_name() -> None:
    with pytest.raises(UsageError) as caught:
        check_name("ord*")
    assert (
        caught.value.hint == "names are exact; for a pattern use --match 'ord.*' if the command has that option; "
        "a topic name is e.g. orders"
    )
