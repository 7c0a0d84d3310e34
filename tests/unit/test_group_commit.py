"""How offsets are divided into requests, and what the coordinator's refusals are called."""

from __future__ import annotations

import pytest

from kctl.errors import KctlError, NotAuthorized, NotFound, Refused
from kctl.groups import commit
from kctl.groups.commit import OffsetToCommit
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
