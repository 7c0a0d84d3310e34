"""A rolling restart of a simulated cluster: every order of events, and kctl killed at each entry of its journal.

The simulation is rolling_testing's; tests/integration has real clusters.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from kctl.base import journal
from kctl.base.journal import Journal
from kctl.errors import Busy, InvalidFile, OperationFailed, Refused
from kctl.model import Broker
from kctl.restart import journals
from kctl.restart.plan import make_plan, read_unfinished, refuse_blocked, result_of
from kctl.restart.restart_run import NotFinished, RestartOptions, RestartRun
from kctl.restart.run import carry_out
from kctl.restart.steps import BrokerPhase, RestartStep, replay, situation
from rolling_testing import BROKERS, QUICK, Simulated, open_run, restart


class Killed(BaseException):
    """kill -9 of kctl."""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_one_after_the_other_and_the_controller_last() -> None:
    cluster = Simulated(who_controls=2)
    run = restart(cluster)
    assert cluster.acted == ["stop 1", "start 1", "stop 3", "start 3", "stop 2", "start 2"]
    assert cluster.least == 2
    assert (cluster.elections, run.elected_count, run.state.outcome) == (1, 2, "done")
    row = run.state.brokers[1]
    assert (row.phase, row.stop_ms, row.start_ms, row.longest_under_replicated_ms) == (
        BrokerPhase.DONE,
        1000,
        3000,
        1234,
    )
    assert row.in_sync_ms is not None
    assert 9000 <= row.in_sync_ms <= 10_000  # 1 s down, 3 s up, 5 s behind
    assert journals.find_unfinished("cluster-id") is None


def test_a_controller_that_moves_is_last_as_it_is_then() -> None:
    cluster = Simulated(who_controls=1)
    stop = cluster.stop

    def moving(broker: int, *, timeout_s: float) -> None:
        stop(broker, timeout_s=timeout_s)
        if broker == 2:
            cluster.who_controls = 3  # it failed over meanwhile

    cluster.stop = moving  # type: ignore[method-assign]
    restart(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 2", "stop 1", "stop 3"]


@pytest.mark.parametrize("elect", [True, False])
def test_only_the_brokers_that_were_asked_for(elect: bool) -> None:
    cluster = Simulated(who_controls=1)
    run = restart(cluster, RestartOptions(elect=elect), only=[1, 3])
    assert cluster.acted == ["stop 3", "start 3", "stop 1", "start 1"]
    assert (cluster.elections, run.elected_count) == ((1, 2) if elect else (0, None))


def test_a_topic_that_cannot_be_protected_is_not_waited_for() -> None:
    cluster = Simulated(replicas="12", min_isr=2)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster)
    assert [row.topic for row in plan.unprotected] == ["t"]
    assert plan.blockers == ()
    restart(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 2", "stop 3"]


def test_with_racks_some_go_together() -> None:
    cluster = Simulated(min_isr=1)
    held = journals.begin("dev", "cluster-id", [Broker(node, "h", 1, "a" if node < 3 else "b") for node in (1, 2, 3)])
    run = RestartRun(
        cluster, cluster, held, replay(held.entries, name="j"), RestartOptions(max_unavailable=2), cluster, cluster
    )
    with held:
        carry_out(run)
    assert cluster.acted == ["stop 1", "stop 2", "start 1", "start 2", "stop 3", "start 3"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_broker_that_does_not_start_ends_it_there_and_the_next_run_begins_with_it() -> None:
    cluster = Simulated(stays_down={2})
    with pytest.raises(NotFinished) as caught:
        restart(cluster)
    assert caught.value.exit_code == 5
    assert "broker 2 did not start" in caught.value.message
    hint = str(caught.value.hint)
    assert "FATAL" in hint
    assert "broker 2 is being started, and down now; restarted: 1; not restarted: 3" in hint
    assert "run the same command again to resume" in hint
    assert cluster.up == {1, 3}
    cluster.stays_down, cluster.acted = set(), []
    plan = make_plan(
        cluster, "dev", BROKERS, QUICK, clock=cluster, resumes=journals.find_unfinished("cluster-id"),
        state=read_unfinished(journals.find_unfinished("cluster-id") or Path(), None),
    )  # fmt: skip
    assert [row.broker for row in plan.brokers] == [2, 3]
    assert plan.restarted == (1,)
    run = restart(cluster)
    assert cluster.acted == ["start 2", "stop 3", "start 3"]
    result = result_of(run, plan, 0.0)
    assert (result.outcome, result.resumed) == ("done", True)
    assert [row.result for row in result.brokers] == ["restarted"] * 3


def test_a_broker_that_does_not_stop_ends_it_there() -> None:
    cluster = Simulated(hangs={1})
    with pytest.raises(NotFinished, match="broker 1 did not stop") as caught:
        restart(cluster)
    assert "broker 1 is being stopped, and up now; not restarted: 2, 3" in str(caught.value.hint)
    cluster.hangs = set()
    restart(cluster)  # it never went: its turn comes again
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 1", "stop 2", "stop 3"]


def test_a_replica_that_stays_behind_keeps_the_next_broker_up() -> None:
    cluster = Simulated(in_sync_after_s=1000)
    with pytest.raises(NotFinished, match=r"after 60 s: 1 partition not in sync \(t-0\)"):
        restart(cluster)
    assert cluster.acted == ["stop 1", "start 1"]
    assert cluster.up == {1, 2, 3}


def test_the_time_in_all_ends_it_between_brokers() -> None:
    cluster = Simulated()
    with pytest.raises(NotFinished, match="not finished within 5 s"):
        restart(cluster, RestartOptions(timeout_s=5, broker_timeout_s=60))
    assert cluster.acted == ["stop 1", "start 1"]
    assert cluster.up == {1, 2, 3}


def test_a_gate_that_stays_closed_takes_nobody_down() -> None:
    cluster = Simulated(started_at={2: 0.0}, in_sync_after_s=1000)
    with pytest.raises(NotFinished, match="broker 1 cannot be stopped: t-0 has 1, 3 in sync"):
        restart(cluster)
    assert cluster.acted == []


def test_the_gate_is_told_and_waits_until_the_time_in_all() -> None:
    """A follower goes behind between two brokers: told which partition and why, until --timeout."""
    cluster = Simulated()
    cluster.later[3] = lambda: cluster.started_at.update({3: 1000})
    with pytest.raises(NotFinished) as caught:
        restart(cluster, RestartOptions(stable_checks=3, stable_interval_s=2, broker_timeout_s=600, timeout_s=120))
    assert "broker 2 cannot be stopped: t-0 has 1, 2 in sync: 1 would be left, and min.insync.replicas is 2" in (
        caught.value.message
    )
    assert cluster.acted == ["stop 1", "start 1"]
    assert 120 <= cluster.now_s < 125
    assert any("waiting to stop broker 2: t-0 has 1, 2 in sync" in line for line in cluster.told)


def test_without_zookeeper_nobody_goes() -> None:
    cluster = Simulated(zookeeper="127.0.0.1:2181: connection refused")
    with pytest.raises(Refused, match=r"a stopped broker could not start without ZooKeeper: 127.0.0.1:2181") as caught:
        refuse_blocked(make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster))
    assert "kctl zk stat" in str(caught.value.hint)  # kctl cluster health would say that all is well
    cluster.later[cluster.gates + 30] = lambda: setattr(cluster, "zookeeper", None)
    began = cluster.now_s
    restart(cluster)
    assert cluster.elections == 1
    assert cluster.now_s > began + 25


def test_the_gate_opens_no_sooner_than_the_limit_that_was_given() -> None:
    cluster = Simulated(who_controls=None)
    make_plan(cluster, "dev", BROKERS, RestartOptions(timeout_s=3), clock=cluster)
    assert 3 <= cluster.now_s < 5


def test_a_broker_that_goes_by_itself_before_its_turn_is_brought_back() -> None:
    cluster = Simulated()
    cluster.later[3] = lambda: cluster.up.discard(2)
    run = restart(cluster)
    assert (run.state.outcome, cluster.up) == ("done", {1, 2, 3})
    assert cluster.acted == ["stop 1", "start 1", "start 2", "stop 3", "start 3"]
    assert "starting broker 2 first: it is down" in cluster.notes


def test_a_broker_that_goes_while_the_controller_is_asked_keeps_the_others_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take long with ZooKeeper: what was seen before it is too old for the gate."""
    cluster = Simulated(who_controls=1)

    def controller() -> int:
        cluster.up.discard(2)
        return 1

    monkeypatch.setattr(cluster, "controller", controller)
    with pytest.raises(NotFinished, match="broker 3 cannot be stopped: t-0 has 1, 3 in sync: 1 would be left"):
        restart(cluster, only=[3])
    assert (cluster.acted, cluster.least) == ([], 3)


