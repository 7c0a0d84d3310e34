"""Batches: every partition in one, none too large, the copies spread over the brokers, the same each time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import REORDER_BATCH_SIZE, default_concurrency, make_batches, receivers_of

replica_lists = st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True).map(tuple)
reassignments = st.lists(
    st.builds(
        Reassignment,
        topic=st.just("t"),
        partition=st.integers(0, 99),
        after=replica_lists,
        before=st.none() | replica_lists,
        size_bytes=st.none() | st.integers(0, 100),
    ),
    max_size=60,
)


@given(reassignments, st.integers(1, 8), st.none() | st.integers(1, 150))
@settings(max_examples=300, derandomize=True)
def test_each_partition_is_in_one_batch_and_no_batch_is_too_large(
    plan: list[Reassignment], most: int, most_bytes: int | None
) -> None:
    batches = make_batches(plan, max_concurrent_moves=most, batch_bytes=most_bytes)
    assert sorted(position for batch in batches for position in batch) == list(range(len(plan)))
    assert all(batches)
    for batch in batches:
        copies = [len(receivers_of(plan[i])) for i in batch]
        sizes = [len(receivers_of(plan[i])) * (plan[i].size_bytes or 0) for i in batch]
        assert len({count > 0 for count in copies}) == 1, "what copies nothing is by itself"
        if len(batch) > 1 and copies[0]:
            assert sum(copies) <= most
            assert most_bytes is None or sum(sizes) <= most_bytes
    assert make_batches(plan, max_concurrent_moves=most, batch_bytes=most_bytes) == batches


def test_copies_are_spread_over_those_that_receive_and_those_that_give() -> None:
    plan = [Reassignment("t", p, (10 + p % 4,), (p // 100,), size_bytes=5) for p in range(400)]
    batches = make_batches(plan, max_concurrent_moves=40, batch_bytes=None)
    assert len(batches) == 10
    for batch in batches:
        assert set(Counter(plan[i].after for i in batch).values()) == {10}
        assert set(Counter(plan[i].before for i in batch).values()) <= {8, 9, 10, 11, 12}


def test_bytes_fill_batches_where_they_fit() -> None:
    plan = [Reassignment("t", p, (2,), (1,), size_bytes=size) for p, size in enumerate([60, 60, 40, 500, 40])]
    batches = make_batches(plan, max_concurrent_moves=50, batch_bytes=100)
    assert sorted(sorted(plan[i].size_bytes or 0 for i in batch) for batch in batches) == [[40, 60], [40, 60], [500]]


def test_what_copies_nothing_comes_last_by_itself() -> None:
    plan = [Reassignment("t", p, (1, 2), (2, 1)) for p in range(REORDER_BATCH_SIZE + 1)]
    plan.append(Reassignment("t", 5000, (3, 2), (2, 1)))
    batches = make_batches(plan, max_concurrent_moves=1, batch_bytes=1)
    assert [len(batch) for batch in batches] == [1, REORDER_BATCH_SIZE, 1]
    assert batches[0] == (REORDER_BATCH_SIZE + 1,)


@pytest.mark.parametrize(
    ("reassignment", "receivers"),
    [
        (Reassignment("t", 0, (1, 2), (2, 1)), []),
        (Reassignment("t", 0, (1,), (2, 1)), []),
        (Reassignment("t", 0, (1, 2, 3), (1,)), [2, 3]),
        (Reassignment("t", 0, (1, 2)), [1, 2]),
        (Reassignment("t", 0, (1, 2), (1, 2), (None, "/b"), (None, "/a")), [2]),
        (Reassignment("t", 0, (1, 2), (1, 2), (None, "/a"), (None, "/a")), []),
        (Reassignment("t", 0, (1, 2), (1,), ("/b", "/b")), [2, 1]),
    ],
)
def test_who_copies(reassignment: Reassignment, receivers: list[int]) -> None:
    assert receivers_of(reassignment) == receivers


def test_concurrency_grows_with_the_cluster() -> None:
    assert [default_concurrency(n) for n in (1, 10, 11, 100)] == [50, 50, 55, 500]
