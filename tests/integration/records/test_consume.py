"""kctl consume against a real cluster."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_admin import kafka_admin
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import SCRIPT, Kctl, TestCluster, eventually, within

KEYS = [
    "topic", "partition", "offset", "timestamp", "timestamp_ms", "key", "key_encoding", "value", "value_encoding",
    "headers",
]  # fmt: skip


def _rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def _target(cluster: TestCluster) -> Target:
    return Target(cluster.name, tuple(cluster.bootstrap.split(",")))


@pytest.fixture
def filled(kctl: Kctl, topic: Callable[..., str]) -> str:
    """A topic with the values 0 … 99 in three partitions, by key."""
    name = topic(partitions=3)
    kctl.ok("produce", name, "--key-separator", ":", stdin="".join(f"k{n % 7}:{n}\n" for n in range(100)))
    return name


def test_everything_once(kctl: Kctl, filled: str) -> None:
    rows = _rows(kctl.ok("consume", filled, "--from-beginning", "--exit-eof", "-o", "json").out)
    assert list(rows[0]) == KEYS
    assert sorted(int(row["value"]) for row in rows) == list(range(100))
    assert {row["key"] for row in rows} == {f"k{n}" for n in range(7)}
    assert rows[0]["timestamp"].endswith("Z")
    for number in range(3):
        offsets = [row["offset"] for row in rows if row["partition"] == number]
        assert offsets == list(range(len(offsets)))


def test_text(kctl: Kctl, filled: str) -> None:
    plain = kctl.ok("consume", filled, "--from-beginning", "--exit-eof").out.split()
    assert sorted(plain, key=int) == [str(n) for n in range(100)]
    keyed = kctl.ok("consume", filled, "--from-beginning", "--exit-eof", "--key-separator", "=").out.split()
    assert set(keyed) == {f"k{n % 7}={n}" for n in range(100)}


def test_without_from_beginning_it_starts_at_the_end(kctl: Kctl, filled: str) -> None:
    assert kctl.ok("consume", filled, "--exit-eof").out == ""


def test_an_empty_topic_ends_at_once(kctl: Kctl, topic: Callable[..., str]) -> None:
    result = kctl("consume", topic(partitions=5), "--from-beginning", "--exit-eof")
    assert (result.code, result.out) == (0, "")
    assert result.seconds < within(5)


def test_partition_and_offset(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=2)
    kctl.ok("produce", mine, "--partition", "1", stdin="a\nb\nc\n")
    from_two = kctl.ok("consume", mine, "--partition", "1", "--offset", "2", "--exit-eof").out
    assert from_two == "c\n"
    assert kctl.ok("consume", mine, "--partition", "1", "--offset", "3", "--exit-eof").out == ""
    assert kctl.ok("consume", mine, "--partition", "0", "--offset", "earliest", "--exit-eof").out == ""
    assert kctl.ok("consume", mine, "--offset", "earliest", "--exit-eof").out == "a\nb\nc\n"
    assert kctl.ok("consume", mine, "--from-beginning", "--max-messages", "2").out == "a\nb\n"
    assert kctl.ok("consume", mine, "--from-beginning", "--max-messages", "0").out == ""


@pytest.mark.long
def test_gaps_of_a_compacted_log(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """Offsets that nothing has any more, in front, in the midst, and where it shall end, keep nothing waiting."""
    mine = topic(**{
        "cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100", "min.compaction.lag.ms": "0",
    })  # fmt: skip
    for _ in range(4):
        kctl.ok("produce", mine, "--key-separator", ":", stdin="k:1\nk:2\nk:3\n")
        time.sleep(0.3)
    read = ("consume", mine, "--from-beginning", "--format", "{offset} ")

    def left() -> list[int]:
        return [int(word) for word in kctl.ok(*read, "--exit-eof", timeout=30).out.split()]

    eventually(lambda: len(left()) < 10, seconds=within(60), what="the log cleaner has removed older values")
    offsets = left()
    assert offsets[0] > 1
    assert offsets[-1] == 11
    assert kctl.ok(*read, "--until-offset", str(offsets[0] - 1), timeout=30).out == "", "it ends in a gap"
    group = f"gaps-{mine}"
    assert len(kctl.ok(*read, "--group", group, "--exit-eof", timeout=30).out.split()) <= len(offsets)
    assert [row["lag"] for row in kctl.json("lag", group)] == [0]


def test_transactions(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """Committed, aborted, and open at the end: markers are no records, and the last offset is one of them."""
    mine = topic()
    with connect(_target(cluster)) as client:
        producer = client.producer(transactional_id=f"tx-{mine}", transaction_timeout_ms=60_000)
        producer.init_transactions()
        for word, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(mine, word.encode()).get(timeout=20)
            end()
        assert kctl.ok("consume", mine, "--from-beginning", "--exit-eof").out == "kept\ndropped\n"
        assert kctl.ok("consume", mine, "--from-beginning", "--exit-eof", "--read-committed").out == "kept\n"
        producer.begin_transaction()
        producer.send(mine, b"open").get(timeout=20)
        assert kctl.ok("consume", mine, "--from-beginning", "--exit-eof", "--read-committed").out == "kept\n"
        assert kctl.ok("consume", mine, "--from-beginning", "--exit-eof").out == "kept\ndropped\nopen\n"
        producer.abort_transaction()
        producer.close()


def test_headers_tombstones_and_bytes(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    mine = topic()
    with connect(_target(cluster)) as client:
        producer = client.producer()
        producer.send(mine, key=b"k", value=None, headers=[("h", b"v"), ("b", b"\xff")])
        producer.send(mine, key=b"\xfe", value=b"\x1b[31mred\x1b[0m")
        producer.close()
    first, second = _rows(kctl.ok("consume", mine, "--from-beginning", "--exit-eof", "-o", "json").out)
    assert (first["value"], first["value_encoding"]) == (None, None)
    assert first["headers"] == [
        {"key": "h", "value": "v", "encoding": "utf-8"}, {"key": "b", "value": "/w==", "encoding": "base64"},
    ]  # fmt: skip
    assert (second["key"], second["key_encoding"], second["value"]) == ("/g==", "base64", "\x1b[31mred\x1b[0m")
    raw = kctl.ok("consume", mine, "--from-beginning", "--exit-eof").out
    assert raw == "null\n\x1b[31mred\x1b[0m\n", "a pipe gets the bytes as they are"
    assert "\x1b[31m" not in _on_a_terminal(kctl, "consume", mine, "--from-beginning", "--exit-eof")


def _on_a_terminal(kctl: Kctl, *args: str) -> str:
    """What kctl writes when stdout is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([str(SCRIPT), *args], env=kctl.environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        out += data
    assert process.wait(timeout=30) == 0
    os.close(master)
    return out.decode()


def test_a_terminal_sees_escapes(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    kctl.ok("produce", mine, stdin="\x1b]0;title\x07 and \u202eevil\n")
    assert "\\x1b]0;title\\x07 and \\u202eevil" in _on_a_terminal(
        kctl, "consume", mine, "--from-beginning", "--exit-eof"
    )


def test_head_ends_it_quietly(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    kctl.ok("produce", mine, stdin="line\n" * 20_000)
    script = f'"{SCRIPT}" consume {mine} --from-beginning | head -n 3; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script], env=kctl.environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["line", "line", "line", "0"]
    assert done.stderr == ""


def test_a_group_goes_on_where_it_was(kctl: Kctl, filled: str) -> None:
    group = f"goes-on-{filled}"
    seen: list[str] = []
    for _ in range(2):
        seen += kctl.ok("consume", filled, "--group", group, "--from-beginning", "--max-messages", "30").out.split()
    rows = kctl.json("lag", group)
    assert sum(row["committed_offset"] or 0 for row in rows) == 60
    assert sum(row["lag"] or 0 for row in rows if row["lag"] is not None) <= 40
    seen += kctl.ok("consume", filled, "--group", group, "--from-beginning", "--exit-eof").out.split()
    assert sorted(map(int, seen)) == list(range(100)), "each record once"
    assert sum(row["lag"] for row in kctl.json("lag", group)) == 0


def test_ctrl_c_commits_what_was_shown(kctl: Kctl, topic: Callable[..., str]) -> None:
    """In the midst of what one poll brought, because the reader of the pipe has stopped: the rest is not committed."""
    mine = topic(partitions=3)
    group = f"interrupted-{mine}"
    kctl.ok("produce", mine, "--key-separator", ":", stdin="".join(f"{n}:{'x' * 2000}\n" for n in range(300)))
    read = ("consume", mine, "--group", group, "--from-beginning", "--format", "{partition}:{offset} {value}\n")
    process = subprocess.Popen(
        [str(SCRIPT), *read], env=kctl.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    pipe = process.stdout

    def full() -> bool:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder) > 60_000

    eventually(full, seconds=within(30), what="the pipe takes no more")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=within(20))
    assert process.returncode == 130
    assert "Traceback" not in err
    shown = [line.split()[0] for line in out.splitlines()]
    assert 0 < len(shown) < 100
    committed = {row["partition"]: row["committed_offset"] or 0 for row in kctl.json("lag", group)}
    assert {f"{tp}:{at}" for tp, offset in committed.items() for at in range(offset)} <= set(shown)
    rest = [line.split()[0] for line in kctl.ok(*read, "--exit-eof").out.splitlines()]
    assert len({*shown, *rest}) == 300
    assert len(shown) + len(rest) <= 320, "what was being written is read again, no more"


def test_what_a_limit_left_is_read_by_the_next(kctl: Kctl, filled: str) -> None:
    """With a condition, more is fetched than shown: in the other partitions, too."""
    read = ("consume", filled, "--group", f"limit-{filled}", "--from-beginning", "--value", ".")
    first = kctl.ok(*read, "--max-messages", "1").out.split()
    rest = kctl.ok(*read, "--exit-eof").out.split()
    assert len(first) == 1
    assert sorted(map(int, first + rest)) == list(range(100))


def test_two_members_share_the_partitions(kctl: Kctl, filled: str) -> None:
    group = f"shared-{filled}"
    with kctl.running("consume", filled, "--group", group), kctl.running("consume", filled, "--group", group):

        def both() -> bool:
            found = kctl("group", "describe", group, "-o", "json")
            if found.code:
                return False
            (described,) = json.loads(found.out)
            given = [tuple(a["partitions"]) for m in described["members"] for a in m["assignments"]]
            return described["state"] == "Stable" and len(described["members"]) == 2 and len(given) == 2

        eventually(both, seconds=60, what="both are members and have partitions")


def test_quiet_counts(kctl: Kctl, filled: str) -> None:
    result = kctl.json("consume", filled, "--from-beginning", "--exit-eof", "--quiet")
    assert list(result) == [
        "topics", "group", "records", "bytes", "skipped", "ended", "duration_ms", "filtered", "undecoded",
        "first_undecoded", "partition_count", "partitions",
    ]  # fmt: skip
    assert (result["topics"], result["records"], result["ended"]) == ([filled], 100, "end")
    assert sum(row["records"] for row in result["partitions"]) == 100
    assert {row["committed_offset"] for row in result["partitions"]} == {None}


def test_tail_counts_per_partition(kctl: Kctl, filled: str) -> None:
    tail = kctl.ok("consume", filled, "--tail", "2", "--exit-eof")
    count = len(tail.out.splitlines())
    assert f"{count} records read, starting at the last 2 records of each of {count // 2} partitions" in tail.err


def test_idle_timeout(kctl: Kctl, filled: str) -> None:
    result = kctl("consume", filled, "--from-beginning", "--idle-timeout", "2s", "--quiet", "-o", "json")
    assert (result.code, json.loads(result.out)["ended"]) == (0, "idle")


def test_records_deleted_while_it_reads_are_told(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """A group that has committed 2 comes back after the log was cut to begin at 5."""
    mine = topic()
    group = f"cut-{mine}"
    kctl.ok("produce", mine, stdin="".join(f"{n}\n" for n in range(8)))
    assert kctl.ok("consume", mine, "--group", group, "--from-beginning", "--max-messages", "2").out == "0\n1\n"
    with connect(_target(cluster)) as client, kafka_admin(client) as admin:
        from kafka.structs import TopicPartition

        admin.delete_records({TopicPartition(mine, 0): 5})
    (row,) = kctl.json("lag", group)
    assert (row["committed_offset"], row["log_start_offset"], row["log_end_offset"]) == (2, 5, 8)
    assert (row["lag"], row["lost"]) == (3, 3)
    result = kctl("consume", mine, "--group", group, "--exit-eof")
    assert (result.code, result.out) == (0, "5\n6\n7\n"), str(result)
    assert "offsets 2 to 4 were deleted before they were read" in result.err


@pytest.mark.long
def test_a_topic_deleted_while_it_is_read(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    kctl.ok("produce", mine, stdin="x\n")
    process = subprocess.Popen(
        [str(SCRIPT), "consume", mine, "--from-beginning"],
        env=kctl.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "x\n"
    kctl.ok("topic", "delete", mine, "--yes")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 5
    assert f"topic {mine} was deleted while it was read" in err


@pytest.fixture(scope="module")
def empty(kctl: Kctl, cluster: TestCluster) -> str:
    """One empty topic for all rows of bad input."""
    name = f"empty-{__name__.replace('.', '-')}-{os.getpid()}"
    kctl.ok("topic", "create", name)
    return name


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("no-such-topic",), 4, "topic no-such-topic does not exist"),
        (("b@d",), 2, "only ASCII letters"),
        (("TOPIC", "--partition", "7"), 4, "has no partition 7"),
        (("TOPIC", "--offset", "11", "--partition", "0"), 4, "offset 11 is not in partition"),
        (("TOPIC", "--offset", "soon"), 2, "is not an offset"),
        (("TOPIC", "--offset", "1", "--from-beginning"), 2, "cannot be combined"),
        (("TOPIC", "--group", "g", "--partition", "0"), 2, "cannot be combined with --partition"),
        (("TOPIC", "--group", ""), 2, "--group is empty"),
        (("TOPIC", "--max-messages", "-1"), 2, "not in the range"),
        (("TOPIC", "-o", "csv"), 2, "is not a format of kctl consume"),
        (("TOPIC", "--idle-timeout", "x"), 2, "is not a duration"),
    ],
)
def test_bad_input(kctl: Kctl, empty: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl("consume", *(empty if word == "TOPIC" else word for word in arguments))
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.seconds < within(5)


def test_a_pipe_through_and_back(kctl: Kctl, tmp_path: Path, filled: str, topic: Callable[..., str]) -> None:
    """What consume writes, produce reads."""
    other = topic(partitions=3)
    text = kctl.ok("consume", filled, "--from-beginning", "--exit-eof", "--key-separator", ":").out
    kctl.ok("produce", other, "--key-separator", ":", stdin=text)
    back = kctl.ok("consume", other, "--from-beginning", "--exit-eof", "--key-separator", ":").out
    assert sorted(back.splitlines()) == sorted(text.splitlines())


def test_a_partition_without_records_gets_its_position(kctl: Kctl, topic: Callable[..., str]) -> None:
    """As Java's consumers commit it: what a group did not reach counts as lag."""
    mine = topic(partitions=4)
    for partition in range(4):
        kctl.ok("produce", mine, "--partition", str(partition), stdin="a\nb\nc\n")
    kctl.ok("consume", mine, "--group", f"part-{mine}", "--from-beginning", "--max-messages", "1")
    rows = kctl.json("lag", f"part-{mine}")
    assert sorted(row["committed_offset"] for row in rows) == [0, 0, 0, 1]
    assert sum(row["lag"] for row in rows) == 11


def test_a_group_that_reads_into_head_commits_what_was_handed_over(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    kctl.ok("produce", mine, stdin="".join(f"{'x' * 90} {n}\n" for n in range(5000)))
    argv = f"{SCRIPT} consume {mine} --group head-{mine} --from-beginning | head -n 2 | wc -l; echo ${{PIPESTATUS[0]}}"
    environment = {k: v for k, v in kctl.environment.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", argv], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[0] == "2"
    assert done.stderr == ""
    (row,) = kctl.json("lag", f"head-{mine}")
    assert row["committed_offset"] is not None
    assert 0 < row["committed_offset"] <= 1500, "ahead of head by what a pipe and a poll hold, and no more"


def test_terminated_is_interrupted(kctl: Kctl, topic: Callable[..., str]) -> None:
    """systemd, timeout and CI send SIGTERM: the group is left, and the next reader need not wait for its session."""
    mine = topic()
    group = f"term-{mine}"
    kctl.ok("produce", mine, stdin="a\nb\n")
    with kctl.running("consume", mine, "--group", group, "--from-beginning") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        assert process.stdout.readline() == "b\n"
        time.sleep(0.5)  # with an unbuffered stdout, the last line is out before it is counted
        process.terminate()
        assert process.wait(20) == 130
    assert [row["committed_offset"] for row in kctl.json("lag", group)] == [2]
    again = kctl.ok("consume", mine, "--group", group, "--exit-eof")
    assert again.seconds < within(8), str(again)


@pytest.mark.long
def test_waiting_for_a_group_is_told(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    group = f"wait-{mine}"
    kctl.ok("produce", mine, stdin="a\n")
    with kctl.running("consume", mine, "--group", group, "--from-beginning") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        process.kill()
        process.wait()
    after = kctl.ok("consume", mine, "--group", group, "--exit-eof", timeout=60)
    assert "has not assigned partitions yet" in after.err, str(after)
    assert after.seconds < within(30)
