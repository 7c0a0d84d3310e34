"""Eligible leader replicas (KIP-966) are read page by page, from brokers that may not be trusted to end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from fake_cluster import FakeCluster, topic_of
from kctl.cluster.eligible import Eligible, eligible_if_known, read_eligible
from kctl.errors import KctlError, NotAuthorized, NotSupported, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.client import ClusterClient
from kctl.protocol.codes import ApiKey, ErrorCode

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ROWS: dict[TopicPartition, tuple[list[int] | None, list[int] | None]] = {
    T0: ([2, 3], None), T1: (None, [4]), U0: ([], []),
}  # fmt: skip
FOUND = {T0: Eligible((2, 3)), T1: Eligible((), (4,)), U0: Eligible()}


class Pages:
    """Answers with `page` partitions at a time, from the cursor on."""

    def __init__(self, page: int, *, error: KctlError | None = None, code: int = 0, stuck: bool = False) -> None:
        self.page, self.error, self.code, self.stuck = page, error, code, stuck
        self.asked: list[tuple[list[str], tuple[str, int] | None]] = []

    def send(self, request: Any) -> Any:
        if self.error is not None:
            raise self.error
        cursor = request.cursor and (request.cursor.topic_name, request.cursor.partition_index)
        names = [topic.name for topic in request.topics]
        self.asked.append((names, cursor))
        every = sorted((tp.topic, tp.partition) for tp in ROWS if tp.topic in names)
        rest = [place for place in every if cursor is None or place >= cursor]
        following = rest[self.page] if len(rest) > self.page else None
        if self.stuck and cursor is not None:
            following = cursor
        topics = [
            Answer(
                error_code=self.code, name=name, partitions=[self._row(n, p) for n, p in rest[: self.page] if n == name]
            )
            for name in dict.fromkeys(name for name, _ in rest[: self.page])
        ]
        next_cursor = following and Answer(topic_name=following[0], partition_index=following[1])
        return Answer(topics=topics, next_cursor=next_cursor)

    def _row(self, topic: str, number: int) -> Any:
        eligible, last = ROWS[TopicPartition(topic, number)]
        return Answer(partition_index=number, eligible_leader_replicas=eligible, last_known_elr=last)


def _read(pages: Pages, partitions: Collection[TopicPartition] = (T0, T1, U0)) -> Mapping[TopicPartition, Eligible]:
    return read_eligible(cast(ClusterClient, pages), partitions)


@pytest.mark.parametrize("page", [1, 2, 3, 2000])
def test_read_in_pages(page: int) -> None:
    pages = Pages(page)
    assert _read(pages) == FOUND
    assert len(pages.asked) == -(-3 // page)
    assert pages.asked[0] == (["t", "u"], None)
    assert all(cursor is None or cursor[0] in names for names, cursor in pages.asked)


def test_only_what_was_asked_for() -> None:
    pages = Pages(2000)
    assert _read(pages, [T1, TopicPartition("t", 9)]) == {T1: FOUND[T1], TopicPartition("t", 9): Eligible()}
    assert pages.asked == [(["t"], None)]
    assert _read(pages, []) == {}
    assert len(pages.asked) == 1, "an empty list would mean all topics"


@pytest.mark.parametrize(
    ("pages", "error"),
    [
        (Pages(1, code=29), NotAuthorized),
        (Pages(1, stuck=True), OperationFailed),
        (Pages(1, error=OperationFailed("no")), OperationFailed),
    ],
)
def test_what_cannot_be_read_is_no_reason_to_elect(pages: Pages, error: type[KctlError]) -> None:
    with pytest.raises(error):
        _read(pages)


def test_brokers_without_them_have_none() -> None:
    assert _read(Pages(1, error=NotSupported("too old"))) == {}


class Hostile:
    """Answers each request with a cursor, for ever. cursors: from the number of the request to the cursor."""

    def __init__(self, cursors: Callable[[int], tuple[str, int]]) -> None:
        self.cursors, self.count = cursors, 0

    def send(self, _request: Any) -> Any:
        self.count += 1
        assert self.count < 100, "the reading has no end"
        name, number = self.cursors(self.count)
        return Answer(topics=[], next_cursor=Answer(topic_name=name, partition_index=number))


@pytest.mark.parametrize("cursor", [("zzz", 0), ("u", 1), ("u", 2**31 - 1)])
def test_a_cursor_beyond_the_requested_partitions_ends_the_reading(cursor: tuple[str, int]) -> None:
    hostile = Hostile(lambda _: cursor)
    assert read_eligible(cast(ClusterClient, hostile), [T0, T1, U0]) == dict.fromkeys((T0, T1, U0), Eligible())
    assert hostile.count == 1


@pytest.mark.parametrize(
    "cursors",
    [
        lambda _: ("t", 0),
        lambda _: ("t", -1),
        lambda count: ("t", 2 - count),
        lambda count: ("t", count),  # beyond the last partition of t, and never in u
        lambda count: ("t", 2**31 - count),
        lambda count: (f"t-{count:09}", count),  # topics that were not requested, between t and u
    ],
)
def test_a_cursor_that_never_ends_is_refused(cursors: Callable[[int], tuple[str, int]]) -> None:
    hostile = Hostile(cursors)
    with pytest.raises(OperationFailed, match="the broker returns the same page again"):
        read_eligible(cast(ClusterClient, hostile), [T0, T1, U0])
    assert hostile.count <= 3


def _cluster(code: int = 0) -> FakeCluster:
    fake = FakeCluster([topic_of("t", -1)])
    row = Answer(partition_index=0, eligible_leader_replicas=[2], last_known_elr=[])
    fake.always(
        "DescribeTopicPartitions",
        Answer(topics=[Answer(error_code=code, name="t", partitions=[row])], next_cursor=None),
    )
    return fake


def test_without_support_no_request_is_sent() -> None:
    fake = _cluster()
    assert eligible_if_known(fake.client, [T0]) is None
    assert not fake.requests
    fake.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = 0
    assert eligible_if_known(fake.client, []) == {}
    assert not fake.requests
    assert eligible_if_known(fake.client, [T0]) == {T0: Eligible((2,))}


def test_what_cannot_be_read_is_unknown() -> None:
    fake = _cluster(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    fake.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = 0
    error = eligible_if_known(fake.client, [T0])
    assert isinstance(error, NotAuthorized)
    assert error.message.startswith("eligible leader replicas are unknown: ")
