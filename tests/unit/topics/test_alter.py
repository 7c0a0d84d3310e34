"""What altering topics says when partitions have no leader, answers are lost, or nothing can be read back."""

from __future__ import annotations

import pytest

from fake_cluster import FakeCluster, topic_of
from kctl.base.grouping import chunks
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.change import ChangedConfig
from kctl.configs.model import Config, Synonym
from kctl.errors import ConnectionFailed, KctlError, OutcomeUnknown
from kctl.topics import alter as module
from kctl.topics.alter import AlteredTopic, TopicChange, alter_topics

UNKNOWN = OutcomeUnknown("no answer: it may have been carried out or not")
GONE = ConnectionFailed("nobody is there")


def _cluster(*leaders: int) -> FakeCluster:
    """A cluster whose topic t has these leaders, whatever is asked of it."""
    return FakeCluster([topic_of("t", *leaders, replicas=(1,))])


def _grow(fake: FakeCluster, timeout_s: float = 30.0) -> AlteredTopic:
    plan = [AlteredTopic("t", ItemResult.WOULD_ALTER, 3, 4, ())]
    (row,) = alter_topics(fake.client, [TopicChange("t", 4)], plan, timeout_s=timeout_s)
    return row


def test_an_old_partition_without_a_leader_is_not_waited_for() -> None:
    fake = _cluster(1, 1, -1, 1)
    row = _grow(fake)
    assert (row.result, row.partition_count_after, row.error) == ("altered", 4, None)
    assert fake.sent["Metadata"] == 1


def test_new_partitions_without_a_leader() -> None:
    row = _grow(_cluster(1, 1, 1, -1), timeout_s=0.0)
    assert (row.result, row.partition_count_after) == ("failed", 4)
    assert row.error == "the change was accepted, but new partitions have no leader yet: 3"


@pytest.mark.parametrize(("shown", "result", "count"), [((1, 1, 1, 1), "altered", 4), ((1, 1, 1), "failed", 3)])
def test_a_lost_answer_is_decided_by_what_is_there(shown: tuple[int, ...], result: str, count: int) -> None:
    fake = _cluster(*shown)
    fake.script("CreatePartitions", UNKNOWN)
    row = _grow(fake, timeout_s=0.0)
    assert (row.result, row.partition_count_after) == (result, count)
    assert row.error == (None if result == "altered" else UNKNOWN.message)


def test_what_cannot_be_read_back_is_a_row() -> None:
    fake = _cluster()
    fake.always("Metadata", GONE)
    row = _grow(fake)
    assert (row.result, row.partition_count_after) == ("failed", 4)
    assert row.error == f"the change was accepted, but could not be read back: {GONE.message}"


@pytest.mark.parametrize(
    ("answer", "value", "result"),
    [(None, "1", "altered"), (UNKNOWN, "1", "altered"), (UNKNOWN, "2", "failed"), (None, GONE, "failed")],
)
def test_configs_after_a_lost_answer(
    monkeypatch: pytest.MonkeyPatch, answer: KctlError | None, value: str | KctlError, result: str
) -> None:
    resource = Resource.topic("t")
    reader: list[Config] | KctlError
    if isinstance(value, KctlError):
        reader = value
    else:
        own = Synonym("retention.ms", value, ConfigSource.TOPIC)
        reader = [Config("retention.ms", value, ConfigSource.TOPIC, None, "long", False, False, (own,))]
    monkeypatch.setattr(module, "alter_dynamic", lambda *_: {resource: answer} if answer else {})
    monkeypatch.setattr(module, "describe_each", lambda *_, **__: {resource: reader})
    config = ChangedConfig(resource.path, "retention.ms", ItemResult.WOULD_SET, None, None, "1", None, False)
    plan = [AlteredTopic("t", ItemResult.WOULD_ALTER, 1, 1, (config,))]
    change = TopicChange("t", configs={"retention.ms": "1"})
    (row,) = alter_topics(_cluster().client, [change], plan, timeout_s=0.0)
    assert (row.result, row.error is None) == (result, result == "altered")


def test_many_partitions_are_several_requests() -> None:
    """A KRaft controller refuses more than 10,000 at once."""
    fake = _cluster()
    changes = [TopicChange(f"t{n}", 2_000) for n in range(5)]
    assert module._create_partitions(fake.client, changes, timeout_s=1, validate_only=True) == {}
    assert fake.sent["CreatePartitions"] == 3


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([], []),
        ([3, 3, 4], [[3, 3, 4]]),
        ([3, 3, 5, 1], [[3, 3], [5, 1]]),
        ([11, 1, 11], [[11], [1], [11]]),
        ([1, 1, 1, 1], [[1, 1, 1], [1]]),
    ],
)
def test_chunks(costs: list[int], expected: list[list[int]]) -> None:
    assert chunks(costs, lambda each: each, limit=10, max_rows=3) == expected
