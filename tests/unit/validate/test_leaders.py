"""Leaders of other topics after a validation: elected where they were, as far as they can be."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from kctl.base.outcomes import ItemResult
from kctl.errors import NotAuthorized
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.validate import leaders
from kctl.validate import run as run_module
from kctl.validate.leaders import moved_leaders, non_preferred, restore_leaders
from kctl.validate.leftovers import DOWN
from kctl.validate.run import ValidationRun

BROKERS = {node: Broker(node, "h", 9092, None) for node in (1, 2, 3)}


def state(**leader_and_isr: tuple[int, tuple[int, ...]]) -> ClusterState:
    """Topics of one partition with the replicas 1, 2 and 3; − in a name is written as _."""
    topics = {}
    for key, (leader, isr) in leader_and_isr.items():
        name = key.replace("_", "-")
        row = PartitionState(name, 0, leader, 0, (1, 2, 3), isr, ())
        topics[name] = TopicState(name, False, None, (row,))
    return ClusterState("id", 1, BROKERS, topics)


ALL = (1, 2, 3)


def test_what_was_moved() -> None:
    before = non_preferred(state(a=(1, ALL), b=(2, ALL), kctl_validate_x=(1, ALL)))
    assert before == {TopicPartition("b", 0)}
    now = state(a=(2, ALL), b=(3, ALL), c=(1, ALL), kctl_validate_x=(3, ALL))
    assert [p.topic for p in moved_leaders(now, before)] == ["a"]


def test_it_waits_until_they_are_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """And elects then."""
    elected: list[str] = []

    def carry_out(_client: Any, plan: list[Any]) -> list[Any]:
        elected.extend(row.topic for row in plan if row.result is ItemResult.WOULD_ELECT)
        return [
            mock.Mock(
                topic=row.topic,
                result=ItemResult.ELECTED if row.result is ItemResult.WOULD_ELECT else ItemResult.SKIPPED,
            )
            for row in plan
        ]

    monkeypatch.setattr(leaders, "carry_out", carry_out)
    monkeypatch.setattr(leaders, "_POLL_S", 0.0)
    client = mock.Mock()
    client.metadata.side_effect = [state(a=(2, (2, 3)), b=(3, ALL)), state(a=(2, ALL), b=(3, ALL))]
    assert restore_leaders(client, ()) == []
    assert elected == ["a", "b"]
    client.metadata.side_effect = [state(a=(2, (2, 3)), b=(3, ALL))]
    assert [row.topic for row in restore_leaders(client, (), wait_s=0)] == ["a"]
    assert elected == ["a", "b", "b"]


def _run(monkeypatch: pytest.MonkeyPatch, *steps: str) -> ValidationRun:
    monkeypatch.setattr(run_module, "clean_up", lambda *_, **__: None)
    entries = [{"step": step} for step in steps]
    return ValidationRun(
        "12345678", mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(entries=entries),
        mock.Mock(), mock.Mock(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ([], None),
        ([mock.Mock(tp="a-0", reason="not in sync")], "a-0: not in sync"),
        ([mock.Mock(tp="a-0", reason="not in sync")] * 3, "a-0: not in sync, and 2 more partitions"),
        (NotAuthorized("no right"), "no right"),
    ],
    ids=["all", "one", "three", "an error"],
)
def test_what_could_not_be_put_back_is_told(monkeypatch: pytest.MonkeyPatch, outcome: Any, told: str | None) -> None:
    monkeypatch.setattr(run_module, "restore_leaders", mock.Mock(side_effect=[outcome]))
    with _run(monkeypatch, DOWN) as run:
        pass
    assert run.not_led == told


def test_where_nothing_was_broken_nothing_is_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    called = mock.Mock()
    monkeypatch.setattr(run_module, "restore_leaders", called)
    with _run(monkeypatch):
        pass
    assert not called.called