def test_a_broker_that_goes_while_the_watch_begins_keeps_the_others_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Simulated()
    ended: list[object] = []

    def watch(_brokers: object) -> Simulated:
        cluster.up.discard(2)
        return cluster

    monkeypatch.setattr(cluster, "watch", watch)
    monkeypatch.setattr(cluster, "end", lambda: ended.append(None))
    with pytest.raises(NotFinished, match="broker 3 cannot be stopped: t-0 has 1, 3 in sync: 1 would be left"):
        restart(cluster, only=[3])
    assert (cluster.acted, cluster.least, len(ended)) == ([], 3, 1)


def test_a_broker_whose_turn_is_to_come_goes_while_the_watch_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one is not taken down beside it, whatever the topics need: it is brought back first."""
    cluster = Simulated(min_isr=1)
    watch = cluster.watch

    def watching(brokers: Collection[int]) -> Simulated:
        if not cluster.acted:
            cluster.up.discard(2)
        return watch(brokers)

    monkeypatch.setattr(cluster, "watch", watching)
    restart(cluster)
    assert cluster.acted == ["start 2", "stop 1", "start 1", "stop 3", "start 3"]


def test_a_broker_that_goes_again_after_its_restart_keeps_the_others_up() -> None:
    cluster = Simulated(min_isr=1)
    cluster.later[3] = lambda: cluster.up.discard(1)
    with pytest.raises(NotFinished, match="broker 2 cannot be stopped: broker 1 was restarted and is down again"):
        restart(cluster)
    assert cluster.acted == ["stop 1", "start 1"]


@pytest.mark.parametrize("who_controls", [1, 3])
def test_a_broker_in_its_stop_that_ends_when_kctl_is_back(who_controls: int) -> None:
    """kctl died while the broker shut down: it is there at first, and gone while the next kctl waits for its turn."""
    cluster = Simulated(who_controls=who_controls)
    with open_run(cluster).journal as held:
        held.append(RestartStep.STOP.value, broker=1)
    cluster.started_at[1] = 1e9  # it has left its ISRs already
    cluster.later[7] = lambda: cluster.up.discard(1)
    run = restart(cluster)
    assert cluster.acted == ["stop 1", "start 1", "stop 2", "start 2", "stop 3", "start 3"]
    assert (run.state.outcome, cluster.up) == ("done", {1, 2, 3})


def test_a_broker_that_one_answer_leaves_out_is_restarted_all_the_same() -> None:
    cluster = Simulated(overlooked=frozenset({2}))
    restart(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 2", "stop 3"]


def test_a_stop_command_that_fails_without_a_process_keeps_nobody_down() -> None:
    cluster = Simulated()
    with open_run(cluster).journal as held:
        held.append(RestartStep.STOP.value, broker=1)
    cluster.up.discard(1)
    stop = cluster.stop

    def stopping(broker: int, *, timeout_s: float) -> None:
        if broker not in cluster.up:
            raise OperationFailed("kill: no such process")
        stop(broker, timeout_s=timeout_s)

    cluster.stop = stopping  # type: ignore[method-assign]
    restart(cluster)
    assert cluster.up == {1, 2, 3}
    assert "kill: no such process; starting broker 1 anyway, because the cluster no longer lists it" in cluster.notes


def test_the_run_of_another_cluster_of_that_name_is_not_gone_on_with() -> None:
    with journals.begin("dev", "older-id", list(BROKERS.values())) as held:
        pass
    held, found = journals.begin_or_resume("dev", "older-id", list(BROKERS.values()), held.path)
    cluster = Simulated()
    with held, pytest.raises(NotFinished, match="this is cluster cluster-id, but the run is of older-id"):
        carry_out(RestartRun(cluster, cluster, held, found, QUICK, cluster, cluster))
    assert cluster.acted == []


def test_a_stop_command_that_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Simulated()
    monkeypatch.setattr(cluster, "stop", lambda _broker, timeout_s: None)
    with pytest.raises(NotFinished, match="broker 1 was stopped, but the cluster still lists it"):
        restart(cluster)


# --- killed at every entry --------------------------------------------------------------------------------------------


def _entries() -> list[str]:
    """The steps of a whole run, as its own journal has them."""
    return [step.value for step in RestartStep if step not in {RestartStep.BEGIN, RestartStep.RESUME}]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("step", _entries())
def test_kctl_killed_at_each_entry(step: str, number: int, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it died, the next run ends it: every broker restarted, never two of them away."""
    cluster = Simulated()
    append, seen = Journal.append, [0]

    def dying(self: Journal, name: str, **fields: object) -> None:
        seen[0] += name == step
        if name == step and seen[0] == number and moment == "before":
            raise Killed
        append(self, name, **fields)
        if name == step and seen[0] == number:
            raise Killed

    monkeypatch.setattr(Journal, "append", dying)
    per_run = 1 if step in {"elect", "elected", "end"} else 3
    if number > per_run:
        restart(cluster)
        assert seen[0] == per_run  # the enumeration is of the code as it is
        return
    with pytest.raises(Killed):
        restart(cluster)
    monkeypatch.setattr(Journal, "append", append)
    assert len(cluster.up) >= 2
    path = journals.find_unfinished("cluster-id")
    if (step, moment) == ("end", "after"):
        assert path is None
        return
    run = restart(cluster)
    assert (run.state.outcome, cluster.up, cluster.least) == ("done", {1, 2, 3}, 2)
    assert {row.phase for row in run.state.brokers.values()} == {BrokerPhase.DONE}
    stopped = [act for act in cluster.acted if act.startswith("stop")]
    assert set(stopped) == {"stop 1", "stop 2", "stop 3"}
    assert len(stopped) <= 4  # the one that was in question once more at most
    assert journals.find_unfinished("cluster-id") is None


