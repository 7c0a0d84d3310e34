"""What a run of validations notes before it acts, what is left when it ends anywhere, and how that is taken back."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kctl.base import journal
from kctl.base.journal import Journal
from kctl.base.outcomes import ItemResult
from kctl.errors import Busy, InvalidFile, KctlError, OperationFailed, Refused, TimedOut
from kctl.model import Broker, ClusterState
from kctl.protocol.target import Target
from kctl.restart.control import Act
from kctl.restart.hooks import ACTS
from kctl.topics.delete import DeletedTopic
from kctl.validate import cleanup, evidence, leftovers
from kctl.validate import run as run_module
from kctl.validate.cleanup import clean_earlier, clean_up
from kctl.validate.evidence import ReplicaMatch, find_missing
from kctl.validate.fault_injection import START_S, Breaker, FaultInjection, recovery_control
from kctl.validate.leftovers import BEGIN, DELETED, DOWN, END, TOPIC, UP, RunLeftovers, leftovers_of
from kctl.validate.plan import WAIT_S, ValidationOptions
from kctl.validate.run import Trial, ValidationRun, begin
from kctl.validate.servers import LocalServers
from validation_results import result

TARGET = Target("prod", ("h:1",))
NAME = "kctl-validate-12345678-unclean-election"
# An unclean election from its beginning to its end, as the journal has it.
ENTRIES: list[dict[str, Any]] = [
    {"step": BEGIN, "cluster": "prod", "evidence": "EVIDENCE"},
    {"step": TOPIC, "topic": NAME},
    {"step": DOWN, "node": "3", "act": "pause"},
    {"step": DOWN, "node": "2", "act": "kill"},
    {"step": DOWN, "node": "zookeeper-1", "act": "kill"},
    {"step": UP, "node": "3"},
    {"step": UP, "node": "2"},
    {"step": UP, "node": "zookeeper-1"},
    {"step": DELETED, "topic": NAME},
    {"step": END, "outcome": "done"},
]
LEFT = [  # behind each entry: topics, nodes
    ([], []), ([NAME], []), ([NAME], ["3"]), ([NAME], ["3", "2"]), ([NAME], ["3", "2", "zookeeper-1"]),
    ([NAME], ["2", "zookeeper-1"]), ([NAME], ["zookeeper-1"]), ([NAME], []), ([], []), ([], []),
]  # fmt: skip


class Cluster:
    """Notes what is done to it; what is in `broken` fails."""

    acts: Collection[Act] = ACTS

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken: set[str] = set()
        self.silent: set[int] = set()
        self.start_s = 0.0

    def _act(self, what: str) -> None:
        if what in self.broken:
            raise OperationFailed(f"cannot {what}")
        self.done.append(what)

    def kill(self, broker: int) -> None:
        self._act(f"kill {broker}")

    def pause(self, broker: int) -> None:
        self._act(f"pause {broker}")

    def unpause(self, broker: int) -> None:
        self._act(f"unpause {broker}")

    def stop(self, broker: int, *, timeout_s: float) -> None:
        self._act(f"stop {broker}")

    def start(self, broker: int, *, timeout_s: float) -> None:
        self.start_s = timeout_s
        self._act(f"start {broker}")

    def answers(self, _target: object, _left: object, broker: int, _timeout_s: float) -> bool:
        return broker not in self.silent

    def delete(self, _client: object, rows: list[DeletedTopic], **_: object) -> Iterator[DeletedTopic]:
        for row in rows:
            failed = f"delete {row.topic}" in self.broken
            self.done.append(f"delete {row.topic}")
            yield DeletedTopic(
                row.topic, ItemResult.MARKED if failed else ItemResult.DELETED, None, None, None, None, error="x"
            )

    def start_nodes(self, _cluster: str, *, nodes: list[str], timeout_s: float) -> None:
        for node in nodes:
            self._act(f"start {node}")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    made = Cluster()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(cleanup, "delete_topics", made.delete)
    monkeypatch.setattr(cleanup, "connect", mock.MagicMock())
    monkeypatch.setattr(cleanup, "_responds", made.answers)
    monkeypatch.setattr("kctl.deploy.lifecycle.start_cluster", made.start_nodes)
    return made


def injection(cluster: Cluster) -> FaultInjection:
    keeper = mock.Mock()
    keeper.name = "zookeeper-1"
    spec = mock.Mock(zookeepers=[keeper])
    spec.name = "proof"
    return FaultInjection(cluster, spec, "by hand", LocalServers(spec, ("zookeeper-1",)))


@contextmanager
def held(tmp_path: Path, count: int) -> Iterator[Journal]:
    """A journal with the first entries, as a run has it."""
    with journal.create(tmp_path / "run.jsonl") as found:
        for entry in ENTRIES[:count]:
            fields = {key: value for key, value in entry.items() if key != "step"}
            if "evidence" in fields:
                fields["evidence"] = str(tmp_path / "evidence")
            found.append(entry["step"], **fields)
        yield found


def test_every_step_is_in_these_entries() -> None:
    assert {entry["step"] for entry in ENTRIES} == {BEGIN, TOPIC, DELETED, DOWN, UP, END}


@pytest.mark.parametrize("count", range(1, len(ENTRIES) + 1))
def test_wherever_it_ends_all_is_taken_back(count: int, cluster: Cluster, tmp_path: Path) -> None:
    topics, nodes = LEFT[count - 1]
    left = leftovers_of(ENTRIES[:count], name="j")
    assert (left.topics, list(left.nodes), bool(left)) == (topics, nodes, bool(topics or nodes))
    with held(tmp_path, count) as found:
        clean_up(found, injection(cluster), TARGET, outcome="killed")
        assert found.entries[-1]["step"] == END
        assert not leftovers_of(found.entries, name="j")
        expected = [f"start {node}" for node in nodes if not node.isdigit()]  # ZooKeepers before brokers
        for node in (node for node in nodes if node.isdigit()):
            expected += [f"unpause {node}"] if node == "3" else []
            expected.append(f"start {node}")
        assert cluster.done == expected + [f"delete {topic}" for topic in topics]
        cluster.done.clear()
        clean_up(found, injection(cluster), TARGET, outcome="killed")  # twice is harmless
        assert cluster.done == []


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ("start zookeeper-1", ([], ["zookeeper-1"])),
        ("start 2", ([], ["2"])),
        ("start 3", ([], ["3"])),
        (f"delete {NAME}", ([NAME], [])),
    ],
)
def test_what_cannot_be_taken_back_stays_noted(
    broken: str, left: tuple[list[str], list[str]], cluster: Cluster, tmp_path: Path
) -> None:
    """All the rest is, and the next run tries again."""
    cluster.broken = {broken}
    with held(tmp_path, 5) as found:
        with pytest.raises(OperationFailed, match="clean-up after the validation failed") as caught:
            clean_up(found, injection(cluster), TARGET, outcome="failed")
        assert caught.value.exit_code == 5
        still = leftovers_of(found.entries, name="j")
        assert (still.topics, list(still.nodes)) == left
        cluster.broken = set()
        clean_up(found, injection(cluster), TARGET, outcome="failed")
        assert not leftovers_of(found.entries, name="j")


@pytest.mark.parametrize("failure", [Refused("it does not run"), OperationFailed("the command ended with exit code 1")])
def test_a_paused_broker_that_died_is_started(failure: KctlError, cluster: Cluster, tmp_path: Path) -> None:
    with held(tmp_path, 3) as found:
        with mock.patch.object(cluster, "unpause", side_effect=failure):
            clean_up(found, injection(cluster), TARGET, outcome="failed")
        assert cluster.done == ["start 3", f"delete {NAME}"]


def test_a_paused_broker_that_cannot_be_woken_stays_noted(cluster: Cluster, tmp_path: Path) -> None:
    """A start of what runs, and stands, ends well, too."""
    cluster.broken, cluster.silent = {"unpause 3"}, {3}
    with held(tmp_path, 3) as found:
        with pytest.raises(OperationFailed, match="3: cannot unpause 3; it was started, but does not respond"):
            clean_up(found, injection(cluster), TARGET, outcome="failed")
        assert leftovers_of(found.entries, name="j").nodes == {"3": "pause"}
        cluster.broken = {"unpause 3", "start 3"}
        with pytest.raises(OperationFailed, match="3: cannot unpause 3; cannot start 3"):
            clean_up(found, injection(cluster), TARGET, outcome="failed")
        cluster.broken = set()
        clean_up(found, injection(cluster), TARGET, outcome="failed")
        assert not leftovers_of(found.entries, name="j")


@pytest.mark.parametrize(("asked", "given"), [(900.0, 900.0), (5.0, START_S)])
def test_a_start_has_the_time_that_was_asked_for(asked: float, given: float, cluster: Cluster, tmp_path: Path) -> None:
    with held(tmp_path, 4) as found:
        clean_up(found, injection(cluster), TARGET, outcome="failed", start_s=asked)
    assert cluster.start_s == given


def test_zookeepers_are_started_together(cluster: Cluster, tmp_path: Path) -> None:
    """One alone of three has no quorum: its start would be waited for in vain."""
    zookeepers = mock.Mock(names=("a", "b", "c"))
    with held(tmp_path, 1) as found:
        for name in zookeepers.names:
            found.append(DOWN, node=name, act="kill")
        given = FaultInjection(cluster, None, "by hand", zookeepers)
        zookeepers.start.side_effect = TimedOut("no quorum")
        with pytest.raises(OperationFailed, match="a, b, c: no quorum"):
            clean_up(found, given, TARGET, outcome="killed")
        assert set(leftovers_of(found.entries, name="j").nodes) == {"a", "b", "c"}
        zookeepers.start.side_effect = None
        clean_up(found, given, TARGET, outcome="killed")
        assert zookeepers.start.mock_calls == [mock.call(["a", "b", "c"], timeout_s=START_S)] * 2
        assert not leftovers_of(found.entries, name="j")


def test_whether_a_broker_answers_is_asked_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    live = mock.MagicMock()
    live.return_value.__enter__.return_value.answers.side_effect = [False, False, True, False]
    monkeypatch.setattr(cleanup, "LiveCluster", live)
    left = RunLeftovers(brokers={3: Broker(3, "h3", 9093)})
    assert cleanup._responds(TARGET, left, 3, 60.0)
    assert not cleanup._responds(TARGET, left, 3, 0.0)
    assert live.call_args == mock.call(TARGET, [Broker(3, "h3", 9093)])


def test_files_with_a_login_go(cluster: Cluster, tmp_path: Path) -> None:
    task, kept = (tmp_path / "evidence" / "x" / name for name in ("producer.task", "producer.journal"))
    task.parent.mkdir(parents=True)
    task.touch()
    kept.touch()
    with held(tmp_path, 2) as found:
        clean_up(found, injection(cluster), TARGET, outcome="killed")
    assert not task.exists()
    assert kept.exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"step": TOPIC, "topic": "orders"},  # a topic of others is never deleted
        {"step": TOPIC},
        {"step": DOWN, "node": "1"},
        {"step": "other"},
    ],
)
def test_a_journal_that_is_none_is_not_followed(entry: dict[str, Any]) -> None:
    with pytest.raises(InvalidFile, match="j is not a validation journal"):
        leftovers_of([entry], name="j")


def test_it_is_noted_before_it_is_done(cluster: Cluster, tmp_path: Path) -> None:
    """Else a kctl that is killed in between leaves a broken broker that nobody knows of."""
    with held(tmp_path, 2) as found:
        breaker = Breaker(injection(cluster), found)
        acts = (breaker.kill, breaker.pause, lambda broker: breaker.stop(broker, timeout_s=1))
        for act in acts:
            with (
                mock.patch.object(found, "append", side_effect=OperationFailed("disk full")),
                pytest.raises(OperationFailed, match="disk full"),
            ):
                act(1)
        assert cluster.done == []
        breaker.kill(1)
        assert list(leftovers_of(found.entries, name="j").nodes.items()) == [("1", "kill")]
        cluster.broken = {"start 1"}
        with pytest.raises(OperationFailed):
            breaker.start(1, timeout_s=1)
        assert leftovers_of(found.entries, name="j").nodes
        cluster.broken = set()
        breaker.start(1, timeout_s=1)
        assert not leftovers_of(found.entries, name="j").nodes


# --- runs -----------------------------------------------------------------------------------------------------------


def test_the_next_run_takes_back_what_a_killed_one_left(cluster: Cluster, tmp_path: Path) -> None:
    with leftovers.begin("prod", "id-1", "12345678", tmp_path / "evidence") as first:
        first.append(TOPIC, topic=NAME)
        first.append(DOWN, node="2", act="kill")
        with pytest.raises(Busy, match="another validation of this cluster is running"):
            leftovers.begin("prod", "id-1", "87654321", tmp_path / "evidence")
        with pytest.raises(Busy):
            leftovers.refuse_while_active("id-1")
        leftovers.begin("other", "id-2", "87654321", tmp_path / "evidence").close()
    assert len(leftovers.unfinished("id-1")) == 1  # closed, and not ended: killed
    told: list[str] = []
    (left,) = clean_earlier(injection(cluster), TARGET, "id-1", progress=told.append)
    assert (left.cluster, left.topics, left.nodes) == ("prod", [NAME], {"2": "kill"})
    assert cluster.done == ["start 2", f"delete {NAME}"]
    assert any("cleaning up after an earlier validation that was killed" in line for line in told)
    assert leftovers.unfinished("id-1") == []
    assert clean_earlier(injection(cluster), TARGET, "id-1", progress=told.append) == []


HOOKS = "start: [start-broker, '{id}', '{host}', '{port}', '{rack}']\nkill: [kill-broker, '{id}', '{host}']\n"
THREE = {n: Broker(n, f"h{n}", 9090 + n, f"r{n}") for n in (1, 2, 3)}


def test_a_broker_that_no_other_tells_of_any_more_is_started(cluster: Cluster, tmp_path: Path) -> None:
    """kctl was killed while hooks had broker 2 down: its session has expired, and metadata have 1 and 3."""
    (tmp_path / "hooks.yaml").write_text(HOOKS)
    with leftovers.begin("prod", "id-1", "12345678", tmp_path / "evidence", list(THREE.values())) as first:
        first.append(DOWN, node="2", act="kill")
    assert leftovers.brokers_of("id-1") == THREE
    with mock.patch("kctl.validate.fault_injection.local_cluster", return_value=None):
        made = recovery_control(
            {1: THREE[1], 3: Broker(3, "moved", 9093, None)}, "id-1", tmp_path / "hooks.yaml", TARGET
        )
    ran: list[Any] = []

    def run(argv: Any, **_: object) -> Any:
        ran.append(argv)
        return mock.Mock(code=0)

    with mock.patch.object(made.control, "_run", run):
        clean_earlier(made, TARGET, "id-1", progress=lambda _: None)
        made.control.kill(3)
    assert ran[0] == ("start-broker", "2", "h2", "9092", "r2")
    assert ran[-1] == ("kill-broker", "3", "moved")  # what is told now goes before what was noted
    assert leftovers.unfinished("id-1") == []


def test_an_older_journal_has_no_addresses(cluster: Cluster, tmp_path: Path) -> None:
    with leftovers.begin("prod", "id-1", "12345678", tmp_path / "evidence") as first:
        first.append(DOWN, node="2", act="kill")
        first.append(DOWN, node="zookeeper-1", act="kill")
    assert leftovers.brokers_of("id-1") == {2: Broker(2, "", -1, None)}
    (tmp_path / "hooks.yaml").write_text("start: [start-broker, '{id}']\n")
    with mock.patch("kctl.validate.fault_injection.local_cluster", return_value=None):
        made = recovery_control({}, "id-1", tmp_path / "hooks.yaml", TARGET)
    with mock.patch.object(made.control, "_run", return_value=mock.Mock(code=0)) as run:
        made.control.start(2, timeout_s=1)
    assert run.call_args.args[0] == ("start-broker", "2")


def test_a_run_notes_the_brokers_that_it_begins_with(cluster: Cluster) -> None:
    client = mock.Mock()
    client.metadata.return_value = ClusterState("id-1", 1, THREE, {})
    run = begin(TARGET, client, injection(cluster), mock.Mock(cluster="prod", cluster_id="id-1"), mock.Mock(), print)
    run.journal.close()
    assert leftovers.brokers_of("id-1") == THREE


def test_the_evidence_of_the_last_runs_is_kept(cluster: Cluster) -> None:
    runs = []
    for number in range(5):
        evidence = leftovers.folder("id-1") / f"evidence-{number}"
        evidence.mkdir(parents=True)
        (evidence / "producer.journal").touch()
        with leftovers.begin("prod", "id-1", str(number), evidence) as found:
            if number != 1:  # killed
                found.append(END, outcome="done")
        runs.append((found.path, evidence))
        time.sleep(0.002)  # the names of journals have milliseconds
    leftovers.forget_old("id-1", keep=2)
    assert [journal.exists() for journal, _ in runs] == [False, True, False, True, True]
    assert [evidence.exists() for _, evidence in runs] == [False, True, False, True, True]


def test_a_clean_up_that_fails_tells_both_failures(cluster: Cluster, tmp_path: Path) -> None:
    cluster.broken = {"start 2"}
    found = leftovers.begin("prod", "id-1", "12345678", tmp_path / "evidence")
    run = ValidationRun(
        "12345678",
        TARGET,
        mock.Mock(),
        injection(cluster),
        mock.Mock(),
        ValidationOptions(),
        found,
        tmp_path,
        lambda _: None,
    )

    def broken() -> None:
        with run:
            Breaker(injection(cluster), found).kill(2)
            raise OperationFailed("no write")

    with pytest.raises(OperationFailed, match="no write; clean-up after the validation failed: 2: cannot start"):
        broken()
    assert leftovers.unfinished("id-1") == [found.path]
    assert not journal.is_locked(found.path)


# --- a trial --------------------------------------------------------------------------------------------------------


def running(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[str]) -> ValidationRun:
    """Notes the steps of a trial; the faults are none."""
    monkeypatch.setattr(run_module, "wait_healthy", lambda *_, **__: done.append("healthy"))
    monkeypatch.setattr(run_module, "refuse_others", lambda *_: done.append("alone"))
    found = leftovers.begin("prod", "id-1", "12345678", tmp_path / "evidence")
    run = ValidationRun(
        "12345678",
        TARGET,
        mock.Mock(),
        injection(cluster),
        mock.Mock(),
        ValidationOptions(),
        found,
        tmp_path,
        lambda _: None,
    )

    def create(trial: Trial) -> None:
        done.append("create")
        found.append(TOPIC, topic=trial.topic)

    def experiment(*_: object) -> list[Any]:
        done.append("faults")
        return [result(lost=[40]).verdict]

    monkeypatch.setattr(run, "_create", create)
    monkeypatch.setattr(run, "_experiment", experiment)
    monkeypatch.setattr(run, "_result", lambda _scenario, _trial, verdict, _began: verdict)
    return run


TRIAL = Trial(NAME, "0123456789abcdef", "all", True, 2, ((2, 3),), unclean=True)


def test_a_verdict_is_kept_though_its_topic_cannot_be_deleted(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that is told all the same."""
    done: list[str] = []
    cluster.broken = {f"delete {NAME}"}
    found: list[Any] = []
    with (
        pytest.raises(OperationFailed, match=rf"clean-up after the validation failed: topic {NAME} could not"),
        running(cluster, tmp_path, monkeypatch, done) as run,
    ):
        found = run.trials([TRIAL], "unclean-election", 1.0, mock.Mock())
    assert [verdict.findings.lost.count for verdict in found] == [1]
    assert cluster.done == [f"delete {NAME}"] * 2
    assert done == ["healthy", "create", "alone", "faults"]


