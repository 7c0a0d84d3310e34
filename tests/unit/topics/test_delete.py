"""What deleting and creating topics say when nobody tells whether it was done."""

from __future__ import annotations

import pytest

from fake_cluster import FakeCluster
from kctl.base.outcomes import ItemResult
from kctl.cluster.groups.model import Group, Groups
from kctl.errors import ConnectionFailed, ConnectionTimedOut, KctlError, OutcomeUnknown
from kctl.model import ClusterState, TopicPartition, TopicState
from kctl.protocol.codes import ApiKey
from kctl.topics import delete as deleting
from kctl.topics import readers as reading
from kctl.topics.create import CreatedTopic, create_topics
from kctl.topics.delete import DeletedTopic, delete_topics, losses
from kctl.topics.new_topic import NewTopic, request_chunks

GONE = ConnectionFailed("nobody is there")
SILENT = ConnectionTimedOut("no answer within 1 s")


def _cluster(
    code: int = 0, *, brokers: tuple[KctlError | None, ...] = (None,), down: KctlError | None = None, deletion: int = 0
) -> FakeCluster:
    """A cluster without topics. code: for the validation of a creation; deletion: for DeleteTopics; brokers: what each
    says to Metadata, None that there is no such topic; down: what a look at the metadata ends in."""
    fake = FakeCluster(brokers=range(len(brokers)))
    fake.codes["CreateTopics"] = {"t": code}
    fake.codes["DeleteTopics"] = {"t": deletion}
    for node, reply in enumerate(brokers):
        fake.always("Metadata", reply, node=node)
    fake.always("Metadata", down)
    return fake


def _delete(fake: FakeCluster) -> DeletedTopic:
    plan = [DeletedTopic("t", ItemResult.WOULD_DELETE, None, 1, 1, 0)]
    (row,) = delete_topics(fake.client, plan, timeout_s=0.0)
    return row


@pytest.mark.parametrize(
    ("code", "result", "said"),
    [
        (0, "deleted", None),
        (44, "deleted", None),  # a policy is asked when the name is free
        (36, "marked", "not complete after 0 s"),
        (29, "marked", "could not be verified: topic t: not authorized"),
        (89, "marked", "could not be verified"),
        (-1, "marked", "could not be verified"),
    ],
)
def test_deleted_is_what_the_controller_says(code: int, result: str, said: str | None) -> None:
    row = _delete(_cluster(code))
    assert row.result == result
    assert (row.error is None) if said is None else (row.error is not None and said in row.error)


@pytest.mark.parametrize(("code", "result"), [(0, "deleted"), (36, "failed")])
def test_a_timeout_in_the_controller_is_looked_after(code: int, result: str) -> None:
    row = _delete(_cluster(code, deletion=7))
    assert row.result == result
    assert (row.error is None) if code == 0 else ("still exists: topic t: the request timed out" in (row.error or ""))
    assert (
        _delete(_cluster(36, deletion=41)).error == "topic t: the broker is no longer the controller (NOT_CONTROLLER)"
    )


def test_with_kraft_metadata_are_enough() -> None:
    """Who may delete and not create is told all the same."""
    fake = _cluster(29)
    fake.versions[ApiKey.DESCRIBE_QUORUM] = 1
    assert _delete(fake).result is ItemResult.DELETED
    assert fake.sent["CreateTopics"] == 0


@pytest.mark.parametrize(
    ("brokers", "result"),
    [((SILENT, None), "deleted"), ((SILENT,), "marked"), ((GONE, SILENT), "marked"), ((), "marked")],
)
def test_brokers_that_do_not_answer(brokers: tuple[KctlError | None, ...], result: str) -> None:
    row = _delete(_cluster(brokers=brokers))
    assert (row.result, row.error is None) == (result, result == "deleted")


def test_a_cluster_that_is_gone_behind_the_deletion() -> None:
    row = _delete(_cluster(down=GONE))
    assert row.result is ItemResult.MARKED
    assert GONE.message in (row.error or "")
    unanswered = _cluster(down=GONE)
    unanswered.script("DeleteTopics", OutcomeUnknown("no answer"))
    assert _delete(unanswered).result is ItemResult.FAILED


def test_a_cluster_that_is_gone_behind_the_creation() -> None:
    plan = [CreatedTopic("t", ItemResult.WOULD_CREATE, 1, 1, {})]
    (row,) = create_topics(_cluster(down=GONE).client, [NewTopic("t", 1, 1)], plan, timeout_s=0.0)
    assert row.result is ItemResult.FAILED
    assert row.error == f"the creation was accepted, but could not be read back: {GONE.message}"


def test_many_topics_are_several_requests() -> None:
    """A KRaft controller refuses more than 10,000 partitions at once."""
    topics = [NewTopic(f"t{n}", 12, 3) for n in range(1_000)]
    sizes = [len(chunk) for chunk in request_chunks(topics)]
    assert (sum(sizes), max(sizes) * 13 <= 5_000, max(sizes) <= 250) == (1_000, True, True)
    assert [len(chunk) for chunk in request_chunks([NewTopic("huge", 9_000, 1), NewTopic("t", 1, 1)])] == [1, 1]
    configs = {str(n): "1" for n in range(100)}
    assert (
        max(len(chunk) for chunk in request_chunks([NewTopic(f"t{n}", None, None, None, configs) for n in range(99)]))
        == 33
    )
    fake = _cluster()
    plan = [CreatedTopic(topic.name, ItemResult.WOULD_CREATE, 12, 3, {}) for topic in topics]
    create_topics(fake.client, topics, plan, timeout_s=0.0)
    assert fake.sent["CreateTopics"] == len(sizes)


@pytest.mark.parametrize(
    ("may", "silent", "groups", "expected"),
    [
        (True, None, ["g"], ["g"]),
        (True, None, [], []),
        (False, None, [], None),
        (False, None, ["g"], ["g"]),
        (True, SILENT, [], None),
        (None, None, [], []),  # brokers before 2.8 do not tell
    ],
)
def test_readers_that_are_not_shown_are_not_absent(
    monkeypatch: pytest.MonkeyPatch,
    may: bool | None,
    silent: KctlError | None,
    groups: list[str],
    expected: list[str] | None,
) -> None:
    result = Groups(
        {g: Group(g, "Empty", "consumer", None, 1) for g in groups}, {"broker 2": silent} if silent else {}, {}
    )
    monkeypatch.setattr(reading, "all_groups", lambda *_, **__: result)
    monkeypatch.setattr(reading, "ask_coordinators", lambda *_, **__: {g: {TopicPartition("t", 0): 5} for g in groups})
    monkeypatch.setattr(reading, "may_describe_cluster", lambda _: may)
    monkeypatch.setattr(deleting, "newest_records", lambda *_, **__: ({}, []))
    topic = TopicState("t", False, None, ())
    (row,), doubts = losses(_cluster().client, ClusterState("id", 1, {}, {"t": topic}), [topic])
    assert (None if row.readers is None else [reader.group for reader in row.readers]) == expected
    assert bool(doubts) is (may is False or silent is not None)
