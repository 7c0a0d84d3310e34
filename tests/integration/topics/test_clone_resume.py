"""`kctl topic clone --data` that is killed, interrupted, or loses a broker: what the next run makes of it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.base import journal as journals
from kctl.cluster.log_offsets import read_log_offsets
from kctl.model import TopicPartition
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target
from kctl.records.background import Background
from kctl.records.consume.batches import decode
from kctl.records.consume.fetcher import Fetcher
from kctl.records.produce.options import SenderOptions
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.producer_id import producer_id
from kctl.records.produce.sender import Sender
from kctl_testing import SCRIPT, Kctl, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
SUPPORT = Path(__file__).parents[2] / "support"
PARTITIONS = 3
Rows = dict[int, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """Three brokers that tests of this module kill, and start again behind them."""
    kctl = Kctl(tmp_path_factory.mktemp("home"), shared)
    created = kctl("cluster", "create", "copies", "--use", "--layout", "pseudo-distributed", timeout=180)
    assert created.code == 0, str(created)
    yield kctl
    kctl("cluster", "destroy", "copies", "--yes", "--confirm-cluster", "copies", timeout=120)


@pytest.fixture(scope="module")
def client(breakable: Kctl) -> Iterator[ClusterClient]:
    servers = breakable.json("context", "show", "copies")["bootstrap_servers"]
    with connect(Target("copies", tuple(servers))) as opened:
        yield opened


@pytest.fixture(scope="module")
def source(breakable: Kctl, client: ClusterClient) -> str:
    """Batches of all sizes, records of every kind, transactions that were aborted and such that were not."""
    breakable.ok("topic", "create", "source", "--partitions", str(PARTITIONS), "--replication-factor", "3")
    rng = random.Random(18)
    for _ in range(6):
        _write(client, "source", [_record(rng) for _ in range(4_000)], batch_bytes=rng.choice([500, 6_000, 60_000]))
        _transactions(client, "source", rng)
    return "source"


def _record(rng: random.Random) -> Outgoing:
    return Outgoing(
        rng.choice([None, b"", b"key\xff%d" % rng.randrange(1000)]),
        rng.choice([None, b"", rng.randbytes(rng.randrange(400))]),
        rng.choice([(), (), ((b"h", b"1"), (b"h", None)), ((b"\xff\xfe not UTF-8", b"x"),)]),
        rng.randrange(1, 2_000_000_000_000),
        rng.randrange(PARTITIONS),
    )


def _write(client: ClusterClient, topic: str, records: list[Outgoing], *, batch_bytes: int) -> None:
    outcomes: list[str] = []
    state = client.metadata([topic])
    options = SenderOptions(topic, -1, producer_id(client, 30), "none", None, batch_bytes, 0.0, 60.0)
    sender = Sender(
        client, options, state, lambda _batch, outcome, _error: outcomes.append(outcome), Background()
    )  # fmt: skip
    for number, record in enumerate(records):
        sender.add(record, number)
    sender.flushing = True
    while not sender.idle:
        sender.step(0.2)
    sender.close()
    assert set(outcomes) == {"acknowledged"}


def _transactions(client: ClusterClient, topic: str, rng: random.Random) -> None:
    producer = client.producer(transactional_id=f"writes-{topic}")
    try:
        producer.init_transactions()
        for number in range(8):
            producer.begin_transaction()
            for _ in range(rng.choice([3, 150])):
                producer.send(topic, b"%d" % number * 20, partition=rng.randrange(PARTITIONS))
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    finally:
        producer.close(timeout=5)


def _rows(client: ClusterClient, topic: str) -> Rows:
    """All that a consumer of the topic sees, by partition."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    logs, _, failed = read_log_offsets(client, partitions, read_committed=True)
    assert not failed
    found: Rows = {number: [] for number in range(PARTITIONS)}
    reading = {tp: log.start for tp, log in logs.items() if log.start < log.end}
    fetcher = Fetcher(client, reading, read_committed=True, warn=lambda _: None, timeout_s=60, follow=False)
    while reading:
        for fetched in fetcher.poll(0.5):
            for chunk, _ in decode(fetched.tp, fetched.data, fetched.position, fetched.aborted):
                if chunk is not None:
                    headers = [chunk.headers_of(number) for number in range(chunk.size)]
                    found[fetched.tp.partition] += zip(chunk.timestamps, chunk.keys, chunk.values, headers, strict=True)
            if fetched.next_position >= logs[fetched.tp].end:
                reading.pop(fetched.tp, None)
                fetcher.drop(fetched.tp)
    fetcher.close()
    return found


def _check(kctl: Kctl, client: ClusterClient, source: str, copy: str, done: dict[str, Any]) -> None:
    """The result counts all records, which are those of the source; and the copy has ended."""
    expected, rows = _rows(client, source), _rows(client, copy)
    assert rows == expected
    assert (done["result"], done["records"]) == ("cloned", sum(map(len, rows.values())))
    assert [each["records"] for each in done["copied"]] == [each["log_end_offset"] for each in done["copied"]]
    again = kctl("topic", "clone", source, copy, "--data")
    assert (again.code, "already exists" in again.err) == (4, True), str(again)


