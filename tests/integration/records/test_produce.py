"""kctl produce against a real cluster."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kctl_testing import SCRIPT, Kctl, TestCluster, eventually, within

KEYS = [
    "topic", "acks", "sent", "acknowledged", "failed", "unknown", "not_acknowledged", "skipped", "bytes", "duration_ms",
    "partitions", "error", "bad_line", "interrupted", "failed_file",
]  # fmt: skip


def _read(kctl: Kctl, topic: str, *options: str) -> list[dict[str, Any]]:
    out = kctl.ok("consume", topic, "--from-beginning", "--exit-eof", "-o", "json", *options).out
    return [json.loads(line) for line in out.split("\n") if line]  # a value may hold U+2028


def test_lines_become_records(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=1)
    result = kctl.json("produce", mine, stdin="one\ntwo\n\nlast without newline")
    assert list(result) == KEYS
    assert (result["sent"], result["acknowledged"], result["failed"], result["unknown"]) == (4, 4, 0, 0)
    assert result["partitions"] == [{"partition": 0, "records": 4}]
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
    assert kctl.json("produce", mine, "--partition", "2", stdin="a\nb\n")["partitions"] == [
        {"partition": 2, "records": 2}
    ]


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


def test_a_line_that_is_too_large(kctl: Kctl, topic: Callable[..., str]) -> None:
    """The limit is that of a batch, with its 61 bytes and the record's own fields: told before it is sent."""
    mine = topic(**{"max.message.bytes": "2000"})
    result = kctl("produce", mine, stdin="short\n" + "x" * 1931 + "\nnever sent\n")
    assert result.code == 5
    assert "line 2 is too large: at least 2001 bytes as a batch, and the limit of the topic is 2000" in result.err
    assert "1 record before it sent, none after it" in result.err
    fits = kctl.json("produce", mine, "--on-bad-line", "skip", stdin="x" * 1930 + "\n" + "y" * 300_000 + "\nlast\n")
    assert (fits["acknowledged"], fits["skipped"], fits["bad_line"][:20]) == (2, 1, "line 2 is too large:")
    assert [len(row["value"]) for row in _read(kctl, mine)] == [5, 1930, 4]
    first = kctl("produce", mine, stdin="x" * 2001)
    assert first.code == 2, "nothing was sent: it is the input that is wrong"


def test_a_record_that_the_broker_finds_too_large(kctl: Kctl, topic: Callable[..., str], tmp_path: Path) -> None:
    """Compressed, only the broker knows: noise stays large."""
    mine = topic(**{"max.message.bytes": "2000"})
    kept = tmp_path / "kept.jsonl"
    noise = base64.b64encode(random.Random(7).randbytes(6000)).decode()
    kctl.ok("produce", mine, "--compression-codec", "gzip", stdin="x" * 100_000 + "\n")
    result = kctl(
        "produce", mine, "--compression-codec", "gzip", "--failed-file", str(kept), "-o", "json", stdin=noise + "\n"
    )
    body = json.loads(result.out)
    assert result.code == 5
    assert (body["acknowledged"], body["failed"], body["not_acknowledged"]) == (0, 1, [[1, 1]])
    assert body["failed_file"] == str(kept)
    said = result.err.splitlines()
    assert said[0] == f"1 record not acknowledged: {kept}"
    assert "line 1 not acknowledged" in json.loads(said[1])["message"]
    assert "MESSAGE_TOO_LARGE" in body["error"]
    assert json.loads(kept.read_text())["value"] == noise


