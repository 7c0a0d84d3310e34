"""kctl produce while brokers die and stand still: what it calls acknowledged is in the log, once and in order."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl_testing import SCRIPT, Kctl, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
PARTITIONS = 6
LINES = 20  # every hundredth of a second


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """Three brokers that tests of this module kill, and start again behind them."""
    kctl = Kctl(tmp_path_factory.mktemp("home"), shared)
    created = kctl("cluster", "create", "faults", "--use", "--layout", "pseudo-distributed", timeout=180)
    assert created.code == 0, str(created)
    yield kctl
    kctl("cluster", "destroy", "faults", "--yes", "--confirm-cluster", "faults", timeout=120)


class Writer:
    """A `kctl produce -o json` that is given numbered lines until it is told to end."""

    def __init__(self, kctl: Kctl, *args: str) -> None:
        self._out, self._err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by end
        self.process = subprocess.Popen(
            [str(SCRIPT), "produce", *args, "-o", "json"], env=kctl.environment, text=True,
            stdin=subprocess.PIPE, stdout=self._out, stderr=self._err,
        )  # fmt: skip
        self.written = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        pipe = self.process.stdin
        assert pipe
        try:
            while not self._stop.wait(0.01):
                number = self.written
                pipe.write("".join(f"key{n % 50}:{n:09d}\n" for n in range(number, number + LINES)))
                pipe.flush()
                self.written += LINES
        except (BrokenPipeError, ValueError):  # it has ended, or its pipe is closed
            pass

    def end(self, *, by_itself: bool = False) -> tuple[int, dict[str, Any], str]:
        """Exit code, result, stderr; by_itself: wait until it has had enough."""
        if not by_itself:
            self._stop.set()
            self._thread.join(90)
            assert self.process.stdin
            self.process.stdin.close()
        try:
            code = self.process.wait(within(90))
        finally:
            self._stop.set()
            self.process.kill()
        with self._out, self._err:
            texts = [(file.seek(0), file.read())[1] for file in (self._out, self._err)]
        return code, json.loads(texts[0]), texts[1]


def _log(kctl: Kctl, topic: str) -> list[list[int]]:
    """The lines in each partition's log, in order."""
    out = kctl.ok("consume", topic, "--from-beginning", "--exit-eof", "-o", "json", timeout=180).out
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for text in out.splitlines():
        row = json.loads(text)
        found[row["partition"]].append(int(row["value"]))
    return found


def _check(log: list[list[int]], *, taken: int, not_acknowledged: set[int]) -> None:
    """What is acknowledged is there, nothing twice, each partition in the order of the input. Lines are from 0."""
    assert all(numbers == sorted(numbers) for numbers in log), "order is kept"
    there = [number for numbers in log for number in numbers]
    assert len(there) == len(set(there)), "nothing is there twice"
    assert set(range(taken)) - not_acknowledged <= set(there), "what is acknowledged is there"
    assert set(there) <= set(range(taken)), "nothing else is there"


def test_leaders_killed_while_writing(breakable: Kctl) -> None:
    kctl = breakable
    kctl.ok(
        "topic", "create", "killed", "--partitions", str(PARTITIONS), "--replication-factor", "3", "--config",
        "min.insync.replicas=2",
    )  # fmt: skip
    writer = Writer(kctl, "killed", "--key-separator", ":", "--timeout", "120s")
    eventually(lambda: sum(map(len, _log(kctl, "killed"))) > 500, what="it writes", seconds=60)
    for broker in ("1", "2"):
        kctl.ok("cluster", "kill", "faults", broker, "--yes")
        before = writer.written
        eventually(lambda seen=before: writer.written > seen + 6_000, seconds=150, what="it goes on without the broker")  # type: ignore[misc]
        kctl.ok("cluster", "start", "faults", timeout=120)
        eventually(lambda: kctl("cluster", "status", "faults").code == 0, seconds=120, what="all are in sync")
    code, result, err = writer.end()
    assert code == 0, err
    assert result["acknowledged"] == result["sent"] == writer.written
    log = _log(kctl, "killed")
    _check(log, taken=writer.written, not_acknowledged=set())
    assert sum(map(len, log)) == writer.written


