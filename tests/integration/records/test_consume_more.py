"""kctl consume against a real cluster: starts and ends, conditions, formats, several topics, what goes wrong."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_admin import kafka_admin
from kctl.model import TopicPartition
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.reassign.run.alter import alter_reassignments
from kctl.records.chunk import Chunk
from kctl.records.consume.consume import ConsumeOptions, consume
from kctl.records.consume.delivery import Delivery, Stats
from kctl.records.consume.direct import DirectReader
from kctl.records.consume.fetcher import Fetcher
from kctl.records.consume.plan import ReadPlan
from kctl_testing import SCRIPT, Kctl, TestCluster, eventually, within
from registry_server import serve

T0 = 1_700_000_000_000
READ = ("--from-beginning", "--exit-eof")


def _target(cluster: TestCluster) -> Target:
    return Target(cluster.name, tuple(cluster.bootstrap.split(",")))


def _rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def timed(cluster: TestCluster, topic: Callable[..., str]) -> str:
    """Two partitions with ten records each, a second apart, partition 1 half a second later; keys, headers, JSON."""
    name = topic(partitions=2, **{"retention.ms": "-1", "message.timestamp.before.max.ms": str(2**63 - 1)})
    with connect(_target(cluster)) as client:
        producer = client.producer()
        for number in range(10):
            for partition in range(2):
                value = {"n": number, "user": {"name": f"u{number % 3}"}, "tags": ["a"] if number % 2 else []}
                producer.send(
                    name, key=f"k{number}".encode(), value=json.dumps(value).encode(), partition=partition,
                    timestamp_ms=T0 + number * 1000 + partition * 500,
                    headers=[("trace", f"t{number}".encode())] if number > 6 else [],
                )  # fmt: skip
        producer.close()
    return name


class _Seen:
    """A sink that remembers partitions and offsets."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.warnings: list[str] | None = None  # None: there must be none

    def write(self, chunk: Chunk) -> None:
        self.seen += [(chunk.tp.partition, offset) for offset in chunk.offsets]

    def flush(self) -> None: ...

    def warn(self, text: str) -> None:
        assert self.warnings is not None, text
        self.warnings.append(text)

    def stats(self, stats: Stats) -> None: ...


@pytest.fixture
def seen(cluster: TestCluster, timed: str) -> Iterator[Callable[..., list[tuple[int, int]]]]:
    """Reads `timed` with these options, in this process: (partition, offset) of what is shown."""
    with connect(_target(cluster)) as client:

        def read(**options: Any) -> list[tuple[int, int]]:
            sink = _Seen()
            consume(client, ConsumeOptions(topics=(timed,), **options), sink)
            return sorted(sink.seen)

        yield read


def test_starts_and_ends(kctl: Kctl, timed: str, seen: Callable[..., list[tuple[int, int]]]) -> None:
    every = [(p, o) for p in range(2) for o in range(10)]

    def between(first: int, last: int) -> list[tuple[int, int]]:
        return [(p, o) for p, o in every if first <= o <= last]

    assert seen(from_beginning=True, exit_eof=True) == every
    assert seen(from_ms=T0 + 4000, exit_eof=True) == between(4, 9)
    from_half = [(0, o) for o in range(5, 10)] + [(1, o) for o in range(4, 10)]
    assert seen(from_ms=T0 + 4250, exit_eof=True) == from_half
    assert seen(from_ms=T0 + 60_000, exit_eof=True) == []
    assert seen(tail=3, exit_eof=True) == between(7, 9)
    assert seen(tail=0, exit_eof=True) == []
    assert seen(tail=99, exit_eof=True) == every
    assert seen(from_beginning=True, until_ms=T0 + 3000) == between(0, 2)
    assert seen(from_beginning=True, until_offset=4) == between(0, 3)
    assert seen(from_beginning=True, until_offset=4, until_ms=T0 + 2000) == between(0, 1)
    assert seen(offset=2, until_offset=4, partitions=(1,)) == [(1, 2), (1, 3)]
    assert seen(from_beginning=True, until_ms=T0 + 60_000) == every, "there is nothing later"
    for merge in (False, True):
        assert len(seen(from_beginning=True, max_messages=7, merge=merge)) == 7
    out = kctl.ok("consume", timed, "--from", "2023-11-14T22:13:24.250Z", "--exit-eof", "--format", "{partition} ").out
    assert sorted(map(int, out.split())) == [p for p, _ in from_half]