def test_a_topic_is_copied(kctl: Kctl, topic: Callable[..., str], tmp_path: Path) -> None:
    """`consume -o json` writes what `produce --format json` reads: keys, headers, times, partitions, any bytes."""
    keep = {"retention.ms": "-1"}  # times of 2024 would be deleted at the broker's next look
    first, second = topic(partitions=3, **keep), topic(partitions=3, **keep)
    lines = [
        b"h1:x,h2:N\tk1\tv1", b"N\tN\tN", b"\tk3\tN", b"a:\xff\t\xfe\x00\t\x1b[31m\xff", b"\t\t",
        "\tü\t\u2028😀".encode(),
        b"\tbig\t" + b"\xff" * 700_000,
    ]  # fmt: skip
    source = tmp_path / "lines"
    source.write_bytes(b"\n".join(lines))
    kctl.ok(
        "produce", first, "--file", str(source), "--parse-headers", "--key-separator", "\\t", "--null-marker", "N",
        "--header", "all=1", "--timestamp", "2024-01-01T00:00:00Z",
    )  # fmt: skip
    out = kctl.ok("consume", first, "--from-beginning", "--exit-eof", "-o", "json").out
    assert kctl.json("produce", second, "--format", "json", stdin=out)["acknowledged"] == len(lines)

    def shown(name: str) -> list[str]:
        rows = _read(kctl, name)
        return sorted(json.dumps(row | {"topic": ""}) for row in rows)

    assert shown(first) == shown(second)
    row = next(row for row in _read(kctl, second) if row["key"] == "k1")
    assert (row["value"], row["timestamp_ms"], row["headers"]) == (
        "v1", 1_704_067_200_000,
        [{"key": "all", "value": "1", "encoding": "utf-8"}, {"key": "h1", "value": "x", "encoding": "utf-8"},
         {"key": "h2", "value": None, "encoding": None}],
    )  # fmt: skip
    fewer = topic(partitions=1, **keep)
    refused = kctl("produce", fewer, "--format", "json", stdin='{"value":"x","partition":2}\n')
    assert refused.code == 2
    assert "line 1 names partition 2, and topic" in refused.err
    assert kctl.json("produce", fewer, "--format", "json", "--repartition", stdin=out)["partitions"] == [
        {"partition": 0, "records": len(lines)}
    ]


def test_headers_and_nulls_as_kafkas_own_tools_have_them(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path
) -> None:
    """The same lines through ConsoleProducer and kctl give the same log; ConsoleConsumer shows it."""
    theirs, ours = topic(partitions=3), topic(partitions=3)
    lines = "h1:x,h2:y\tk1\tv1\nNULL\tk2\tNULL\nh:NULL\tNULL\tplain\n" + "".join(
        f"a:b\tkey{n}\tv{n}\n" for n in range(40)
    )
    java = ["java", "-Xmx128M", "-cp", f"{kafka_home}/libs/*"]
    properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]
    subprocess.run(
        [*java, "kafka.tools.ConsoleProducer", "--bootstrap-server", cluster.bootstrap, "--topic", theirs,
         *(word for text in properties for word in ("--property", text))],
        input=lines, text=True, check=True, capture_output=True, timeout=within(60),
    )  # fmt: skip
    kctl.ok("produce", ours, "--parse-headers", "--key-separator", "\\t", "--null-marker", "NULL", stdin=lines)

    def content(name: str) -> list[Any]:
        return [
            (row["partition"], row["key"], row["value"], row["headers"])
            for row in sorted(_read(kctl, name), key=lambda row: (row["partition"], row["offset"]))
        ]

    # Each puts the record without a key into any partition, so offsets differ and order does not.
    keyed = [row for row in content(theirs) if row[1] is not None]
    assert [row for row in content(ours) if row[1] is not None] == keyed
    assert len(content(theirs)) == len(content(ours)) == len(keyed) + 1
    seen = subprocess.run(
        [*java, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", cluster.bootstrap, "--topic",
         ours, "--from-beginning", "--max-messages", "43", "--property", "print.headers=true", "--property",
         "print.key=true"],
        text=True, check=True, capture_output=True, timeout=within(60),
    ).stdout  # fmt: skip
    assert "h1:x,h2:y\tk1\tv1" in seen.splitlines()


def test_java_reads_every_codec(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path) -> None:
    mine = topic()
    values = [f"{codec} " + "again and again " * 20 for codec in ("none", "gzip", "snappy", "lz4", "zstd")]
    for value in values:
        kctl.ok("produce", mine, "--compression-codec", value.split()[0], stdin=(value + "\n") * 50)
    seen = subprocess.run(
        ["java", "-Xmx128M", "-cp", f"{kafka_home}/libs/*", "org.apache.kafka.tools.consumer.ConsoleConsumer",
         "--bootstrap-server", cluster.bootstrap, "--topic", mine, "--from-beginning", "--max-messages", "250"],
        text=True, check=True, capture_output=True, timeout=within(60),
    ).stdout  # fmt: skip
    assert seen.splitlines() == [value for value in values for _ in range(50)]


