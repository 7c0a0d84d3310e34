"""Which transactions hang: the rule, of values."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from kctl.errors import NotAuthorized
from kctl.transactions.hanging import map_hanging, old_transactions
from kctl.transactions.listing import Transaction, TransactionListing, moment, parse_states
from kctl.transactions.producers import Producer

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)


def _producer(minutes_ago: float | None, start: int | None = 10, producer_id: int = 7) -> Producer:
    last = None if minutes_ago is None else NOW - timedelta(minutes=minutes_ago)
    return Producer("t", 0, producer_id, 1, 4, last, None, start)


def _state(state: str = "Ongoing", producer_id: int = 7, partitions: tuple[str, ...] = ("t-0",)) -> Transaction:
    return Transaction("x", 1, producer_id, 1, state, 60_000, NOW, 0, list(partitions))


def test_old_ones() -> None:
    producers = [_producer(16), _producer(14), _producer(16, start=None), _producer(None)]
    assert old_transactions(producers, now=NOW, longer_than_ms=900_000) == producers[:1]


@pytest.mark.parametrize(
    ("state", "hangs"),
    [
        (None, True),
        (_state(), False),
        (_state("PrepareAbort"), False),
        (_state("CompleteAbort"), True),
        (_state("Empty", partitions=()), True),
        (_state(partitions=("t-1",)), True),
        (_state(producer_id=8), True),
    ],
)
def test_what_hangs(state: Transaction | None, hangs: bool) -> None:
    listed = [TransactionListing("x", 1, 7, "Ongoing")] if state else []
    found = map_hanging([_producer(20)], listed, {"x": state} if state else {}, now=NOW)
    assert [(row.start_offset, row.transactional_id, row.duration_ms) for row in found] == (
        [(10, "x" if state else None, 1_200_000)] if hangs else []
    )


def test_what_cannot_be_seen_is_not_called_hanging() -> None:
    listed = [TransactionListing("x", 1, 7, "Ongoing")]
    with pytest.raises(NotAuthorized):
        map_hanging([_producer(20)], listed, {"x": NotAuthorized("no")}, now=NOW)


def test_states_and_times() -> None:
    assert parse_states(["ongoing", "ONGOING", "PrepareCommit"]) == ["Ongoing", "PrepareCommit"]
    assert moment(-1) is None
    assert moment(2**62) is None
    assert moment(0) == datetime(1970, 1, 1, tzinfo=timezone.utc)
