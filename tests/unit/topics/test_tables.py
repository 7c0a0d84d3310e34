"""What `kctl topic describe` says above its tables."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.cluster import topics as choose
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource
from kctl.commands.app import main
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.topic.describe import _tables, tables
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.topics import describe as describing
from kctl.topics import listing
from kctl.topics.describe import DescribedTopics, PartitionProblem, describe


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        ([(1, 2, 3), (1, 2, 3, 4)], "t: 2 partitions, replication factor 3 to 4"),
        ([(1, 2), (2, 3)], "t: 2 partitions, replication factor 2"),
    ],
)
def test_replication_factors_that_differ_are_said(replicas: list[tuple[int, ...]], said: str) -> None:
    partitions = tuple(PartitionState("t", n, row[0], 0, row, row) for n, row in enumerate(replicas))
    topic = describe(TopicState("t", False, None, partitions), [], None)
    assert tables(topic)[0].title == said


@pytest.mark.parametrize(("isr", "marks"), [((1, 2), False), ((1,), True)])
def test_no_room_for_marks_when_there_are_none(isr: tuple[int, ...], marks: bool) -> None:
    topic = describe(TopicState("t", False, None, (PartitionState("t", 0, 1, 0, (1, 2), isr),)), [], None)
    sized = replace(topic, partitions=tuple(replace(p, size_bytes=1) for p in topic.partitions))
    assert ("marks" in [column.key for column in tables(sized)[0].columns]) is marks


@pytest.mark.parametrize(("asked", "mark"), [([PartitionProblem.AT_MIN_ISR], "at min ISR"), ([], "")])
def test_all_in_sync_and_at_the_minimum_is_marked_when_it_was_asked_for(
    asked: list[PartitionProblem], mark: str
) -> None:
    """As a topic of two replicas and min.insync.replicas=2 always is: elsewhere no mark."""
    least = ConfigEntry("min.insync.replicas", "2", ConfigSource.TOPIC)
    topic = describe(TopicState("t", False, None, (PartitionState("t", 0, 1, 0, (1, 2), (1, 2)),)), [least], None)
    table, *_ = _tables(DescribedTopics([topic], [], []), asked)
    assert [row["marks"] for row in table.rows] == [mark]


@pytest.mark.usefixtures("one_command_tree")
@pytest.mark.parametrize(("options", "shown"), [(["--under-replicated"], ["__consumer_offsets"]), ([], ["t"])])
@pytest.mark.parametrize("command", ["describe", "list"])
def test_filters_by_health_take_kafkas_own_topics(
    command: str,
    options: list[str],
    shown: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As kafka-topics does: "none is under-replicated" would be wrong while the offsets of groups are."""
    own = PartitionState("__consumer_offsets", 0, 1, 0, (1, 2), (1,))
    fine = PartitionState("t", 0, 1, 0, (1,), (1,))
    topics = {p.topic: TopicState(p.topic, p is own, None, (p,)) for p in (own, fine)}
    state = ClusterState("c", 1, {1: Broker(1, "h", 1)}, topics)
    client: Any = SimpleNamespace(metadata=lambda *_: state, api_version=lambda _: None)
    monkeypatch.setattr(describing, "fetch_topic_configs", lambda _, names, *__: {name: [] for name in names})
    monkeypatch.setattr(describing, "reassignments_if_known", lambda *_: {})
    monkeypatch.setattr(choose, "may_describe_all_topics", lambda *_: True)
    monkeypatch.setattr(listing, "adding_replicas", lambda *_: {})
    monkeypatch.setattr(Invocation, "connect", lambda _: nullcontext(client))
    assert main(["topic", command, *options, "--bootstrap-server", "h:1", "-o", "json"]) == 0
    assert [row["topic"] for row in json.loads(capsys.readouterr().out)] == shown