def test_no_scenario_begins_while_a_partition_is_behind(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is refused: nothing was changed. Later ones end what has begun."""
    done: list[str] = []
    with running(cluster, tmp_path, monkeypatch, done) as run:
        run.trials([TRIAL], "leader-election", 1.0, mock.Mock())
        behind = mock.Mock(side_effect=Refused("the cluster is not healthy: orders-0"))
        monkeypatch.setattr(run_module, "wait_healthy", behind)
        done.clear()
        with pytest.raises(OperationFailed, match="controller-election did not complete: the cluster is not h"):
            run.trials([TRIAL], "controller-election", 1.0, mock.Mock())
        assert behind.call_args == mock.call(run.client, WAIT_S, ignore="kctl-validate-12345678-")
        run.journal.entries[1:] = []
        with pytest.raises(Refused, match=r"^the cluster is not healthy: orders-0"):
            run.trials([TRIAL], "leader-election", 1.0, mock.Mock())
    assert done == []


# --- evidence -------------------------------------------------------------------------------------------------------


def test_the_files_of_all_replicas_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = result(lost=[40]).verdict.findings
    asked: list[bytes] = []

    def find(folder: Path, key: bytes) -> mock.Mock:
        asked.append(key)
        if folder.name == "b3":
            raise OSError("cannot read")
        place = None
        if folder.name == "b2":
            place = mock.Mock(segment="0.log", record=mock.Mock(offset=40))
        return mock.Mock(place=place)

    monkeypatch.setattr(evidence, "partition_log", lambda folder: folder)
    monkeypatch.setattr(evidence, "find_key", find)
    folders = {1: {1: Path("b1"), 2: Path("b2"), 3: Path("b3")}}
    row = find_missing(findings, "0123456789abcdef", folders)[0]
    assert (row.became, row.seen, row.unread) == (
        "cut off",
        (ReplicaMatch(2, "0.log", 40),),
        ("broker 3: cannot read",),
    )
    assert asked[0].decode() == row.key
    row = find_missing(findings, "0123456789abcdef", {1: {1: Path("b1")}})[0]
    assert (row.became, row.seen, row.unread) == ("lost", (), ())