def test_payloads_for_load(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=3)
    started = time.monotonic()
    made = kctl.json(
        "produce", mine, "--template", "order {n} {{x}} {random:5}", "--key", "k{n}", "--count", "5", "--rate", "5/s"
    )
    assert made["acknowledged"] == 5
    assert time.monotonic() - started > 0.8, "four pauses of a fifth of a second"
    rows = {row["key"]: row["value"] for row in _read(kctl, mine)}
    assert sorted(rows) == ["k1", "k2", "k3", "k4", "k5"]
    assert rows["k2"].startswith("order 2 {x} ")
    assert kctl.json("produce", mine, "--size", "1MB", "--count", "40")["bytes"] == 40_000_000
    assert kctl.json("produce", mine, "--count", "2", stdin="a\nb\nc\n")["sent"] == 2


def test_several_files(kctl: Kctl, topic: Callable[..., str], tmp_path: Path) -> None:
    mine = topic()
    (tmp_path / "one").write_text("a:1\nb:2")
    (tmp_path / "two").write_text("c:3\nbroken\n")
    files = ["--file", str(tmp_path / "one"), "--file", str(tmp_path / "two")]
    result = kctl("produce", mine, "--key-separator", ":", *files)
    assert result.code == 5
    assert f"{tmp_path / 'two'} line 2 has no key separator ':'; 3 records before it sent" in result.err
    skipped = kctl("produce", mine, "--key-separator", ":", "--on-bad-line", "skip", *files)
    assert skipped.code == 0
    assert "1 line skipped; the first: " in skipped.err
    assert [row["value"] for row in _read(kctl, mine)] == ["1", "2", "3"] * 2


def test_lines_as_other_systems_write_them(kctl: Kctl, topic: Callable[..., str]) -> None:
    """CRLF, a byte order mark, a line without its separator."""
    mine = topic(partitions=1)
    parsed = ("produce", mine, "--key-separator", ":", "--null-marker", "NULL")
    marked = kctl(*parsed, stdin="\ufeffk1:v1\r\nk2:NULL\rk3:\n")
    note = "stdin begins with a byte order mark, which is ignored\n"
    assert (marked.code, marked.err) == (0, note)
    bare = kctl(*parsed, "--on-bad-line", "accept", "--quiet", stdin="no separator in this line\n")
    assert (bare.code, bare.out, bare.err) == (0, "", "")
    assert [(row["key"], row["value"]) for row in _read(kctl, mine)] == [
        ("k1", "v1"), ("k2", None), ("k3", ""), (None, "no separator in this line"),
    ]  # fmt: skip
    refused = kctl(*parsed, "--quiet", stdin="k4:v4\nbroken\n")
    assert refused.code == 5
    assert "line 2 has no key separator" in refused.err
    assert kctl("produce", mine, stdin="").out, "without --quiet there is a table"


def test_many_keys_in_order(kctl: Kctl, topic: Callable[..., str]) -> None:
    """Thousands of batches over several leaders: each partition in the order of the input."""
    mine = topic(partitions=12, replication_factor=3)
    lines = [f"{number % 97}:{number}" for number in range(60_000)]
    assert kctl.json("produce", mine, "--key-separator", ":", stdin="\n".join(lines))["acknowledged"] == len(lines)
    found: dict[int, list[int]] = {}
    for row in _read(kctl, mine):
        found.setdefault(row["partition"], []).append(int(row["value"]))
    assert all(numbers == sorted(numbers) for numbers in found.values())
    assert sorted(number for numbers in found.values() for number in numbers) == list(range(60_000))


