"""Which transactions hang: the rule, of values."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from fake_cluster import FakeCluster
from kctl.commands.transaction.abort import summary
from kctl.errors import KctlError, NotAuthorized, NotFound, Refused
from kctl.model import PartitionState
from kctl.transactions import abort
from kctl.transactions.hanging import find_hanging, map_hanging, old_transactions, still_open
from kctl.transactions.listing import Transaction, TransactionListing, broker_time, list_transactions, parse_states
from kctl.transactions.producers import ProducerState

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)


def _producer(minutes_ago: float | None, start: int | None = 10, producer_id: int = 7) -> ProducerState:
    last = None if minutes_ago is None else NOW - timedelta(minutes=minutes_ago)
    return ProducerState("t", 0, producer_id, 1, 4, last, None, start)


def _state(state: str = "Ongoing", producer_id: int = 7, partitions: tuple[str, ...] = ("t-0",)) -> Transaction:
    return Transaction("x", 1, producer_id, 1, state, 60_000, NOW, 0, list(partitions))


def test_old_ones() -> None:
    producers = [_producer(16), _producer(14), _producer(16, start=None), _producer(None)]
    assert old_transactions(producers, now=NOW, longer_than_ms=900_000) == [producers[0], producers[3]], (
        "as kafka-transactions has it, a batch without a timestamp is old"
    )


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


def test_a_batch_without_a_time_hangs_for_an_unknown_time() -> None:
    (row,) = map_hanging([_producer(None)], [], {}, now=NOW)
    assert (row.start_offset, row.last_timestamp, row.duration_ms) == (10, None, None)


def test_what_ended_meanwhile_does_not_hang() -> None:
    found = map_hanging([_producer(20)], [], {}, now=NOW)
    assert still_open(found, ([_producer(20)], {found[0].tp})) == found
    assert still_open(found, ([], {found[0].tp})) == []
    assert still_open(found, ([_producer(0, start=11)], {found[0].tp})) == [], "its next one"
    assert still_open(found, ([], set())) == found, "the partition could not be asked again"


@pytest.mark.parametrize(
    ("now", "error", "says"),
    [
        ([_producer(20)], None, ""),
        ([], NotFound, "has no open transactions"),
        ([_producer(20, start=11)], NotFound, "no open transaction"),
        ([replace(_producer(20), producer_epoch=2)], Refused, "another transaction is open there now"),
        ([_producer(20, producer_id=8)], Refused, "another transaction is open there now"),
    ],
)
def test_what_was_shown_is_what_is_aborted(
    monkeypatch: pytest.MonkeyPatch, now: list[ProducerState], error: type[Exception] | None, says: str
) -> None:
    """Somebody says yes to _producer(20); by then its partition has these."""
    monkeypatch.setattr(abort, "describe_producers", lambda _client, _partitions: (now, {}))
    client: Any = None
    partition = PartitionState("t", 0, 1, 0, (1,), (1,), ())
    caught: KctlError | None = None
    try:
        abort.refuse_changed(client, partition, _producer(20))
    except KctlError as exc:
        caught = exc
    assert type(caught) is (error or type(None))
    assert says in (f"{caught.message}: {caught.hint}" if caught else "")


def test_a_transaction_without_a_time_is_shown() -> None:
    assert summary(_producer(None)) == "t-0: from offset 10, producer id 7, epoch 1, last batch without a timestamp"
    assert summary(_producer(0)).endswith("last batch at 2026-11-22 12:00:00 UTC")


def test_coordinators_that_cannot_be_known_are_said() -> None:
    """A partition of theirs may be without a leader, and what is in it live."""
    fake = FakeCluster(brokers=[1])
    fake.hidden = {"__transaction_state"}
    fake.always("ListTransactions", SimpleNamespace(error_code=0, transaction_states=[]))
    rows, failed = list_transactions(fake.client)
    assert (rows, fake.sent["ListTransactions"]) == ([], 1)
    assert {name: type(error) for name, error in failed.items()} == {"__transaction_state": NotAuthorized}
    with pytest.raises(NotAuthorized, match="cannot be determined: topic __transaction_state may not be described"):
        find_hanging(fake.client, [_producer(20)], now=NOW)
    with pytest.raises(Refused, match="knows the transaction: topic __transaction_state may not be described"):
        abort.refuse_live(fake.client, _producer(20))


def test_what_cannot_be_seen_is_not_called_hanging() -> None:
    listed = [TransactionListing("x", 1, 7, "Ongoing")]
    with pytest.raises(NotAuthorized):
        map_hanging([_producer(20)], listed, {"x": NotAuthorized("no")}, now=NOW)


def test_states_and_times() -> None:
    assert parse_states(["ongoing", "ONGOING", "PrepareCommit"]) == ["Ongoing", "PrepareCommit"]
    assert broker_time(-1) is None
    assert broker_time(2**62) is None
    assert broker_time(0) == datetime(1970, 1, 1, tzinfo=timezone.utc)