def test_all_brokers_down_when_it_goes_on() -> None:
    """A machine that went down during the restart."""
    cluster = Simulated(stays_down={1})
    with pytest.raises(NotFinished):
        restart(cluster)
    cluster.up, cluster.stays_down, cluster.acted = set(), set(), []
    assert journals.find_unfinished_by_name("dev") is not None
    assert journals.find_unfinished_by_name("another") is None
    restart(cluster)
    assert cluster.acted[:3] == ["start 1", "start 2", "start 3"]
    assert cluster.up == {1, 2, 3}


# --- journals ---------------------------------------------------------------------------------------------------------


def test_one_run_at_a_time() -> None:
    held = journals.begin("dev", "cluster-id", list(BROKERS.values()))
    with held, pytest.raises(Busy, match="another kctl is restarting"):
        journals.begin("dev", "cluster-id", list(BROKERS.values()))
    with pytest.raises(Refused, match="has started"):
        journals.begin("dev", "cluster-id", list(BROKERS.values()))
    with journals.begin("other", "other-id", list(BROKERS.values())):
        pass
    held, found = journals.reopen(held.path)
    with held:
        held.append(RestartStep.END.value, outcome="abandoned")
    assert (found.pending, journals.find_unfinished("cluster-id")) == ([1, 2, 3], None)


