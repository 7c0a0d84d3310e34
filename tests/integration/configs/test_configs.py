"""kctl config against a real cluster: it shows what kafka-configs shows, and what is refused changes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kctl_testing import Kctl, TestCluster, eventually

# A limit that no test comes near.
KEY = "max.connections.per.ip"
SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "topic", "DYNAMIC_BROKER_CONFIG": "dynamic broker", "STATIC_BROKER_CONFIG": "static broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "dynamic default broker", "DEFAULT_CONFIG": "default",
}  # fmt: skip
UNDESCRIBED = {
    "leader.replication.throttled.rate", "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}  # fmt: skip


def kafka_configs(home: Path, bootstrap: str, kind: str, name: str) -> dict[str, tuple[str, str, str]]:
    """name → (value, sensitive, synonyms), as kafka-configs --describe --all writes them."""
    argv = [
        "java", "-Xmx128M", "-cp", f"{home}/libs/*", "kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap,
        "--describe", "--entity-type", kind, "--entity-name", name, "--all",
    ]  # fmt: skip
    out = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    found = re.findall(r"^  (\S+?)=(.*) sensitive=(true|false) synonyms=\{(.*)\}$", out, re.MULTILINE)
    return {name: (value, sensitive, synonyms) for name, value, sensitive, synonyms in found}


def as_kafka_configs(rows: list[dict[str, object]]) -> dict[str, tuple[str, str, str]]:
    codes = {ours: theirs for theirs, ours in SOURCES.items()}

    def text(value: object) -> str:
        return "null" if value is None else str(value)

    found = {}
    for row in rows:
        chain = row["synonyms"]
        assert isinstance(chain, list)
        synonyms = ", ".join(f"{codes[s['source']]}:{s['name']}={text(s['value'])}" for s in chain)
        found[str(row["name"])] = (text(row["value"]), str(row["sensitive"]).lower(), synonyms)
    return found


def test_the_same_as_kafka_configs(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path
) -> None:
    mine = topic(**{"retention.ms": "60000", "cleanup.policy": "compact,delete"})
    ours = as_kafka_configs(kctl.json("config", "get", f"topic/{mine}", "--all"))
    assert ours == kafka_configs(kafka_home, cluster.bootstrap, "topics", mine)
    assert ours["retention.ms"][0] == "60000"
    (row,) = kctl.json("config", "unset", f"topic/{mine}", "retention.ms", "--dry-run")
    assert (row["before"], row["after"], row["after_source"]) == ("60000", "604800000", "default"), "of hours"
    broker = as_kafka_configs(kctl.json("config", "get", "broker/1", "--all"))
    assert {k: v for k, v in broker.items() if k not in UNDESCRIBED} == kafka_configs(
        kafka_home, cluster.bootstrap, "brokers", "1"
    )


def test_get(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(**{"retention.ms": "60000", "segment.bytes": "1000000"})
    rows = {row["name"]: row for row in kctl.json("config", "get", f"topic/{mine}")}
    assert list(rows["retention.ms"]) == [
        "name", "value", "source", "default", "type", "sensitive", "read_only", "synonyms",
    ]  # fmt: skip
    assert rows["retention.ms"]["synonyms"][0] == {"name": "retention.ms", "value": "60000", "source": "topic"}
    assert (rows["segment.bytes"]["type"], rows["segment.bytes"]["default"]) == ("int", "1073741824")
    assert "cleanup.policy" not in rows, "it is the default"
    (asked,) = kctl.json("config", "get", f"topic/{mine}", "cleanup.policy")
    assert (asked["value"], asked["source"], asked["type"]) == ("delete", "default", "list")
    wide = kctl.ok("config", "get", f"topic/{mine}", "-o", "wide").out.splitlines()
    assert wide[0].split() == ["CONFIG", "VALUE", "SET", "BY", "TYPE", "DEFAULT", "CHANGED", "BY"]
    assert "node.id" in {row["name"] for row in kctl.json("config", "get", "broker/1")}


def test_set_append_subtract_unset(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = f"topic/{topic(replication_factor=3, **{'segment.bytes': '1000000'})}"
    change = ("config", "set", mine, "retention.ms=60000", "--append", "cleanup.policy=compact")
    planned = kctl.json(*change, "--dry-run")
    assert [(r["name"], r["result"], r["before"], r["after"], r["after_source"]) for r in planned] == [
        ("retention.ms", "would set", "604800000", "60000", "topic"),
        ("cleanup.policy", "would append", "delete", "delete,compact", "topic"),
    ]
    unconfirmed = kctl(*change)
    assert unconfirmed.code == 4
    assert "would set retention.ms: 604800000 → 60000" in unconfirmed.err
    assert "retention.ms is lowered: records older than the new limit are deleted" in unconfirmed.err
    assert [r["name"] for r in kctl.json("config", "get", mine) if r["source"] == "topic"] == ["segment.bytes"]

    done = kctl.json(*change, "--yes")
    assert list(done[0]) == [
        "resource", "name", "result", "before", "before_source", "after", "after_source", "sensitive",
    ]  # fmt: skip
    assert [(r["result"], r["after"], r["after_source"]) for r in done] == [
        ("set", "60000", "topic"), ("appended", "delete,compact", "topic"),
    ]  # fmt: skip
    assert [r["result"] for r in kctl.json(*change)] == ["unchanged", "unchanged"], "nothing is asked"
    taken = kctl.json("config", "set", mine, "--subtract", "cleanup.policy=delete", "--yes")
    assert [(r["result"], r["after"]) for r in taken] == [("subtracted", "compact")]

    unset = kctl.json("config", "unset", mine, "retention.ms", "cleanup.policy", "--yes")
    assert [(r["result"], r["after"], r["after_source"]) for r in unset] == [
        ("unset", "604800000", "default"), ("unset", "delete", "default"),
    ]  # fmt: skip
    assert [r["result"] for r in kctl.json("config", "unset", mine, "retention.ms")] == ["unchanged"]
    assert [r["name"] for r in kctl.json("config", "get", mine) if r["source"] == "topic"] == ["segment.bytes"]


@pytest.fixture
def left_alone(kctl: Kctl, cluster: TestCluster) -> Iterator[None]:
    """Brokers as they were, whatever the test did."""
    yield
    for resource in ("broker/1", "brokers"):
        kctl.ok("config", "unset", resource, KEY, "--yes")


@pytest.mark.usefixtures("left_alone")
def test_brokers(kctl: Kctl) -> None:
    """What holds is what is read back: the broker's own value before that of all brokers, this before the default."""
    for_all = kctl.json("config", "set", "brokers", f"{KEY}=2147483000", "--yes")
    assert [(r["before"], r["after"], r["after_source"]) for r in for_all] == [
        (None, "2147483000", "dynamic default broker")
    ]
    assert [(r["name"], r["value"]) for r in kctl.json("config", "get", "brokers")] == [(KEY, "2147483000")]
    assert {r["name"] for r in kctl.json("config", "get", "brokers", "--all")} > UNDESCRIBED
    for broker in ("broker/2", "broker/3"):
        (row,) = kctl.json("config", "get", broker, KEY)
        assert (row["value"], row["source"]) == ("2147483000", "dynamic default broker")
    one = kctl.json("config", "set", "broker/1", f"{KEY}=2147483001", "--yes")
    assert [(r["before"], r["after"], r["after_source"]) for r in one] == [
        ("2147483000", "2147483001", "dynamic broker")
    ]
    differ = kctl("config", "diff", "--all-brokers", "-o", "csv")
    assert differ.code == 1
    assert differ.out.splitlines()[1].startswith(KEY)
    assert "1 config differs" in differ.err
    table = kctl("config", "diff", "--all-brokers", "-o", "wide").out.splitlines()
    assert [line.split()[-4:] for line in table[1:]] == [
        ["2147483001", "broker/1", "dynamic", "broker"],
        ["broker/3", "dynamic", "default", "broker"],
    ]
    (back,) = kctl.json("config", "unset", "broker/1", KEY, "--yes")
    assert (back["after"], back["after_source"]) == ("2147483000", "dynamic default broker")
    (gone,) = kctl.json("config", "unset", "brokers", KEY, "--yes")
    assert (gone["before"], gone["after"], gone["after_source"]) == ("2147483000", None, None)


