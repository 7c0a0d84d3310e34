"""kctl killed with SIGKILL in the middle of its work, and Ctrl-C: what is left is completed by the next command.

The moments are files and processes that appear on the way, watched from outside: nothing in kctl is made for this.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl_testing import Kctl, eventually
from process_moments import Reached, run_until

CREATE = ["cluster", "create", "c", "--use", "--layout", "single", "--heap", "256m"]

# On the way of a create: (folder of the cluster, HOME) → has it come so far?
MOMENTS: dict[str, Reached] = {
    "the folder": lambda c, _: c.exists(),
    "cluster.json": lambda c, _: (c / "cluster.json").exists(),
    "the first config file": lambda c, _: (c / "zookeeper-1/zoo.cfg").exists(),
    "the intent to start ZooKeeper": lambda c, _: (c / "zookeeper-1/process.json").exists(),
    "ZooKeeper's process": lambda _, home: "zookeeper-1" in processes_of(home),
    "the intent to start the broker": lambda c, _: (c / "broker-1/process.json").exists(),
    "the broker's process": lambda _, home: "broker-1" in processes_of(home),
    "the broker's first log": lambda c, _: (c / "broker-1/logs/server.log").exists(),
}
QUICK = {"cluster.json", "the broker's process"}


@pytest.fixture(autouse=True)
def _nothing_left(own_kctl: Kctl) -> Iterator[None]:
    with nothing_left_running(own_kctl):
        yield


@pytest.mark.parametrize(
    "moment", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in MOMENTS]
)
def test_a_create_that_was_killed(moment: str, own_kctl: Kctl) -> None:
    assert run_until(own_kctl, CREATE, MOMENTS[moment], signal.SIGKILL) == -signal.SIGKILL
    found = own_kctl("cluster", "start", "c", timeout=120)
    if found.code == 4:  # killed before cluster.json was there: nothing runs, and create does it again
        assert "incomplete" in found.err
        assert processes_of(own_kctl.home) == {}
        own_kctl.ok(*CREATE, timeout=120)
    else:
        assert found.code == 0, str(found)
    running = processes_of(own_kctl.home)
    assert running.keys() == {"zookeeper-1", "broker-1"}
    assert own_kctl.json("cluster", "status", "c")["healthy"]
    own_kctl.ok("topic", "list", "--context", "c")
    again = own_kctl.json("cluster", "start", "c")
    assert again["started"] == []
    assert processes_of(own_kctl.home) == running


def test_a_start_that_was_killed_is_adopted(own_kctl: Kctl) -> None:
    own_kctl.ok(*CREATE, "--no-start")
    moment = MOMENTS["the broker's process"]
    assert run_until(own_kctl, ["cluster", "start", "c"], moment, signal.SIGKILL) == -signal.SIGKILL
    before = processes_of(own_kctl.home)
    assert before.keys() == {"zookeeper-1", "broker-1"}
    result = own_kctl.json("cluster", "start", "c", timeout=120)
    assert result["started"] == []
    assert processes_of(own_kctl.home) == before


def test_a_stop_that_was_killed_is_completed(own_kctl: Kctl) -> None:
    own_kctl.ok(*CREATE, timeout=120)
    record = clusters_dir(own_kctl) / "c/broker-1/process.json"

    def stopping(_folder: Path, _home: Path) -> bool:
        return '"stopped"' in record.read_text()

    run_until(own_kctl, ["cluster", "stop", "c", "--yes"], stopping, signal.SIGKILL)
    own_kctl.ok("cluster", "stop", "c", "--yes", timeout=90)
    assert processes_of(own_kctl.home) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("moment", ["cluster.json", "the broker's process"])
def test_an_interrupted_create_cleans_up(moment: str, number: signal.Signals, own_kctl: Kctl) -> None:
    assert run_until(own_kctl, CREATE, MOMENTS[moment], number) == 130
    assert processes_of(own_kctl.home) == {}
    assert own_kctl.json("cluster", "list") == []
    assert own_kctl.json("context", "list") == []
    assert not (clusters_dir(own_kctl) / "c").exists()


def test_an_interrupted_start_stops_what_it_started(own_kctl: Kctl) -> None:
    own_kctl.ok(*CREATE, "--no-start")
    own_kctl.ok("cluster", "start", "c", "--node", "zookeeper-1", timeout=60)
    before = processes_of(own_kctl.home)
    assert run_until(own_kctl, ["cluster", "start", "c"], MOMENTS["the broker's process"], signal.SIGINT) == 130
    assert processes_of(own_kctl.home) == before
    assert own_kctl.json("cluster", "list")[0]["state"] == "partial"


def test_two_at_once(own_kctl: Kctl) -> None:
    """The second waits a moment, then says who works on the cluster; two creates of one name make one cluster."""
    with own_kctl.running(*CREATE) as first:
        eventually((clusters_dir(own_kctl) / "c/cluster.json").exists, what="the first create has begun")
        second = own_kctl(*CREATE)
        assert second.code == 4
        assert f"pid {first.pid}" in second.err or "exists" in second.err
        started = own_kctl("cluster", "start", "c", timeout=90)
        assert started.code in {0, 4}
        assert first.wait(timeout=120) == 0
    assert processes_of(own_kctl.home).keys() == {"zookeeper-1", "broker-1"}
