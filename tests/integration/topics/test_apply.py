"""kctl topic clone, apply and export."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kctl.records.produce.batch import ClosedBatch
from kctl_testing import Kctl, TestCluster, closed_port

_numbers = count(1)


@pytest.fixture
def prefix(kctl: Kctl, cluster: TestCluster) -> Iterator[str]:
    """What the names of a test's topics begin with; such topics are deleted afterwards."""
    stem = f"apply-{os.getpid()}-{next(_numbers)}"
    yield stem
    names = [row["topic"] for row in kctl.json("topic", "list") if row["topic"].startswith(stem)]
    if names:
        kctl.ok("topic", "delete", *names, "--yes")


def _records(kctl: Kctl, topic: str) -> list[dict[str, Any]]:
    """All records of partition 0, without what a copy has of its own."""
    lines = kctl.ok("consume", topic, "--from-beginning", "--exit-eof", "-o", "json").out.splitlines()
    rows = [json.loads(line) for line in lines]
    return [{k: v for k, v in row.items() if k not in {"topic", "offset"}} for row in rows]


def test_a_clone_with_its_records(kctl: Kctl, cluster: TestCluster, prefix: str) -> None:
    source, copy = f"{prefix}.a", f"{prefix}.b"
    stamped = ("--config", "message.timestamp.type=LogAppendTime", "--config", "max.message.bytes=3000000")
    kctl.ok("topic", "create", source, "--replication-factor", "2", *stamped)
    _write(cluster, source)
    kctl.ok("topic", "truncate", source, "--before-offset", "2", "--yes")
    (planned,) = [kctl.json("topic", "clone", source, copy, "--data", "--dry-run")]
    assert list(planned) == [
        "source_topic", "topic", "result", "partition_count", "replication_factor", "configs", "records", "copied",
        "error",
    ]  # fmt: skip
    assert planned["result"] == "would clone"
    assert kctl("topic", "describe", copy).code == 4, "a dry run makes nothing"

    done = kctl.json("topic", "clone", source, copy, "--data", "--compression", "zstd")
    assert (done["result"], done["records"], done["partition_count"], done["replication_factor"]) == ("cloned", 5, 1, 2)
    assert done["copied"] == [
        {"partition": 0, "source_log_start_offset": 2, "source_log_end_offset": 7, "records": 5, "log_end_offset": 5}
    ]
    assert _records(kctl, copy) == _records(kctl, source), "keys, values, headers, timestamps, order"
    assert _own_configs(kctl, copy) == _own_configs(kctl, source)
    again = kctl("topic", "clone", source, copy, "--data")
    assert again.code == 4
    assert f"`kctl topic delete {copy}` shows what the topic contains" in again.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_clone_that_is_interrupted_says_what_it_left(
    kctl: Kctl, cluster: TestCluster, prefix: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """In this process, so that the signal comes between the first record and the last."""
    from kctl.commands.app import main
    from kctl.records.produce.sender import Sender

    source, copy = f"{prefix}.a", f"{prefix}.b"
    kctl.ok("topic", "create", source)
    kctl.ok("produce", source, stdin="x\n" * 3)
    add_batch = Sender.add_batch

    def interrupted(self: Sender, batch: ClosedBatch) -> None:
        add_batch(self, batch)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Sender, "add_batch", interrupted)
    monkeypatch.setenv("XDG_STATE_HOME", str(kctl.home / ".local/state"))
    assert main(["--bootstrap-server", cluster.bootstrap, "topic", "clone", source, copy, "--data"]) == 130
    resumes = (
        f"topic {copy} may exist and is incomplete: resume the copy with `kctl topic clone {source} {copy} --data`"
    )
    assert resumes in capsys.readouterr().err
    assert kctl.json("topic", "describe", copy)[0]["partition_count"] == 1, "it exists, as the message says"
    assert kctl.json("topic", "clone", source, copy, "--data")["records"] == 3


def _own_configs(kctl: Kctl, topic: str) -> dict[str, str]:
    (described,) = kctl.json("topic", "describe", topic)
    return {c["name"]: c["value"] for c in described["config_entries"] if c["source"] == "topic"}