def test_until_a_time_that_comes(kctl: Kctl, timed: str) -> None:
    moment = round(time.time() * 1000) + 2500
    result = kctl.json("consume", timed, "--from-beginning", "--until", str(moment), "--quiet")
    assert (result["records"], result["ended"]) == (20, "until")
    assert time.time() * 1000 >= moment


def test_conditions(kctl: Kctl, timed: str) -> None:
    def shown(*args: str) -> list[int]:
        out = kctl.ok("consume", timed, *READ, *args, "--format", "{offset} ").out
        return sorted(set(map(int, out.split())))

    assert shown("--key", "^k[12]$") == [1, 2]
    assert shown("--header", "trace=8$", "--value", '"n": 8') == [8]
    assert shown("--json-path", 'user.name == "u1"', "--json-path", "n > 4") == [7]
    result = kctl.json("consume", timed, *READ, "--key", "k1", "--quiet")
    assert (result["records"], result["filtered"]) == (2, 18)
    out = kctl.ok("consume", timed, "--from-beginning", "--key", "k[89]", "--max-messages", "3").out
    assert len(out.splitlines()) == 3, "--max-messages counts what is shown"


def test_merged_by_time(kctl: Kctl, timed: str, topic: Callable[..., str]) -> None:
    other = topic()
    kctl.ok("produce", other, stdin="later\n")
    out = kctl.ok("consume", timed, other, *READ, "--merge", "--format", "{timestamp_ms} {topic}\\n").out
    times = [int(line.split()[0]) for line in out.splitlines()]
    assert len(times) == 21
    assert times == sorted(times)
    assert out.splitlines()[-1].endswith(other)


def test_several_topics_and_patterns(kctl: Kctl, topic: Callable[..., str]) -> None:
    one, two = topic(), topic(partitions=2)
    kctl.ok("produce", one, stdin="1\n")
    kctl.ok("produce", two, stdin="2\n")
    stem = one.rpartition(".")[0].replace(".", "\\.")
    assert sorted(kctl.ok("consume", one, two, *READ).out.split()) == ["1", "2"]
    assert sorted(kctl.ok("consume", "--match", f"{stem}\\.\\d+", *READ).out.split()) == ["1", "2"]
    result = kctl.json("consume", one, "--match", two, *READ, "--quiet")
    assert result["topics"] == sorted([one, two])
    assert [(row["topic"], row["records"]) for row in result["partitions"]] == sorted([(one, 1), (two, 1)])
    group = f"g-{one}"
    result = kctl.json("consume", one, two, "--group", group, *READ, "--quiet")
    assert sum(row["committed_offset"] for row in result["partitions"]) == 2
    assert len(result["partitions"]) == 3, "the empty partition has its position committed, too"
    nothing = kctl("consume", "--match", "no-such-.*", *READ)
    assert (nothing.code, "no topic matches" in nothing.err) == (4, True)