def test_records_that_a_config_forbids(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(**{"cleanup.policy": "compact"})
    result = kctl("produce", mine, "-o", "json", stdin="without a key\nnever sent\n")
    body = json.loads(result.out)
    assert result.code == 5
    assert (body["acknowledged"], body["failed"]) == (0, body["sent"])
    assert body["not_acknowledged"] in ([[1, 1]], [[1, 2]])
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
        (("TOPIC", "--acks", "1", "--idempotence"), 2, "idempotence requires --acks all"),
        (("TOPIC", "--acks", "2"), 2, "'2' is not one of"),
        (("TOPIC", "--key-separator", ""), 2, "--key-separator is empty"),
        (("TOPIC", "--file", "/no/such/file"), 4, "file /no/such/file does not exist"),
        (("TOPIC", "--file", "/"), 2, "/ is a directory"),
        (("TOPIC", "--header", "x"), 2, "--header 'x' is not a header"),
        (("TOPIC", "--template", "{x}"), 2, "is not a placeholder"),
        (("TOPIC", "--template", "x", "--size", "1kB"), 2, "cannot be combined"),
        (("TOPIC", "--template", "x", "--format", "json"), 2, "read no lines"),
        (("TOPIC", "--format", "json", "--key-separator", ":"), 2, "JSON lines contain keys"),
        (("TOPIC", "--format", "json"), 2, "line 1 is not JSON"),
        (("TOPIC", "--rate", "fast"), 2, "'fast' is not a rate"),
        (("TOPIC", "--timestamp", "then"), 2, "is not a time"),
        (("TOPIC", "--failed-file", "/no/such/folder/file"), 2, "cannot write /no/such/folder/file"),
        (("TOPIC", "--failed-file", __file__), 4, "has content"),
    ],
)
def test_bad_input(kctl: Kctl, empty: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl("produce", *(empty if word == "TOPIC" else word for word in arguments), stdin="x\n")
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.seconds < within(5)


def test_dry_run(kctl: Kctl, empty: str) -> None:
    """All lines are looked at, by the rules of a run; `test_bad_input_wrote_nothing` sees that none was sent."""
    lines = "a:1\nb:2\nbroken\na:NULL\n:" + "x" * 1_100_000 + "\nc:3\n"
    arguments = ("produce", empty, "--dry-run", "--key-separator", ":", "--null-marker", "NULL")
    result = kctl(*arguments, "-o", "json", stdin=lines)
    body = json.loads(result.out)
    assert result.code == 2, str(result)
    assert "2 lines cannot be parsed; the first: line 3 has no key separator" in json.loads(result.err)["message"]
    assert list(body) == [
        "topic", "records", "bytes", "tombstone_count", "largest_bytes", "any_partition_count", "partitions",
        "bad_line_count", "bad_lines", "max_batch_bytes",
    ]  # fmt: skip
    counted = (
        "records", "bytes", "tombstone_count", "largest_bytes", "any_partition_count", "partitions", "bad_line_count",
    )  # fmt: skip
    assert [body[key] for key in counted] == [4, 7, 1, 2, 0, [{"partition": 0, "records": 4}], 2]
    assert body["max_batch_bytes"] == 1048588, "Kafka's default, which nobody set"
    assert body["bad_lines"][1].startswith("line 5 is too large")
    skipped = kctl(*arguments, "--on-bad-line", "skip", stdin=lines)
    assert (skipped.code, "2 lines cannot be parsed" in skipped.err) == (0, True)
    made = kctl.json("produce", empty, "--dry-run", "--size", "10", "--count", "3", stdin="")
    assert (made["records"], made["any_partition_count"], made["bytes"]) == (3, 3, 30)
    endless = kctl("produce", empty, "--dry-run", "--size", "10", stdin="")
    assert (endless.code, "requires a limit" in endless.err) == (2, True)


def test_bad_input_wrote_nothing(kctl: Kctl, empty: str) -> None:
    assert _read(kctl, empty) == []


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
    assert time.monotonic() - started < within(10)
    assert "3 acknowledged, 0 unknown" in err
    assert out.splitlines()[1].split()[1] == "3"
    assert "Traceback" not in err


def test_sigterm_ends_it_with_everything_accounted_for(kctl: Kctl, topic: Callable[..., str], tmp_path: Path) -> None:
    mine = topic(partitions=3)
    kept = tmp_path / "kept.jsonl"
    process = subprocess.Popen(
        [str(SCRIPT), "produce", mine, "--template", "{n}", "--rate", "200/s",
         "--failed-file", str(kept), "-o", "json"],
        env=kctl.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    eventually(lambda: len(_read(kctl, mine)) > 20, what="it writes")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=within(20))
    result = json.loads(out)
    assert process.returncode == 130, err
    assert (result["interrupted"], result["failed"], result["unknown"]) == (True, 0, 0)
    assert result["acknowledged"] == result["sent"] == len(_read(kctl, mine))
    assert not kept.exists(), "nothing was lost"


@pytest.mark.long
def test_memory_stays_bounded(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """100 MB go through, most of it keys; the process never holds more than its window (32 MB) beside Python and its
    libraries."""
    mine = topic(**{"retention.bytes": "1", "segment.bytes": "1048576"})
    script = (
        "import resource, subprocess, sys\n"
        f"argv = [{str(SCRIPT)!r}, 'produce', {mine!r}, '--key-separator', ':']\n"
        "p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)\n"
        "rest = b'k' * 8991 + b':' + b'x' * 999 + b'\\n'\n"
        "for number in range(10000): p.stdin.write(b'%08d' % number + rest)\n"
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
