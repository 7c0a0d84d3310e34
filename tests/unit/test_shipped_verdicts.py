"""What shipped playbooks make of what they find: their own expressions, on answers as operations give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pytest

from kctl.lag.rules import LagRow, by_group, lag_of, lost_of
from kctl.playbook.engine import Ending
from kctl.playbook.shipped import shipped
from playbook_runs import World, messages, run, states

PATHS = {found.path.stem: found.path for found in shipped()}


def _run(name: str, world: World, *given: str) -> Ending:
    return run(PATHS[name].read_text(), world, *given, source=PATHS[name])


def _failed(ending: Ending) -> list[str]:
    """The steps that failed; an expression without a value makes a step fail as well, with exit code 2."""
    return [step for step, state in states(ending).items() if state == "failed"]


# --- consumer-lag-gate


def _row(topic: str, partition: int, committed: int | None, *, start: int = 0, end: int = 10) -> LagRow:
    lag, lost = lag_of(committed, start, end), lost_of(committed, start)
    return LagRow("flink", "Stable", topic, partition, committed, start, end, lag, lost)


def _lag(*rows: LagRow) -> World:
    """`kctl lag` of a group with these partitions. Those without a commit are known of by the group's members only."""

    def answer(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        topics, members = arguments["topic"], arguments.get("members", True)
        seen = [row for row in rows if row.topic in (topics or [row.topic])]
        return [asdict(each) for each in by_group(row for row in seen if members or row.committed_offset is not None)]

    return World(answers={"lag.check": answer})


@pytest.mark.parametrize(
    ("committed", "given", "failed"),
    [
        ([10, 10], (), []),
        ([10, None], (), ["committed"]),
        ([10, None], ("max_uncommitted=1",), []),
        ([None, None], (), ["committed"]),
        ([None, None], ("members=true",), ["committed"]),
        ([None, None], ("max_uncommitted=2",), []),
        ([], (), ["begun"]),
        ([10, 10], ("topics=parcels",), ["begun"]),
    ],
)
def test_a_group_that_has_not_read_is_not_let_through(
    committed: Sequence[int | None], given: Sequence[str], failed: list[str]
) -> None:
    world = _lag(*(_row("orders", partition, offset) for partition, offset in enumerate(committed)))
    ending = _run("consumer-lag-gate", world, "groups=flink", *given)
    assert (_failed(ending), ending.exit_code) == (failed, 1 if failed else 0), messages(ending)


def test_the_gate_says_which_groups_have_no_commit() -> None:
    ending = _run("consumer-lag-gate", _lag(), "groups=flink,beam", "topics=orders")
    assert messages(ending)["begun"] == "flink, beam: no commit for orders, so that nobody knows the lag"


def test_lost_messages_are_told_beside_a_partition_without_a_commit() -> None:
    """Nobody knows what such a partition lost, and what the others lost counts all the same."""
    world = _lag(_row("orders", 0, 3, start=5, end=5), _row("orders", 1, None))
    ending = _run("consumer-lag-gate", world, "groups=flink", "max_uncommitted=1")
    assert (_failed(ending), ending.exit_code) == (["lost"], 1)
    assert messages(ending)["lost"] == "2 messages were deleted before they were read, by flink"
    ending = _run("consumer-lag-gate", _lag(_row("orders", 1, None)), "groups=flink", "max_uncommitted=1")
    assert messages(ending)["told"] == "flink (Stable) was ? messages behind, and is ?"


# --- topic-audit


def _topic(name: str, **configs: str) -> dict[str, Any]:
    """As `kctl topic describe` has it: only the configs that are not Kafka's default."""
    entries = [{"name": key.replace("_", "."), "value": value, "source": "topic"} for key, value in configs.items()]
    partition = {"partition": 0, "replicas": [1, 2, 3]}
    return {
        "topic": name, "replication_factor": 3, "config_entries": entries, "configs_error": None,
        "partitions": [partition],
    }  # fmt: skip


def _topics(*topics: dict[str, Any]) -> World:
    return World(answers={"topic.describe": list(topics), "doctor": {"findings": []}})


def test_the_audit_knows_kafkas_default_of_min_insync_replicas() -> None:
    """Nothing sets it: neither the topic nor a broker."""
    world = _topics(_topic("orders"), _topic("safe", min_insync_replicas="2"), _topic("bare", retention_ms="-1"))
    ending = _run("topic-audit", world)
    assert (_failed(ending), ending.exit_code) == (["min-insync", "verdict"], 1)
    assert messages(ending)["min-insync"] == (
        "orders has min.insync.replicas=1, fewer than 2; bare has min.insync.replicas=1, fewer than 2"
    )
    assert _run("topic-audit", world, "min_insync_replicas=1").exit_code == 0