def test_decoders_and_what_they_cannot_take(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    mine = topic()
    with connect(_target(cluster)) as client:
        producer = client.producer()
        producer.send(mine, key=(5).to_bytes(8, "big"), value=b'{"a":1}')
        producer.send(mine, key=(6).to_bytes(8, "big"), value=None)
        producer.send(mine, key=b"short", value=b"{")
        producer.close()
    decoded = ("--key-decoder", "long", "--value-decoder", "json")
    result = kctl("consume", mine, *READ, *decoded, "-o", "json")
    rows = _rows(result.out)
    assert [(row["key"], row["value"], row["value_encoding"]) for row in rows] == [
        (5, {"a": 1}, "json"), (6, None, None), ("short", "{", "utf-8"),
    ]  # fmt: skip
    assert rows[2]["error"] == "key: it has 5 bytes; the size of long is 8"
    assert result.code == 1
    assert "1 of 3 records could not be decoded" in result.err
    text = kctl("consume", mine, *READ, *decoded, "--key-separator", "=")
    assert (text.code, text.out) == (1, '5={"a":1}\n6=null\nshort={\n')
    assert kctl.ok("consume", mine, *READ, *decoded, "--max-messages", "2", "--json-path", "a == 1").out == '{"a":1}\n'
    kctl.ok("consume", mine, *READ, "--group", f"seen-{mine}", "--quiet")
    commits = kctl.ok("consume", "__consumer_offsets", *READ, "--decoder", "offsets", "--key", f"seen-{mine}").out
    assert '"type":"OffsetCommitValue"' in commits


def test_schema_registries(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], tmp_path: Path) -> None:
    """A wrong default, and a schema that the header names, not the data."""
    mine = topic(partitions=1)
    guid = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1")
    text = {"name": "text", "type": "string", "default": None}
    counts = {"type": "record", "name": "C", "fields": [{"name": n, "type": "int"} for n in "abcde"] + [text]}
    note = b"\0\0\0\0\x01\x04hi"
    with connect(_target(cluster)) as client:
        producer = client.producer()
        producer.send(mine, value=note)
        producer.send(mine, value=note, headers=[("__value_schema_id", b"\x01" + guid.bytes)])
        producer.close()
    login = tmp_path / "login"
    login.write_text("me:pw\n")
    login.chmod(0o600)
    with serve() as registry:
        registry.answers = {
            "/schemas/ids/1": {"schema": json.dumps({"type": "record", "name": "N", "fields": [text]})},
            f"/schemas/guids/{guid}": {"schema": json.dumps(counts)},
        }
        read = ("consume", mine, *READ, "--value-decoder", "registry", "-o", "json")
        env = {"no_proxy": "127.0.0.1"}
        access = ("--schema-registry", registry.url, "--schema-registry-user-info-file", str(login))
        by_option = kctl(*read, *access, env=env)
        shown = [row["value"] for row in _rows(by_option.out)]
        assert by_option.code == 0, str(by_option)
        assert shown == [{"text": "hi"}, {"a": 0, "b": 0, "c": 0, "d": 0, "e": -1, "text": "hi"}]
        assert {headers["Authorization"] for _, headers in registry.requests} == {"Basic bWU6cHc="}
        by_environment = kctl(*read, env={**env, "KCTL_SCHEMA_REGISTRY": registry.url})
        assert _rows(by_environment.out)[0]["value_encoding"] == "registry"
        registry.answers["/schemas/ids/1"] = 401
        refused = kctl(*read, "--schema-registry", registry.url, env=env)
        assert (refused.code, refused.out) == (3, "")
        assert "rejected the login" in refused.err
        registry.answers["/schemas/ids/1"] = {"schema": '"string"' + " " * 1000}
        registry.drip_s = 0.5
        slow = kctl(*read, "--schema-registry", registry.url, "--timeout", "2s", env=env)
        assert (slow.code, slow.out) == (3, "")
        assert "did not respond within 2 s" in slow.err


