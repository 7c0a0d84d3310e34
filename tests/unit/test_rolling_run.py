"""A rolling restart of a simulated cluster: every order of events, and kctl killed at each entry of its journal.

The simulation is of brokers, ISRs and a controller, with a clock that only moves when somebody waits; the journal is a
real one. A mock because no real cluster dies at the twentieth entry on demand; tests/integration has real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from health_testing import partition, state
from kctl import journal
from kctl.errors import Busy, ConnectionFailed, InvalidFile, OperationFailed, Refused, TimedOut
from kctl.journal import Journal
from kctl.model import Broker, ClusterState
from kctl.restart import journals
from kctl.restart.control import Act
from kctl.restart.look import Elected, Seen
from kctl.restart.plan import choose, make_plan, read_unfinished, refuse_blocked, result_of
from kctl.restart.run import carry_out
from kctl.restart.running import NotFinished, Options, Run
from kctl.restart.steps import Phase, Step, replay, situation

BROKERS = {node: Broker(node, f"host{node}", 9092) for node in (1, 2, 3)}
QUICK = Options(stable_checks=3, stable_interval_s=2, broker_timeout_s=60)


class Killed(BaseException):
    """kill -9 of kctl."""


@dataclass
class Simulated:
    """Three brokers, one topic; broker, control, clock and watcher in one.

    in_sync_after_s: how long a started broker is behind. stays_down, hangs: brokers that do not start, do not stop.
    acted: what was done. least: the smallest ISR that ever was. later: which look at the gate → what happens then.
    overlooked: brokers that the next answer leaves out.
    """

    now_s: float = 0.0
    up: set[int] = field(default_factory=lambda: {1, 2, 3})
    replicas: str = "123"
    min_isr: int = 2
    who_controls: int | None = 3
    in_sync_after_s: float = 5.0
    stays_down: set[int] = field(default_factory=set)
    hangs: set[int] = field(default_factory=set)
    started_at: dict[int, float] = field(default_factory=dict)
    acted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    least: int = 3
    elections: int = 0
    zookeeper: str | None = None
    gates: int = 0
    later: dict[int, Callable[[], object]] = field(default_factory=dict)
    overlooked: frozenset[int] = frozenset()
    acts: Collection[Act] = ("stop", "start")

    # --- the cluster

    def look(self, brokers: Collection[int]) -> Seen:
        self.gates += bool(brokers)
        for moment, happens in list(self.later.items()):
            if self.gates >= moment:
                del self.later[moment]
                happens()
        return Seen(self._state(), {"t": self.min_isr}, {}, zookeeper=self.zookeeper)

    def _state(self) -> ClusterState:
        if not self.up:
            raise ConnectionFailed("nobody answers")
        isr = "".join(node for node in self.replicas if self._in_sync(int(node)))
        cluster = state([partition(self.replicas, isr or self.replicas[0], leader=int(isr[0]) if isr else -1)],
                        alive="".join(map(str, sorted(self.up))))  # fmt: skip
        return ClusterState("cluster-id", self.who_controls, cluster.brokers, cluster.topics)

    def _in_sync(self, node: int) -> bool:
        return node in self.up and self.now_s >= self.started_at.get(node, -1e9) + self.in_sync_after_s

    def registered(self) -> frozenset[int]:
        self.overlooked, missing = frozenset(), self.overlooked
        return frozenset(self.up - missing)

    def answers(self, broker: int) -> bool:
        return broker in self.up

    def controller(self) -> int | None:
        return self.who_controls

    def elect(self) -> Elected:
        self.elections += 1
        return Elected(2)

    def watch(self, brokers: Collection[int]) -> Simulated:
        return self

    def end(self) -> int | None:
        return 1234

    # --- what is done to it

    def stop(self, broker: int, *, timeout_s: float) -> None:
        self.acted.append(f"stop {broker}")
        if broker in self.hangs:
            self.sleep(timeout_s)
            raise TimedOut(f"broker {broker} did not stop")
        if broker not in self.up:
            return
        self.up.discard(broker)
        self.least = min(self.least, sum(self._in_sync(int(node)) for node in self.replicas))
        if broker == self.who_controls:
            self.who_controls = min(self.up, default=None)
        self.sleep(1)

    def start(self, broker: int, *, timeout_s: float) -> None:
        self.acted.append(f"start {broker}")
        if broker in self.stays_down:
            raise OperationFailed(f"broker {broker} did not start: it ended", hint="the end of its log:\nFATAL")
        if broker not in self.up:
            self.sleep(3)
            self.up.add(broker)
            self.started_at[broker] = self.now_s

    def kill(self, broker: int) -> None:
        raise AssertionError("no restart kills")

    pause = unpause = kill

    # --- clock and progress

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self.told.append(message)

    def note(self, line: str) -> None:
        self.notes.append(line)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _open(simulated: Simulated, options: Options = QUICK, only: Collection[int] | None = None) -> Run:
    """Begin, or go on, as the command does."""
    path = journals.unfinished("cluster-id")
    held, found = journals.begin_or_go_on("dev", "cluster-id", list(choose(BROKERS, only).values()), path)
    return Run(simulated, simulated, held, found, options, simulated, simulated)


def _run(simulated: Simulated, options: Options = QUICK, only: Collection[int] | None = None) -> Run:
    run = _open(simulated, options, only)
    with run.journal:
        carry_out(run)
    return run


def test_one_after_the_other_and_the_controller_last() -> None:
    cluster = Simulated(who_controls=2)
    run = _run(cluster)
    assert cluster.acted == ["stop 1", "start 1", "stop 3", "start 3", "stop 2", "start 2"]
    assert cluster.least == 2
    assert (cluster.elections, run.elected_count, run.state.outcome) == (1, 2, "done")
    row = run.state.brokers[1]
    assert (row.phase, row.stop_ms, row.start_ms, row.longest_under_replicated_ms) == (Phase.DONE, 1000, 3000, 1234)
    assert row.in_sync_ms is not None
    assert 9000 <= row.in_sync_ms <= 10_000  # 1 s down, 3 s up, 5 s behind
    assert journals.unfinished("cluster-id") is None


def test_a_controller_that_moves_is_last_as_it_is_then() -> None:
    cluster = Simulated(who_controls=1)
    stop = cluster.stop

    def moving(broker: int, *, timeout_s: float) -> None:
        stop(broker, timeout_s=timeout_s)
        if broker == 2:
            cluster.who_controls = 3  # it failed over meanwhile

    cluster.stop = moving  # type: ignore[method-assign]
    _run(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 2", "stop 1", "stop 3"]


@pytest.mark.parametrize("elect", [True, False])
def test_only_the_brokers_that_were_asked_for(elect: bool) -> None:
    cluster = Simulated(who_controls=1)
    run = _run(cluster, Options(elect=elect), only=[1, 3])
    assert cluster.acted == ["stop 3", "start 3", "stop 1", "start 1"]
    assert (cluster.elections, run.elected_count) == ((1, 2) if elect else (0, None))


def test_a_topic_that_cannot_be_protected_is_not_waited_for() -> None:
    cluster = Simulated(replicas="12", min_isr=2)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster)
    assert [row.topic for row in plan.unprotected] == ["t"]
    assert plan.blockers == ()
    _run(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 2", "stop 3"]


# --- plan -------------------------------------------------------------------------------------------------------------


def test_the_plan_shows_order_and_blockers_and_changes_nothing() -> None:
    cluster = Simulated(who_controls=1)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster)
    assert [(row.turn, row.broker, row.is_controller) for row in plan.brokers] == [
        (1, 2, False), (2, 3, False), (3, 1, True),
    ]  # fmt: skip
    assert (plan.resumes, plan.blockers, cluster.acted) == (None, (), [])
    refuse_blocked(plan)


def test_what_blocks_is_looked_at_for_ten_seconds_and_refused() -> None:
    behind = Simulated(started_at={3: 0.0}, in_sync_after_s=8)
    assert make_plan(behind, "dev", BROKERS, QUICK, clock=behind).blockers == ()  # it came
    behind = Simulated(started_at={3: 0.0}, in_sync_after_s=80)
    plan = make_plan(behind, "dev", BROKERS, QUICK, clock=behind)
    assert behind.now_s < 15
    with pytest.raises(Refused, match="no broker is taken down now: t-0 has 1, 2 in sync: 1 would be left"):
        refuse_blocked(plan)
    only = {3: BROKERS[3]}  # its own restart may be the cure, and costs no protection
    assert make_plan(behind, "dev", only, QUICK, clock=behind).blockers == ()
    headless = Simulated(who_controls=None)
    with pytest.raises(Refused, match="has no controller"):
        refuse_blocked(make_plan(headless, "dev", BROKERS, QUICK, clock=headless))


def test_a_broker_that_is_down_before_is_started_first() -> None:
    cluster = Simulated(up={1, 3})
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster)
    assert [row.state for row in plan.brokers] == ["up", "down", "up"]
    assert plan.blockers == ()
    _run(cluster)
    assert cluster.acted == ["start 2", "stop 1", "start 1", "stop 3", "start 3"]
    assert "broker 2 first: it is down" in cluster.notes


def test_with_racks_some_go_together() -> None:
    cluster = Simulated(min_isr=1)
    held = journals.begin("dev", "cluster-id", [Broker(node, "h", 1, "a" if node < 3 else "b") for node in (1, 2, 3)])
    run = Run(cluster, cluster, held, replay(held.entries, name="j"), Options(max_unavailable=2), cluster, cluster)
    with held:
        carry_out(run)
    assert cluster.acted == ["stop 1", "stop 2", "start 1", "start 2", "stop 3", "start 3"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_broker_that_does_not_start_ends_it_there_and_the_next_run_begins_with_it() -> None:
    cluster = Simulated(stays_down={2})
    with pytest.raises(NotFinished) as caught:
        _run(cluster)
    assert caught.value.exit_code == 5
    assert "broker 2 did not start" in caught.value.message
    hint = str(caught.value.hint)
    assert "FATAL" in hint
    assert "broker 2 is in its start, and down now; restarted: 1; not restarted: 3" in hint
    assert "the same command again goes on" in hint
    assert cluster.up == {1, 3}
    cluster.stays_down, cluster.acted = set(), []
    plan = make_plan(
        cluster, "dev", BROKERS, QUICK, clock=cluster, resumes=journals.unfinished("cluster-id"),
        state=read_unfinished(journals.unfinished("cluster-id") or Path(), None),
    )  # fmt: skip
    assert [row.broker for row in plan.brokers] == [2, 3]
    assert plan.restarted == (1,)
    run = _run(cluster)
    assert cluster.acted == ["start 2", "stop 3", "start 3"]
    result = result_of(run, plan, 0.0)
    assert (result.outcome, result.resumed) == ("done", True)
    assert [row.result for row in result.brokers] == ["restarted"] * 3


def test_a_broker_that_does_not_stop_ends_it_there() -> None:
    cluster = Simulated(hangs={1})
    with pytest.raises(NotFinished, match="broker 1 did not stop") as caught:
        _run(cluster)
    assert "broker 1 is in its stop, and up now; not restarted: 2, 3" in str(caught.value.hint)
    cluster.hangs = set()
    _run(cluster)  # it never went: its turn comes again
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 1", "stop 2", "stop 3"]


def test_a_replica_that_stays_behind_keeps_the_next_broker_up() -> None:
    cluster = Simulated(in_sync_after_s=1000)
    with pytest.raises(NotFinished, match=r"after 60 s: 1 partition not in sync \(t-0\)"):
        _run(cluster)
    assert cluster.acted == ["stop 1", "start 1"]
    assert cluster.up == {1, 2, 3}


def test_the_time_in_all_ends_it_between_brokers() -> None:
    cluster = Simulated()
    with pytest.raises(NotFinished, match="not finished within 5 s"):
        _run(cluster, Options(timeout_s=5, broker_timeout_s=60))
    assert cluster.acted == ["stop 1", "start 1"]
    assert cluster.up == {1, 2, 3}


def test_a_gate_that_stays_closed_takes_nobody_down() -> None:
    cluster = Simulated(started_at={2: 0.0}, in_sync_after_s=1000)
    with pytest.raises(NotFinished, match="broker 1 cannot be taken down: t-0 has 1, 3 in sync"):
        _run(cluster)
    assert cluster.acted == []


def test_the_gate_is_told_and_waits_until_the_time_in_all() -> None:
    """A follower goes behind between two brokers: told which partition and why, until --timeout."""
    cluster = Simulated()
    cluster.later[2] = lambda: cluster.started_at.update({3: 1000})
    with pytest.raises(NotFinished) as caught:
        _run(cluster, Options(stable_checks=3, stable_interval_s=2, broker_timeout_s=600, timeout_s=120))
    assert "broker 2 cannot be taken down: t-0 has 1, 2 in sync: 1 would be left, and min.insync.replicas is 2" in (
        caught.value.message
    )
    assert cluster.acted == ["stop 1", "start 1"]
    assert 120 <= cluster.now_s < 125
    assert any("waiting before broker 2: t-0 has 1, 2 in sync" in line for line in cluster.told)


def test_without_zookeeper_nobody_goes() -> None:
    cluster = Simulated(zookeeper="127.0.0.1:2181: connection refused")
    with pytest.raises(Refused, match=r"without ZooKeeper a broker cannot start again: 127.0.0.1:2181"):
        refuse_blocked(make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster))
    cluster.later[cluster.gates + 30] = lambda: setattr(cluster, "zookeeper", None)
    began = cluster.now_s
    _run(cluster)
    assert cluster.elections == 1
    assert cluster.now_s > began + 25


def test_the_gate_opens_no_sooner_than_the_limit_that_was_given() -> None:
    cluster = Simulated(who_controls=None)
    make_plan(cluster, "dev", BROKERS, Options(timeout_s=3), clock=cluster)
    assert 3 <= cluster.now_s < 5


def test_a_broker_that_goes_by_itself_before_its_turn_is_brought_back() -> None:
    cluster = Simulated()
    cluster.later[2] = lambda: cluster.up.discard(2)
    run = _run(cluster)
    assert (run.state.outcome, cluster.up) == ("done", {1, 2, 3})
    assert cluster.acted == ["stop 1", "start 1", "start 2", "stop 3", "start 3"]
    assert "broker 2 first: it is down" in cluster.notes


def test_a_broker_that_goes_again_after_its_restart_keeps_the_others_up() -> None:
    cluster = Simulated(min_isr=1)
    cluster.later[2] = lambda: cluster.up.discard(1)
    with pytest.raises(NotFinished, match="broker 2 cannot be taken down: broker 1 was restarted, and is down again"):
        _run(cluster)
    assert cluster.acted == ["stop 1", "start 1"]


@pytest.mark.parametrize("who_controls", [1, 3])
def test_a_broker_in_its_stop_that_ends_when_kctl_is_back(who_controls: int) -> None:
    """kctl died while the broker shut down: it is there at first, and gone while the next kctl waits for its turn."""
    cluster = Simulated(who_controls=who_controls)
    with _open(cluster).journal as held:
        held.append(Step.STOP.value, broker=1)
    cluster.started_at[1] = 1e9  # it has left its ISRs already
    cluster.later[5] = lambda: cluster.up.discard(1)
    run = _run(cluster)
    assert cluster.acted == ["stop 1", "start 1", "stop 2", "start 2", "stop 3", "start 3"]
    assert (run.state.outcome, cluster.up) == ("done", {1, 2, 3})


def test_a_broker_that_one_answer_leaves_out_is_restarted_all_the_same() -> None:
    cluster = Simulated(overlooked=frozenset({2}))
    _run(cluster)
    assert [act for act in cluster.acted if act.startswith("stop")] == ["stop 1", "stop 2", "stop 3"]


def test_a_stop_command_that_fails_without_a_process_keeps_nobody_down() -> None:
    cluster = Simulated()
    with _open(cluster).journal as held:
        held.append(Step.STOP.value, broker=1)
    cluster.up.discard(1)
    stop = cluster.stop

    def stopping(broker: int, *, timeout_s: float) -> None:
        if broker not in cluster.up:
            raise OperationFailed("kill: no such process")
        stop(broker, timeout_s=timeout_s)

    cluster.stop = stopping  # type: ignore[method-assign]
    _run(cluster)
    assert cluster.up == {1, 2, 3}
    assert "kill: no such process; the cluster does not list broker 1 any more, so it is started" in cluster.notes


def test_the_run_of_another_cluster_of_that_name_is_not_gone_on_with() -> None:
    with journals.begin("dev", "older-id", list(BROKERS.values())) as held:
        pass
    held, found = journals.begin_or_go_on("dev", "older-id", list(BROKERS.values()), held.path)
    cluster = Simulated()
    with held, pytest.raises(NotFinished, match="this is cluster cluster-id, and the run is of older-id"):
        carry_out(Run(cluster, cluster, held, found, QUICK, cluster, cluster))
    assert cluster.acted == []


def test_a_stop_command_that_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Simulated()
    monkeypatch.setattr(cluster, "stop", lambda _broker, timeout_s: None)
    with pytest.raises(NotFinished, match="broker 1 was stopped and the cluster still lists it"):
        _run(cluster)


# --- killed at every entry --------------------------------------------------------------------------------------------


def _entries() -> list[str]:
    """The steps of a whole run, as its own journal has them."""
    return [step.value for step in Step if step not in {Step.BEGIN, Step.RESUME}]


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
        _run(cluster)
        assert seen[0] == per_run  # the enumeration is of the code as it is
        return
    with pytest.raises(Killed):
        _run(cluster)
    monkeypatch.setattr(Journal, "append", append)
    assert len(cluster.up) >= 2
    path = journals.unfinished("cluster-id")
    if (step, moment) == ("end", "after"):
        assert path is None
        return
    run = _run(cluster)
    assert (run.state.outcome, cluster.up, cluster.least) == ("done", {1, 2, 3}, 2)
    assert {row.phase for row in run.state.brokers.values()} == {Phase.DONE}
    stopped = [act for act in cluster.acted if act.startswith("stop")]
    assert set(stopped) == {"stop 1", "stop 2", "stop 3"}
    assert len(stopped) <= 4  # the one that was in question once more at most
    assert journals.unfinished("cluster-id") is None


def test_all_brokers_down_when_it_goes_on() -> None:
    """A machine that went down during the restart."""
    cluster = Simulated(stays_down={1})
    with pytest.raises(NotFinished):
        _run(cluster)
    cluster.up, cluster.stays_down, cluster.acted = set(), set(), []
    assert journals.unfinished_of("dev") is not None
    assert journals.unfinished_of("another") is None
    _run(cluster)
    assert cluster.acted[:3] == ["start 1", "start 2", "start 3"]
    assert cluster.up == {1, 2, 3}


# --- journals ---------------------------------------------------------------------------------------------------------


def test_one_run_at_a_time() -> None:
    held = journals.begin("dev", "cluster-id", list(BROKERS.values()))
    with held, pytest.raises(Busy, match="another kctl is restarting"):
        journals.begin("dev", "cluster-id", list(BROKERS.values()))
    with pytest.raises(Refused, match="has begun meanwhile"):
        journals.begin("dev", "cluster-id", list(BROKERS.values()))
    with journals.begin("other", "other-id", list(BROKERS.values())):
        pass
    held, found = journals.take_up(held.path)
    with held:
        held.append(Step.END.value, outcome="abandoned")
    assert (found.pending, journals.unfinished("cluster-id")) == ([1, 2, 3], None)


def test_an_unfinished_run_is_of_its_own_brokers() -> None:
    with journals.begin("dev", "cluster-id", [BROKERS[1], BROKERS[2]]) as held:
        pass
    assert list(read_unfinished(held.path, None).brokers) == [1, 2]
    assert list(read_unfinished(held.path, [2, 1]).brokers) == [1, 2]
    with pytest.raises(Refused, match="of broker 1, 2 of this cluster has not ended"):
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
