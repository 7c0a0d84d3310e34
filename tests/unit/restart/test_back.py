"""Bringing brokers back: what is taken for down, and that one broker's failure keeps no other one down."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.base import journal
from kctl.model import Broker
from kctl.restart import journals
from kctl.restart.restart_run import NotFinished, RestartOptions, RestartRun
from kctl.restart.run import carry_out
from kctl.restart.steps import BrokerPhase
from rolling_testing import QUICK, Simulated, open_run, restart

RACKS = {node: Broker(node, f"host{node}", 9092, "a" if node < 3 else "b") for node in (1, 2, 3)}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


class Away(Simulated):
    """Nobody is reached at first, though all run."""

    looks = 0

    def registered(self) -> frozenset[int]:
        self.looks += 1
        return frozenset() if self.looks <= 3 else super().registered()


# --- what is taken for down -------------------------------------------------------------------------------------------


def test_brokers_that_nobody_reached_are_restarted_all_the_same() -> None:
    cluster = Away()
    run = restart(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 2", "stop 3"]
    assert {row.phase for row in run.state.brokers.values()} == {BrokerPhase.DONE}
    assert "broker 1 is up, so it is not started" in cluster.notes


def test_a_broker_in_its_stop_that_nobody_reached_waits_for_the_gate() -> None:
    cluster = Away(started_at={3: 0.0}, in_sync_after_s=100)  # 3 is behind
    with open_run(cluster).journal as held:
        held.append("stop", broker=2)
    with pytest.raises(NotFinished, match="broker 1 cannot be stopped: t-0 has 1, 2 in sync"):
        restart(cluster)
    assert (cluster.acted, cluster.least) == ([], 3)


def test_a_restarted_broker_that_nobody_reached_stays_restarted() -> None:
    cluster = Away(who_controls=2)
    with open_run(cluster).journal as held:
        for step in ("stop", "stopped", "start", "started", "in_sync"):
            held.append(step, broker=1)
    restart(cluster)
    assert cluster.acted == ["stop 3", "start 3", "stop 2", "start 2"]


# --- one that fails keeps no other one down ---------------------------------------------------------------------------


def _two_at_once(cluster: Simulated) -> RestartRun:
    held, found = journals.begin_or_resume(
        "dev", "cluster-id", list(RACKS.values()), journals.find_unfinished("cluster-id")
    )
    return RestartRun(
        cluster, cluster, held, found, RestartOptions(max_unavailable=2, broker_timeout_s=60), cluster, cluster
    )


def test_the_first_of_a_batch_is_started_when_the_second_does_not_stop() -> None:
    cluster = Simulated(min_isr=1, hangs={2})
    run = _two_at_once(cluster)
    with run.journal, pytest.raises(NotFinished, match="broker 2 did not stop") as caught:
        carry_out(run)
    assert cluster.acted == ["stop 1", "stop 2", "start 1"]
    assert cluster.up == {1, 2, 3}
    assert "broker 1 is started, not in sync yet, and up now; broker 2 is being stopped, and up now" in str(
        caught.value.hint
    )
    cluster.hangs = set()
    run = _two_at_once(cluster)
    with run.journal:
        carry_out(run)
    assert (run.state.outcome, cluster.up) == ("done", {1, 2, 3})


def test_one_that_cannot_start_either_is_told_beside_the_one_that_did_not_stop() -> None:
    cluster = Simulated(min_isr=1, hangs={2}, stays_down={1})
    run = _two_at_once(cluster)
    with run.journal, pytest.raises(NotFinished, match="broker 2 did not stop"):
        carry_out(run)
    assert "broker 1 did not start: it ended" in cluster.notes


@pytest.mark.parametrize("up", [{3}, {2}, {1}])
def test_one_that_cannot_start_keeps_no_other_down(up: set[int]) -> None:
    cluster = Simulated(min_isr=1, up=set(up), stays_down={1, 2, 3} - up - {max({1, 2, 3} - up)})
    with pytest.raises(NotFinished, match="did not start"):
        restart(cluster)
    assert cluster.up == up | {max({1, 2, 3} - up)}


def test_of_several_failures_the_first_ends_it_and_the_others_are_told() -> None:
    cluster = Simulated(min_isr=1, up={3}, stays_down={1, 2})
    with pytest.raises(NotFinished, match="broker 1 did not start"):
        restart(cluster)
    assert "broker 2 did not start: it ended" in cluster.notes


class Quorum(Simulated):
    """Brokers that vote: none answers before two are up."""

    def answers(self, broker: int) -> bool:
        return broker in self.up and len(self.up) > 1


def test_brokers_that_need_each_other_to_answer_are_started_together() -> None:
    cluster = Quorum(up=set())
    with open_run(cluster).journal as held:
        held.append("stop", broker=1)
        held.append("stopped", broker=1)
    run = restart(cluster)
    assert cluster.acted[:3] == ["start 1", "start 2", "start 3"]
    assert (run.state.outcome, cluster.up) == ("done", {1, 2, 3})


def test_one_that_does_not_answer_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Simulated(min_isr=1, up={3})
    monkeypatch.setattr(cluster, "answers", lambda broker: broker in cluster.up and broker != 1)
    with pytest.raises(NotFinished, match="broker 1 was started, but does not respond"):
        restart(cluster)
    assert QUICK.broker_timeout_s <= cluster.now_s < QUICK.broker_timeout_s + 15
    path = journals.find_unfinished("cluster-id")
    assert path is not None
    assert [entry["broker"] for entry in journal.read(path) if entry["step"] == "started"] == [2]
