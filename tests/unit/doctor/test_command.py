"""The command kctl doctor: files, rules, exit codes, and secrets that it must not print."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from doctor_testing import of_health, of_topics
from health_testing import partition, state
from kctl.base.strict_yaml import load
from kctl.commands import app
from kctl.commands.terminal.invocation import Invocation
from kctl.doctor import input as doctor_input
from kctl.doctor.rule_facts import RuleFacts
from kctl.doctor.rule_table import RULES, SUBJECTS
from kctl.errors import NotAuthorized
from kctl.playbook.shipped import shipped, text_of

pytestmark = pytest.mark.usefixtures("one_command_tree")

# Realistic broker and client files with typical mistakes.
SERVER = """\
# from a wiki
broker.id=1
listeners=INTERNAL://0.0.0.0:9092,EXTERNAL://0.0.0.0:9093
advertised.listeners=INTERNAL://kafka1.internal:9092,EXTERNAL://kafka1.example.com:9093
listener.security.protocol.map=INTERNAL:SASL_SSL,EXTERNAL:SASL_SSL
inter.broker.listener.name=INTERNAL
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.external.ssl.keystore.password=hunter2
log.dirs=/data/1,/data/2
zookeeper.connect=zk1:2181,zk2:2181,zk3:2181/kafka
zookeeper.set.acl=true
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:admin
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
num.recovery.threads.per.data.dirs=4
log.retention.hours=forever
"""
GOOD_PRODUCER = "bootstrap.servers=k1:9093,k2:9093\nsecurity.protocol=SSL\nacks=all\n"
BAD_CONSUMER = """\
bootstrap.servers=k1:9093,k2:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="hunter2";
group.id=billing
session.timeout.ms=10000
heartbeat.interval.ms=9000
enable.auto.comit=false
"""


def _file(folder: Path, name: str, text: str, mode: int = 0o600) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_broker_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "server.properties", SERVER)
    assert app.main(["doctor", "--config-file", file, "--kafka-version", "3.9", "-o", "json"]) == 1
    done = capsys.readouterr()
    found = json.loads(done.out)
    assert {each["rule"]: each["message"] for each in found["findings"]} == {
        "wrong-value": "log.retention.hours: 'forever' is not a whole number",
        "unknown-setting": "num.recovery.threads.per.data.dirs: did you mean num.recovery.threads.per.data.dir?",
        "zookeeper-ends": "metadata is stored in ZooKeeper",
        "future-timestamps": "log.message.timestamp.after.max.ms=unlimited",
        "gone-in-4": "zookeeper.connect, zookeeper.set.acl",
    }
    assert json.loads(done.err)["rules_found"] == ["wrong-value"]
    assert (found["error_count"], found["warning_count"], found["info_count"]) == (1, 1, 3)


def test_json_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.main(["doctor", "--config-file", _file(tmp_path, "server.properties", SERVER), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "cluster_id", "broker_count", "brokers_down", "topic_count", "group_count", "releases", "files", "error_count",
        "warning_count", "info_count", "findings", "rules", "unknown", "notes",
    ]  # fmt: skip
    assert list(found["findings"][0]) == [
        "rule", "severity", "title", "message", "subjects", "why", "fix", "source", "versions", "version_known",
    ]  # fmt: skip
    assert list(found["rules"][0]) == ["rule", "outcome", "reasons"]
    assert len(found["rules"]) == len(RULES)
    (note,) = found["notes"]
    assert note == (f"{tmp_path}/server.properties: assuming Kafka 1.0+; set the release with --kafka-version")
    by_rule = {each["rule"]: each for each in found["findings"]}
    assert by_rule["wrong-value"]["version_known"]  # it applies to all releases
    assert not by_rule["zookeeper-ends"]["version_known"]


def test_client_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    producer = _file(tmp_path, "app.properties", GOOD_PRODUCER)
    assert app.main(["doctor", "--client-config", producer, "--kafka-version", "3.9", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    consumer = _file(tmp_path, "other.properties", BAD_CONSUMER, 0o644)
    assert app.main(["doctor", "--client-config", consumer, "--kafka-version", "3.9", "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    rules = [each["rule"] for each in found["findings"]]
    assert rules[0] == "readable-secrets"
    assert {"consumer-heartbeat", "consumer-session-short", "consumer-auto-commit", "unknown-setting"} <= set(rules)
    assert not [rule for rule in rules if rule.startswith("producer")]


def test_client_file_with_librdkafka_names_and_config_providers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "config.providers=env\nconfig.providers.env.class=x.EnvVarConfigProvider\nssl.ca.location=/ca.pem\n"
    app.main(["doctor", "--client-config", _file(tmp_path, "app.properties", text), "-o", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    unknown = [each["message"] for each in found if each["rule"] == "unknown-setting"]
    assert unknown == ["ssl.ca.location: did you mean ssl.truststore.location?"]


@pytest.mark.parametrize("how", ["table", "wide", "json", "yaml", "csv"])
def test_secrets_are_never_printed(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broker = _file(tmp_path, "server.properties", f"{SERVER}ssl.key.pasword=hunter2\n")
    client = _file(tmp_path, "client.properties", f"{BAD_CONSUMER}ssl.keystore.passwort=hunter2\n", 0o644)
    app.main(["doctor", "--config-file", broker, "--client-config", client, "--debug", "-o", how])
    done = capsys.readouterr()
    assert "hunter2" not in done.out + done.err
    assert "sasl.jaas.config" in done.out


_PEM = """\
broker.id=1
ssl.keystore.type=PEM
ssl.keystore.key=-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu
agWvLD==
-----END PRIVATE KEY-----
ssl.keystore.password:
  hunter
