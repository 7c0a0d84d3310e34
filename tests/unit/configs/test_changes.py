"""Configs without a broker: what may be set, what a change comes to, what differs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster, topic_of
from kctl.access.quotas import DEFAULT, QuotaEntity
from kctl.base.config_values import fault_of, items, number_for, same
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource, parse_resource
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource, fetch_topic_configs
from kctl.commands.app import main
from kctl.configs.cautions import caution_of, eligible_caution
from kctl.configs.change import ChangedConfig, Edit, apply_changes, check, plan_changes
from kctl.configs.describe import describe
from kctl.configs.diff import differences, not_compared
from kctl.configs.edits import parse_edits, read_values, removals, with_files
from kctl.configs.explain import explain, explanations
from kctl.configs.html import plain
from kctl.configs.keys import find_key
from kctl.configs.model import Config, Synonym
from kctl.configs.other_units import in_ms
from kctl.configs.quota_configs import pairs_with, quota_configs
from kctl.errors import (
    ConnectionFailed,
    InvalidFile,
    KctlError,
    NotAuthorized,
    NotFound,
    OperationFailed,
    OutcomeUnknown,
    Refused,
    UsageError,
)
from kctl.model import PartitionState, TopicState
from kctl.protocol.codes import ApiKey


def config(
    name: str,
    value: str | None = None,
    type_: str = "string",
    *,
    source: ConfigSource | None = ConfigSource.DEFAULT,
    sensitive: bool = False,
    read_only: bool = False,
    synonyms: tuple[Synonym, ...] = (),
) -> Config:
    return Config(name, value, source, value, type_, sensitive, read_only, synonyms)


KNOWN = {
    c.name: c
    for c in (
        config("retention.ms", "604800000", "long"),
        config("cleanup.policy", "delete", "list"),
        config("ssl.keystore.password", None, "password", sensitive=True),
        config("sasl.jaas.config", None, "password", sensitive=True),
        config("log.dirs", "/data", "string", read_only=True),
        config("ssl.keystore.location", None, "string", read_only=True),
        config("log.retention.ms", None, "long"),
    )
}
TOPIC = Resource.topic("t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topic/orders", ("topic", "orders")),
        ("broker/1", ("broker", "1")),
        ("broker/007", ("broker", "7")),
        ("brokers", ("brokers", "")),
        ("group/a/b", ("group", "a/b")),
        ("client-metrics/x", ("client-metrics", "x")),
        ("user/CN=a,O=b/c", ("user", "CN=a,O=b/c")),
        ("users", ("users", "")),
        ("client-id/etl", ("client-id", "etl")),
        ("ip/1.2.3.4", ("ip", "1.2.3.4")),
    ],
)
def test_resources(text: str, expected: tuple[str, str]) -> None:
    assert tuple(parse_resource(text)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a resource with configs"),
        ("topic", "not a resource with configs"),
        ("topic/", "not a resource with configs"),
        ("topic/a b", "only ASCII letters"),
        ("broker/x", "a broker id is a number"),
        ("broker/-1", "a broker id is a number"),
        ("broker/²", "a broker id is a number"),
        ("broker/99999999999", "a broker id is a number"),
        ("brokers/1", "not a resource with configs"),
        ("user/", "not a resource with configs"),
        ("users/alice", "not a resource with configs"),
        ("queue/x", "not a resource with configs"),
    ],
)
def test_what_is_no_resource(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_resource(text)


@pytest.mark.parametrize(
    ("on_broker", "expected"),
    [
        ({"log.retention.hours": "168"}, ("log.retention.hours", "604800000")),
        ({"log.retention.hours": "168", "log.retention.minutes": "5"}, ("log.retention.minutes", "300000")),
        ({"log.retention.hours": "168", "log.retention.ms": "7"}, ("log.retention.ms", "7")),
        ({"log.retention.hours": "-1"}, ("log.retention.hours", "-1")),
        ({}, None),
    ],
)
def test_what_brokers_have_in_hours(on_broker: dict[str, str], expected: tuple[str, str] | None) -> None:
    known = {
        "log.retention.ms": config("log.retention.ms", None, "long"),
        "log.roll.hours": config("log.roll.hours", "1"),
    }
    known |= {name: config(name, value, "long") for name, value in on_broker.items()}
    found = in_ms(known, ["retention.ms"])
    assert {name: (s.name, s.value) for name, s in found.items()} == ({"retention.ms": expected} if expected else {})
    assert in_ms(known, ["segment.ms"])["segment.ms"].value == "3600000"


def test_quotas_are_configs_of_users_client_ids_and_addresses() -> None:
    """What holds first is its own value, then that of all without one, then no limit; pairs are others' own."""
    alice = Resource("user", "alice")
    there = {
        QuotaEntity(user="alice"): {"producer_byte_rate": 1000.0, "request_percentage": 12.5},
        QuotaEntity(user=DEFAULT): {"producer_byte_rate": 500.0, "consumer_byte_rate": 1e15},
        QuotaEntity(user="alice", client_id="etl"): {"producer_byte_rate": 1.0},
        QuotaEntity(client_id="alice"): {"producer_byte_rate": 2.0},
    }
    found = {c.name: (c.value, c.source and c.source.value, len(c.synonyms)) for c in quota_configs(alice, there)}
    assert found == {
        "consumer_byte_rate": ("1000000000000000", "default user", 2),
        "controller_mutation_rate": ("2147483647", "default", 1),
        "producer_byte_rate": ("1000", "user", 3),
        "request_percentage": ("12.5", "user", 2),
    }
    assert pairs_with(alice, there) == [QuotaEntity(user="alice", client_id="etl")]
    assert pairs_with(Resource("client-id", "alice"), there) == []
    assert [c.name for c in quota_configs(Resource("ips", ""), there)] == ["connection_creation_rate"]


