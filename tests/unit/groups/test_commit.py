"""How offsets are divided into requests, what becomes of those after one that is not answered, and what the
coordinator's refusals are called."""

from __future__ import annotations

from types import SimpleNamespace as Answer

import pytest

from fake_cluster import FakeCluster
from kctl.cluster.groups import coordinators
from kctl.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KctlError,
    NotAuthorized,
    NotFound,
    OutcomeUnknown,
    Refused,
)
from kctl.groups import commit
from kctl.groups.commit import OffsetToCommit, commit_offsets
from kctl.model import TopicPartition


def test_a_batch_fits_into_the_offsets_topic() -> None:
    offsets = {TopicPartition("t" * 249, number): OffsetToCommit(number, "m" * 4096) for number in range(1000)}
    batches = list(commit._batches("g" * 255, offsets))
    assert [tp for batch in batches for tp in batch] == sorted(offsets)
    sizes = [sum(len(tp.topic) + len(entry.metadata) + 255 for tp, entry in batch.items()) for batch in batches]
    assert max(sizes) < 500_000
    assert min(sizes[:-1]) > 300_000, "and not one request for each"


def test_few_offsets_are_one_request() -> None:
    offsets = {TopicPartition("orders", number): OffsetToCommit(number) for number in range(1000)}
    assert len(list(commit._batches("billing", offsets))) == 1
    assert list(commit._batches("billing", {})) == []


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (25, Refused, "has members now"),  # UNKNOWN_MEMBER_ID
        (22, Refused, "has members now"),  # ILLEGAL_GENERATION
        (27, Refused, "has members now"),  # REBALANCE_IN_PROGRESS
        (113, Refused, "has members now"),  # STALE_MEMBER_EPOCH
        (3, NotFound, "UNKNOWN_TOPIC_OR_PARTITION"),
        (12, Refused, "OFFSET_METADATA_TOO_LARGE"),
        (29, NotAuthorized, "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_errors(code: int, kind: type[KctlError], message: str) -> None:
    error = commit._error(code, "billing", "orders")
    assert type(error) is kind
    assert message in error.message
    assert commit._error(0, "billing", "orders") is None


def cluster(*replies: KctlError) -> FakeCluster:
    """Broker 1 coordinates groups a0, a1 …, broker 2 b0, b1 …; broker 1 begins with these replies."""
    fake = FakeCluster()
    fake.timeout_s = 5.0
    fake.coordinators = {f"b{number}": 2 for number in range(3)}
    fake.script("OffsetCommit", *replies, node=1)
    return fake


def sent(fake: FakeCluster, *groups: str) -> dict[str, KctlError | None]:
    tp = TopicPartition("t", 0)
    outcomes = commit_offsets(fake.client, {group: {tp: OffsetToCommit(1)} for group in groups})
    return {group: partitions[tp] for group, partitions in outcomes.items()}


def rounds(fake: FakeCluster) -> list[dict[int, str]]:
    """The groups whose offsets were committed at the same time, by broker."""
    return [{node: request.group_id for node, request in each.items()} for each in fake.rounds]


def test_all_coordinators_have_a_request_at_the_same_time() -> None:
    fake = cluster()
    assert sent(fake, "a0", "b0", "a1", "b1", "a2") == dict.fromkeys(("a0", "b0", "a1", "b1", "a2"))
    assert rounds(fake) == [{1: "a0", 2: "b0"}, {1: "a1", 2: "b1"}, {1: "a2"}]


def test_a_refusal_ends_nothing() -> None:
    fake = cluster()
    fake.codes["OffsetCommit"] = {"a0": 25}
    outcomes = sent(fake, "a0", "a1")
    assert isinstance(outcomes["a0"], Refused)
    assert outcomes["a1"] is None


def test_a_broker_whose_answer_is_lost_gets_nothing_more() -> None:
    """Fifty groups would wait fifty times, and nobody knows what the one before did. The other broker goes on."""
    fake = cluster(OutcomeUnknown("no answer"))
    outcomes = sent(fake, "a0", "b0", "a1", "b1")
    assert isinstance(outcomes["a0"], OutcomeUnknown)
    assert outcomes["a1"] is not None
    assert outcomes["a1"].message == "not sent, because of an earlier failure: no answer"
    assert (outcomes["b0"], outcomes["b1"]) == (None, None)
    assert rounds(fake) == [{1: "a0", 2: "b0"}, {2: "b1"}]


@pytest.mark.parametrize(("error", "tries"), [(ConnectionFailed("gone"), 5), (AuthenticationFailed("no"), 1)])
def test_a_broker_that_cannot_be_reached_is_tried_once_for_all(
    monkeypatch: pytest.MonkeyPatch, error: KctlError, tries: int
) -> None:
    monkeypatch.setattr(coordinators, "time", Answer(sleep=lambda _seconds: None))
    fake = cluster(*[error] * 10)
    assert sent(fake, "a0", "a1", "a2") == {"a0": error, "a1": error, "a2": error}
    assert rounds(fake) == [{1: "a0"}] * tries


def test_a_broker_that_comes_back_has_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "time", Answer(sleep=lambda _seconds: None))
    assert sent(cluster(ConnectionFailed("gone")), "a0", "a1") == {"a0": None, "a1": None}