not.known=
BROKER.ID=1
"""


@pytest.mark.parametrize("how", ["wide", "json"])
def test_lines_of_a_secret_are_not_printed(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key whose lines lack the trailing backslash: Java reads each line as a name."""
    file = _file(tmp_path, "server.properties", _PEM)
    app.main(["doctor", "--config-file", file, "--rule", "unknown-setting", "-o", how])
    done = capsys.readouterr()
    assert not [part for part in ("MIIE", "MzEf", "agWv", "hunter", "END") if part in done.out + done.err]
    assert "5 lines without a setting name" in done.out
    assert "not.known" in done.out
    assert "BROKER.ID" in done.out


def test_client_file_of_unknown_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "client.properties", "bootstrap.servers=localhost:9092\n")
    assert app.main(["doctor", "--client-config", file]) == 0
    assert "has no producer or consumer settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--fail-on", "never"], 0),
        (["--fail-on", "warning"], 1),
        (["--ignore", "wrong-value"], 0),
        (["--ignore", "wrong-value", "--fail-on", "warning"], 1),
        (["--ignore", "wrong-value", "--ignore", "unknown-setting", "--fail-on", "warning"], 0),
        (["--ignore", "wrong-value", "--ignore", "unknown-setting", "--fail-on", "info"], 1),
        (["--rule", "zookeeper-ends"], 0),
        (["--rule", "zookeeper-ends", "--fail-on", "info"], 1),
        (["--rule", "zookeeper-end"], 2),
        (["--ignore", "nothing"], 2),
        (["--watch-for", "5s"], 2),
        (["--about", "topics"], 2),
        (["--rule", "consumer-heartbeat"], 2),
        (["--kafka-version", "new"], 2),
    ],
)
def test_exit_codes(options: list[str], code: int, tmp_path: Path) -> None:
    file = _file(tmp_path, "server.properties", SERVER)
    assert app.main(["doctor", "--config-file", file, *options]) == code


def test_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["doctor", "--config-file", str(tmp_path / "none")]) == 2
    assert app.main(["doctor", "--config-file", _file(tmp_path, "a", "broker.id=1\nbroker.id=2\n")]) == 2
    assert app.main(["doctor", "--kafka-version", "3.9"]) == 2
    assert "line 2: broker.id is set twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xef\xbb\xbfbroker.id=1\n", "begins with a byte order mark"),
        ("broker.id=1\n".encode("utf-16"), "it has NUL bytes"),
        (b"broker.id=1\0\n", "it has NUL bytes"),
    ],
)
def test_unsupported_encodings(data: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(data)
    assert app.main(["doctor", "--config-file", str(file)]) == 2
    assert why in capsys.readouterr().err


def test_latin_1_file(tmp_path: Path) -> None:
    """Java reads ISO 8859-1: an umlaut in an old comment."""
    file = tmp_path / "server.properties"
    file.write_bytes(b"# gr\xfc\xdfe\nbroker.id=1\nlog.dirs=/d\nzookeeper.connect=z:1\n")
    assert app.main(["doctor", "--config-file", str(file)]) == 0


def test_file_rules_need_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """No cluster is contacted, and the result is not success."""
    assert app.main(["doctor", "--about", "producers", "--bootstrap-server", "127.0.0.1:1"]) == 2
    assert "these rules check files" in capsys.readouterr().err


def test_csv_without_findings_has_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    producer = _file(tmp_path, "producer.properties", GOOD_PRODUCER)
    assert app.main(["doctor", "--client-config", producer, "-o", "csv"]) == 0
    header = "rule,severity,title,message,subjects,why,fix,source,versions,version_known\n"
    assert capsys.readouterr().out == header


def test_file_from_stdin(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = _file(tmp_path, "stdin", f"{GOOD_PRODUCER}acks.=1\nssl.key.password=hunter2\n", 0o644)
    with Path(text).open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        code = app.main(
            ["doctor", "--client-config", "-", "--kafka-version", "3.9", "--fail-on", "never", "-o", "json"]
        )
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["files"], [each["rule"] for each in found["findings"]]) == (["stdin"], ["unknown-setting"])
    assert found["findings"][0]["subjects"] == ["stdin"]
    assert app.main(["doctor", "--config-file", "-", "--client-config", "-"]) == 2
    assert "only once" in capsys.readouterr().err


def test_zookeeper_file_for_kafka_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "server.properties", SERVER.replace("forever", "24"))
    assert app.main(["doctor", "--config-file", file, "--kafka-version", "3.9"]) == 0
    assert app.main(["doctor", "--config-file", file, "--kafka-version", "4.0"]) == 1
    assert "since 4.0 the broker does not start without it" in capsys.readouterr().out