@pytest.mark.parametrize(
    ("type_", "one", "other", "same_"),
    [
        ("double", "12.50", "12.5", True),
        ("double", "1e6", "1000000", True),
        ("long", "+5", "5", True),
        ("long", "5", "6", False),
        ("string", "5", "+5", False),
        ("long", "x", "5", False),
        ("double", None, "5", False),
    ],
)
def test_a_number_is_the_same_however_it_is_written(type_: str, one: str | None, other: str, same_: bool) -> None:
    assert same(type_, one, other) is same_


@pytest.mark.parametrize(
    ("type_", "text", "fault"),
    [
        ("boolean", "TRUE", None),
        ("boolean", "yes", "true or false"),
        ("int", " 12 ", None),
        ("int", "-1", None),
        ("int", "2147483648", "between"),
        ("int", "1_000", "whole number"),
        ("int", "", "whole number"),
        ("short", "32768", "between"),
        ("long", "9223372036854775807", None),
        ("long", "9223372036854775808", "between"),
        ("long", "1e6", "whole number"),
        ("long", "١", None),
        ("double", "0.5", None),
        ("double", "half", "a number"),
        ("class", "org.x.Y", None),
        ("class", "org x", "Java class"),
        ("list", "", None),
        ("string", "", None),
        ("password", "", None),
        ("unknown", "anything", None),
    ],
)
def test_values_by_type(type_: str, text: str, fault: str | None) -> None:
    found = fault_of(type_, text)
    assert (found is None) if fault is None else (found is not None and fault in found)


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("retention.ms", "7d", "604800000"),
        ("segment.bytes", "1GiB", "1073741824"),
        ("log.retention.hours", "7d", "168"),
        ("leader.replication.throttled.rate", "50MB", "50000000"),
        ("retention.ms", "soon", None),
        ("cleanup.policy", "7d", None),
    ],
)
def test_what_number_was_meant(name: str, text: str, number: str | None) -> None:
    assert number_for(name, text) == number


def test_edits() -> None:
    assert parse_edits(["a=1", " b = x=y "], ["c=d"], ["e=f"]) == [
        Edit("a", "set", "1"), Edit("b", "set", "x=y"), Edit("c", "append", "d"), Edit("e", "subtract", "f"),
    ]  # fmt: skip
    assert removals(["a", " b"]) == [Edit("a", "unset"), Edit("b", "unset")]
    assert "geheim" not in repr(parse_edits(["a=geheim"]))