def test_diff(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    one, other = topic(**{"retention.ms": "60000"}), topic()
    differ = kctl("config", "diff", f"topic/{one}", f"topic/{other}", "-o", "json")
    assert differ.code == 1
    (row,) = json.loads(differ.out)
    assert (row["name"], row["sensitive"]) == ("retention.ms", False)
    assert row["values"] == [
        {"value": "60000", "source": "topic", "resources": [f"topic/{one}"]},
        {"value": "604800000", "source": "default", "resources": [f"topic/{other}"]},
    ]
    against = kctl("config", "diff", f"topic/{one}", "default")
    assert against.code == 1
    assert "retention.ms" in against.out
    brokers = kctl("config", "diff", "broker/1", "broker/2", "--all")
    assert brokers.code == 1
    assert "advertised.listeners" in brokers.out


def test_explain(kctl: Kctl, topic: Callable[..., str]) -> None:
    topic()
    rows = kctl.json("config", "explain", "min.insync.replicas", "log.cleaner.threads", "node.id")
    assert [(r["name"], r["of"], r["type"], r["read_only"]) for r in rows] == [
        ("min.insync.replicas", "topic", "int", False),
        ("min.insync.replicas", "broker", "int", False),
        ("log.cleaner.threads", "broker", "int", False),
        ("node.id", "broker", "int", True),
    ]
    assert "acks" in rows[0]["documentation"]
    assert "<" not in rows[0]["documentation"]
    text = kctl.ok("config", "explain", "node.id").out
    assert "server.properties and a restart" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("set", "TOPIC", "retenton.ms=1", "--yes"), 4, "did you mean retention.ms"),
        (("set", "TOPIC", "retention.ms=7d", "--yes"), 4, "that is retention.ms=604800000"),
        (("set", "TOPIC", "retention.ms=-5", "--yes"), 4, "Value must be at least -1"),
        (("set", "TOPIC", "retention.ms=1", "cleanup.policy=shred", "--yes"), 4, "must be one of: compact, delete"),
        (("set", "TOPIC", "--append", "retention.ms=1", "--yes"), 4, "is not a list"),
        (("set", "TOPIC", "retention.ms=1", "retention.ms=2", "--yes"), 2, "duplicate config"),
        (("set", "TOPIC"), 2, "nothing to set"),
        (("set", "TOPIC", "retention.ms", "--yes"), 2, "must be KEY=VALUE"),
        (("set", "topic/no-such-topic", "retention.ms=1", "--yes"), 4, "topic no-such-topic does not exist"),
        (("set", "broker/1", "log.dirs=/x", "--yes"), 4, "restart the broker"),
        (("set", "broker/1", "ssl.key.password=geheim", "--yes"), 2, "must not be on the command line"),
        (("set", "broker/1", "log.cleaner.threads=90", "--yes"), 4, "1MB per cleaner thread"),
        (("set", "broker/99", "log.cleaner.threads=1", "--yes"), 4, "broker 99 is not in the cluster"),
        (("unset", "TOPIC", "retention.ms=1", "--yes"), 2, "not a config name"),
        (("get", "TOPIC", "no.such"), 4, "has no config no.such"),
        (("get", "topic/no-such-topic"), 4, "topic no-such-topic does not exist"),
        (("get", "topic/__consumer_ofsets"), 4, "did you mean __consumer_offsets?"),
        (("get", "broker/99"), 4, "broker 99 is not in the cluster"),
        (("get", "queue/x"), 2, "not a resource with configs"),
        (("get", "user/"), 2, "not a resource with configs"),
        (("set", "user/alice", "producer_byte_rate=10MB", "--yes"), 4, "that is producer_byte_rate=10000000"),
        (("set", "user/alice", "producer_byte_rate=0", "--yes"), 2, "is not a valid producer_byte_rate"),
        (("set", "ip/127.0.0.1", "producer_byte_rate=5", "--yes"), 4, "has no config producer_byte_rate"),
        (("diff", "user/a", "topic/b"), 2, "different configs"),
        (("get", "TOPIC", "retention.ms", "--all"), 2, "cannot be combined"),
        (("explain", "retenton.ms"), 4, "did you mean retention.ms"),
        (("diff", "TOPIC"), 2, "two resources are required"),
        (("diff", "TOPIC", "broker/1"), 2, "different configs"),
        (("diff", "TOPIC", "topic/no-such-topic"), 4, "topic no-such-topic does not exist"),
        (("diff", "TOPIC", "--all-brokers"), 2, "cannot be combined"),
    ],
)
def test_bad_input(kctl: Kctl, one_topic: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl("config", *(argument.replace("TOPIC", f"topic/{one_topic}") for argument in arguments))
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert "geheim" not in result.err
    assert result.out == ""


@pytest.fixture(scope="module")
def one_topic(kctl: Kctl, cluster: TestCluster) -> Iterator[str]:
    """A topic that every refusal of this module leaves as it is."""
    name = f"configs-{os.getpid()}"
    kctl.ok("topic", "create", name, "--partitions", "1", "--replication-factor", "1")
    yield name
    rows = kctl.json("config", "get", f"topic/{name}")
    kctl.ok("topic", "delete", name, "--yes")
    assert [row["name"] for row in rows if row["source"] == "topic"] == []


def test_quotas_are_configs_too(kctl: Kctl, cluster: TestCluster, kafka_home: Path) -> None:
    mine = f"user/configs {os.getpid()} \x1b[31m"
    (tried,) = kctl.json("config", "set", mine, "request_percentage=12.50", "--dry-run")
    assert (tried["result"], tried["after"], tried["after_source"]) == ("would set", "12.50", "user")
    done = kctl.json("config", "set", mine, "request_percentage=12.50", "producer_byte_rate=1000", "--yes")
    assert [(row["result"], row["before_source"], row["after"]) for row in done] == [
        ("set", "default", "12.5"), ("set", "default", "1000"),
    ]  # fmt: skip
    assert kctl.json("config", "set", mine, "request_percentage=12.5", "--yes")[0]["result"] == "unchanged"
    rows = kctl.json("config", "get", mine)
    assert [(row["name"], row["value"], row["source"]) for row in rows] == [
        ("producer_byte_rate", "1000", "user"), ("request_percentage", "12.5", "user"),
    ]  # fmt: skip
    argv = [
        "java", "-Xmx128M", "-cp", f"{kafka_home}/libs/*", "kafka.admin.ConfigCommand", "--bootstrap-server",
        cluster.bootstrap, "--describe", "--entity-type", "users", "--entity-name", mine.removeprefix("user/"),
    ]  # fmt: skip
    java = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "request_percentage=12.5" in java
    assert "producer_byte_rate=1000.0" in java
    compared = kctl("config", "diff", mine, "default")
    assert (compared.code, "2 configs differ" in compared.err) == (1, True)
    assert "\x1b" not in compared.out
    gone = kctl.json("config", "unset", mine, "request_percentage", "producer_byte_rate", "--yes")
    assert [row["after_source"] for row in gone] == ["default", "default"]
    assert kctl.json("config", "get", mine) == []


def test_a_secret_that_a_broker_refuses_is_not_shown(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> None:
    """Brokers with ZooKeeper take none without password.encoder.secret; on KRaft it is set and read back (kraft/)."""
    secret = tmp_path / "secret"
    secret.write_text("geheim\n")
    key = "listener.name.plaintext.ssl.keystore.password"
    secret.chmod(0o646)
    writable = kctl("config", "set", "broker/1", f"{key}=@{secret}", "--yes")
    assert (writable.code, "is world-writable" in writable.err) == (2, True)
    secret.chmod(0o600)
    for result in (
        kctl("config", "set", "broker/1", f"{key}=@{secret}", "--yes"),
        kctl("config", "set", "broker/1", f"{key}=@-", "--yes", stdin="geheim\n"),
    ):
        assert result.code == 4
        assert "Password encoder secret not configured" in result.err
        assert "geheim" not in result.err + result.out


@pytest.mark.long
def test_a_broker_that_is_down(own_kctl: Kctl) -> None:
    own_kctl.ok("cluster", "create", "c", "--use", "--layout", "pseudo-distributed", "--heap", "256m", timeout=180)
    own_kctl.ok("topic", "create", "t", "--replication-factor", "3")
    own_kctl.ok("cluster", "kill", "c", "3", "--yes")
    eventually(lambda: own_kctl("config", "get", "broker/3").code == 4, seconds=60, what="broker 3 is gone")
    refused = own_kctl("config", "set", "broker/3", f"{KEY}=2147483001", "--yes")
    assert refused.code == 4
    assert "broker 3 is down" in refused.err
    assert own_kctl.json("config", "set", "topic/t", "retention.ms=60000", "--yes")[0]["after"] == "60000"
    assert own_kctl.json("config", "set", "brokers", f"{KEY}=2147483000", "--yes")[0]["after"] == "2147483000"
    compared = own_kctl("config", "diff", "--all-brokers", "-o", "json")
    assert (compared.code, json.loads(compared.out)) == (5, [])
    assert "broker/3 was not compared: broker 3 is down" in compared.err
    own_kctl.ok("cluster", "start", "c", timeout=120)
    (row,) = own_kctl.json("config", "get", "broker/3", KEY)
    assert (row["value"], row["source"]) == ("2147483000", "dynamic default broker"), "it reads what it missed"