def test_defaults_depend_on_the_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "producer.properties", "bootstrap.servers=localhost:9092\n")

    def rules(version: str) -> set[str]:
        app.main(["doctor", "--client-config", file, "--kafka-version", version, "--fail-on", "never", "-o", "json"])
        return {each["rule"] for each in json.loads(capsys.readouterr().out)["findings"]}

    assert rules("2.8") == {"producer-acks-leader", "producer-order", "producer-duplicates"}
    assert rules("3.9") == set()


def test_rules_option_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["doctor", "--rules", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["rule"] for row in rows] == [rule.id for rule in RULES]
    assert list(rows[0]) == ["rule", "subject", "severity", "title", "versions", "why", "fix", "source"]
    assert app.main(["doctor", "--rules", "--rule", "unclean-election"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fake facts. tests/integration/doctor/test_doctor.py covers real brokers."""
    box = SimpleNamespace(facts=RuleFacts())

    @contextmanager
    def connect(_self: Invocation, **_kwargs: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(Invocation, "connect", connect)
    monkeypatch.setattr(Invocation, "target", lambda _self: None)
    monkeypatch.setattr(doctor_input, "collect", lambda *_args, **_kwargs: (box.facts, ["ZooKeeper was not checked"]))
    return box


def test_unreadable_facts_exit_5(seen: Any, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = NotAuthorized("configs of topic t: not authorized")
    seen.facts = of_topics(state([partition("123", "123")]), {"t": hidden})
    assert app.main(["doctor", "--fail-on", "never"]) == 5
    done = capsys.readouterr()
    assert hidden.message in done.err
    assert "ZooKeeper was not checked" in done.err
    assert "no findings" in done.err


def test_an_error_takes_precedence_over_unknown_facts(seen: Any, capsys: pytest.CaptureFixture[str]) -> None:
    seen.facts = of_health(state([partition("12", "2", leader=-1)]), hidden=("secret",))
    assert app.main(["doctor"]) == 1
    assert "the result is incomplete: 1 topic" in capsys.readouterr().err


def test_healthy_cluster(seen: Any) -> None:
    seen.facts = of_health()
    assert app.main(["doctor", "--fail-on", "info"]) == 0


def test_unreadable_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    cases = {
        "fifo": (1, ""),  # empty: kctl does not wait for a writer
        ".": (2, "Is a directory"),
        "nothing": (2, "No such file or directory"),
        "large": (2, "has more than 1,048,576 bytes"),
    }
    (tmp_path / "large").write_bytes(b"a" * (1 << 21))
    for name, (code, message) in cases.items():
        assert app.main(["doctor", "--config-file", str(tmp_path / name)]) == code, name
        assert message in capsys.readouterr().err


def test_rules_by_subject(capsys: pytest.CaptureFixture[str]) -> None:
    def ids(*words: str) -> list[str]:
        assert app.main(["doctor", "--rules", "-o", "json", *words]) == 0
        return [each["rule"] for each in json.loads(capsys.readouterr().out)]

    topics = [rule.id for rule in SUBJECTS["topics"]]
    assert ids("--about", "topics") == topics
    assert ids("--about", "topics", "--rule", "brokers", "--ignore", topics[0]) == ["brokers", *topics[1:]]
    assert app.main(["doctor", "--about", "topic"]) == 2
    assert "did you mean topics?" in capsys.readouterr().err


def test_rules_in_shipped_playbooks_exist() -> None:
    """No lint detects a removed rule id, because playbook arguments are plain strings."""
    assert list(_rules_in({"steps": [{"doctor": {"rule": ["brokers"], "ignore": "{{ x }}"}}]})) == ["brokers"]
    for playbook in shipped():
        ids = list(_rules_in(load(text_of(playbook), source=playbook.file)))
        assert [each for each in ids if each not in {rule.id for rule in RULES}] == [], playbook.file


def _rules_in(value: Any) -> Iterator[str]:
    """Yield the rule ids passed to doctor anywhere in a playbook, except expressions."""
    if isinstance(value, dict):
        arguments = value.get("doctor")
        for key in ("rule", "ignore"):
            names = arguments.get(key) if isinstance(arguments, dict) else None
            yield from names if isinstance(names, list) else []
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _rules_in(each)