@pytest.mark.parametrize(
    ("values", "append", "reason"),
    [
        ([], [], "nothing to set"),
        (["a"], [], "must be KEY=VALUE"),
        (["=a"], [], "must be KEY=VALUE"),
        (["a=1"], ["a=2"], "duplicate config: a"),
        (["a=@-", "b=@-"], [], "only one value"),
    ],
)
def test_what_is_no_edit(values: list[str], append: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_edits(values, append)


def test_a_forgotten_key_does_not_show_the_value() -> None:
    with pytest.raises(UsageError) as caught:
        parse_edits(["geheim"])
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("name", ["retention.ms=1", " "])
def test_what_cannot_be_unset(name: str) -> None:
    with pytest.raises(UsageError, match="not a config name"):
        removals([name])


@pytest.mark.parametrize(
    ("edit", "error", "reason"),
    [
        (Edit("retenton.ms", "set", "1"), NotFound, "has no config retenton.ms"),
        (Edit("retention.ms", "set", "1d"), Refused, "whole number, not '1d'"),
        (Edit("retention.ms", "append", "1"), Refused, "is not a list"),
        (Edit("cleanup.policy", "append", " , "), UsageError, "no items to append"),
        (Edit("log.dirs", "set", "/x"), Refused, "only at startup"),
        (Edit("log.dirs", "unset"), Refused, "only at startup"),
    ],
)
def test_what_is_refused_before_it_is_sent(edit: Edit, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        check(TOPIC, [edit], KNOWN)


def test_what_is_meant_is_told() -> None:
    for wrong, meant in (("retenton.ms", "retention.ms"), ("log.cleanup.policy", "cleanup.policy")):
        with pytest.raises(NotFound) as caught:
            check(TOPIC, [Edit(wrong, "set", "1")], KNOWN)
        assert meant in str(caught.value.hint)
    with pytest.raises(Refused) as number:
        check(TOPIC, [Edit("retention.ms", "set", "7d")], KNOWN)
    assert number.value.hint == "that is retention.ms=604800000"


def test_a_leftover_can_be_unset() -> None:
    check(TOPIC, [Edit("of.a.plugin.that.is.gone", "unset")], KNOWN)


def test_listener_prefixes() -> None:
    check(TOPIC, [Edit("listener.name.external.ssl.keystore.location", "set", "/x")], KNOWN)
    jaas = find_key(KNOWN, "listener.name.external.scram-sha-256.sasl.jaas.config")
    assert jaas is not None
    assert (jaas.sensitive, jaas.type) == (True, "password")
    assert find_key(KNOWN, "listener.name.external.no.such") is None
    assert find_key(KNOWN, "listener.name.") is None


def test_a_properties_file_is_set_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "some.properties"
    file.write_text("# kept\nretention.ms = 1000\nsasl.jaas.config=@literal\n")
    edits = parse_edits(["cleanup.policy=compact"], file=str(file))
    assert [(e.name, e.value) for e in edits] == [
        ("cleanup.policy", "compact"), ("retention.ms", "1000"), ("sasl.jaas.config", "@literal"),
    ]  # fmt: skip
    warnings: list[str] = []
    with_files(edits, KNOWN, warnings.append)
    assert "some.properties for sasl.jaas.config (mode 0644)" in warnings[0]
    file.chmod(0o600)
    assert [e.value for e in with_files(edits, KNOWN)] == ["compact", "1000", "@literal"], "as it stands there"
    with pytest.raises(UsageError, match="duplicate config"):
        parse_edits(["retention.ms=1"], file=str(file))
    file.write_bytes("segment.bytes=1000\n".encode("utf-16"))
    with pytest.raises(InvalidFile, match="NUL bytes"):
        parse_edits([], file=str(file))
    with pytest.raises(NotFound):
        parse_edits([], file=str(tmp_path / "none"))


def test_secrets_come_from_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must not be on the command line") as caught:
        with_files([Edit("ssl.keystore.password", "set", "geheim")], KNOWN)
    assert "geheim" not in str(caught.value) + str(caught.value.hint)
    file = tmp_path / "secret"
    file.write_text("geheim\n")
    file.chmod(0o644)
    edit = Edit("ssl.keystore.password", "set", f"@{file}")
    warnings: list[str] = []
    with_files([edit], KNOWN, warnings.append)
    assert "(mode 0644)" in warnings[0]
    file.chmod(0o600)
    assert with_files([edit], KNOWN) == [Edit("ssl.keystore.password", "set", "geheim")]


def test_values_from_files(tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_text("1000\n")
    assert with_files([Edit("retention.ms", "set", f"@{file}")], KNOWN) == [Edit("retention.ms", "set", "1000")]
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidFile, match="not UTF-8"):
        with_files([Edit("retention.ms", "set", f"@{file}")], KNOWN)
    file.write_bytes(b" \n")
    with pytest.raises(InvalidFile, match="is empty"):
        with_files([Edit("retention.ms", "set", f"@{file}")], KNOWN)
    with pytest.raises(NotFound):
        with_files([Edit("retention.ms", "set", f"@{tmp_path}/none")], KNOWN)


def test_values_of_new_topics(tmp_path: Path) -> None:
    """`topic create` and `topic alter`: the same words, without a resource whose configs could be asked for."""
    (tmp_path / "value").write_text("0:1,1:2\n")
    key = "leader.replication.throttled.replicas"
    assert read_values([]) == {}
    assert read_values([" a = b=c ", "d=", f"{key}=@{tmp_path}/value"]) == {"a": "b=c", "d": "", key: "0:1,1:2"}
    with pytest.raises(NotFound):
        read_values([f"a=@{tmp_path}/none"])
    for pairs in (["retention.ms"], ["=1"], [" =1"], ["a=1", "a=2"], ["a=@-", "b=@-"]):
        with pytest.raises(UsageError):
            read_values(pairs)


@pytest.mark.parametrize(
    ("name", "before", "after", "factor", "caution"),
    [
        ("retention.ms", "1000", "500", None, "records older than the new limit are deleted"),
        ("retention.ms", "-1", "500", None, "records older than the new limit are deleted"),
        ("retention.ms", "1000", "-1", None, None),
        ("retention.ms", "1000", "2000", None, None),
        ("retention.ms", None, "2000", None, None),
        ("cleanup.policy", "delete", "compact", None, "only the last record"),
        ("cleanup.policy", "compact", "compact,delete", None, "are deleted"),
        ("cleanup.policy", "compact,delete", "delete", None, None),
        ("min.insync.replicas", "1", "3", 2, "counts as 2 since Kafka 3.7"),
        ("min.insync.replicas", "1", "3", 1, "with 1 replica, counts as 1"),
        ("min.insync.replicas", "1", "2", 2, "one broker down"),
        ("min.insync.replicas", "1", "2", 3, None),
        ("min.insync.replicas", "1", "1", 1, None),
        ("unclean.leader.election.enable", "false", "true", None, "can be lost"),
        ("unclean.leader.election.enable", "true", "true", None, None),
    ],
)
def test_cautions(name: str, before: str | None, after: str | None, factor: int | None, caution: str | None) -> None:
    found = caution_of(ChangedConfig("topic/t", name, ItemResult.WOULD_SET, before, None, after, None, False), factor)
    assert (found is None) if caution is None else (found is not None and caution in found)


@pytest.mark.parametrize(
    ("isr", "eligible", "names"),
    [((1,), [2], "ELR) of t-0; a partition"), ((1,), [], None), ((1, 2), [2], None)],
)
def test_a_change_of_the_minimum_forgets_eligible_replicas(
    isr: tuple[int, ...], eligible: list[int], names: str | None
) -> None:
    topic = TopicState("t", False, None, (PartitionState("t", 0, 1, 0, (1, 2), isr),))
    fake = FakeCluster([topic])
    row = Answer(partition_index=0, eligible_leader_replicas=eligible, last_known_elr=[])
    answer = Answer(topics=[Answer(error_code=0, name="t", partitions=[row])], next_cursor=None)
    fake.always("DescribeTopicPartitions", answer)
    assert eligible_caution(fake.client, [topic]) is None, "without support"
    assert not fake.requests
    fake.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = 0
    caution = eligible_caution(fake.client, [topic])
    assert (caution is None) if names is None else (names in (caution or ""))


@pytest.mark.parametrize(
    ("result", "before", "after", "caution"),
    [
        (
            ItemResult.WOULD_UNSET,
            "-1",
            None,
            "falls back to a value that brokers do not report; if it is lower, records older",
        ),
        (ItemResult.WOULD_UNSET, "7776000000", None, "falls back"),
        (ItemResult.WOULD_UNSET, "-1", "604800000", "is lowered"),
        (ItemResult.WOULD_UNSET, "3600000", "604800000", None),
        (ItemResult.WOULD_SET, None, "1", None),
    ],
)
def test_cautions_of_what_is_unset(
    result: ItemResult, before: str | None, after: str | None, caution: str | None
) -> None:
    found = caution_of(ChangedConfig("topic/t", "retention.ms", result, before, None, after, None, False))
    assert (found is None) if caution is None else (found is not None and caution in found)


def test_differences() -> None:
    secret = config("ssl.keystore.password", None, sensitive=True, source=ConfigSource.DYNAMIC_BROKER)
    unset = config("ssl.keystore.password", None, sensitive=True)
    configs = {
        "broker/1": [config("a", "1"), config("broker.id", "1"), secret],
        "broker/2": [config("a", "1", source=ConfigSource.STATIC_BROKER), config("broker.id", "2"), secret],
        "broker/3": [config("a", "2"), config("broker.id", "3"), unset, config("new", "x")],
    }
    found = differences(configs, leave_out=frozenset({"broker.id"}))
    assert [(d.name, [(v.value, v.source, v.resources) for v in d.values]) for d in found] == [
        ("a", [("1", "default, static broker", ["broker/1", "broker/2"]), ("2", "default", ["broker/3"])]),
        ("new", [(None, None, ["broker/1", "broker/2"]), ("x", "default", ["broker/3"])]),
        (
            "ssl.keystore.password",
            [(None, "dynamic broker", ["broker/1", "broker/2"]), (None, "default", ["broker/3"])],
        ),
    ]
    assert not_compared(configs) == ["ssl.keystore.password"]


def test_explanations() -> None:
    chain = (
        Synonym("retention.ms", "5", ConfigSource.TOPIC), Synonym("log.retention.ms", "7", ConfigSource.DEFAULT),
    )  # fmt: skip
    topic = config("retention.ms", "5", "long", source=ConfigSource.TOPIC, synonyms=chain)
    known = {"topic": {"retention.ms": topic}, "broker": {"log.dirs": KNOWN["log.dirs"]}}
    one, other = explanations(["retention.ms", "log.dirs"], known, TOPIC)  # type: ignore[arg-type]  # a plain dict
    assert (one.of, one.default, one.server_config) == ("topic", "7", "log.retention.ms")
    assert (other.of, other.read_only, other.server_config) == ("broker", True, None)
    with pytest.raises(NotFound, match=r"retention\.mss"):
        explanations(["retention.mss"], known, TOPIC)  # type: ignore[arg-type]  # a plain dict


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a <code>b</code> &lt;c&gt;", "a b <c>"),
        ('see <a href="https://x.org/y">here</a>.', "see here (https://x.org/y)."),
        ('see <a href="#up">above</a>', "see above"),
        ("two:<ul><li>one</li><li>other</li></ul>end", "two:\n- one\n- other\nend"),
        ("a<br>b  c\n d", "a\nb c\nd"),
        ("1 < 2 and <listener> stays", "1 < 2 and <listener> stays"),
    ],
)
def test_documentation_as_text(html: str, text: str) -> None:
    assert plain(html) == text


