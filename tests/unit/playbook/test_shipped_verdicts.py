"""What shipped playbooks make of what they find: their own expressions, on answers as operations give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kctl.base.outcomes import ItemResult
from kctl.cluster.log_dirs import LogDir
from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import NotFound, NotHealthy, OperationFailed
from kctl.groups.reset import OffsetChange
from kctl.groups.reset_rules import read_again, skipped
from kctl.health.disks import check_disks
from kctl.health.model import CheckStatus, Facts, HealthLimits
from kctl.lag.rules import LagRow, by_group, lag_of, lost_of
from kctl.model import ClusterState
from kctl.playbook.load import load_playbook
from kctl.playbook.operations import OperationResult
from kctl.playbook.run.run_settings import RunOutcome, RunSettings
from kctl.playbook.shipped import shipped
from playbook_runs import World, messages, resume, run, states

PATHS = {found.path.stem: found.path for found in shipped()}


def _run(name: str, world: World, *given: str) -> RunOutcome:
    return run(PATHS[name].read_text(), world, *given, source=PATHS[name])


def _failed(ending: RunOutcome) -> list[str]:
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
    assert messages(ending)["begun"] == "flink, beam: no commit for orders, so the lag is unknown"


def test_lost_messages_are_told_beside_a_partition_without_a_commit() -> None:
    """Nobody knows what such a partition lost, and what the others lost counts all the same."""
    world = _lag(_row("orders", 0, 3, start=5, end=5), _row("orders", 1, None))
    ending = _run("consumer-lag-gate", world, "groups=flink", "max_uncommitted=1")
    assert (_failed(ending), ending.exit_code) == (["lost"], 1)
    assert messages(ending)["lost"] == "2 messages were deleted before they were read: flink"
    ending = _run("consumer-lag-gate", _lag(_row("orders", 1, None)), "groups=flink", "max_uncommitted=1")
    assert messages(ending)["summary"] == "flink (Stable): lag was ?, now ?"


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
        "orders has min.insync.replicas=1, below 2; bare has min.insync.replicas=1, below 2"
    )
    assert _run("topic-audit", world, "min_insync_replicas=1").exit_code == 0


# --- cluster.health where replicas are meant


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("decommission-broker", ["in-sync", "healthy"]),
        ("expand-cluster", ["in-sync", "healthy"]),
        ("preferred-leader-rebalance", ["in-sync"]),
        ("reliability-validation", ["before", "after"]),
        ("set-up-cluster", ["healthy"]),
    ],
)
def test_a_full_disk_is_no_matter_of_replicas(name: str, steps: list[str]) -> None:
    """Disks above 90 % are what expand-cluster is for, and a laptop's disk says nothing of a cluster on it."""
    facts = Facts(ClusterState("c1", 1, {}, {}), {}, {1: [LogDir("/data", 100, 1, [])]}, {})  # 99 % used
    found = {each.id: each.arguments for each in load_playbook(name).all_steps() if each.kind == "cluster.health"}
    assert list(found) == steps
    for arguments in found.values():
        limits = HealthLimits(disk_percent=arguments.get("max_disk_percent", 90))
        assert check_disks(facts, limits).status is CheckStatus.OK


# --- decommission-broker


def _brokers(**replicas: int) -> list[dict[str, Any]]:
    """Broker 4 is down."""
    return [
        {"broker": int(key[1:]), "state": "down" if key == "b4" else "up", "replica_count": count}
        for key, count in replicas.items()
    ]


def _gone(*not_in_sync: list[dict[str, Any]]) -> World:
    """Broker 4 is gone for good and stays registered, so that the cluster is not healthy any more."""
    plan = {"moves": 5, "bytes": 100, "estimated_ms": 1000}
    before, after = _brokers(b1=5, b2=5, b3=5, b4=5), _brokers(b1=7, b2=7, b3=6, b4=0)
    return World(
        answers={
            "broker.list": [OperationResult(0, before), OperationResult(0, after)],
            "cluster.health": NotHealthy("brokers: broker 4 down"),
            "topic.reassign.plan": plan,
            "topic.reassign.apply": {"journal": "j"},
            "topic.list": [OperationResult(0, rows) for rows in not_in_sync],
        }
    )


