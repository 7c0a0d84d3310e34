"""The session's own log files, just written by real brokers, dumped by Kafka's tool and by kctl: the same bytes.

Everything is written once for the module; then each test is one run of either tool over many files. Topics have one
replica, and nothing writes to them any more when they are dumped.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kctl.records.kafka_python_snappy import prepare_codecs
from kctl_testing import SCRIPT, Kctl, TestCluster, eventually

pytestmark = pytest.mark.long  # compaction is waited for, and the JVM's tool started many times

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = [("h", b"1"), ("h", b"2"), ("", b""), ("ü 日本", "Grüße".encode()), ("bin", b"\xff\x00")]
RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]] = [
    (b"key", b"value", []),
    (None, b"no key", []),
    (b"tombstone", None, []),
    (b"", b"", []),
    (b"with headers", b"x" * 300, HEADERS),
    ("schlüssel ⚡".encode(), "日本語 𝄞 \x1b[31mred\nline".encode(), HEADERS[:1]),
    (b"\xff\xfe\xed\xa0\x80", bytes(range(256)), []),
]
COMPACT = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_bytes": "3000"}
KEPT = ("--config", "retention.ms=-1")  # the records' timestamps are old
CLEANER_S = 45  # it looks every 15 s (log.cleaner.backoff.ms)


@dataclass(frozen=True)
class Logs:
    """data: folders of topics that clients wrote to; offsets, transactions: of Kafka's own topics."""

    data: list[Path]
    compacted: Path
    transactional: Path
    numbers: list[Path]
    offsets: list[Path]
    transactions: list[Path]

    def files(self, suffix: str) -> list[Path]:
        """Of the data folders."""
        return [path for folder in self.data for path in sorted(folder.glob(f"*{suffix}"))]


@dataclass(frozen=True)
class Printed:
    code: int
    out: bytes
    err: bytes


# --- writing --------------------------------------------------------------------------------------------------------


def _send_all(producer: KafkaProducer, topic: str, partition: int = 0) -> None:
    for number in range(40):
        key, value, headers = RECORDS[number % len(RECORDS)]
        producer.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=1_700_000_000_000 + number
        )
        if number % 10 == 9:
            producer.flush()


def _producer(cluster: TestCluster, **settings: Any) -> KafkaProducer:
    prepare_codecs()
    return KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), linger_ms=20, **settings)


def _write_codecs(kctl: Kctl, cluster: TestCluster, make: Callable[..., str]) -> list[str]:
    """Compressed by the client (a partition for each codec), and by the broker, whose codecs are Java's."""
    by_client = make({}, partitions=len(CODECS))
    for number, codec in enumerate(CODECS):
        producer = _producer(cluster, compression_type=None if codec == "none" else codec)
        _send_all(producer, by_client, number)
        producer.close()
        lines = "".join(f"k{n}:line {n}\n" for n in range(50))
        options = ("--key-separator", ":", "--compression", codec, "--partition", str(number))
        kctl.ok("produce", by_client, *options, stdin=lines)
    numbers = make({})
    by_broker = [make({"compression_type": codec}) for codec in CODECS[1:]]
    append = make({"message_timestamp_type": "LogAppendTime"})
    producer = _producer(cluster)
    for topic in (*by_broker, append):
        _send_all(producer, topic)
    for _ in range(5):
        producer.send(numbers, b"the value", key=b"1-key").get(timeout=20)
    producer.close()
    return [numbers, by_client, *by_broker, append]


def _write_compacted(cluster: TestCluster, topic: str) -> None:
    producer = _producer(cluster)
    for turn in range(30):
        for number in range(10):
            value = None if (turn, number) in {(5, 3), (29, 4)} else f"{turn} {number}".encode() * 5
            producer.send(topic, value, key=b"%d" % number)
        producer.send(topic, b"stays" * 4, key=b"once %d" % turn)
        producer.flush()
    producer.close()


def _write_transactions(cluster: TestCluster, topic: str) -> KafkaProducer:
    """Commits and aborts of two producers, and a third one's transaction that stays open."""
    settings = {"transaction_timeout_ms": 600_000, "acks": "all"}
    producers = [_producer(cluster, transactional_id=f"{topic}-{n}", **settings) for n in range(3)]
    for producer in producers:
        producer.init_transactions()
    for turn in range(8):
        for number, producer in enumerate(producers[:2]):
            producer.begin_transaction()
            for n in range(5):
                producer.send(topic, b"t" * 200, key=b"%d-%d-%d" % (turn, number, n))
            producer.flush()
        producers[0].commit_transaction()
        producers[1].abort_transaction() if turn % 3 else producers[1].commit_transaction()
    producers[2].begin_transaction()
    producers[2].send(topic, b"open").get(timeout=20)
    for producer in producers[:2]:
        producer.close()
    return producers[2]


