"""What the doctor makes of brokers' answers: groups that are watched, settings, what nobody may read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from health_testing import facts, partition, state
from kctl.cluster.groups.model import Group, Member
from kctl.cluster.log_dirs import LogDir
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource
from kctl.configs.model import Config
from kctl.doctor import collect_zookeeper
from kctl.doctor.collect import log_dirs_of, settings_of, topic_settings
from kctl.doctor.collect_groups import count_rebalances, group_state
from kctl.doctor.defaults import default_of
from kctl.doctor.listeners import is_loopback, is_wildcard, parse_listener
from kctl.doctor.releases import parse_releases
from kctl.doctor.rule_facts import RuleFacts, Settings, unread
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, NotFound
from kctl.model import TopicPartition


def _group(state: str = "Stable", members: str = "a", epoch: int | None = None, *, type_: str = "classic") -> Group:
    """Each member has the partition of its place."""
    each = tuple(
        Member(name, None, "c", "/h", (TopicPartition("t", number),), topics=("t",))
        for number, name in enumerate(members)
    )
    return Group("g", state, "consumer", type_, 1, members=each, epoch=epoch)


@pytest.mark.parametrize(
    ("looks", "count"),
    [
        ([], 0),
        ([_group(), _group()], 0),
        ([_group(), _group("PreparingRebalance"), _group()], 1),
        ([_group(), _group("PreparingRebalance"), _group("CompletingRebalance"), _group(members="ab")], 1),
        ([_group(), _group(members="ab")], 1),  # between two looks
        ([_group(), _group(members="ab"), _group()], 2),
        ([_group("PreparingRebalance"), _group("PreparingRebalance"), _group()], 0),  # it had begun before
        ([_group("PreparingRebalance"), _group(), _group("PreparingRebalance")], 1),
        ([_group(epoch=4, type_="consumer"), _group(epoch=9, members="ab", type_="consumer")], 5),
    ],
)
def test_rebalances_are_counted(looks: list[Group], count: int) -> None:
    assert count_rebalances(looks) == count


def test_a_group_as_rules_see_it() -> None:
    found = group_state(_group(members="ab"), 3)
    assert found.members == {"a": 1, "b": 1}
    assert found.subscribed == {"t"}
    assert found.rebalances == 3
    untold = Group("g", "Stable", "consumer", "classic", 1)
    assert group_state(untold).members is None
    assert group_state(Group("g", "Empty", "consumer", "classic", 1)).members == {}


def test_settings_know_what_was_set() -> None:
    made = [
        Config("num.io.threads", "8", ConfigSource.DEFAULT, "8", "int", False, False, ()),
        Config("log.dirs", "/a,/b", ConfigSource.STATIC_BROKER, None, "string", False, True, ()),
        Config("super.users", None, ConfigSource.STATIC_BROKER, None, "unknown", True, True, ()),
    ]
    found = settings_of("broker 1", made, parse_releases("3.9"))
    assert found.given == {"log.dirs", "super.users"}
    assert (found.number("num.io.threads"), found.items("log.dirs"), found.text("super.users")) == (
        8,
        ["/a", "/b"],
        None,
    )
    own = topic_settings(
        "t",
        [
            ConfigEntry("min.insync.replicas", "2", ConfigSource.STATIC_BROKER),
            ConfigEntry("segment.ms", "5", ConfigSource.TOPIC),
        ],
    )
    assert own.given == {"segment.ms"}
    assert own.number("min.insync.replicas") == 2


def test_what_cannot_be_read_is_told_once() -> None:
    denied = NotAuthorized("not authorized")
    facts = RuleFacts(brokers={"broker 1": denied, "broker 2": denied, "broker 3": Settings("broker 3", {})})
    assert unread(facts, ("brokers",)) == ["not authorized"]
    assert unread(RuleFacts(groups=denied), ("groups", "state")) == ["not authorized"]


def test_log_dirs_of_brokers_that_do_not_tell() -> None:
    """Only those that answer are asked: the others are not left out."""
    dirs = [LogDir("/data", 100, 50, [])]
    silent = ConnectionFailed("broker 2 does not answer")
    seen = facts(state([partition("123", "1")], alive="12"), views={2: silent}, log_dirs={1: dirs})
    asked = replace(seen, log_dirs={1: dirs})
    found = log_dirs_of(asked)
    assert found == {1: dirs, 2: silent, 3: found[3]}
    assert str(found[3]) == "broker 3 is down: its log dirs are not known"


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("acks", "2.8", "1"), ("acks", "3.0", "all"), ("acks", None, "all"), ("acks", "2.8 to 3.1", "all"),
        ("linger.ms", "4.3+", "5"), ("linger.ms", "3.9", "all"),
        ("log.message.timestamp.after.max.ms", "4.0", "3600000"), ("log.message.timestamp.after.max.ms", "3.9", "all"),
        ("enable.idempotence", "3.1.0", "false"), ("enable.idempotence", "3.1.1", "all"),
        ("enable.idempotence", "3.1", "all"),
    ],
)  # fmt: skip
def test_defaults_of_other_releases(name: str, version: str | None, value: str) -> None:
    assert default_of(name, "all", parse_releases(version)) == value


def test_defaults_that_only_one_kind_of_client_had() -> None:
    old = parse_releases("1.1")
    assert [default_of("retries", "many", old, roles) for roles in ((), ("producer",), ("consumer",))] == [
        "many", "0", "many",
    ]  # fmt: skip
    assert default_of("retries", "many", parse_releases("2.1"), ("producer",)) == "many"
    assert [default_of("request.timeout.ms", "30000", old, (role,)) for role in ("producer", "consumer")] == [
        "30000", "305000",
    ]  # fmt: skip


def test_listeners() -> None:
    found = parse_listener("external://[2001:db8::1]:9093")
    assert found is not None
    assert (found.name, found.host, found.port, str(found)) == (
        "EXTERNAL", "2001:db8::1", 9093, "EXTERNAL://[2001:db8::1]:9093",
    )  # fmt: skip
    assert parse_listener("kafka:9092") is None
    assert [is_loopback(host) for host in ("127.0.0.2", "::1", "localhost", "10.0.0.1", "k")] == [True] * 3 + [
        False
    ] * 2
    assert [is_wildcard(host) for host in ("0.0.0.0", "::", "0:0:0:0:0:0:0:0", "127.0.0.1")] == [True] * 3 + [False]


_ID = b'{"version":"1","id":"abc"}'
_OTHERS: list[tuple[str | None, bytes | KctlError, str | None]] = [
    ("abc", _ID, None),
    ("xyz", _ID, "is that of cluster abc, not of xyz"),
    ("abc", NotFound("ZooKeeper has no node /cluster/id"), "is the chroot right?"),
    ("abc", NotAuthorized("not everybody may read it"), None),
    (None, _ID, None),
    ("abc", b"[]", "is that of cluster None"),
    ("abc", b"\xff", "is that of cluster None"),
]


@pytest.mark.parametrize(("cluster_id", "node", "said"), _OTHERS)
def test_whose_zookeeper_it_is(
    cluster_id: str | None, node: bytes | KctlError, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ZooKeeper of several clusters takes three more brokers; here its one node is made up."""

    def read_data(_client: Any, path: str) -> bytes:
        assert path == "/cluster/id"
        if isinstance(node, KctlError):
            raise node
        return node

    monkeypatch.setattr(collect_zookeeper, "read_data", read_data)
    client: Any = None
    found = collect_zookeeper.not_its_own(client, "zk:2181", cluster_id)
    assert (found is None) == (said is None)
    assert (said or "") in (found or "")
