"""Brokers die while partitions move: it is noticed and said, and there is a way out that ends well."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from reassign_testing import Arena

pytestmark = pytest.mark.long


def _brokers(arena: Arena) -> tuple[int, int, int, int]:
    """The controller, and the three others."""
    controller = arena.controller()
    first, second, third = sorted({1, 2, 3, 4} - {controller})
    return controller, first, second, third


def _half_way(arena: Arena) -> tuple[str, int, str, dict[str, Any]]:
    """A topic, the broker that is to receive it (not the controller), the plan, and the configs before."""
    _, first, second, receiver = _brokers(arena)
    topic = arena.make_topic("orders", [[first, second]], size=2_000_000)
    plan = arena.write_plan({(topic, 0): [first, receiver]})
    return topic, receiver, plan, arena.configs()


def _stops_and_says(arena: Arena, process: subprocess.Popen[str], receiver: int) -> None:
    """The run ends by itself with exit 5, names the broker and both ways out."""
    _, err = process.communicate(timeout=40)
    assert process.returncode == 5, err
    assert f"broker {receiver}" in err
    assert "kctl topic reassign resume" in err
    assert "kctl topic reassign cancel" in err
    assert arena.moving(), "what is in flight stays"


def test_receiver_dies_and_the_move_is_cancelled(arena: Arena) -> None:
    topic, receiver, plan, configs = _half_way(arena)
    before, known = arena.replicas(topic), arena.checksums(topic)
    with arena.running("apply", plan, "--throttle", "200kB/s", "--stall-after", "4s") as process:
        arena.wait_moving(topic)
        arena.kill(str(receiver))
        _stops_and_says(arena, process, receiver)
    status = arena.reassign("status")
    assert f"{receiver}" in status.out, str(status)
    # A broker that is down keeps its own settings: nobody else can change them (ZkAdminManager.getBrokerId).
    half = arena.reassign("cancel")
    assert half.code == 1, str(half)
    assert f"broker {receiver} is down" in half.err
    assert (arena.replicas(topic), arena.moving()) == (before, {})
    left = {name: values for name, values in arena.configs().items() if values != configs.get(name)}
    assert list(left) == [f"brokers/{receiver}"], "all others are as before"
    arena.start()
    done = arena.reassign("resume")
    assert done.code == 0, str(done)
    assert arena.configs() == configs
    assert arena.checksums(topic) == known


def test_receiver_dies_and_comes_back(arena: Arena) -> None:
    topic, receiver, plan, configs = _half_way(arena)
    known = arena.checksums(topic)
    with arena.running("apply", plan, "--throttle", "200kB/s", "--stall-after", "4s") as process:
        arena.wait_moving(topic)
        arena.kill(str(receiver))
        _stops_and_says(arena, process, receiver)
    early = arena.reassign("resume")
    assert early.code in {4, 5}, f"it is still down\n{early}"
    assert f"broker {receiver}" in early.err
    arena.start()
    done = arena.reassign("resume", "--throttle", "50MB/s")
    assert done.code == 0, str(done)
    assert arena.replicas(topic)[0][1] == receiver
    assert arena.in_sync(topic)
    assert arena.configs() == configs
    assert arena.checksums(topic) == known


def test_receiver_comes_back_while_it_is_waited_for(arena: Arena) -> None:
    """With time to wait the run itself goes on, after it said which broker is down."""
    topic, receiver, plan, configs = _half_way(arena)
    with arena.running("apply", plan, "--throttle", "400kB/s", "--stall-after", "60s") as process:
        arena.wait_moving(topic)
        arena.kill(str(receiver))
        assert process.stderr
        said = next((line for line in process.stderr if f"broker {receiver} is down" in line), None)
        assert said, "it ended without saying that the broker is down"
        arena.start()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert arena.replicas(topic)[0][1] == receiver
    assert arena.configs() == configs


def test_controller_dies(arena: Arena) -> None:
    controller, first, second, third = _brokers(arena)
    topic = arena.make_topic("orders", [[first, second]], size=2_000_000)
    configs = arena.configs()
    plan = arena.write_plan({(topic, 0): [first, third]})
    traffic = arena.traffic(topic)
    with arena.running("apply", plan, "--throttle", "300kB/s") as process:
        arena.wait_moving(topic)
        arena.kill(str(controller))
        out, err = process.communicate(timeout=90)
    traffic.stop()
    assert process.returncode == 0, f"{out}\n{err}"
    assert arena.controller() not in {controller, -1}
    assert arena.replicas(topic) == {0: (first, third)}
    assert arena.configs() == configs


def test_only_source_dies(arena: Arena) -> None:
    """Nothing can be copied from a broker that is down: said, and going back to it alone is refused."""
    _, source, receiver, _ = _brokers(arena)
    topic = arena.make_topic("orders", [[source]], size=1_500_000)
    configs, known = arena.configs(), arena.checksums(topic)
    plan = arena.write_plan({(topic, 0): [receiver]})
    with arena.running("apply", plan, "--throttle", "150kB/s", "--stall-after", "14s") as process:
        arena.wait_moving(topic)
        arena.kill(str(source))
        _, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert f"{topic}-0" in err
    assert "leader" in err
    before = arena.snapshot()
    refused = arena.reassign("cancel")
    assert refused.code == 4, str(refused)
    assert f"{topic}-0" in refused.err
    assert arena.snapshot() == before
    arena.start()
    done = arena.reassign("resume", "--throttle", "50MB/s")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {0: (receiver,)}
    assert (arena.configs(), arena.checksums(topic)) == (configs, known)