def test_every_codec_and_hostile_payloads(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    mine = topic(**{"max.message.bytes": "3000000"})
    large = bytes(range(256)) * 4096  # 1 MB
    with connect(_target(cluster)) as client:
        from kctl.records.kafka_python_snappy import prepare_codecs

        prepare_codecs()
        for codec in (None, "gzip", "snappy", "lz4", "zstd"):
            producer = client.producer(compression_type=codec, max_request_size=2_500_000)
            for value in (b"plain", b"\xff\xfe", b"\x1b]0;x\x07\n\r", b"", None, large):
                producer.send(mine, key=b"k", value=value)
            producer.close()
    rows = _rows(kctl.ok("consume", mine, *READ, "-o", "json").out)
    values = [row["value"] if row["value_encoding"] != "base64" else base64.b64decode(row["value"]) for row in rows]
    assert values == ["plain", b"\xff\xfe", "\x1b]0;x\x07\n\r", "", None, large] * 5
    with_group = _rows(kctl.ok("consume", mine, *READ, "-o", "json", "--group", f"g-{mine}").out)
    assert with_group == rows


def test_the_tail_counts_records_not_markers(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """A transaction for each record: every second offset is a marker, and every third record was aborted."""
    mine = topic()
    with connect(_target(cluster)) as client:
        producer = client.producer(transactional_id=f"tail-{mine}")
        producer.init_transactions()
        for number in range(12):
            producer.begin_transaction()
            producer.send(mine, str(number).encode()).get(timeout=20)
            (producer.abort_transaction if number % 3 == 2 else producer.commit_transaction)()
        producer.close()
    tail = ("--tail", "4", "--exit-eof")
    assert kctl.ok("consume", mine, *tail).out.split() == ["8", "9", "10", "11"]
    assert kctl.ok("consume", mine, *tail, "--read-committed").out.split() == ["6", "7", "9", "10"]
    assert kctl.ok("consume", mine, "--tail", "99", "--exit-eof").out.split() == [str(n) for n in range(12)]
    group = kctl.ok("consume", mine, *READ, "--read-committed", "--group", f"g-{mine}").out.split()
    assert group == [str(n) for n in range(12) if n % 3 != 2]


@pytest.mark.parametrize(
    ("reset", "expected"), [(None, "5\n6\n7\n"), ("earliest", "5\n6\n7\n"), ("latest", "")], ids=str
)
def test_a_group_whose_offset_was_deleted(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], reset: str | None, expected: str
) -> None:
    mine = topic()
    group = f"reset-{mine}"
    kctl.ok("produce", mine, stdin="".join(f"{n}\n" for n in range(8)))
    assert (
        kctl.ok("consume", mine, "--group", group, "--offset-reset", "earliest", "--max-messages", "2").out == "0\n1\n"
    )
    with connect(_target(cluster)) as client, kafka_admin(client) as admin:
        from kafka.structs import TopicPartition

        admin.delete_records({TopicPartition(mine, 0): 5})
    rule = () if reset is None else ("--offset-reset", reset)
    result = kctl("consume", mine, "--group", group, "--exit-eof", *rule)
    assert (result.code, result.out) == (0, expected), str(result)
    assert "OFFSET_OUT_OF_RANGE" not in result.err
    assert "2" in result.err
    (row,) = kctl.json("lag", group)
    assert row["committed_offset"] == 8


def test_a_log_that_was_cut_under_a_reader_without_a_group(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]
) -> None:
    """Deleted in front of where it stands, and a position behind the end, as after an unclean election."""
    mine = topic(partitions=2)
    for partition in range(2):
        kctl.ok("produce", mine, "--partition", str(partition), stdin="".join(f"{n}\n" for n in range(8)))
    front, behind = TopicPartition(mine, 0), TopicPartition(mine, 1)
    with connect(_target(cluster)) as client, kafka_admin(client) as admin:
        from kafka.structs import TopicPartition as KafkaTopicPartition

        admin.delete_records({KafkaTopicPartition(mine, 0): 5})
        plan = ReadPlan((mine,), (front, behind), {front: 2, behind: 90}, {front: 8, behind: 99})
        options = ConsumeOptions(topics=(mine,), idle_ms=1500)
        sink = _Seen()
        sink.warnings = []
        delivery = Delivery(options, sink, plan.ends, None)
        reader = DirectReader(client, options, plan, delivery, sink)
        assert reader.run() == "idle"
    assert sink.seen == [(0, 5), (0, 6), (0, 7)]
    assert reader.skipped == 3
    assert sorted(sink.warnings) == [
        f"{front}: offsets 2 to 4 were deleted before they were read",
        f"{behind}: the log ends at 8, before the position 90: the log was truncated",
    ]


