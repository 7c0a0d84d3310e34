"""Moves whose journal is not here: seen, taken back and rid of their throttles with nothing but the plan's file."""

from __future__ import annotations

import json

import pytest

from reassign_testing import Arena


def _slowed(arena: Arena, topic: str) -> None:
    """As a lost run would have left it: rates on two brokers, the replicas of its move and of another in the lists."""
    arena.throttle(topic, 20_000, ("0:1,0:2,5:1", "0:3"), giver=1, receiver=3)


@pytest.mark.parametrize("current", [True, False], ids=["kctl's file", "Kafka's file"])
def test_what_is_in_flight_goes_back(small_arena: Arena, current: bool) -> None:
    arena = small_arena
    topic = arena.make_topic("lost", [[1, 2]], size=1_000_000)
    plan = arena.write_plan({(topic, 0): [2, 3]}, **({} if current else {"current": None}))
    _slowed(arena, topic)
    arena.alter({(topic, 0): [2, 3]})
    arena.wait_moving(topic)

    seen = json.loads(arena.reassign("status", "-o", "json").out)
    assert {(row["kind"], row["name"]) for row in seen["throttles"]} >= {
        ("broker", "1"),
        ("broker", "3"),
        ("topic", topic),
    }
    told = arena.reassign("status")
    assert "throttles are set: rates on brokers 1, 3" in told.err, str(told)
    assert "cancel --plan FILE" in told.err

    done = arena.reassign("cancel", "--plan", plan)
    assert done.code == 0, str(done)
    for said in (
        f"{topic}-0: returns to its original replicas",
        "broker 1: leader.replication.throttled.rate=20000 is deleted",
    ):
        assert said in done.err, str(done)
    if current:
        assert arena.replicas(topic) == {0: (1, 2)}
    else:
        assert "original order of the replicas" in done.err, str(done)
        assert set(arena.replicas(topic)[0]) == {1, 2}
    assert not arena.moving()
    assert arena.configs()[f"topics/{topic}"] == {
        "segment.bytes": "524288",
        "min.insync.replicas": "1",
        "leader.replication.throttled.replicas": "5:1",
    }
    assert not any(values for name, values in arena.configs().items() if name.startswith("brokers/"))
    again = arena.reassign("cancel", "--plan", plan)
    assert again.code == 0, str(again)
    assert "no partition of" in again.err


def test_verify_sees_rates_without_a_journal(small_arena: Arena) -> None:
    arena = small_arena
    topic = arena.make_topic("done", [[1, 2]])
    plan = arena.write_plan({(topic, 0): [1, 2]})
    assert arena.reassign("verify", plan).code == 0
    setting = "replica_alter_log_dirs_io_max_bytes_per_second"
    arena.set_configs("brokers", "2", **{setting: "20000"})
    found = arena.reassign("verify", plan, "-o", "json")
    assert found.code == 1, str(found)
    assert [(row["name"], row["setting"]) for row in json.loads(found.out)["throttles_left"]] == [
        ("2", setting.replace("_", "."))
    ]
    assert "cancel --plan FILE" in found.err, str(found)
    assert arena.reassign("cancel", "--plan", plan).code == 0
    assert arena.reassign("verify", plan).code == 0