def test_items() -> None:
    assert items(" a, b,,") == ["a", "b"]
    assert items(None) == []


def _row(name: str, value: str | None, source: int, *synonyms: Any) -> Any:
    """A config as DescribeConfigs has it."""
    return Answer(
        name=name, value=value, config_source=source, is_default=False, is_sensitive=False, read_only=False,
        config_type=5, synonyms=list(synonyms), documentation=None,
    )  # fmt: skip


def _described(type_: int, name: str, *rows: Any, code: int = 0) -> Any:
    result = Answer(resource_type=type_, resource_name=name, error_code=code, error_message=None, configs=list(rows))
    return Answer(results=[result])


def test_a_change_that_cannot_be_read_back_is_not_unreachable() -> None:
    """Exit 3 would say that nothing was begun."""
    fake = FakeCluster(brokers=[1])
    own = Answer(name="retention.ms", value="1", source=1)
    fake.always("DescribeConfigs", _described(2, "t", _row("retention.ms", "1", 1, own)))
    row = Answer(resource_type=2, resource_name="t", error_code=0, error_message=None)
    fake.always("IncrementalAlterConfigs", Answer(responses=[row]))
    plan = plan_changes(fake.client, TOPIC, lambda _: [Edit("retention.ms", "set", "2")])
    fake.always("DescribeConfigs", ConnectionFailed("nobody is there"))
    with pytest.raises(OutcomeUnknown, match="accepted the change to topic t, but it is not verified"):
        apply_changes(fake.client, plan, timeout_s=1.0)


