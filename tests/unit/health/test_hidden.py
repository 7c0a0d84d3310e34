"""Topics that a user may not describe: what brokers leave out of metadata is on their disks."""

from __future__ import annotations

from typing import cast

from fake_cluster import FakeCluster, topic_of
from health_testing import facts, partition, state
from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.errors import ConnectionRefused, KctlError, NotAuthorized
from kctl.health.assess import assess
from kctl.health.hidden import hidden_topics
from kctl.health.model import CheckStatus
from kctl.protocol.client import ClusterClient

THREE = state([partition("123", "123")])
REFUSED = ConnectionRefused("broker 2 refused")


def _on_disk(*topics: str) -> list[LogDir]:
    return [LogDir("/data", 100, 50, [LogDirReplica(name, 0, 0, 0, False) for name in topics])]


def test_topics_that_are_on_disks_and_may_not_be_described() -> None:
    fake = FakeCluster([topic_of("t", 1), topic_of("new", 1)])
    fake.hidden = {"secret"}
    dirs: dict[int, list[LogDir] | KctlError] = {1: _on_disk("t", "secret", "gone"), 2: _on_disk("new"), 3: REFUSED}
    told = hidden_topics(fake.client, THREE, dirs)
    (sent,) = fake.requests
    assert (told, sent.request) == (("secret",), ["gone", "new", "secret"])
    found = assess(facts(THREE, hidden=told))
    assert (found.healthy, len(found.unknown)) == (False, 1)
    (check,) = (each for each in found.checks if each.status is CheckStatus.UNKNOWN)
    assert (check.check, check.subjects) == ("topics", ("secret",))
    assert assess(facts(THREE, hidden=REFUSED)).unknown == [REFUSED.message]


def test_without_disks_a_user_who_may_not_describe_all_topics_is_told() -> None:
    kept = NotAuthorized("log dirs of broker 1: not authorized for the cluster")
    fake = FakeCluster()
    fake.always("Metadata", NotAuthorized("no"))
    told = hidden_topics(fake.client, THREE, {1: kept})
    assert isinstance(told, NotAuthorized)
    found = assess(facts(THREE, hidden=told))
    (check,) = (each for each in found.checks if each.check == "topics")
    assert (check.status, check.summary) == (CheckStatus.UNKNOWN, "1 topic visible; there may be more")
    assert found.unknown == [
        (
            "only topics that this user may describe are checked; "
            "seeing all topics requires the ACL operation DESCRIBE on topic *"
        )
    ]


def test_topics_that_are_all_seen_need_no_question() -> None:
    assert hidden_topics(cast("ClusterClient", None), THREE, {1: _on_disk("t"), 2: REFUSED}) == ()


def test_internal_topics_are_counted_apart() -> None:
    cluster = state([partition("123", "123"), partition("123", "123", topic="__consumer_offsets")])
    found = assess(facts(cluster))
    assert (found.topic_count, found.internal_topics) == (2, 1)