def test_a_broker_that_is_gone_for_good_may_stay_registered() -> None:
    world = _gone([{"topic": "orders"}], [])
    ending = _run("decommission-broker", world, "broker=4", "dead=true")
    assert (_failed(ending), ending.exit_code) == ([], 0), messages(ending)
    assert [arguments for name, arguments, _ in world.calls if name == "topic.list"] == [
        {"under_replicated": True, "unavailable": True}
    ] * 2
    assert str(messages(ending)["next"]).endswith("with KRaft, unregister it with `kafka-cluster.sh unregister --id 4`")


def test_what_a_broker_that_is_gone_held_has_to_be_in_sync() -> None:
    ending = _run("decommission-broker", _gone([{"topic": "orders"}]), "broker=4", "dead=true")
    assert (_failed(ending), ending.exit_code) == (["synced"], 1)
    living = _run("decommission-broker", _gone([]), "broker=4")
    assert (_failed(living), living.exit_code) == (["in-sync"], 1)


# --- nightly-health-report


def _cluster(**answers: Any) -> World:
    """A cluster with two topics, and nothing wrong."""
    topics = [{"topic": "orders", "size_bytes": 2000}, {"topic": "parcels", "size_bytes": 1000}]
    kept = [{"name": "retention.ms", "value": "1000"}, {"name": "retention.bytes", "value": "-1"}]
    fine = {"doctor": {"findings": []}, "topic.list": topics, "config.get": kept, "lag.check": []}
    return World(answers={**fine, **answers})


def test_the_report_goes_on_without_the_settings_of_a_topic() -> None:
    """It was deleted meanwhile; what is known of the other one is told, and the disks are looked at."""

    def settings(arguments: Mapping[str, Any]) -> Any:
        kept = [{"name": "retention.ms", "value": "1000"}, {"name": "retention.bytes", "value": "-1"}]
        return NotFound("topic orders is not there") if arguments["resource"] == "topic/orders" else kept

    world = _cluster(**{"config.get": settings})
    ending = _run("nightly-health-report", world)
    assert (_failed(ending), ending.exit_code) == (["largest", "verdict"], 1), messages(ending)
    assert world.done("broker.log_dirs") == 1
    told = next(each for each in ending.steps if each.step == "sizes")
    assert "orders: 2 kB, retention unreadable" in str(told.message or told.notes)
    assert messages(ending)["verdict"] == "topic orders is not there"
    assert _run("nightly-health-report", _cluster()).exit_code == 0


def test_a_group_whose_lag_is_not_known_does_not_end_the_report() -> None:
    gone = by_group([LagRow("flink", "Empty", "orders", 0, 5, None, None, None, None)])
    world = _cluster(
        **{"lag.check": [OperationResult(5, [asdict(each) for each in gone], OperationFailed("no leader"))]}
    )
    ending = _run("nightly-health-report", world)
    assert (_failed(ending), ending.exit_code) == (["lag", "verdict"], 1)
    assert messages(ending)["verdict"] == "no leader"


# --- set-up-cluster

HERE = [{"name": "dev", "layout": "single"}]
STATUS = {"bootstrap_servers": ["127.0.0.1:9092"], "zookeeper": "127.0.0.1:2181"}
NO_TOPIC = NotFound("no topic matches kctl-set-up-check")


def _machine(clusters: list[dict[str, str]], **answers: Any) -> World:
    read = OperationResult(0, [{"value": "set up"}])
    fine = {"cluster.list": clusters, "cluster.status": STATUS, "topic.list": NO_TOPIC, "consume": read}
    return World(answers={**fine, **answers})


TRIAL = ["topic.create", "produce", "consume", "topic.delete"]


def _tried(world: World) -> list[str]:
    return [name for name, _, _ in world.calls if name in TRIAL]


def test_a_trial_that_came_to_no_end_is_done_by_the_next_run() -> None:
    given = ("cluster=dev", "layout=single")
    new, there = _machine([]), _machine(HERE)
    assert (_run("set-up-cluster", new, *given).exit_code, _tried(new)) == (0, TRIAL)
    assert (_run("set-up-cluster", there, *given).exit_code, _tried(there)) == (0, [])
    left = _machine(HERE, **{"topic.list": [{"topic": "kctl-set-up-check"}]})
    assert (_run("set-up-cluster", left, *given).exit_code, _tried(left)) == (0, TRIAL)
    broken = _machine(HERE, **{"topic.list": [{"topic": "kctl-set-up-check"}], "consume": OperationFailed("silent")})
    ending = _run("set-up-cluster", broken, *given)
    assert (_failed(ending), ending.exit_code) == (["read"], 5)