@pytest.mark.parametrize(
    ("topic", "error", "said"),
    [
        (None, Refused, "the cluster has no topic: the configs of topics are unknown"),
        (29, NotAuthorized, "the configs of a topic are unknown: configs of topic t: not authorized"),
        (-1, OperationFailed, "the configs of a topic are unknown"),
    ],
)
def test_what_is_not_told_is_not_absent(topic: int | None, error: type[KctlError], said: str) -> None:
    fake = FakeCluster([] if topic is None else [topic_of("t")], brokers=[1])
    of_broker = _described(4, "1", _row("log.retention.ms", None, 5))

    def described(_node: int, request: Any) -> Any:
        return of_broker if request.resources[0].resource_type == 4 else _described(2, "t", code=topic or 0)

    fake.always("DescribeConfigs", described)
    (found,), warnings = explain(fake.client, ["log.retention.ms"])
    assert (found.of, len(warnings)) == ("broker", 1)
    with pytest.raises(KctlError, match=said) as caught:
        explain(fake.client, ["retention.ms"])
    assert type(caught.value) is error


def test_a_default_of_hours_is_of_server_properties() -> None:
    fake = FakeCluster(brokers=[1])
    values = (("retention.ms", "86400000"), ("segment.ms", "604800000"), ("segment.bytes", "5"))
    fake.always("DescribeConfigs", _described(2, "t", *(_row(name, value, 5) for name, value in values)))
    client = fake.client
    found = {c.name: (c.source, c.default, c.is_default) for c in describe(client, TOPIC)}
    assert found == {
        "retention.ms": (ConfigSource.STATIC_BROKER, "604800000", False),
        "segment.ms": (ConfigSource.DEFAULT, "604800000", True),
        "segment.bytes": (ConfigSource.DEFAULT, "5", True),
    }
    entries = fetch_topic_configs(client, ["t"], [1])["t"]
    assert entries == [ConfigEntry("retention.ms", "86400000", ConfigSource.STATIC_BROKER)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orders", "did you mean topic/orders? use topic/NAME"),
        ("topics/orders", "did you mean topic? use topic/NAME"),
        ("a b", "use topic/NAME"),
        ("xyz/1", "use topic/NAME"),
    ],
)
def test_what_has_no_configs_tells_what_was_meant(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="is not a resource with configs") as caught:
        parse_resource(text)
    assert (caught.value.hint or "").startswith(said)


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("topic", "t01", "did you mean topic/t01? use topic/NAME"),
        ("broker", "1", "did you mean broker/1? use topic/NAME"),
        ("group", "billing", "did you mean group/billing? use topic/NAME"),
        ("topic", "", "use topic/NAME"),
    ],
)
def test_a_kind_and_a_name_are_joined_in_the_hint(kind: str, name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_resource(kind, name)
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize("words", [("get", "topic", "t01"), ("set", "topic", "t01", "a=1"), ("unset", "topic", "t01")])
def test_config_commands_suggest_the_name_after_the_kind(words: tuple[str, ...], capsys: Any) -> None:
    assert main(["config", *words]) == 2
    assert "did you mean topic/t01?" in capsys.readouterr().err