def test_connections_that_break(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """A broker closes connections that were idle, or dies: it goes on from where it was, on a new one."""
    mine = topic()
    kctl.ok("produce", mine, stdin="a\nb\n")
    with connect(_target(cluster)) as client:
        tp = TopicPartition(mine, 0)
        fetcher = Fetcher(client, {tp: 0}, read_committed=False, warn=lambda _: None, timeout_s=30)
        for expected in (0, 2, 3):
            deadline = time.monotonic() + within(30)
            found: list[int] = []
            while not found:
                assert time.monotonic() < deadline
                found = [each.position for each in fetcher.poll(0.2) if each.data]
            assert found == [expected]
            for link in fetcher._links.values():
                assert link.connection._socket
                link.connection._socket.shutdown(socket.SHUT_RDWR)
            kctl.ok("produce", mine, stdin="c\n")
        fetcher.close()


def test_stats_and_follow(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    with kctl.running("consume", mine, "--stats") as process:
        assert process.stderr
        assert process.stdout
        assert "records/s" in process.stderr.readline()
        kctl.ok("produce", mine, stdin="now\n")
        assert process.stdout.readline() == "now\n"


def test_leader_change_while_it_follows(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """The only replica moves to another broker, twice; nothing is lost or repeated."""
    mine = topic()
    kctl.ok("produce", mine, stdin="a\nb\n")
    tp = TopicPartition(mine, 0)
    with connect(_target(cluster)) as client, kctl.running("consume", mine, "--from-beginning") as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)] == ["a\n", "b\n"]
        for letter in ("c", "d"):
            leader = client.metadata([mine]).topics[mine].partitions[0].leader
            other = next(broker for broker in cluster.broker_ids if broker != leader)
            assert alter_reassignments(client, {tp: (other,)}) == {}

            def moved(wanted: int = other) -> bool:
                return client.metadata([mine]).topics[mine].partitions[0].leader == wanted

            eventually(moved, seconds=within(30), what=f"broker {other} leads")
            kctl.ok("produce", mine, stdin=f"{letter}\n")
            assert process.stdout.readline() == f"{letter}\n"


def test_compared_with_the_java_tool(
    kctl: Kctl, cluster: TestCluster, kafka_home: Any, timed: str, topic: Callable[..., str]
) -> None:
    """Values, keys, tombstones, broken UTF-8, an aborted transaction: the same bytes, partition by partition."""
    mine = topic()
    with connect(_target(cluster)) as client:
        producer = client.producer(transactional_id=f"java-{mine}")
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send(mine, key=b"k", value=b"\xff\x00text").get(timeout=20)
            producer.send(mine, key=b"gone", value=None)
            producer.send(mine, key=b"", value="é\t".encode(), headers=[("h", b"x"), ("n", b"2")])
            end()
        producer.close()
    prints = [f"print.{name}=true" for name in ("key", "offset", "partition", "timestamp", "headers")]
    java = subprocess.run(
        [
            "java", "-Xmx256M", "-cp", f"{kafka_home}/libs/*", "org.apache.kafka.tools.consumer.ConsoleConsumer",
            "--bootstrap-server", cluster.bootstrap, "--topic", mine, "--from-beginning", "--timeout-ms",
            str(round(within(6) * 1000)), "--isolation-level", "read_committed",
            *(word for each in prints for word in ("--property", each)),
        ],
        capture_output=True, timeout=120, check=False,
    ).stdout  # fmt: skip
    shown = "CreateTime:{timestamp_ms}\tPartition:{partition}\tOffset:{offset}\t{headers}\t{key}\t{value}\n"
    ours = subprocess.run(
        [str(SCRIPT), "consume", mine, *READ, "--read-committed", "--format", shown],
        env=kctl.environment, capture_output=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    assert java.replace(b"NO_HEADERS", b"") == ours
    assert len(ours.splitlines()) == 6


@pytest.fixture(scope="module")
def empty(kctl: Kctl, cluster: TestCluster) -> str:
    """One empty topic for all rows of bad input."""
    name = f"empty-{__name__.replace('.', '-')}-{os.getpid()}"
    kctl.ok("topic", "create", name)
    return name


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "no topic"),
        (("TOPIC", "--match", "("), 2, "is not a valid regular expression"),
        (("TOPIC", "no-such"), 4, "no-such"),
        (("TOPIC", "--tail", "3", "--from", "1h ago"), 2, "cannot be combined"),
        (("TOPIC", "--from", "soon"), 2, "is not a time"),
        (("TOPIC", "--until", "soon"), 2, "is not a time"),
        (("TOPIC", "--tail", "-1"), 2, "not in the range"),
        (("TOPIC", "--group", "g", "--from", "1h ago"), 2, "cannot be combined with --group"),
        (("TOPIC", "--group", "g", "--merge"), 2, "cannot be combined with --group"),
        (("TOPIC", "--offset-reset", "latest"), 2, "requires --group"),
        (("TOPIC", "--group", "g", "--offset-reset", "none"), 2, "use earliest or latest"),
        (("TOPIC", "--key", "("), 2, "is not a valid regular expression"),
        (("TOPIC", "--json-path", "a b"), 2, "is not a condition"),
        (("TOPIC", "--format", "{no}"), 2, "is not a field"),
        (("TOPIC", "--format", "xml"), 2, "is not a format"),
        (("TOPIC", "--format", "hex", "-o", "json"), 2, "cannot be combined"),
        (("TOPIC", "--decoder", "nope"), 2, "is unknown"),
        (("TOPIC", "--value-decoder", "avro"), 2, "requires a schema registry"),
        (("TOPIC", "--value-decoder", "offsets"), 2, "keys and values together"),
        (("TOPIC", "--decoder", "avro", "--schema-registry", "http://u:p@h"), 2, "contains a user or password"),
        (("TOPIC", "--decoder", "avro", "--schema-id-bytes", "6"), 2, "is not a valid value"),
        (("TOPIC", "--decoder", "avro", "--schema-registry", "https://h", "--schema-registry-ca", "/no"), 2, "/no"),
    ],
)
def test_bad_input(kctl: Kctl, empty: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl("consume", *(empty if word == "TOPIC" else word for word in arguments))
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