def test_an_unfinished_run_is_of_its_own_brokers() -> None:
    with journals.begin("dev", "cluster-id", [BROKERS[1], BROKERS[2]]) as held:
        pass
    assert list(read_unfinished(held.path, None).brokers) == [1, 2]
    assert list(read_unfinished(held.path, [2, 1]).brokers) == [1, 2]
    with pytest.raises(Refused, match="of this cluster covers broker 1, 2"):
        read_unfinished(held.path, [3])


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"step": "stop", "broker": 1}],
        [{"step": "begin", "cluster": "dev", "cluster_id": "x"}],
        [{"step": "begin", "cluster": "dev", "cluster_id": "x", "brokers": []}, {"step": "stop", "broker": 1}],
        [{"step": "begin", "cluster": "dev", "cluster_id": "x", "brokers": []}, {"step": "dance"}],
    ],
)
def test_what_is_no_journal_of_a_restart(entries: list[dict[str, object]]) -> None:
    with pytest.raises(InvalidFile):
        replay(entries, name="j")


def test_the_situation_in_words() -> None:
    with journals.begin("dev", "cluster-id", list(BROKERS.values())) as held:
        held.append("stop", broker=1)
        held.append("stopped", broker=1, stop_ms=5)
    found = replay(journal.read(held.path), name="j")
    assert situation(found) == "broker 1 is stopped; not restarted: 2, 3"