def test_a_leader_that_stays_away(breakable: Kctl, tmp_path: Path) -> None:
    """One replica: its partition can take nothing. What is lost is kept, and given back when the broker is there."""
    kctl = breakable
    kctl.ok("topic", "create", "alone", "--replica-assignment", ",".join(["1", "2", "3"] * 2))
    kept = tmp_path / "kept.jsonl"
    writer = Writer(kctl, "alone", "--key-separator", ":", "--timeout", "8s", "--failed-file", str(kept))
    eventually(lambda: sum(map(len, _log(kctl, "alone"))) > 500, what="it writes", seconds=60)
    kctl.ok("cluster", "kill", "faults", "3", "--yes")
    code, result, err = writer.end(by_itself=True)
    assert code == 5, err
    assert result["failed"] + result["unknown"] > 0
    assert result["acknowledged"] + result["failed"] + result["unknown"] == result["sent"]
    lost = [json.loads(text) for text in kept.read_text().splitlines()]
    assert len(lost) == result["failed"] + result["unknown"]
    assert [row["line"] for row in lost] == sorted(row["line"] for row in lost)
    kctl.ok("cluster", "start", "faults", timeout=120)
    not_acknowledged = {int(row["value"]) for row in lost}
    _check(_log(kctl, "alone"), taken=result["sent"], not_acknowledged=not_acknowledged)
    refused = [json.dumps(row) for row in lost if row["outcome"] == "failed"]
    kctl.ok("produce", "alone", "--format", "json", stdin="\n".join(refused) + "\n")
    there = [number for numbers in _log(kctl, "alone") for number in numbers]
    assert len(there) == len(set(there)), "what had failed was not there before"
    assert len(set(range(result["sent"])) - set(there)) <= result["unknown"]


def test_a_leader_that_stands_still(breakable: Kctl, tmp_path: Path) -> None:
    """A stopped broker takes requests and answers none: bounded by --timeout, and what it got is unknown."""
    kctl = breakable
    kctl.ok("topic", "create", "still", "--replica-assignment", ",".join(["2"] * PARTITIONS))
    kept = tmp_path / "kept.jsonl"
    writer = Writer(kctl, "still", "--key-separator", ":", "--timeout", "6s", "--failed-file", str(kept))
    eventually(lambda: sum(map(len, _log(kctl, "still"))) > 500, what="it writes", seconds=60)
    kctl.ok("cluster", "pause", "faults", "2", "--yes")
    try:
        started = time.monotonic()
        code, result, err = writer.end(by_itself=True)
        took = time.monotonic() - started
    finally:
        kctl.ok("cluster", "unpause", "faults", "2")
    assert code == 5, err
    assert result["unknown"] > 0
    assert took < 60
    eventually(
        lambda: not kctl.json("topic", "describe", "still")[0]["partitions"][0]["offline"], seconds=90, what="up"
    )
    lost = [json.loads(text) for text in kept.read_text().splitlines()]
    _check(_log(kctl, "still"), taken=result["sent"], not_acknowledged={int(row["value"]) for row in lost})
    there = {number for numbers in _log(kctl, "still") for number in numbers}
    failed = {int(row["value"]) for row in lost if row["outcome"] == "failed"}
    assert not failed & there, "what is called failed is not in the log"


def test_two_interrupts_while_a_leader_stands_still(breakable: Kctl, tmp_path: Path) -> None:
    """The second Ctrl-C waits no longer, and all that is lost is told and kept."""
    kctl = breakable
    kctl.ok("topic", "create", "pressed", "--replica-assignment", ",".join(["2"] * PARTITIONS))
    kept = tmp_path / "kept.jsonl"
    writer = Writer(kctl, "pressed", "--key-separator", ":", "--failed-file", str(kept))
    eventually(lambda: sum(map(len, _log(kctl, "pressed"))) > 500, what="it writes", seconds=60)
    kctl.ok("cluster", "pause", "faults", "2", "--yes")
    try:
        before = writer.written
        eventually(lambda: writer.written > before + 500, what="it has something that is not acknowledged")
        started = time.monotonic()
        writer.process.send_signal(signal.SIGINT)
        time.sleep(0.3)  # two at once are one signal
        writer.process.send_signal(signal.SIGINT)
        code, result, err = writer.end(by_itself=True)
        took = time.monotonic() - started
    finally:
        kctl.ok("cluster", "unpause", "faults", "2")
    assert code == 130, err
    assert result["interrupted"]
    assert took < within(4)
    assert result["failed"] + result["unknown"] > 0
    assert result["acknowledged"] + result["failed"] + result["unknown"] == result["sent"]
    lost = [json.loads(text)["line"] for text in kept.read_text().splitlines()]
    assert lost == [n for first, last in result["not_acknowledged"] for n in range(first, last + 1)]
    assert len(lost) == result["failed"] + result["unknown"]
