"""kctl produce against a real cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from kctl_testing import SCRIPT, Kctl, TestCluster, eventually, within

KEYS = [
    "topic", "acks", "sent", "acknowledged", "failed", "unknown", "not_acknowledged", "bytes", "duration_ms",
    "partitions", "error", "bad_line", "interrupted",
]  # fmt: skip


def _read(kctl: Kctl, topic: str, *options: str) -> list[dict[str, Any]]:
    out = kctl.ok("consume", topic, "--from-beginning", "--exit-eof", "-o", "json", *options).out
    return [json.loads(line) for line in out.splitlines()]


def test_lines_become_records(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=1)
    result = kctl.json("produce", mine, stdin="one\ntwo\n\nlast without newline")
    assert list(result) == KEYS
    assert (result["sent"], result["acknowledged"], result["failed"], result["unknown"]) == (4, 4, 0, 0)
    assert result["partitions"] == {"0": 4}
    assert [row["value"] for row in _read(kctl, mine)] == ["one", "two", "", "last without newline"]


def test_no_lines(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    assert kctl.json("produce", mine, stdin="")["acknowledged"] == 0
    assert _read(kctl, mine) == []


def test_keys_decide_the_partition_as_kafkas_own_producer_does(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=3)
    kctl.ok("produce", mine, "--key-separator", ":", stdin="a:1\nb:2\nc:3\na:4:5\norders:6\nü:7\n")
    rows = _read(kctl, mine)
    assert [row["value"] for row in rows if row["key"] == "a"] == ["1", "4:5"]
    # Where kafka.tools.ConsoleProducer 3.9.2 put the same keys.
    assert {row["key"]: row["partition"] for row in rows} == {"a": 1, "b": 2, "c": 1, "orders": 0, "ü": 2}


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_acks(kctl: Kctl, topic: Callable[..., str], acks: str) -> None:
    mine = topic(replication_factor=3)
    result = kctl.json("produce", mine, "--acks", acks, stdin="x\n")
    assert result["acknowledged"] == (None if acks == "0" else 1)
    assert result["sent"] == 1
    eventually(lambda: len(_read(kctl, mine)) == 1, what="the record is there")


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(kctl: Kctl, topic: Callable[..., str], compression: str) -> None:
    mine = topic()
    kctl.ok("produce", mine, "--compression", compression, stdin="again and again\n" * 100)
    assert [row["value"] for row in _read(kctl, mine)] == ["again and again"] * 100
    (planned,) = kctl.json("topic", "delete", mine, "--dry-run")
    assert planned["size_bytes"] < 1600


def test_one_partition(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=3)
    assert kctl.json("produce", mine, "--partition", "2", stdin="a\nb\n")["partitions"] == {"2": 2}


def test_bytes_that_are_no_text(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    done = subprocess.run(
        [str(SCRIPT), "produce", mine], input=b"\xff\x00\n", env=kctl.environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (row,) = _read(kctl, mine)
    assert (row["value"], row["value_encoding"]) == ("/wA=", "base64")


def test_many_lines_in_order(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=1)
    lines = [f"{number}" for number in range(30_000)]
    result = kctl.json("produce", mine, stdin="\n".join(lines) + "\n")
    assert result["acknowledged"] == len(lines)
    out = kctl.ok("consume", mine, "--from-beginning", "--exit-eof").out
    assert out.splitlines() == lines


def test_a_line_without_separator_ends_it(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    result = kctl("produce", mine, "--key-separator", ":", "-o", "json", stdin="a:1\nb:2\nbroken\nc:3\n")
    assert result.code == 5
    assert json.loads(result.out)["acknowledged"] == 2
    assert "line 3 has no key separator" in json.loads(result.err)["message"]
    assert len(_read(kctl, mine)) == 2


def test_a_line_that_is_too_long(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(**{"max.message.bytes": "2000"})
    result = kctl("produce", mine, stdin="short\n" + "x" * 2001 + "\nnever sent\n")
    assert result.code == 5
    assert "line 2 is longer than 2000 bytes" in result.err
    assert [row["value"] for row in _read(kctl, mine)] == ["short"]
    first = kctl("produce", mine, stdin="x" * 2001)
    assert first.code == 2, "nothing was sent: it is the input that is wrong"


def test_a_record_that_the_broker_refuses(kctl: Kctl, topic: Callable[..., str]) -> None:
    """A line that just fits is larger than allowed with a record's overhead: the broker says no."""
    mine = topic(**{"max.message.bytes": "2000"})
    result = kctl("produce", mine, "-o", "json", stdin="ok\n" + "x" * 1990 + "\n")
    body = json.loads(result.out)
    assert result.code == 5
    assert (body["acknowledged"], body["failed"], body["not_acknowledged"]) == (1, 1, "2")
    assert "line 2 not acknowledged" in json.loads(result.err)["message"]


def test_records_that_a_config_forbids(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(**{"cleanup.policy": "compact"})
    result = kctl("produce", mine, "-o", "json", stdin="without a key\nnever sent\n")
    body = json.loads(result.out)
    assert result.code == 5
    assert (body["acknowledged"], body["failed"]) == (0, body["sent"])
    assert body["not_acknowledged"] in {"1", "1-2"}
    assert _read(kctl, mine) == []


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
        (("TOPIC", "--partition", "9"), 4, "has no partition 9"),
        (("TOPIC", "--acks", "1", "--idempotence"), 2, "idempotence needs --acks all"),
        (("TOPIC", "--acks", "2"), 2, "'2' is not one of"),
        (("TOPIC", "--key-separator", ""), 2, "--key-separator is empty"),
    ],
)
def test_bad_input(kctl: Kctl, empty: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl("produce", *(empty if word == "TOPIC" else word for word in arguments), stdin="x\n")
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.seconds < within(5)


def test_closed_stdin(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    done = subprocess.run(
        [str(SCRIPT), "produce", mine], env=kctl.environment, capture_output=True, text=True, check=False,
        preexec_fn=lambda: os.close(0),
    )  # fmt: skip
    assert done.returncode == 2
    assert "stdin is closed" in done.stderr


def test_ctrl_c_says_what_is_acknowledged(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    process = subprocess.Popen(
        [str(SCRIPT), "produce", mine], env=kctl.environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write("a\nb\nc\n")
    process.stdin.flush()
    eventually(lambda: len(_read(kctl, mine)) == 3, what="the three records are there")
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - started < 10
    assert "3 acknowledged, 0 unknown" in err
    assert out.splitlines()[1].split()[1] == "3"
    assert "Traceback" not in err


@pytest.mark.long
def test_memory_stays_bounded(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """100 MB go through; the process never holds more than its window (16 MB) beside Python and its libraries."""
    mine = topic(**{"retention.bytes": "1", "segment.bytes": "1048576"})
    script = (
        "import resource, subprocess, sys\n"
        f"argv = [{str(SCRIPT)!r}, 'produce', {mine!r}]\n"
        "p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)\n"
        "line = b'x' * 9999 + b'\\n'\n"
        "for _ in range(10000): p.stdin.write(line)\n"
        "p.stdin.close()\n"
        "code = p.wait()\n"
        "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=kctl.environment, capture_output=True, text=True, check=True, timeout=120
    )
    code, peak_kb = map(int, done.stdout.split())
    assert code == 0
    assert peak_kb < 150_000