def _commit_offsets(cluster: TestCluster, topic: str) -> None:
    for number in range(3):
        consumer = KafkaConsumer(
            topic, group_id=f"{topic}-{number}", bootstrap_servers=cluster.bootstrap.split(","),
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        try:
            assert consumer.poll(timeout_ms=20_000)
            consumer.commit()
        finally:
            consumer.close()


# --- where it lies --------------------------------------------------------------------------------------------------


def _folders(kctl: Kctl, topics: Sequence[str]) -> dict[str, list[Path]]:
    """The partitions' folders that hold something, of one replica each, by topic."""
    found: dict[tuple[str, int], Path] = {}
    for broker in json.loads(kctl.ok("cluster", "export").out)["brokers"]:
        for log_dir in broker["log_dirs"]:
            for replica in log_dir["replicas"]:
                name, partition = replica["topic"], replica["partition"]
                if name in topics and replica["size_bytes"]:
                    found.setdefault((name, partition), Path(log_dir["path"]) / f"{name}-{partition}")
    return {name: [path for key, path in sorted(found.items()) if key[0] == name] for name in topics}


def _was_compacted(folder: Path) -> bool:
    """Whether the cleaner went over all but the active segment: of 11 keys a turn, 10 came again."""
    logs = sorted(folder.glob("*.log"))
    return len(logs) >= 2 and sum(path.stat().st_size for path in logs[:-1]) < 6000


@pytest.fixture(scope="module")
def logs(kctl: Kctl, cluster: TestCluster) -> Iterator[Logs]:
    """Everything written and settled."""

    numbers = iter(range(100))

    def make(config: Mapping[str, str], partitions: int = 1) -> str:
        name = f"segment-live.{os.getpid()}.{next(numbers)}"
        settings = [word for key, value in config.items() for word in ("--config", f"{key.replace('_', '.')}={value}")]
        kctl.ok("topic", "create", name, "--partitions", str(partitions), "--replication-factor", "1",
                *KEPT, *settings)  # fmt: skip
        return name

    compacted = make(COMPACT)
    _write_compacted(cluster, compacted)
    written = _write_codecs(kctl, cluster, make)
    transactional = make({"segment_bytes": "4000"})
    with_open_transaction = _write_transactions(cluster, transactional)
    _commit_offsets(cluster, compacted)
    internal = ["__consumer_offsets", "__transaction_state"]
    folders = _folders(kctl, [compacted, *written, transactional, *internal])
    folder = folders[compacted][0]
    eventually(lambda: _was_compacted(folder), seconds=CLEANER_S, what=f"{folder} is compacted")
    try:
        yield Logs(
            data=[path for name in (compacted, *written, transactional) for path in folders[name]],
            compacted=folder,
            transactional=folders[transactional][0],
            numbers=sorted(folders[written[0]][0].glob("*.log")),
            offsets=folders[internal[0]],
            transactions=folders[internal[1]],
        )
    finally:
        with_open_transaction.abort_transaction()
        with_open_transaction.close()


# --- both tools -----------------------------------------------------------------------------------------------------


def _theirs(kafka_home: Path, files: Sequence[Path], options: Sequence[str]) -> Printed:
    from kctl.deploy.runtime.java import find_java

    argv = [
        str(find_java().executable), "-Xmx128M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
        f"{kafka_home}/libs/*", "kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options,
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, timeout=120, check=False)
    # Without a configuration log4j says so on stderr.
    lines = [line for line in done.stderr.splitlines(keepends=True) if not line.startswith((b"log4j:", b"SLF4J:"))]
    return Printed(done.returncode, done.stdout, b"".join(lines))


def _ours(kctl: Kctl, files: Sequence[Path], options: Sequence[str]) -> Printed:
    argv = [str(SCRIPT), "segment", "dump", "-o", "kafka", "--files", ",".join(map(str, files)), *options]
    done = subprocess.run(argv, env=kctl.environment, capture_output=True, timeout=120, check=False)
    assert b"Traceback" not in done.stderr
    # The verdict behind it is kctl's own.
    return Printed(done.returncode, done.stdout, done.stderr.partition(b"error: ")[0])


def _same(kctl: Kctl, kafka_home: Path, files: Sequence[Path], *options: str) -> Printed:
    """Run both, compare what they print, and give it."""
    assert files
    theirs, ours = _theirs(kafka_home, files, options), _ours(kctl, files, options)
    assert theirs.code == 0, theirs.err.decode(errors="replace")
    assert ours.out.splitlines() == theirs.out.splitlines()
    assert ours.out == theirs.out
    assert ours.err == theirs.err
    assert ours.code == (1 if theirs.err else 0)
    return theirs


def test_batches(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    printed = _same(kctl, kafka_home, logs.files(".log")).out
    for codec in CODECS:
        assert f"compresscodec: {codec} ".encode() in printed
    assert b"LogAppendTime: " in printed
    assert b"isTransactional: true isControl: true" in printed


def test_records(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    printed = _same(kctl, kafka_home, logs.files(".log"), "--deep-iteration", "--print-data-log")
    for text in (
        b"headerKeys: [h,h,,\xc3\xbc \xe6\x97\xa5\xe6\x9c\xac,bin]",
        b"endTxnMarker: ABORT",
        b"payload: line 49",
    ):
        assert text in printed.out
    assert b"Non-consecutive offsets in" in printed.err  # the compacted log
    in_processes = _ours(kctl, logs.files(".log"), ["--deep-iteration", "--print-data-log", "--jobs", "2"])
    assert (in_processes.out, in_processes.err) == (printed.out, printed.err)


def test_records_without_contents(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    _same(kctl, kafka_home, logs.files(".log"), "--deep-iteration")
    _same(kctl, kafka_home, logs.files(".log"), "--print-data-log", "--skip-record-metadata")


def test_numbers_as_keys(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    decoders = [f"--{part}-decoder-class=org.apache.kafka.tools.api.{name}Decoder"
                for part, name in (("key", "Integer"), ("value", "Long"))]  # fmt: skip
    theirs = _theirs(kafka_home, logs.numbers, ["--print-data-log", *decoders])
    ours = _ours(kctl, logs.numbers, ["--print-data-log", *decoders])
    assert b" key: 825060197 payload: 8388065496077003893" in theirs.out
    assert ours.out == theirs.out
    assert (theirs.code, ours.code) == (0, 1)  # keys of five bytes are no integers, which only kctl reports
    assert b"5 bytes, but a number has 4" in ours.err


def test_a_part_of_each_log(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    _same(kctl, kafka_home, logs.files(".log"), "--deep-iteration", "--max-bytes", "2000")


def test_indexes(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    """Live ones have zeros behind their entries, which Kafka's tool takes for errors in .timeindex."""
    printed = _same(kctl, kafka_home, [*logs.files(".index"), *logs.files(".timeindex")])
    assert b"offset: " in printed.out
    assert b"timestamp: " in printed.out


@pytest.mark.parametrize("option", ["--verify-index-only", "--index-sanity-check"])
def test_checks_of_indexes(kctl: Kctl, kafka_home: Path, logs: Logs, option: str) -> None:
    printed = _same(kctl, kafka_home, [*logs.files(".index"), *logs.files(".timeindex")], option)
    assert (b"passed sanity check" in printed.out) == (option == "--index-sanity-check")


def test_producers_and_aborted_transactions(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    snapshots = sorted(logs.transactional.glob("*.snapshot"))
    printed = _same(kctl, kafka_home, [*sorted(logs.transactional.glob("*.txnindex")), *snapshots])
    assert b"lastStableOffset: " in printed.out
    assert b"currentTxnFirstOffset: " in printed.out


def test_consumer_offsets(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    files = [path for folder in logs.offsets for path in sorted(folder.glob("*.log"))]
    printed = _same(kctl, kafka_home, files, "--offsets-decoder")
    assert b'"topic":"segment-live.' in printed.out
    _same(kctl, kafka_home, files, "--print-data-log")


def test_transaction_state(kctl: Kctl, kafka_home: Path, logs: Logs) -> None:
    files = [path for folder in logs.transactions for path in sorted(folder.glob("*.log"))]
    printed = _same(kctl, kafka_home, files, "--transaction-log-decoder")
    for state in (b"Ongoing", b"CompleteCommit", b"CompleteAbort"):
        assert b"state=" + state in printed.out
    _same(kctl, kafka_home, files, "--deep-iteration", "--transaction-log-decoder", "--skip-record-metadata")


def test_as_json(kctl: Kctl, logs: Logs) -> None:
    """Every record of a live partition as consumers see it, and as its log says it."""
    folder = logs.compacted
    topic = folder.name.rpartition("-")[0]
    dumped = kctl.ok("segment", "dump", "--records", "-o", "json", str(folder)).out
    consumed = kctl.ok("consume", topic, "--from-beginning", "--exit-eof", "-o", "json").out
    ours, read = ([json.loads(line) for line in text.splitlines()] for text in (dumped, consumed))
    assert [(row["offset"], row["key"], row["value"]) for row in ours] == [
        (row["offset"], row["key"], row["value"]) for row in read
    ]
    assert len({row["offset"] for row in ours}) < ours[-1]["offset"]  # compaction left gaps
