"""Doctor rules: for each rule, a case with a finding and a case without."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command_tree import every_command
from doctor_testing import (
    ANYBODY,
    BY_ID,
    CLOSED,
    READERS,
    broker,
    found_by,
    group,
    log_dir,
    of_broker_file,
    of_brokers,
    of_client_file,
    of_groups,
    of_health,
    of_topics,
    of_zookeeper,
    row,
)
from health_testing import partition, state
from kctl.cluster.api_versions import Feature
from kctl.cluster.log_dirs import LogDir
from kctl.configs.diff import Difference, Value
from kctl.doctor.examine import RuleStatus, examine
from kctl.doctor.releases import parse_releases
from kctl.doctor.rule import Severity
from kctl.doctor.rule_facts import RuleFacts, ZooKeeperFacts
from kctl.doctor.rule_table import RULES, SUBJECTS
from kctl.errors import NotAuthorized
from kctl.protocol.quorum import Quorum

# server.properties: rule id → (text with a finding, text without, Kafka version). ; stands for a line break.
BROKER_FILES: dict[str, tuple[str, str, str | None]] = {
    "unclean-election": ("unclean.leader.election.enable=true", "", None),
    "auto-create-topics": ("", "auto.create.topics.enable=false", None),
    "default-replicas": ("", "default.replication.factor=3", None),
    "default-min-isr": ("default.replication.factor=3", "default.replication.factor=3;min.insync.replicas=2", None),
    "default-min-isr-blocks": (
        "default.replication.factor=3;min.insync.replicas=3",
        "default.replication.factor=3;min.insync.replicas=2", None,
    ),
    "internal-topics-settings": ("offsets.topic.replication.factor=1", "", None),
    "transaction-min-isr": ("transaction.state.log.min.isr=3", "", None),
    "flush-settings": ("log.flush.interval.messages=1", "", None),
    "replica-lag-time": ("replica.lag.time.max.ms=5000", "", "3.9"),
    "replica-lag-time-long": ("replica.lag.time.max.ms=300000", "", None),
    "zookeeper-session-timeout": (
        "zookeeper.connect=zk:2181;zookeeper.session.timeout.ms=2000", "zookeeper.connect=zk:2181", None,
    ),
    "controlled-shutdown": ("controlled.shutdown.enable=false", "", None),
    "auto-leader-rebalance": ("auto.leader.rebalance.enable=false", "", None),
    "delete-topic": ("delete.topic.enable=false", "", None),
    "log-cleaner": ("log.cleaner.enable=false", "", None),
    "offsets-retention": ("offsets.retention.minutes=1440", "", None),
    "protocol-version": (
        "zookeeper.connect=zk:2181;inter.broker.protocol.version=2.8", "zookeeper.connect=zk:2181", "3.9",
    ),
    "message-format": (
        "log.message.format.version=0.10.2;inter.broker.protocol.version=2.8",
        "log.message.format.version=0.10.2", None,
    ),
    "replica-fetch-size": ("message.max.bytes=2000000", "", "3.9"),
    "replica-fetch-size-hard": ("message.max.bytes=2000000", "", "0.10.0"),
    "large-messages": ("message.max.bytes=50000000", "", None),
    "request-size": ("message.max.bytes=200000000", "", None),
    "size-limit": ("log.retention.bytes=1000000", "log.retention.bytes=2000000000", None),
    "retention": ("log.retention.hours=24", "log.retention.minutes=20160", None),
    "future-timestamps": ("", "log.message.timestamp.after.max.ms=3600000", "3.9"),
    "cleaner-buffer": ("log.cleaner.threads=16", "log.cleaner.threads=2", None),
    "io-threads": ("num.io.threads=2;log.dirs=/a,/b,/c", "log.dirs=/a,/b,/c", None),
    "mixed-listeners": (
        "listeners=A://:1,B://:2;advertised.listeners=A://localhost:1,B://k.example.com:2",
        "listeners=A://:1,B://:2;advertised.listeners=A://k:1,B://k.example.com:2", None,
    ),
    "plaintext-listeners": (
        "listeners=PLAINTEXT://:9092;advertised.listeners=PLAINTEXT://localhost:9092",  # bound to all addresses
        "listeners=PLAINTEXT://127.0.0.1:9092,SSL://:9093", None,
    ),
    "clear-passwords": (
        "listeners=SASL_PLAINTEXT://:9092;sasl.enabled.mechanisms=PLAIN",
        "listeners=SASL_SSL://:9092;sasl.enabled.mechanisms=PLAIN", None,
    ),
    "no-authorizer": ("", "authorizer.class.name=kafka.security.authorizer.AclAuthorizer", None),
    "no-super-users": (
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer;super.users=User:admin", None,
    ),
    "anonymous-super-user": ("super.users=User:admin;User:ANONYMOUS", "super.users=User:admin", None),
    "allow-everyone": ("allow.everyone.if.no.acl.found=true", "allow.everyone.if.no.acl.found=false", None),
    "zookeeper-set-acl": (
        "zookeeper.connect=zk:2181;sasl.enabled.mechanisms=SCRAM-SHA-512",
        "zookeeper.connect=zk:2181;sasl.enabled.mechanisms=SCRAM-SHA-512;zookeeper.set.acl=true", None,
    ),
    "zookeeper-ends": ("zookeeper.connect=zk:2181", "process.roles=broker", None),
    "unknown-setting": ("num.partitons=3", "num.partitions=3;group.share.assignors=simple;super.users=User:a", None),
    "outdated-setting": ("advertised.host.name=k", "advertised.listeners=PLAINTEXT://k:9092", None),
    "wrong-value": ("num.partitions=three", "num.partitions=3;log.dirs=${env:DIRS}", None),
    "listener-contradictions": (
        "listeners=PLAINTEXT://0.0.0.0:9092", "listeners=PLAINTEXT://0.0.0.0:9092;advertised.listeners=PLAINTEXT://k:9092",
        None,
    ),
    "zookeeper-connect": (
        "zookeeper.connect=zk1:2181/kafka,zk2:2181/kafka", "zookeeper.connect=zk1:2181,zk2:2181/kafka", None,
    ),
    "log-dirs-contradictions": ("log.dirs=/data/a,/data/a/b", "log.dirs=/data/a,/data/ab", None),
    "temporary-log-dirs": ("", "log.dirs=/var/lib/kafka", None),
    "role-contradictions": ("process.roles=broker;zookeeper.connect=zk:2181", "zookeeper.connect=zk:2181", None),
    "combined-roles": ("process.roles=broker,controller", "process.roles=broker", None),
    "gone-in-4": ("zookeeper.connect=zk:2181", "process.roles=broker", None),
}  # fmt: skip

# Producer and consumer files, in the same format.
CLIENT_FILES: dict[str, tuple[str, str, str | None]] = {
    "client-plaintext": ("bootstrap.servers=k1:9092", "bootstrap.servers=localhost:9092", None),
    "client-password": (
        "security.protocol=SASL_PLAINTEXT;sasl.mechanism=PLAIN",
        "security.protocol=SASL_SSL;sasl.mechanism=PLAIN", None,
    ),
    "client-host-names": (
        "security.protocol=SSL;ssl.endpoint.identification.algorithm=", "security.protocol=SSL", None,
    ),
    "client-one-server": ("bootstrap.servers=k1:9092", "bootstrap.servers=k1:9092,k2:9092", None),
    "producer-acks-none": ("acks=0", "acks=-1", None),
    "producer-acks-leader": ("acks=1", "", None),
    "producer-refuses-settings": ("enable.idempotence=true;acks=1", "acks=1", None),
    "producer-order": ("enable.idempotence=false", "max.in.flight.requests.per.connection=5", None),
    "producer-duplicates": ("acks=1", "acks=all", None),
    "producer-no-retries": ("retries=0", "retries=3", None),
    "producer-delivery-timeout": (
        "delivery.timeout.ms=30000;linger.ms=5", "request.timeout.ms=180000", None,  # default: the producer raises it
    ),
    "producer-gives-up-soon": ("delivery.timeout.ms=10000;request.timeout.ms=5000", "delivery.timeout.ms=60000", None),
    "producer-batches": ("batch.size=100000", "batch.size=100000;linger.ms=10", None),
    "producer-request-size": ("max.request.size=5000000", "", None),
    "producer-buffer": ("buffer.memory=20000", "", None),
    "consumer-heartbeat-refused": ("heartbeat.interval.ms=45000", "", None),
    "consumer-heartbeat": ("heartbeat.interval.ms=20000", "heartbeat.interval.ms=15000", None),
    "consumer-session-range": ("session.timeout.ms=5000", "session.timeout.ms=6000", None),
    "consumer-session-short": ("session.timeout.ms=10000", "", None),
    "consumer-poll-interval": ("max.poll.interval.ms=30000", "", None),
    "consumer-poll-records": ("max.poll.records=100000", "", None),
    "consumer-auto-commit": ("", "enable.auto.commit=false", None),
    "consumer-commit-no-group": ("enable.auto.commit=true", "enable.auto.commit=true;group.id=g", None),
    "consumer-offset-reset": ("", "auto.offset.reset=earliest", None),
    "consumer-isolation": ("", "isolation.level=read_committed", None),
    "consumer-fetch-size": ("max.partition.fetch.bytes=1000", "", None),
    "consumer-fetch-size-hard": ("max.partition.fetch.bytes=1000", "", "0.10.0"),
    "consumer-fetch-wait": ("fetch.max.wait.ms=30000", "", None),
    "consumer-mixed-protocols": ("group.protocol=consumer;session.timeout.ms=20000", "group.protocol=consumer", "4.0"),
}  # fmt: skip

_T = state([partition("123", "123")])
_ONE = state([partition("1", "1")])
_MIN_1 = {"min.insync.replicas": "1"}
_LEVEL = Feature("metadata.version", 1, 25, 20)


def _others() -> dict[str, tuple[RuleFacts, RuleFacts]]:
    """Return rule id → (facts with a finding, facts without)."""
    view = SimpleNamespace
    full = LogDir("/data", 100, 5, [])
    offline = LogDir("/data", None, None, [], "an I/O error")
    leaders = state([partition("123", "123", leader=2, number=n) for n in range(10)])
    heavy = state([partition("12", "12", number=n) for n in range(100)])
    many = state([partition("1", "1", number=n) for n in range(4_001)])
    zookeeper = {"zookeeper_connect": "zk:2181"}
    alone = view(value="3", source="static broker", resources=["broker 1"])
    other = view(value=None, source=None, resources=["broker 2"])
    mixed = Difference("num.io.threads", False, [Value(**vars(alone)), Value(**vars(other))])
    return {
        "brokers": (of_health(state([partition("12", "1")], alive="1")), of_health()),
        "controller": (of_health(quorum=Quorum(None, -1, -1, (), (), ())), of_health()),
        "offline-partitions": (of_health(state([partition("12", "2", leader=-1)])), of_health()),
        "under-min-isr-partitions": (of_health(state([partition("12", "1")]), min_isr={"t": 2}), of_health()),
        "under-replicated-partitions": (of_health(state([partition("123", "12")])), of_health()),
        "log-dirs": (of_health(log_dirs={1: [offline]}), of_health()),
        "disks": (of_health(log_dirs={1: [full]}), of_health()),
        "preferred-leaders": (of_health(leaders), of_health()),
        "replicas": (of_health(heavy), of_health()),
        "default-replicas-too-many": (
            of_brokers(broker(default_replication_factor="3"), broker_count=1),
            of_brokers(broker(default_replication_factor="3"), broker_count=3),
        ),
        "internal-topics-too-many": (
            of_brokers(broker(offsets_topic_replication_factor="3"), broker_count=1, state=_T, topics={}),
            of_brokers(broker(offsets_topic_replication_factor="3"), broker_count=3, state=_T, topics={}),
        ),
        "metadata-version": (
            RuleFacts(features={"broker 1": (_LEVEL,)}),
            RuleFacts(features={"broker 1": (_LEVEL,), "broker 2": (Feature("metadata.version", 1, 20, 20),)}),
        ),
        "mixed-broker-settings": (
            of_brokers(broker(), differences=[mixed]), of_brokers(broker(), differences=[]),
        ),
        "partitions-per-broker": (
            of_brokers(broker(**zookeeper), state=many, topics={}),
            of_brokers(broker(**zookeeper), state=_T, topics={}),
        ),
        "disk-headroom": (
            RuleFacts(log_dirs={1: [log_dir(100, 50)], 2: [log_dir(10, 90)]}),
            RuleFacts(log_dirs={1: [log_dir(100, 50)], 2: [log_dir(10, 100)]}),
        ),
        "large-partitions": (
            RuleFacts(log_dirs={1: [log_dir(26 * 10**9, None)]}), RuleFacts(log_dirs={1: [log_dir(24 * 10**9, None)]}),
        ),
        "advertised-listeners": (
            RuleFacts(state=_local(), bootstrap_host="kafka.example.com"),
            RuleFacts(state=_T, bootstrap_host="kafka.example.com"),
        ),
        "topic-unclean-election": (
            of_topics(_T, {"t": {"unclean.leader.election.enable": "true"}}),
            of_topics(_T, {"t": {"unclean.leader.election.enable": "false"}}),
        ),
        "topic-one-replica": (of_topics(_ONE), of_topics(_T)),
        "topic-min-isr": (of_topics(_T, {"t": {"min.insync.replicas": "1"}}), of_topics(_T)),
        "topic-min-isr-minority": (
            of_topics(state([partition("12345", "12345")]), {"t": {"min.insync.replicas": "2"}}),
            of_topics(state([partition("12345", "12345")]), {"t": {"min.insync.replicas": "3"}}),
        ),
        "topic-two-replicas": (
            of_topics(state([partition("12", "12")]), {"t": {"min.insync.replicas": "1"}}), of_topics(_T),
        ),
        "topic-min-isr-blocks": (of_topics(state([partition("12", "12")])), of_topics(_T)),
        "topic-min-isr-over": (of_topics(_ONE), of_topics(_T)),
        "topic-min-isr-refuses": (of_topics(_ONE, version="3.6"), of_topics(_ONE, version="3.7")),
        "internal-topic-replicas": (
            of_topics(state([partition("12", "12", topic="__consumer_offsets")])),
            of_topics(state([partition("123", "123", topic="__consumer_offsets")])),
        ),
        "internal-topic-min-isr": (
            of_topics(state([partition("123", "123", topic="__consumer_offsets")]), {"__consumer_offsets": _MIN_1}),
            of_topics(state([partition("123", "123", topic="__consumer_offsets")])),
        ),
        "internal-topic-policy": (
            of_topics(_T, {"__consumer_offsets": {}}),
            of_topics(_T, {"__consumer_offsets": {"cleanup.policy": "compact"}}),
        ),
        "topic-mixed-replicas": (
            of_topics(state([partition("12", "12"), partition("1", "1", number=1)])), of_topics(_T),
        ),
        "topic-retention": (
            of_topics(_T, {"t": {"retention.ms": "3600000", "segment.ms": "86400000"}}),
            of_topics(_T, {"t": {"retention.ms": "-1", "segment.ms": "86400000"}}),
        ),
        "topic-size-limit": (
            of_topics(_T, {"t": {"retention.bytes": "1000", "segment.bytes": "2000"}}),
            of_topics(_T, {"t": {"retention.bytes": "1000", "segment.bytes": "2000", "cleanup.policy": "compact"}}),
        ),
        "topic-flush": (of_topics(_T, {"t": {"flush.messages": "1"}}), of_topics(_T)),
        "topic-large-messages": (
            of_topics(_T, {"t": {"max.message.bytes": "50000000"}}),
            of_topics(_T, {"t": {"max.message.bytes": "2000000"}}),
        ),
        "group-rebalancing": (of_groups(group(state_="PreparingRebalance")), of_groups(group())),
        "group-rebalances-often": (
            of_groups(group(rebalances=2), watched_ms=10_000), of_groups(group(rebalances=1), watched_ms=10_000),
        ),
        "group-more-members": (
            of_groups(group(members={"a": 1, "b": 1, "c": 0})), of_groups(group(members={"a": 1, "b": 1})),
        ),
        "group-idle-members": (of_groups(group(members={"a": 2, "b": 0})), of_groups(group(members={"a": 1, "b": 1}))),
        "group-abandoned": (
            of_groups(group(state_="Empty", members={}), rows=[row(5)]), of_groups(group(), rows=[row(5, client="c")]),
        ),
        "group-lost-records": (of_groups(group(), rows=[row(5, lost=3)]), of_groups(group(), rows=[row(5)])),
        "group-unassigned": (of_groups(group(), rows=[row(5)]), of_groups(group(), rows=[row(5, client="c")])),
        "zookeeper-servers": (of_zookeeper(("leader", "follower", None)), of_zookeeper()),
        "zookeeper-single": (of_zookeeper(("standalone",)), of_zookeeper()),
        "zookeeper-even": (
            of_zookeeper(("leader", "follower")), of_zookeeper(("leader", "follower", "follower", "observer")),
        ),
        "zookeeper-credentials": (
            of_zookeeper(grants={"/config/users": READERS, "/config/users/a": READERS}, users=1),
            of_zookeeper(grants={"/config/users": CLOSED, "/config/users/a": None}, users=1),
        ),
        "zookeeper-open": (of_zookeeper(grants={"/config": ANYBODY}), of_zookeeper(grants={"/config": READERS})),
    }  # fmt: skip


def _local() -> Any:
    cluster = state([partition("1", "1")], alive="1")
    from kctl.model import Broker

    cluster.brokers[1] = Broker(1, "localhost", 9092)
    return cluster


OTHERS = _others()
MORE = {"readable-secrets", "same-broker-ids", "shared-log-dirs"}  # tested separately below


def test_every_rule_has_a_case() -> None:
    cases = [*BROKER_FILES, *CLIENT_FILES, *OTHERS, *MORE]
    assert len(cases) == len(set(cases))
    assert set(cases) == {rule.id for rule in RULES}


def _lines(text: str) -> str:
    return text if text.startswith("super.users") else text.replace(";", "\n")


@pytest.mark.parametrize("rule", BROKER_FILES)
def test_broker_file(rule: str, tmp_path: Path) -> None:
    bad, good, version = BROKER_FILES[rule]
    found = found_by(rule, of_broker_file(tmp_path, _lines(bad), version))
    assert found
    assert all(each.subjects[0] == str(tmp_path / "server.properties") for each in found)
    assert found_by(rule, of_broker_file(tmp_path, _lines(good), version)) == []


@pytest.mark.parametrize("rule", CLIENT_FILES)
def test_client_file(rule: str, tmp_path: Path) -> None:
    bad, good, version = CLIENT_FILES[rule]
    name = "consumer.properties" if rule.startswith("consumer") else "producer.properties"
    assert found_by(rule, of_client_file(tmp_path, name, _lines(bad), version))
    assert found_by(rule, of_client_file(tmp_path, name, _lines(good), version)) == []


@pytest.mark.parametrize("rule", OTHERS)
def test_cluster(rule: str) -> None:
    bad, good = OTHERS[rule]
    assert found_by(rule, bad)
    assert found_by(rule, good) == []


def test_readable_secrets(tmp_path: Path) -> None:
    text = 'sasl.jaas.config=x required password="hunter2";\n'
    (found,) = found_by("readable-secrets", of_client_file(tmp_path, "a.properties", text, mode=0o644))
    assert found.message == "mode 0644, contains sasl.jaas.config"
    assert found_by("readable-secrets", of_client_file(tmp_path, "a.properties", text, mode=0o600)) == []
    variable = "ssl.key.password=${file:/run/secrets:key}\n"
    assert found_by("readable-secrets", of_client_file(tmp_path, "a.properties", variable, mode=0o644)) == []


@pytest.mark.parametrize(
    ("text", "version", "messages"),
    [
        ("metadata.fetch.timeout.ms=1", None, ["metadata.fetch.timeout.ms was removed in 0.11: use max.block.ms"]),
        ("metadata.fetch.timeout.ms=1", "0.10", []),
        ("auto.offset.reset=smallest", "3.9", ["auto.offset.reset=smallest was removed in 2.0: use earliest"]),
        ("auto.offset.reset=earliest\nmax.poll.records=1", "3.9", []),
        ("zookeeper.connect=z:2181", None, ["zookeeper.connect was removed in 2.0: use bootstrap.servers"]),
    ],
)
def test_outdated_settings(text: str, version: str | None, messages: list[str], tmp_path: Path) -> None:
    facts = of_client_file(tmp_path, "consumer.properties", f"{text}\n", version)
    assert [each.message for each in found_by("outdated-setting", facts)] == messages
    assert found_by("wrong-value", facts) == []
    assert bool(found_by("unknown-setting", facts)) is (version == "0.10")  # 0.10 has settings that kctl does not know


@pytest.mark.parametrize(("value", "wrong"), [("erliest", True), ("latest", False), ("by_duration:P1D", False)])
def test_auto_offset_reset(value: str, wrong: bool, tmp_path: Path) -> None:
    facts = of_client_file(tmp_path, "consumer.properties", f"auto.offset.reset={value}\n")
    assert bool(found_by("wrong-value", facts)) is wrong


def test_cleaner_buffer_too_small_to_start(tmp_path: Path) -> None:
    text = "log.cleaner.dedupe.buffer.size=2097152\nlog.cleaner.threads=2\n"
    (found,) = found_by("cleaner-buffer", of_broker_file(tmp_path, text))
    assert found.severity is Severity.ERROR
    assert found.message.endswith("log.cleaner.threads=2: the broker does not start with 1 MiB or less per thread")
    few = text.replace("2097152", "10485760")
    (found,) = found_by("cleaner-buffer", of_broker_file(tmp_path, few))
    assert (found.severity, found.message[-23:]) == (Severity.INFO, "196,608 keys per thread")
    assert found_by("cleaner-buffer", of_broker_file(tmp_path, f"{text}log.cleaner.enable=false\n")) == []


def test_no_advice_for_releases_before_1_0_by_default(tmp_path: Path) -> None:
    text = "message.max.bytes=2000000\nlog.dirs=/data\n"
    assert found_by("replica-fetch-size-hard", of_broker_file(tmp_path, text)) == []
    (found,) = found_by("replica-fetch-size", of_broker_file(tmp_path, text))
    assert (found.severity, found.version_known) == (Severity.INFO, False)


def test_duplicate_broker_ids(tmp_path: Path) -> None:
    one = of_broker_file(tmp_path, "broker.id=1\n", name="one.properties")
    two = of_broker_file(tmp_path, "broker.id=1\n", name="two.properties")
    three = of_broker_file(tmp_path, "node.id=3\n", name="three.properties")

    def both(*facts: RuleFacts) -> RuleFacts:
        return RuleFacts(broker_files=[settings for each in facts for settings in each.broker_files or ()])

    (found,) = found_by("same-broker-ids", both(one, two, three))
    assert found.subjects == (str(tmp_path / "one.properties"), str(tmp_path / "two.properties"))
    assert found_by("same-broker-ids", both(one, three)) == []


def test_shared_log_dirs(tmp_path: Path) -> None:
    text = "log.dirs=/data\nlisteners=PLAINTEXT://:{}\n"
    one = of_broker_file(tmp_path, text.format(9092), name="one.properties").broker_files
    two = of_broker_file(tmp_path, text.format(9093), name="two.properties").broker_files
    elsewhere = of_broker_file(tmp_path, text.format(9092), name="three.properties").broker_files
    (found,) = found_by("shared-log-dirs", RuleFacts(broker_files=[*(one or ()), *(two or ())]))
    assert found.message == "both use /data in log.dirs"
    assert found_by("shared-log-dirs", RuleFacts(broker_files=[*(one or ()), *(elsewhere or ())])) == []


@pytest.mark.parametrize(
    ("text", "version", "rules"),
    [
        ("acks=1", "3.9", {"producer-acks-leader", "producer-order", "producer-duplicates"}),
        ("transactional.id=t", "2.8", set()),  # implies acks=all and idempotence
        ("enable.idempotence=true", "2.8", set()),
        ("transactional.id=t\nacks=1", "3.9", {"producer-acks-leader", "producer-refuses-settings"}),
        ("transactional.id=t\nenable.idempotence=false", "3.9", {"producer-refuses-settings"}),
        ("max.in.flight.requests.per.connection=6", "3.9", {"producer-order", "producer-duplicates"}),
        ("enable.idempotence=false\nmax.in.flight.requests.per.connection=1", "3.9", {"producer-duplicates"}),
    ],
)
def test_idempotence(text: str, version: str, rules: set[str], tmp_path: Path) -> None:
    facts = of_client_file(tmp_path, "producer.properties", f"bootstrap.servers=localhost:9092\n{text}\n", version)
    of_producers = [rule.id for rule in SUBJECTS["producers"]]
    assert {rule for rule in of_producers if found_by(rule, facts)} == rules


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("delivery.timeout.ms=30005\nlinger.ms=5", False),
        ("delivery.timeout.ms=30004\nlinger.ms=5", True),
        ("delivery.timeout.ms=2147483647\nrequest.timeout.ms=2147483647\nlinger.ms=5", False),  # the sum is capped
    ],
)
def test_delivery_timeouts(text: str, refused: bool, tmp_path: Path) -> None:
    facts = of_client_file(tmp_path, "producer.properties", f"{text}\n", "3.9")
    assert bool(found_by("producer-delivery-timeout", facts)) is refused


@pytest.mark.parametrize(
    ("text", "version", "rules"),
    [
        ("", "2.0", {"producer-acks-leader", "producer-no-retries"}),  # without retries, the order is kept
        ("", "2.1", {"producer-acks-leader", "producer-order", "producer-duplicates"}),
        ("retries=3", "2.0", {"producer-acks-leader", "producer-order", "producer-duplicates"}),
        ("enable.idempotence=true", "2.0", set()),  # idempotence implied unlimited retries
        ("", "3.0.0", {"producer-order", "producer-duplicates"}),  # KAFKA-13598
        ("", "3.0.1", set()),
    ],
)
def test_producer_defaults(text: str, version: str, rules: set[str], tmp_path: Path) -> None:
    facts = of_client_file(tmp_path, "producer.properties", f"bootstrap.servers=localhost:9092\n{text}\n", version)
    assert {rule.id for rule in SUBJECTS["producers"] if found_by(rule.id, facts)} == rules


def test_host_names_were_not_checked_by_default_before_2_0(tmp_path: Path) -> None:
    def messages(version: str) -> list[str]:
        facts = of_client_file(tmp_path, "producer.properties", "security.protocol=SSL\nacks=all\n", version)
        return [each.message for each in found_by("client-host-names", facts)]

    assert messages("1.1") == ["ssl.endpoint.identification.algorithm is not set"]
    assert messages("2.0") == []


def test_consumer_request_timeout_before_2_0(tmp_path: Path) -> None:
    def found(version: str) -> bool:
        facts = of_client_file(tmp_path, "consumer.properties", "fetch.max.wait.ms=60000\n", version)
        return bool(found_by("consumer-fetch-wait", facts))

    assert [found("1.1"), found("2.0")] == [False, True]


def test_future_timestamps_are_rejected_by_default_since_4_0(tmp_path: Path) -> None:
    def found(version: str) -> bool:
        return bool(found_by("future-timestamps", of_broker_file(tmp_path, "node.id=1\n", version)))

    assert [found("3.9"), found("4.0")] == [True, False]


def test_fix_raises_replicas_before_min_isr() -> None:
    rule = BY_ID["default-min-isr"]
    assert rule.fix.index("--replication-factor 3") < rule.fix.index("kctl config set brokers")
    assert "Before 3.7" in rule.why


def test_fixes_limit_reassignments_to_a_topic() -> None:
    """Without --topic, a plan covers all topics, even those with more replicas."""
    commands = [
        command
        for rule in RULES
        for command in re.findall(r"`(kctl topic reassign plan --replication-factor[^`]*)`", f"{rule.fix} {rule.why}")
    ]
    assert len(commands) > 5
    assert [each for each in commands if "--topic " not in each] == []


@pytest.mark.parametrize("rule", ["default-replicas", "internal-topics-settings"])
def test_fix_does_not_exceed_the_number_of_brokers(rule: str) -> None:
    """With two brokers, three replicas would prevent the creation of topics."""
    two = of_brokers(broker(default_replication_factor="1", offsets_topic_replication_factor="1"), broker_count=2)
    (found,) = found_by(rule, two)
    assert "or the number of brokers if there are fewer than 3" in found.fix


@pytest.mark.parametrize("rule", ["default-min-isr-blocks", "topic-min-isr-blocks", "internal-topic-min-isr"])
def test_fix_does_not_recommend_1_of_2(rule: str) -> None:
    """With 1 of 2, writes continue but are lost with the leader."""
    assert "Do not use 1 of 2" in BY_ID[rule].fix or "first run `kctl topic reassign plan" in BY_ID[rule].fix


def test_min_isr_above_the_replicas_counts_as_all() -> None:
    facts = of_topics(state([partition("12", "12")]), {"t": {"min.insync.replicas": "5"}})
    (found,) = found_by("topic-min-isr-blocks", facts)
    assert found.message == "2 replicas, min.insync.replicas=5"
    assert found_by("topic-min-isr-blocks", of_topics(_ONE)) == []


def test_config_provider_values_are_not_checked(tmp_path: Path) -> None:
    text = "default.replication.factor=3\nmin.insync.replicas=${env:MIN}\nmessage.max.bytes=${env:SIZE}\n"
    facts = of_broker_file(tmp_path, text)
    assert found_by("default-min-isr", facts) == found_by("wrong-value", facts) == []
    (file,) = facts.files or ()
    assert file.variable_keys == ("min.insync.replicas", "message.max.bytes")


_KRAFT = """\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
controller.quorum.voters=1@k:9093
listeners=PLAINTEXT://k:9092,CONTROLLER://k:9093
"""
_ACL = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"


_NO_ROLES = "process.roles is not set; since 4.0 the broker does not start without it"
_NO_ACL = f"{_ACL} requires ZooKeeper; with KRaft, use StandardAuthorizer"
_NO_MIGRATION = "process.roles and zookeeper.connect without zookeeper.metadata.migration.enable=true"


@pytest.mark.parametrize(
    ("text", "version", "messages"),
    [
        ("zookeeper.connect=zk:2181", "3.9", []),
        ("zookeeper.connect=zk:2181", "4.0", [_NO_ROLES]),
        (_ACL, "4.0", [_NO_ROLES, _NO_ACL]),
        (f"{_KRAFT}authorizer.class.name=com.example.AclAuthorizer", "3.9", []),
        (_KRAFT, "4.0", []),
        (f"{_KRAFT}{_ACL}", "4.0", [_NO_ACL]),
        (f"{_KRAFT}zookeeper.connect=zk:2181", "4.0", []),  # unknown setting, ignored
        (f"{_KRAFT}zookeeper.connect=zk:2181", "3.9", [_NO_MIGRATION]),
    ],
)
def test_role_contradictions(text: str, version: str, messages: list[str], tmp_path: Path) -> None:
    facts = of_broker_file(tmp_path, f"{text}\n", version)
    assert [each.message for each in found_by("role-contradictions", facts)] == messages


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),  # KRaft defaults to PLAINTEXT
        ("listener.security.protocol.map=PLAINTEXT:PLAINTEXT", ["CONTROLLER"]),
        ("listener.security.protocol.map=${env:MAP}", []),
        ("advertised.listeners=SSL://k:9094", ["SSL"]),
    ],
)
def test_controller_listener_without_a_protocol(text: str, names: list[str], tmp_path: Path) -> None:
    facts = of_broker_file(tmp_path, f"{_KRAFT}{text}\n", "3.9")
    found = [each.message for each in found_by("listener-contradictions", facts)]
    assert len(found) == len(names)
    assert all(name in message for name, message in zip(names, found, strict=True))


def test_controller_listener_beside_an_ssl_listener(tmp_path: Path) -> None:
    text = _KRAFT.replace("PLAINTEXT://k:9092", "SSL://k:9092")
    found = [each.message for each in found_by("listener-contradictions", of_broker_file(tmp_path, text, "3.9"))]
    assert found[0] == "listeners: listener.security.protocol.map has no protocol for CONTROLLER"
    assert "brokers connect to each other with PLAINTEXT" in found[1]


BROKER_VARIABLES = [
    ("role-contradictions", "zookeeper.connect=${env:A}"),
    ("role-contradictions", "process.roles=${env:A}"),
    ("role-contradictions", _KRAFT.replace("1@k:9093", "${env:A}")),
    ("role-contradictions", _KRAFT.replace("=CONTROLLER", "=${env:A}")),
    ("role-contradictions", _KRAFT.replace("PLAINTEXT://k:9092,CONTROLLER://k:9093", "${env:A}")),
    ("role-contradictions", "zookeeper.connect=zk:2181\nnode.id=${env:A}\nbroker.id=1"),
    ("listener-contradictions", "listeners=${env:A}\nadvertised.listeners=PLAINTEXT://k:9092"),
    ("listener-contradictions", "listeners=${env:A}\ninter.broker.listener.name=B"),
    ("listener-contradictions", "listeners=PLAINTEXT://0.0.0.0:9092\nadvertised.listeners=${env:A}"),
    ("temporary-log-dirs", "log.dirs=${env:A}"),
    ("no-authorizer", "authorizer.class.name=${env:A}"),
]
CLIENT_VARIABLES = [
    ("client-plaintext", "bootstrap.servers=k:9092\nsecurity.protocol=${env:A}"),
    ("producer-order", "acks=${env:A}"),
    ("producer-duplicates", "enable.idempotence=${env:A}"),
    ("producer-refuses-settings", "enable.idempotence=true\nacks=${env:A}"),
    ("consumer-commit-no-group", "enable.auto.commit=true\ngroup.id=${env:A}"),
]


@pytest.mark.parametrize(
    ("connect", "wrong"),
    [
        ("zk1:2181", False), ("zk1,zk2,zk3", False), ("zk1:2181,zk2:2181/a/b", False), ("zk1:2181, zk2:2181/k", False),
        ("zk1:2181,zk2:2181,", False), ("zk1:2181/", False), ("[::1]:2181/k", False),
        ("zk1:2181/k,zk2:2181/k", True), ("zk1/k,zk2", True), ("zk1:2181;zk2:2181", True), ("zk1:2181 zk2:2181", True),
        ("zk1:2181/k/", True), ("zk1:2181//k", True), ("zk1:2181/a//b", True), ("zk://zk1:2181/k", True),
        ("zk1:port", True),
    ],
)  # fmt: skip
def test_zookeeper_connect(connect: str, wrong: bool, tmp_path: Path) -> None:
    found = found_by("zookeeper-connect", of_broker_file(tmp_path, f"zookeeper.connect={connect}\n", "3.9"))
    assert bool(found) == wrong


@pytest.mark.parametrize(("rule", "text"), BROKER_VARIABLES)
def test_broker_variables_are_not_reported(rule: str, text: str, tmp_path: Path) -> None:
    assert found_by(rule, of_broker_file(tmp_path, f"{text}\n", "3.9")) == []


@pytest.mark.parametrize(("rule", "text"), CLIENT_VARIABLES)
def test_client_variables_are_not_reported(rule: str, text: str, tmp_path: Path) -> None:
    name = "consumer.properties" if rule.startswith("consumer") else "producer.properties"
    assert found_by(rule, of_client_file(tmp_path, name, f"{text}\n", "3.9")) == []


def test_variable_listeners_may_be_on_two_machines(tmp_path: Path) -> None:
    text = "log.dirs=/data\nlisteners=${env:A}\n"
    one = of_broker_file(tmp_path, text, name="one.properties").broker_files
    two = of_broker_file(tmp_path, text, name="two.properties").broker_files
    assert found_by("shared-log-dirs", RuleFacts(broker_files=[*(one or ()), *(two or ())])) == []


# --- the rule table -----------------------------------------------------------------------------------------------


def test_rule_ids() -> None:
    assert len(BY_ID) == len(RULES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id) for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_texts(rule: Any) -> None:
    fields = RuleFacts.__dataclass_fields__
    assert rule.needs
    assert set(rule.needs) <= set(fields)
    assert rule.title[0].isupper() or rule.title.startswith(
        ("acks", "delivery.", "max.", "min.", "transaction.", "zookeeper.")
    )
    assert not rule.title.endswith(".")
    assert rule.why.endswith((".", ")"))
    assert len(rule.source) > 5
    assert len(rule.fix) > 5


def test_commands_in_texts_exist() -> None:
    paths = {path for path, _ in every_command()}
    commands = [
        command
        for rule in RULES
        for command in re.findall(r"kctl ([a-z-]+(?: [a-z-]+)*)", f"{rule.fix} {rule.why} {rule.source}")
    ]
    assert len(commands) > 20
    assert [each for each in commands if not any(each == path or each.startswith(f"{path} ") for path in paths)] == []


def test_versions() -> None:
    since, before = BY_ID["topic-min-isr-over"].versions, BY_ID["topic-min-isr-refuses"].versions
    for text, new, old in (
        ("3.9", True, False),
        ("3.6", False, True),
        ("3.5 to 3.8", True, True),
        ("4.3+", True, False),
    ):
        release = parse_releases(text)
        assert release is not None
        assert (since.applies_to(release), before.applies_to(release)) == (new, old), text
    assert (str(since), str(before)) == ("since 3.7", "before 3.7")
    assert parse_releases("new") is None
    assert str(parse_releases("3.9-IV0")) == "3.9"


def test_subjects_cover_all_rules() -> None:
    assert sum(len(rules) for rules in SUBJECTS.values()) == len(RULES)
    assert {rule.severity for rule in RULES} == set(Severity)


def test_single_broker_is_only_info() -> None:
    (found,) = found_by("topic-one-replica", of_topics(state([partition("1", "1")], alive="1")))
    assert found.severity is Severity.INFO


def test_down_brokers_count_toward_the_recommended_replicas() -> None:
    one_up = replace(of_topics(state([partition("1", "1")], alive="1")), broker_count=3)
    (found,) = found_by("topic-one-replica", one_up)
    assert found.severity is Severity.WARNING
    for alive, replicas, message in (("1", "1", "1 of 3 replicas"), ("12", "12", "2 of 3 replicas")):
        cluster = state([partition(replicas, replicas, topic="__consumer_offsets")], alive=alive)
        (found,) = found_by("internal-topic-replicas", replace(of_topics(cluster), broker_count=3))
        assert found.message == message


_DOWN = NotAuthorized("broker 3 is down")
_OFFLINE = LogDir("/data/2", None, None, [], "an I/O error")


@pytest.mark.parametrize(
    ("third", "headroom", "large"),
    [
        ([log_dir(1, 100)], RuleStatus.OK, RuleStatus.OK),
        (_DOWN, RuleStatus.UNKNOWN, RuleStatus.UNKNOWN),
        ([log_dir(1, 100), _OFFLINE], RuleStatus.UNKNOWN, RuleStatus.UNKNOWN),
        ([log_dir(1, None)], RuleStatus.UNKNOWN, RuleStatus.OK),
    ],
)
def test_unreadable_log_dirs(third: Any, headroom: RuleStatus, large: RuleStatus) -> None:
    facts = RuleFacts(log_dirs={1: [log_dir(100, 200)], 2: [log_dir(10, 100)], 3: third})
    rules = [BY_ID["disk-headroom"], BY_ID["large-partitions"]]
    found = examine(rules, facts)
    assert [each.outcome for each in found.rules] == [headroom, large]
    assert found.findings == ()


def test_loopback_through_loopback_is_only_info() -> None:
    (found,) = found_by("advertised-listeners", RuleFacts(state=_local(), bootstrap_host="127.0.0.1"))
    assert found.severity is Severity.INFO


def test_hidden_topics_make_the_outcome_unknown() -> None:
    hidden = NotAuthorized("3 topics may not be described")
    facts = of_topics(_T, {"(hidden)": hidden})
    (outcome,) = examine([BY_ID["topic-one-replica"]], facts).rules
    assert (outcome.outcome, outcome.reasons) == (RuleStatus.UNKNOWN, (hidden.message,))
    (outcome,) = examine([BY_ID["offline-partitions"]], of_health(hidden=("secret",))).rules
    assert outcome.outcome is RuleStatus.UNKNOWN
    (outcome,) = examine([BY_ID["group-abandoned"]], RuleFacts(groups=hidden)).rules
    assert outcome.outcome is RuleStatus.UNKNOWN
    (outcome,) = examine([BY_ID["zookeeper-open"]], RuleFacts()).rules
    assert outcome.outcome is RuleStatus.SKIPPED


@pytest.mark.parametrize("problem", ["refused the connection", "ZooKeeper zk2:2181 refused the connection"])
def test_finding_names_the_unhealthy_server(problem: str) -> None:
    facts = of_zookeeper(("leader", None, "follower"))
    assert isinstance(facts.zookeeper, ZooKeeperFacts)
    servers = [replace(each, problem=problem) if each.problem else each for each in facts.zookeeper.servers]
    others = [replace(servers[1], server="zk2:21811"), *servers]
    (_, found) = found_by("zookeeper-servers", replace(facts, zookeeper=replace(facts.zookeeper, servers=others)))
    assert found.subjects == ("zk2:2181",)