def _write(cluster: TestCluster, topic: str) -> None:
    """Seven records of every kind: a key alone, a tombstone, headers (the same twice), broken UTF-8, two megabytes."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks="all", max_request_size=4 << 20)
    try:
        for _ in range(2):
            producer.send(topic, b"deleted before it is copied")
        producer.send(topic, b"v", key=b"k", headers=[("h", b"1"), ("h", b"2"), ("empty", b"")])
        producer.send(topic, None, key=b"tombstone")
        producer.send(topic, b"\xff\x00\x1b[2J", key=b"\xfe")
        producer.send(topic, b"")
        producer.send(topic, b"x" * (2 << 20))
        producer.flush(timeout=30)
    finally:
        producer.close(timeout=5)


def test_a_clone_leaves_out_what_was_aborted(kctl: Kctl, cluster: TestCluster, prefix: str) -> None:
    from kafka import KafkaProducer

    kctl.ok("topic", "create", f"{prefix}.t", "--replication-factor", "3")
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), transactional_id=prefix, acks="all", enable_idempotence=True
    )
    try:
        producer.init_transactions()
        for value, commit in ((b"kept", True), (b"aborted", False), (b"kept too", True)):
            producer.begin_transaction()
            producer.send(f"{prefix}.t", value)
            producer.flush(timeout=30)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close(timeout=5)
    done = kctl.json("topic", "clone", f"{prefix}.t", f"{prefix}.u", "--data")
    (partition,) = done["copied"]
    assert (partition["source_log_end_offset"], partition["records"], partition["log_end_offset"]) == (6, 2, 2)
    assert [row["value"] for row in _records(kctl, f"{prefix}.u")] == ["kept", "kept too"]


def test_apply_and_export(kctl: Kctl, prefix: str, tmp_path: Path) -> None:
    names = [f"{prefix}.{letter}" for letter in "abc"]
    file = tmp_path / "topics.yaml"
    file.write_text(
        f"topics:\n"
        f"- name: {names[0]}\n  partitions: 2\n  replication_factor: 3\n  configs: {{retention.ms: 3600000}}\n"
        f"- name: {names[1]}\n  partitions: 1\n  replication_factor: 1\n"
    )
    planned = kctl("topic", "apply", "-f", str(file), "--dry-run", "-o", "json")
    assert planned.code == 1, "something differs"
    first, second = json.loads(planned.out)
    assert list(first) == ["topic", "result", "changes", "error"]
    assert (first["result"], second["result"]) == ("would create", "would create")
    assert first["changes"] == [
        {"what": "partitions", "before": None, "after": "2"},
        {"what": "replication_factor", "before": None, "after": "3"},
        {"what": "retention.ms", "before": None, "after": "3600000"},
    ]
    made = kctl.json("topic", "apply", "-f", str(file))
    assert [row["result"] for row in made] == ["created", "created"], "to create needs no --yes"
    assert [row["result"] for row in kctl.json("topic", "apply", "-f", str(file), "--dry-run")] == ["unchanged"] * 2

    file.write_text(
        file.read_text().replace("partitions: 2", "partitions: 4").replace("retention.ms", "retention.bytes")
    )
    refused = kctl("topic", "apply", "-f", str(file))
    assert refused.code == 4
    assert f"{names[0]}: retention.ms 3600000 -> 604800000" in refused.err
    altered = kctl.json("topic", "apply", "-f", str(file), "--yes")
    assert [row["result"] for row in altered] == ["altered", "unchanged"]
    assert _own_configs(kctl, names[0]) == {"retention.bytes": "3600000"}, "those in the file, and no others"

    exported = kctl.ok("topic", "export", "--match", f"{prefix}.*").out
    copy = tmp_path / "exported.yaml"
    copy.write_text(exported)
    assert [row["result"] for row in kctl.json("topic", "apply", "-f", str(copy), "--dry-run")] == ["unchanged"] * 2
    assert kctl.json("topic", "export", names[1]) == {
        "topics": [{"name": names[1], "partitions": 1, "replication_factor": 1, "configs": {}}]
    }

    kctl.ok("topic", "create", names[2], "--partitions", "1", "--replication-factor", "1")
    options = ("topic", "apply", "-f", str(file), "--prune", "--prune-match", f"{prefix}.*")
    assert [row["result"] for row in json.loads(kctl(*options, "--dry-run", "-o", "json").out)] == [
        "unchanged", "unchanged", "would delete",
    ]  # fmt: skip
    unconfirmed = kctl(*options, "--yes")
    assert (unconfirmed.code, "add --prune-expect 1" in unconfirmed.err) == (4, True)
    assert kctl(*options, "--yes", "--prune-expect", "3").code == 4
    assert len(kctl.json("topic", "list", "--match", f"{prefix}.*")) == 3, "nothing was pruned yet"
    assert kctl.json(*options, "--yes", "--prune-expect", "1")[2]["result"] == "deleted"
    assert [row["topic"] for row in kctl.json("topic", "list", "--match", f"{prefix}.*")] == names[:2]


def test_a_file_that_says_nothing_prunes_nothing(kctl: Kctl, prefix: str, tmp_path: Path) -> None:
    """Refused before anything is asked: an address where nobody listens is exit code 3 otherwise."""
    file = tmp_path / "topics.yaml"
    nowhere = ("topic", "apply", "-f", str(file), "--prune", "--prune-expect", "1", "--yes",
               "--bootstrap-server", f"127.0.0.1:{closed_port()}")  # fmt: skip
    for text, code in (("", 2), ("topics:\n", 2), ("topics: {}\n", 2), ("[]\n", 2), ("topics: []\n", 4)):
        file.write_text(text)
        assert kctl(*nowhere).code == code, text
    kctl.ok("topic", "create", f"{prefix}.stays", "--partitions", "1", "--replication-factor", "1")
    options = ("topic", "apply", "-f", str(file), "--prune", "--prune-match")
    assert kctl.json(*options, "__.*", "--dry-run") == [], "Kafka's own topics stay"
    assert kctl.json(*options, f"{prefix}", "--yes") == [], "a pattern has to match the whole name"
    assert kctl(*options, f"{prefix}.*", "--prune-expect", "2", "--yes").code == 4
    assert [row["topic"] for row in kctl.json("topic", "list", "--match", f"{prefix}.*")] == [f"{prefix}.stays"]


def test_values_that_brokers_write_otherwise(kctl: Kctl, prefix: str, tmp_path: Path) -> None:
    """What was asked for is there, however it is written: set once, and nothing differs then."""
    name, file = f"{prefix}.written", tmp_path / "topics.yaml"
    kctl.ok("topic", "create", name, "--partitions", "1", "--replication-factor", "1")
    file.write_text(
        f"topics:\n- name: {name}\n  configs: {{cleanup.policy: 'compact, delete', min.cleanable.dirty.ratio: '0.250', "
        "preallocate: 'FALSE', retention.ms: '+3600000', segment.bytes: '02097152', compression.type: ' lz4 '}\n"
    )
    assert [row["result"] for row in kctl.json("topic", "apply", "-f", str(file), "--yes")] == ["altered"]
    shown = {
        "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25", "preallocate": "false",
        "retention.ms": "3600000", "segment.bytes": "2097152", "compression.type": "lz4",
    }  # fmt: skip
    assert _own_configs(kctl, name) == shown
    assert [row["result"] for row in kctl.json("topic", "apply", "-f", str(file), "--dry-run")] == ["unchanged"]
    (row,) = kctl.json("config", "set", f"topic/{name}", "cleanup.policy=delete , compact", "--yes")
    assert (row["result"], row["after"]) == ("set", "delete,compact")
    (row,) = kctl.json("topic", "alter", name, "--config", "min.cleanable.dirty.ratio=5e-1", "--yes")
    assert row["result"] == "altered"
    (row,) = kctl.json("config", "set", f"topic/{name}", "min.cleanable.dirty.ratio=.5")
    assert row["result"] == "unchanged"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ("partitions: 1", 4, "cannot be reduced to 1"),
        ("replication_factor: 1", 4, "t.yaml:2:3: topic NAME has replication factor 2, not 1"),
        ("configs: {retention.mss: 1}", 4, "did you mean retention.ms"),
        ("configs: {retention.ms: soon}", 4, "must be a whole number"),
        ("partition: 3", 2, "t.yaml:3:3: 'partition' is not a valid key"),
    ],
)
def test_what_cannot_be_so_leaves_all_as_it_was(
    kctl: Kctl, fixed: str, tmp_path: Path, change: str, code: int, message: str
) -> None:
    """Another topic of the file could be made, and is not."""
    file = tmp_path / "t.yaml"
    file.write_text(f"topics:\n- name: {fixed}\n  {change}\n- name: {fixed}.new\n  partitions: 1\n")
    refused = kctl("topic", "apply", "-f", str(file), "--yes")
    assert (refused.code, refused.out) == (code, ""), str(refused)
    assert message.replace("NAME", fixed) in refused.err
    assert [row["topic"] for row in kctl.json("topic", "list", "--match", f"{fixed}.*")] == [fixed]


@pytest.fixture(scope="module")
def fixed(kctl: Kctl, cluster: TestCluster) -> Iterator[str]:
    """A topic with two partitions and two replicas."""
    name = f"fixed-{os.getpid()}"
    kctl.ok("topic", "create", name, "--partitions", "2", "--replication-factor", "2")
    yield name
    kctl.ok("topic", "delete", name, "--yes")