def _script(kctl: Kctl, script: str, *args: str) -> tuple[int, str]:
    """Run a script of the tests with kctl's arguments; its exit code and stderr."""
    process = subprocess.run(
        [sys.executable, str(SUPPORT / script), *args], env=kctl.environment, capture_output=True, text=True,
        timeout=within(120), check=False,
    )  # fmt: skip
    return process.returncode, process.stderr


def _kill(kctl: Kctl, script: str, *args: str) -> None:
    """Run a script of the tests, which has to end in its own SIGKILL."""
    code, err = _script(kctl, script, *args)
    assert code == -signal.SIGKILL, f"{args}: {code}\n{err}"


def _copy_killed(kctl: Kctl, moment: str, number: int, *args: str) -> None:
    _kill(kctl, "clone_killed.py", "SIGKILL", moment, str(number), *args)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_killed_again_and_again(breakable: Kctl, client: ClusterClient, source: str, compression: str) -> None:
    """At random moments, until a run comes to the end."""
    copy, rng = f"killed-{compression}", random.Random(compression)
    command = ("topic", "clone", source, copy, "--data", "--compression", compression)
    ends: list[int] = []
    for moment in ("sent", "answered", "sent", "answered", "answered", "sent"):
        number = rng.choice([1, 2, 7]) if moment == "answered" else rng.choice([1, 5, 20])
        _copy_killed(breakable, moment, number, *command)
        planned = breakable.json(*command, "--dry-run")
        assert planned["result"] == "would resume"
        ends.append(planned["records"])
    assert ends == sorted(ends)
    assert ends[-1] > 0
    done = breakable.json(*command, timeout=120)
    _check(breakable, client, source, copy, done)