def test_resume_finds_the_topic_that_it_goes_on_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Were it taken away after the failure, there would be nothing to read."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    world = _machine([], consume=[OperationFailed("silent"), OperationResult(0, [{"value": "set up"}])])
    path = PATHS["set-up-cluster"]
    failed = run(path.read_text(), world, "cluster=dev", "layout=single", source=path, journaled=True)
    assert (_failed(failed), _tried(world)) == (["read"], ["topic.create", "produce", "consume"])
    assert (resume(world).exit_code, _tried(world)) == (
        0,
        ["topic.create", "produce", "consume", "consume", "topic.delete"],
    )


# --- reset-group-by-time


def _change(partition: int, old: int | None, new: int, result: ItemResult) -> dict[str, Any]:
    log = LogOffsets(0, 100)
    difference = None if old is None else new - old
    return asdict(OffsetChange(
        "flink", "orders", partition, result, old, new, difference, skipped(old, new, log), read_again(old, new, log),
        log.start, log.end,
    ))  # fmt: skip


def _group(planned: list[dict[str, Any]], done: list[dict[str, Any]], after: Mapping[int, int | None]) -> World:
    """A group before and after a reset. after: by partition, what it has committed in the end."""
    offsets = [{"topic": "orders", "partition": number, "committed_offset": at} for number, at in after.items()]
    return World(
        answers={
            "group.describe": [{"members": [], "offsets": offsets}],
            "group.reset_offsets": [OperationResult(0, planned), OperationResult(0, done)],
        }
    )


RESET = ("group=flink", "to=2026-11-22T14:00:00Z", "topics=orders")


def test_a_partition_without_a_commit_is_reset_as_well() -> None:
    """What is read again of it nobody knows; of the others it is counted."""
    planned = [_change(0, 30, 10, ItemResult.WOULD_RESET), _change(1, None, 10, ItemResult.WOULD_RESET)]
    done = [{**row, "result": "reset"} for row in planned]
    world = _group(planned, done, {0: 10, 1: 10})
    ending = _run("reset-group-by-time", world, *RESET, "max_read_again=20")
    assert (_failed(ending), ending.exit_code) == ([], 0), messages(ending)
    (asked,) = world.asked
    assert asked.endswith("20 messages are read again, 0 are skipped; 1 of the partitions had no commit?")


@pytest.mark.parametrize(
    ("planned", "done", "after", "message"),
    [
        (10, 10, 10, None),
        (100, 107, 107, None),  # the log's end, which moved on
        (0, 5, 5, None),  # its start, which did
        (10, 10, 30, "orders-0 is at 30, not at 10"),
        (10, 10, None, "orders-0 is at no offset, not at 10"),
        (10, 10, 9, "orders-0 is at 9, not at 10"),
    ],
)
def test_a_group_is_exactly_where_it_was_put(planned: int, done: int, after: int | None, message: str | None) -> None:
    world = _group(
        [_change(0, 30, planned, ItemResult.WOULD_RESET)], [_change(0, 30, done, ItemResult.RESET)], {0: after}
    )
    ending = _run("reset-group-by-time", world, *RESET)
    assert (messages(ending)["compare"], ending.exit_code) == (message, 1 if message else 0)


def test_a_dry_run_of_a_reset_does_not_fail_for_what_it_did_not_do() -> None:
    planned = [_change(0, 30, 10, ItemResult.WOULD_RESET)]
    path = PATHS["reset-group-by-time"]
    world = _group(planned, planned, {0: 30})
    ending = run(path.read_text(), world, *RESET, source=path, settings=RunSettings(check=True))
    assert (states(ending)["reset"], states(ending)["compare"], ending.exit_code) == ("would change", "unknown", 0)


def test_a_group_that_is_there_already_is_compared_as_well() -> None:
    world = _group([_change(0, 10, 10, ItemResult.UNCHANGED)], [], {0: 10})
    ending = _run("reset-group-by-time", world, *RESET)
    assert (states(ending)["reset"], ending.exit_code) == ("skipped", 0)
    assert messages(ending)["summary"] == "nothing to reset: flink is already at these offsets"
