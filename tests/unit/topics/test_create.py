"""What became of topics by what the controller answered and what is there then."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fake_cluster import FakeCluster, topic_of
from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult
from kctl.configs.model import Config
from kctl.errors import AlreadyExists, ConnectionTimedOut, KctlError, NotAuthorized, OutcomeUnknown, Refused
from kctl.model import ClusterState
from kctl.protocol.client import ClusterClient
from kctl.topics import create
from kctl.topics.apply import ApplyPlan, carry_out
from kctl.topics.create import CreatedTopic, create_topics, plan_create
from kctl.topics.new_topic import NewTopic
from kctl.topics.spec import TopicSpec

SILENCE = OutcomeUnknown("broker 1 did not answer")


def _cluster(*there: str, codes: Mapping[str, int] | None = None, reply: KctlError | None = None) -> FakeCluster:
    """A cluster with topics of one partition. codes, reply: what the controller says to CreateTopics."""
    fake = FakeCluster([topic_of(name, 1, replicas=(1,)) for name in there])
    fake.codes["CreateTopics"] = dict(codes or {})
    fake.script("CreateTopics", reply)
    return fake


def _create(fake: FakeCluster, *names: str, if_not_exists: bool = False) -> dict[str, tuple[str, str | None]]:
    plan = [CreatedTopic(name, ItemResult.WOULD_CREATE, 1, 1, {}) for name in names]
    topics = [NewTopic(name, 2, 1) for name in names]
    rows = create_topics(fake.client, topics, plan, if_not_exists=if_not_exists, timeout_s=0.0)
    return {row.topic: (row.result, row.error or row.differs) for row in rows}


def test_a_timeout_in_the_controller_is_looked_after() -> None:
    result = _create(_cluster("a", codes={"a": 7, "b": 7}), "a", "b")
    assert result == {
        "a": ("created", None),
        "b": ("failed", "topic b: the request timed out on the broker (REQUEST_TIMED_OUT)"),
    }


def test_made_by_somebody_else_meanwhile() -> None:
    fake = _cluster("a", codes={"a": 36})
    assert _create(fake, "a", "b", if_not_exists=True) == {
        "a": ("exists", "has 1 partitions, not 2"),
        "b": ("created", None),
    }
    result, error = _create(fake, "a")["a"]
    assert (result, error) == ("failed", "topic a: the topic already exists (TOPIC_ALREADY_EXISTS)")


def test_without_an_answer_nobody_has_accepted_what_is_not_there() -> None:
    result = _create(_cluster("a", reply=SILENCE), "a", "b")
    assert result == {
        "a": ("created", None),
        "b": ("failed", "no response, and the topic does not exist: broker 1 did not answer"),
    }
    with pytest.raises(OutcomeUnknown):
        _create(_cluster(reply=SILENCE), "a")


def test_apply_without_an_answer_is_run_again() -> None:
    """It has no --if-not-exists; and what it would alter waits for what it would create."""
    client = _cluster(reply=SILENCE).client
    names = [f"t{number:02}" for number in range(40)]
    specs = tuple(TopicSpec(name, 1, 1, None, "f") for name in names)
    created = [CreatedTopic(name, ItemResult.WOULD_CREATE, 1, 1, {}) for name in names]
    plan = ApplyPlan(specs, [NewTopic(name, 1, 1) for name in names], created, [], [])
    with pytest.raises(OutcomeUnknown, match="creation of t00, t01, t02, t03, t04 and 35 more: broker 1") as caught:
        carry_out(client, plan, timeout_s=0.0)
    assert caught.value.hint == "run it again to apply the rest"


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_check_without_an_answer_has_changed_nothing(validate_only: bool) -> None:
    def send(*_: object, **__: object) -> None:
        raise ConnectionTimedOut("broker 1 did not answer CreateTopics within 15 s", hint="more time")

    brokers = SimpleNamespace(refresh=lambda _: SimpleNamespace(controller_id=1))
    client: Any = SimpleNamespace(_deadline=lambda _: Deadline(5.0), _brokers=brokers, send=send)
    with pytest.raises(ConnectionTimedOut) as caught:
        ClusterClient.send_to_controller(client, SimpleNamespace(validate_only=validate_only))
    assert ("only validates, and nothing was changed" in caught.value.message) is validate_only
    assert caught.value.hint == "more time"


def test_made_by_somebody_else_before_the_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create, "_PROPAGATION_S", 0.0)
    topics = [NewTopic("a", 2, 1), NewTopic("b", 1, 1)]
    nothing_yet = ClusterState("id", 1, {}, {})
    fake = _cluster("a", codes={"a": 36})
    fake.script("Metadata", nothing_yet)
    first, second = plan_create(fake.client, topics, if_not_exists=True)
    assert (first.result, first.differs, second.result) == ("exists", "has 1 partitions, not 2", "would create")
    fake.script("Metadata", nothing_yet)
    with pytest.raises(AlreadyExists):
        plan_create(fake.client, topics)
    being_deleted = _cluster(codes={"a": 36})
    with pytest.raises(AlreadyExists):
        plan_create(being_deleted.client, topics, if_not_exists=True)


@pytest.mark.parametrize(
    ("given", "there", "hint"),
    [
        ({"retention.ms": "7d"}, True, "that is retention.ms=604800000"),
        ({"retenton.ms": "1"}, True, "did you mean retention.ms?"),
        ({"zzz": "1"}, True, None),
        ({"retention.ms": "5"}, True, None),  # refused for a reason of the controller's own
        ({"retenton.ms": "1"}, False, None),
    ],
)
def test_a_refused_config_is_told_with_what_was_meant(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], there: bool, hint: str | None
) -> None:
    config = Config("retention.ms", "1", None, None, "long", False, False, ())
    reader: Any = [config] if there else NotAuthorized("no")
    monkeypatch.setattr(create, "describe_each", lambda _client, asked: {asked[0]: reader})
    fake = _cluster("old", codes={"new": 40})
    with pytest.raises(Refused) as caught:
        plan_create(fake.client, [NewTopic("new", 1, 1, configs=given)])
    assert "INVALID_CONFIG" in caught.value.message
    assert (caught.value.hint or None) == hint
