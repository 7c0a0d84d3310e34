"""`kctl validate` over hooks that break nothing and note what they are told: what it does around a fault, when it is
ended at awkward moments, and what the next run finds. The faults themselves: test_scenarios.py."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kctl.base import paths
from kctl.deploy.process import find_processes
from kctl.validate.leftovers import BEGIN, DELETED, DOWN, END, TOPIC, UP
from kctl_testing import SCRIPT, Kctl, Result, TestCluster, eventually, within

_QUICK = Path(__file__).parents[2] / "support" / "quick_validation.py"
_ELECTION = ("validate", "leader-election")


@dataclass
class Proof:
    """A kctl with a home of its own; hooks.yaml beside it appends a line for each act to `acts`."""

    kctl: Kctl
    folder: Path

    @property
    def hooks(self) -> tuple[str, str]:
        return "--hooks", str(self.folder / "hooks.yaml")

    def write_hooks(self, *, start: str = "") -> None:
        """start: another command for it."""
        note = "[sh, -c, 'echo \"$0 $1\" >> \"$2\"', {act}, '{{id}}', " + str(self.folder / "acts") + "]"
        lines = [f"{act}: {note.format(act=act)}" for act in ("kill", "start", "pause", "unpause", "stop")]
        if start:
            lines[1] = f"start: {start}"
        (self.folder / "hooks.yaml").write_text("\n".join(lines) + "\n")

    def acts(self) -> list[str]:
        path = self.folder / "acts"
        return path.read_text().splitlines() if path.exists() else []

    def journals(self) -> list[Path]:
        state = self.kctl.home / ".local/state" / paths.state_dir().name
        return sorted((state / "validations").glob("*/*.jsonl"))

    def topics(self) -> set[str]:
        """Those of validations of this home that are there now."""
        entries = [json.loads(line) for path in self.journals() for line in path.read_text().splitlines()]
        own = {entry["topic"] for entry in entries if entry["step"] == TOPIC}
        return own & {row["topic"] for row in self.kctl.json("topic", "list")}

    def clean(self) -> Result:
        """What the next command does before it asks, and nobody answers."""
        return self.kctl(*_ELECTION, *self.hooks)

    def assert_nothing_left(self) -> None:
        assert self.topics() == set()
        assert not list(self.kctl.home.rglob("*.task"))  # they have the login
        home = str(self.kctl.home)
        eventually(
            lambda: not find_processes(lambda argv: any(word.startswith(home) for word in argv)),
            seconds=within(10), what="the processes end",
        )  # fmt: skip
        broken = [act.split()[1] for act in self.acts() if act.startswith("kill")]
        mended = [act.split()[1] for act in self.acts() if act.startswith("start")]
        assert set(broken) <= set(mended)


@pytest.fixture
def proof(own_kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> Proof:
    own_kctl.ok(
        "context", "add", "prod", "--bootstrap-server", cluster.bootstrap, "--zookeeper", cluster.zookeeper
    )  # fmt: skip
    own_kctl.ok("context", "use", "prod")
    made = Proof(own_kctl, tmp_path)
    made.write_hooks()
    return made


def test_it_is_refused_where_nothing_can_be_broken(proof: Proof) -> None:
    refused = proof.kctl(*_ELECTION, "--yes")
    assert refused.code == 4
    assert "set --hooks FILE" in refused.err
    zookeeper = proof.kctl("validate", "zookeeper-loss", "--yes")
    assert zookeeper.code == 4
    (proof.folder / "hooks.yaml").write_text("stop: ['true']\nstart: ['true']\n")
    lacking = proof.kctl(*_ELECTION, *proof.hooks, "--yes")
    assert lacking.code == 4
    assert "the hooks have no command to kill each broker" in lacking.err
    (proof.folder / "hooks.yaml").write_text("kill: [no-such-command]\nstart: ['true']\n")
    missing = proof.kctl(*_ELECTION, *proof.hooks, "--yes")
    assert missing.code == 4
    assert "program no-such-command" in missing.err
    proof.write_hooks()
    asked = proof.kctl(*_ELECTION, *proof.hooks)
    assert asked.code == 4
    assert "Inject faults into cluster prod (1 validation), by the commands of" in asked.err
    down = proof.kctl(*_ELECTION, *proof.hooks, "--yes", "--zookeeper", "127.0.0.1:1/kafka")
    assert down.code == 4
    assert "ZooKeeper does not respond" in down.err
    assert proof.acts() == []
    assert proof.journals() == []


def test_a_protected_context_asks_for_its_name(proof: Proof) -> None:
    config = proof.kctl.home / ".config/kctl/config.yaml"
    config.write_text(config.read_text().replace("prod:\n", "prod:\n    protected: true\n", 1))
    for argv in ((*_ELECTION, *proof.hooks), ("validate", "matrix", *proof.hooks)):
        asked = proof.kctl(*argv, "--yes")
        assert asked.code == 4, str(asked)
        assert "--confirm-cluster prod" in asked.err
    assert proof.journals() == []


def test_dry_run_says_what_would_be_done(proof: Proof) -> None:
    plan = proof.kctl.json("validate", "all", "--dry-run", *proof.hooks)
    rows = {row["scenario"]: row for row in plan["scenarios"]}
    assert list(rows) == [
        "leader-election", "controller-election", "rolling-restart", "unclean-election", "broker-loss",
        "zookeeper-loss",
    ]  # fmt: skip
    assert {name for name, row in rows.items() if row["impossible"]} == {"zookeeper-loss"}
    assert {tuple(sorted(replicas)) for replicas in rows["leader-election"]["assignment"]} == {(1, 2, 3)}
    assert proof.journals() == []


@pytest.mark.long
def test_zookeepers_of_others_are_reached_by_commands(proof: Proof, cluster: TestCluster) -> None:
    """Each server of the ensemble has its own; these do nothing, and that is seen."""
    acts = proof.folder / "acts"
    note = "[sh, -c, 'echo \"$0 $1\" >> \"$2\"', ACT, '{host}:{port}', " + str(acts) + "]"
    commands = [f"{act}: {note.replace('ACT', act)}" for act in ("kill", "start")]
    (proof.folder / "hooks.yaml").write_text(f"zookeeper: {{{', '.join(commands)}}}\n")
    done = proof.kctl("validate", "zookeeper-loss", *proof.hooks, "--yes", "-o", "json", timeout=within(90))
    assert done.code == 1, str(done)
    (row,) = json.loads(done.out)["scenarios"]
    servers = sorted(cluster.zookeeper.partition("/")[0].split(","))
    names = ", ".join(servers)
    assert row["doubts"] == [f"'kill -9 of ZooKeeper' had no effect: {names} kept running until the restart"]
    assert sorted(proof.acts()) == sorted(f"{act} {server}" for act in ("kill", "start") for server in servers)
    proof.assert_nothing_left()


@pytest.mark.long
def test_a_missed_budget_and_a_fault_that_was_none_are_exit_1(proof: Proof) -> None:
    report = proof.folder / "report"
    argv = (*_ELECTION, *proof.hooks, "--yes", "--max-gap", "1ms", "--report", str(report), "-o", "json")
    done = proof.kctl(*argv, timeout=within(60))
    assert done.code == 1, str(done)
    value = json.loads(done.out)
    (row,) = value["scenarios"]
    assert value == json.loads((report / "report.json").read_text())
    assert (row["ok"], row["violated"]) == (False, [])
    (doubt,) = row["doubts"]  # these hooks only say that they did it
    assert doubt.startswith("'kill -9 of broker ")
    assert "had no effect: its broker led partition" in doubt
    assert {breach["name"] for breach in row["breaches"]} == {"max_gap_ms"}
    assert row["acked"] == row["sent"] == row["log_records"] == row["delivered"] > 0
    assert (row["lost"], row["holes"], row["missing_offsets"]) == (0, 0, 0)
    assert [each["partition"] for each in row["partitions"]] == [0, 1, 2]
    assert "leader-election: budget: " in done.err
    assert "the limit is 1 ms" in done.err
    killed = next(act.split()[1] for act in proof.acts())
    assert proof.acts() == [f"kill {killed}", f"start {killed}"]
    assert row["faults"][0]["name"].startswith(f"kill -9 of broker {killed}, leader of partition ")
    assert {path.name for path in report.iterdir()} == {"report.json", "report.md", "leader-election.svg"}
    assert Path(row["evidence"], "producer.journal").exists()
    proof.assert_nothing_left()
    again = proof.kctl(*argv)
    assert again.code == 2
    assert "is not empty" in again.err


# Every entry that a run writes, and what an end of kctl there leaves behind.
_STEPS = (BEGIN, TOPIC, DELETED, DOWN, UP, END)
_POINTS = [(moment, step) for step in _STEPS for moment in ("before", "after")][1:]  # before the first is before it
_WITH_TOPIC = [("after", TOPIC), *((moment, step) for step in (DOWN, UP) for moment in ("before", "after"))]
_BROKEN = [("after", DOWN), ("before", UP)]


@pytest.mark.long
def test_kctl_killed_at_each_step(proof: Proof) -> None:
    """kill -9 of kctl there; the next command tells of it, and nothing remains."""
    for moment, step in _POINTS:
        (proof.folder / "acts").unlink(missing_ok=True)
        killed = subprocess.run(
            [sys.executable, str(_QUICK), moment, step, *_ELECTION, *proof.hooks, "--yes"],
            env=proof.kctl.environment, capture_output=True, text=True, timeout=within(120), check=False,
        )  # fmt: skip
        at = f"{moment} {step}: {killed.stderr}"
        assert killed.returncode == -signal.SIGKILL, at
        left = proof.topics()
        assert bool(left) == ((moment, step) in [*_WITH_TOPIC[1:], ("before", DELETED)] and step != DELETED), at
        cleaned = proof.clean()
        assert cleaned.code == 4, at  # nobody confirmed it
        assert "not confirmed" in cleaned.err
        told = "cleaned up after an earlier validation: kctl-validate-" in cleaned.err
        assert told == ((moment, step) in [*_WITH_TOPIC, ("before", DELETED)]), f"{at}\n{cleaned.err}"
        if (moment, step) in _BROKEN:
            assert ", broker " in cleaned.err, at
            assert any(act.startswith("start") for act in proof.acts())
        proof.assert_nothing_left()
        assert all('"step":"end"' in path.read_text().splitlines()[-1] for path in proof.journals()), at
    assert "cleaned up after" not in proof.clean().err


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_evidence_and_takes_back_the_rest(proof: Proof, number: signal.Signals) -> None:
    """And while it is at work, no other one begins."""
    # 20 records of each partition take 15 s: the second kctl is refused within them, also on a slow machine
    rate = "4" if number is signal.SIGINT else "12"
    process = subprocess.Popen(
        [str(SCRIPT), *_ELECTION, *proof.hooks, "--yes", "--rate", rate], env=proof.kctl.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        eventually(lambda: bool(proof.acts()), seconds=within(60), what="the fault")
        if number is signal.SIGINT:
            second = proof.kctl(*_ELECTION, *proof.hooks, "--yes")
            assert second.code == 4, str(second)
            assert "another validation of this cluster is running" in second.err
        process.send_signal(number)
        _, err = process.communicate(timeout=within(60))
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "the evidence so far is in " in err
    evidence = Path(err.split("the evidence so far is in ")[1].splitlines()[0])
    assert (evidence / "leader-election" / "producer.journal").stat().st_size > 0
    assert (evidence / "leader-election" / "faults.jsonl").exists()
    proof.assert_nothing_left()
    assert "cleaned up after" not in proof.clean().err


@pytest.mark.long
def test_what_cannot_be_put_back_is_exit_5_and_the_next_run_tries_again(proof: Proof) -> None:
    proof.write_hooks(start="['false']")
    failed = proof.kctl(*_ELECTION, *proof.hooks, "--yes", "-o", "json", timeout=within(120))
    assert failed.code == 5, str(failed)
    assert "clean-up after the validation failed" in failed.err
    assert "(false) failed with exit code 1" in failed.err
    assert json.loads(failed.out)["scenarios"] == []
    assert proof.topics() == set()  # what could be taken back is
    broken = proof.acts()[0].split()[1]
    still = proof.clean()
    assert still.code == 5, str(still)
    proof.write_hooks()
    cleaned = proof.clean()
    assert f"cleaned up after an earlier validation: broker {broken}" in cleaned.err
    proof.assert_nothing_left()