@pytest.mark.parametrize("step", ["begin", "created", "positions", "end"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_a_journal_entry(breakable: Kctl, client: ClusterClient, source: str, step: str, moment: str) -> None:
    copy = f"entry-{step}-{moment}"
    command = ("topic", "clone", source, copy, "--data")
    _kill(breakable, "kctl_killed.py", moment, step, *command)
    if (step, moment) == ("end", "after"):
        assert _rows(client, copy) == _rows(client, source)
        assert breakable(*command).code == 4
        return
    if step != "begin":
        _kill(breakable, "kctl_killed.py", "after", "resume", *command)
    _check(breakable, client, source, copy, breakable.json(*command, timeout=120))


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_interrupted(breakable: Kctl, client: ClusterClient, source: str, number: str) -> None:
    """Ctrl-C and SIGTERM: the message names the command that resumes."""
    copy = f"interrupted-{number}"
    command = ("topic", "clone", source, copy, "--data")
    code, err = _script(breakable, "clone_killed.py", number, "answered", "3", *command)
    assert code == 130, err
    assert f"resume the copy with `kctl topic clone {source} {copy} --data`" in err
    _check(breakable, client, source, copy, breakable.json(*command, timeout=120))


def test_a_broker_dies_and_returns(breakable: Kctl, client: ClusterClient, source: str) -> None:
    """Its partitions have other leaders meanwhile; one that has no other replica is waited for."""
    breakable.ok("topic", "create", "alone", "--replica-assignment", ",".join(["1", "2", "3"][:PARTITIONS]))
    rng = random.Random(1)
    _write(client, "alone", [_record(rng) for _ in range(60_000)], batch_bytes=4_000)
    for topic in (source, "alone"):
        process = subprocess.Popen(
            [str(SCRIPT), "topic", "clone", topic, f"{topic}-broken", "--data", "--timeout", "120s", "-o", "json"],
            env=breakable.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        eventually(lambda: f"{topic}-broken" in client.metadata().topics, seconds=30, what="it has begun")  # noqa: B023
        breakable.ok("cluster", "kill", "copies", "1", "--yes")
        breakable.ok("cluster", "start", "copies", timeout=120)
        out, err = process.communicate(timeout=within(180))
        assert process.returncode == 0, err
        eventually(lambda: breakable("cluster", "status", "copies").code == 0, seconds=120, what="all are in sync")
        _check(breakable, client, topic, f"{topic}-broken", json.loads(out))


def test_a_leader_that_stays_away(breakable: Kctl, client: ClusterClient) -> None:
    """It fails in time; once the leader is there again, the same command completes the copy."""
    breakable.ok("topic", "create", "away", "--replica-assignment", "1,2,3")
    rng = random.Random(2)
    _write(client, "away", [_record(rng) for _ in range(30_000)], batch_bytes=4_000)
    command = ("topic", "clone", "away", "away-copy", "--data")
    _copy_killed(breakable, "sent", 3, *command)
    breakable.ok("cluster", "pause", "copies", "2", "--yes")
    try:
        failed = breakable(*command, "--timeout", "6s", timeout=120)
    finally:
        breakable.ok("cluster", "unpause", "copies", "2")
    assert failed.code in {3, 4, 5}, str(failed)
    eventually(lambda: breakable("cluster", "status", "copies").code == 0, seconds=120, what="all are in sync")
    _check(breakable, client, "away", "away-copy", breakable.json(*command, timeout=120))


def test_a_source_that_is_compacted_meanwhile(breakable: Kctl, client: ClusterClient) -> None:
    """Gaps appear before the position: the copy goes on behind the last record that it has."""
    settings = ("cleanup.policy=compact", "segment.ms=1000", "min.cleanable.dirty.ratio=0.01", "segment.bytes=100000")
    configs = [f"--config={each}" for each in settings]
    breakable.ok("topic", "create", "compacted", "--partitions", str(PARTITIONS), "--replication-factor", "1", *configs)
    rng = random.Random(3)

    def write(count: int) -> None:
        keys = (b"%d" % rng.randrange(20_000) for _ in range(count))
        # Kafka's cleaner replaces header names that are not UTF-8.
        records = [_record(rng)._replace(key=key, timestamp_ms=None, headers=()) for key in keys]
        _write(client, "compacted", records, batch_bytes=3_000)

    write(30_000)
    before = _rows(client, "compacted")
    command = ("topic", "clone", "compacted", "compacted-copy", "--data")
    _copy_killed(breakable, "answered", 6, *command)
    write(30_000)
    eventually(lambda: sum(map(len, _rows(client, "compacted").values())) < 45_000, seconds=120, what="it is compacted")
    done = breakable.json(*command, timeout=120)
    assert done["result"] == "cloned", done
    after = _rows(client, "compacted-copy")
    left = _rows(client, "compacted")
    for number in range(PARTITIONS):
        last = {row[1]: row for row in before[number]}
        kept = {row for row in left[number] if last.get(row[1]) == row}
        assert kept, "the log has records of before"
        assert kept <= set(after[number]), "what is still in the source is in the copy"
        assert not Counter(after[number]) - Counter(before[number]), "and nothing twice"


def test_what_is_refused(breakable: Kctl, client: ClusterClient, source: str, tmp_path: Path) -> None:
    """Nothing is written to a target or from a source that are others, or have changed in a way that loses records."""

    def begun(name: str, of: str = source) -> tuple[str, ...]:
        command = ("topic", "clone", of, name, "--data")
        _copy_killed(breakable, "answered", 2, *command)
        return command

    def refused(command: tuple[str, ...], message: str) -> None:
        result = breakable(*command)
        assert (result.code, message in result.err) == (4, True), str(result)
        assert f"`kctl topic delete {command[3]}`" in result.err

    command = begun("foreign")
    elsewhere = breakable.with_environment(XDG_STATE_HOME=str(tmp_path))(*command)
    assert (elsewhere.code, "topic foreign already exists" in elsewhere.err) == (4, True), str(elsewhere)
    breakable.ok("topic", "create", "another")
    other = breakable("topic", "clone", "another", "foreign", "--data")
    resume_hint = f"resume that copy with `kctl topic clone {source} foreign --data`"
    assert (other.code, resume_hint in other.err) == (4, True), str(other)
    (held,) = [  # a copy that was killed before its start has an empty journal
        path for path in (breakable.home / ".local/state/kctl/clones").glob("*/*.jsonl")
        if [entry["target"] for entry in journals.read(path)[:1]] == ["foreign"]
    ]  # fmt: skip
    with journals.resume(held):
        busy = breakable(*command)
        assert (busy.code, "another kctl process is copying into foreign" in busy.err) == (4, True), str(busy)
    breakable.ok("produce", "foreign", "--partition", "1", stdin="written by somebody else\n")
    refused(command, "has records that the copy did not write")

    command = begun("recreated")
    breakable.ok("topic", "delete", "recreated", "--yes")
    breakable.ok("topic", "create", "recreated", "--partitions", str(PARTITIONS))
    refused(command, "was not created by the interrupted copy")
    breakable.ok("topic", "delete", "recreated", "--yes")
    eventually(lambda: "recreated" not in client.metadata().topics, seconds=30, what="it is deleted")
    _check(breakable, client, source, "recreated", breakable.json(*command, timeout=120))

    breakable.ok("topic", "create", "losing", "--partitions", str(PARTITIONS), "--replication-factor", "3")
    rng = random.Random(4)
    _write(client, "losing", [_record(rng) for _ in range(9_000)], batch_bytes=6_000)
    command = begun("lost", "losing")
    breakable.ok("topic", "truncate", "losing", "--all", "--yes")
    refused(command, "were deleted before they were copied")
    breakable.ok("topic", "delete", "losing", "--yes")
    breakable.ok("topic", "create", "losing", "--partitions", str(PARTITIONS))
    refused(command, "topic losing was deleted and recreated")
