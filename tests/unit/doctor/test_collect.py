"""Doctor facts from broker responses: watched groups, settings, unreadable parts."""

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
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts, unread_reasons
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, NotFound
from kctl.model import TopicPartition


def _group(state: str = "Stable", members: str = "a", epoch: int | None = None, *, type_: str = "classic") -> Group:
    """A group whose nth member is assigned partition n."""
    each = tuple(
        Member(name, None, "c", "/h", (TopicPartition("t", number),), topics=("t",))
        for number, name in enumerate(members)
    )
    return Group("g", state, "consumer", type_, 1, members=each, epoch=epoch)


@pytest.mark.parametrize(
    ("polls", "count"),
    [
        ([], 0),
        ([_group(), _group()], 0),
        ([_group(), _group("PreparingRebalance"), _group()], 1),
        ([_group(), _group("PreparingRebalance"), _group("CompletingRebalance"), _group(members="ab")], 1),
        ([_group(), _group(members="ab")], 1),  # changed between two polls
        ([_group(), _group(members="ab"), _group()], 2),
        (
            [_group("PreparingRebalance"), _group("PreparingRebalance"), _group()],
            0,
        ),  # started before the first poll
        ([_group("PreparingRebalance"), _group(), _group("PreparingRebalance")], 1),
        ([_group(epoch=4, type_="consumer"), _group(epoch=9, members="ab", type_="consumer")], 5),
    ],
)
def test_count_rebalances(polls: list[Group], count: int) -> None:
    assert count_rebalances(polls) == count


def test_group_state() -> None:
    found = group_state(_group(members="ab"), 3)
    assert found.members == {"a": 1, "b": 1}
    assert found.subscribed == {"t"}
    assert found.rebalances == 3
    without_members = Group("g", "Stable", "consumer", "classic", 1)
    assert group_state(without_members).members is None
    assert group_state(Group("g", "Empty", "consumer", "classic", 1)).members == {}


def test_explicit_settings() -> None:
    made = [
        Config("num.io.threads", "8", ConfigSource.DEFAULT, "8", "int", False, False, ()),
        Config("log.dirs", "/a,/b", ConfigSource.STATIC_BROKER, None, "string", False, True, ()),
        Config("super.users", None, ConfigSource.STATIC_BROKER, None, "unknown", True, True, ()),
    ]
    found = settings_of("broker 1", made, parse_releases("3.9"))
    assert found.explicit == {"log.dirs", "super.users"}
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
    assert own.explicit == {"segment.ms"}
    assert own.number("min.insync.replicas") == 2


def test_unread_reasons_are_unique() -> None:
    denied = NotAuthorized("not authorized")
    facts = RuleFacts(brokers={"broker 1": denied, "broker 2": denied, "broker 3": EffectiveSettings("broker 3", {})})
    assert unread_reasons(facts, ("brokers",)) == ["not authorized"]
    assert unread_reasons(RuleFacts(groups=denied), ("groups", "state")) == ["not authorized"]


def test_log_dirs_of_silent_and_down_brokers() -> None:
    """Brokers that do not respond have an error instead of log dirs."""
    dirs = [LogDir("/data", 100, 50, [])]
    silent = ConnectionFailed("broker 2 does not respond")
    seen = facts(state([partition("123", "1")], alive="12"), views={2: silent}, log_dirs={1: dirs})
    found = log_dirs_of(replace(seen, log_dirs={1: dirs}))
    assert found == {1: dirs, 2: silent, 3: found[3]}
    assert str(found[3]) == "broker 3 is down: its log dirs are unknown"


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


def test_defaults_of_one_client_role() -> None:
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
_CLUSTER_IDS: list[tuple[str | None, bytes | KctlError, str | None]] = [
    ("abc", _ID, None),
    ("xyz", _ID, "belongs to cluster abc, not to xyz"),
    ("abc", NotFound("ZooKeeper has no node /cluster/id"), "check the chroot"),
    ("abc", NotAuthorized("not authorized"), None),
    (None, _ID, None),
    ("abc", b"[]", "belongs to cluster None"),
    ("abc", b"\xff", "belongs to cluster None"),
]


@pytest.mark.parametrize(("cluster_id", "node", "message"), _CLUSTER_IDS)
def test_zookeeper_of_another_cluster(
    cluster_id: str | None, node: bytes | KctlError, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real ZooKeeper with several clusters needs three more brokers, so its one node is faked."""

    def read_data(_client: Any, path: str) -> bytes:
        assert path == "/cluster/id"
        if isinstance(node, KctlError):
            raise node
        return node

    monkeypatch.setattr(collect_zookeeper, "read_data", read_data)
    client: Any = None
    problem = collect_zookeeper.wrong_cluster(client, "zk:2181", cluster_id)
    assert (problem is None) == (message is None)
    assert (message or "") in (problem or "")
