"""ZooKeeper without a server: decoding nodes, parsing server responses, comparing snapshots."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.errors import UsageError
from kctl.zookeeper import nodes
from kctl.zookeeper.decode import HIDDEN, decode, meaning
from kctl.zookeeper.nodes import _natural, grant_of, node_of, parse_path, walk
from kctl.zookeeper.servers import Server, parse_mntr, parse_srvr, problems, with_monitor
from kctl.zookeeper.watch import _NodeSnapshot, changes
from kctl.zookeeper.wire import Stat

SCRAM = "salt=MXk,stored_key=c3Q=,server_key=c2s=,iterations=4096"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/brokers/ids/3", "broker 3: deleted when its session ends"),
        ("/brokers/topics/orders/partitions/0/state", "partition orders-0: leader and ISR"),
        ("/config/users/alice%40x", "quotas and SCRAM credentials of user alice@x"),
        ("/config/brokers/<default>", "configs set for all brokers"),
        ("/config/users/a/clients/b", "quotas of user a with client id b"),
        ("/kafka-acl/Topic/orders", "ACLs for Topic orders"),
        ("/isr_change_notification/isr_change_0000000001", "partitions whose ISR changed"),
        ("/admin/delete_topics/{0}", "topic {0} is being deleted"),
        ("/brokers/ids/3/x", None),
        ("/", None),
    ],
)
def test_meaning(path: str, text: str | None) -> None:
    assert meaning(path) == text


@pytest.mark.parametrize(
    ("path", "data", "value", "hidden"),
    [
        ("/controller_epoch", b"12", 12, False),
        ("/admin/delete_topics/t", b"", None, False),
        ("/x", b"plain text", "plain text", False),
        ("/x", b"\xff\xfe", None, False),
        ("/x", b"NaN", "NaN", False),
        ("/x", b'{"a":Infinity}', '{"a":Infinity}', False),
        ("/x", b'{"a":1e999}', '{"a":1e999}', False),
        ("/x", b'{"a":1.5,"b":["\\ud800"]}', {"a": 1.5, "b": ["\\ud800"]}, False),
        ("/x", b"[" * 100_000, "[" * 100_000, False),
        ("/x", b"[" * 50 + b"]" * 50, json.loads("[" * 50 + "]" * 50), False),
        *(("/x", b"[" * n + b"]" * n, "[" * n + "]" * n, False) for n in (102, 400, 600, 990)),
        *(("/x", b'{"a":' * n + b"1" + b"}" * n, '{"a":' * n + "1" + "}" * n, False) for n in (102, 400, 600, 900)),
        ("/config/users/alice", b'{"config":' * 400 + b"1" + b"}" * 400, HIDDEN, True),
        ("/controller", b'{"timestamp":"1795362572303"}', {"timestamp": "2026-11-22T15:49:32.303Z"}, False),
        ("/controller", b'{"timestamp":"soon"}', {"timestamp": "soon"}, False),
        ("/controller", b'{"timestamp":99999999999999999999}', {"timestamp": 99999999999999999999}, False),
        (
            "/config/users/alice",
            f'{{"version":1,"config":{{"SCRAM-SHA-256":"{SCRAM}","producer_byte_rate":"5"}}}}'.encode(),
            {
                "version": 1,
                "config": {
                    "SCRAM-SHA-256": f"salt={HIDDEN},stored_key={HIDDEN},server_key={HIDDEN},iterations=4096",
                    "producer_byte_rate": "5",
                },
            },
            True,
        ),
        ("/config/users/alice", b"not JSON: geheim", HIDDEN, True),
        ("/config/users/alice", b'{"version":1,"config":{"producer_byte_rate":"5"}}',
         {"version": 1, "config": {"producer_byte_rate": "5"}}, False),
        ("/config/brokers/1", b'{"config":{"listener.name.a.ssl.keystore.password":"geheim","x":"1"}}',
         {"config": {"listener.name.a.ssl.keystore.password": HIDDEN, "x": "1"}}, True),
        ("/config/brokers/1", b'{"config":{"listener.name.a.plain.sasl.jaas.config":"geheim"}}',
         {"config": {"listener.name.a.plain.sasl.jaas.config": HIDDEN}}, True),
        ("/config/brokers/1", b'{"config":"geheim"}', HIDDEN, True),
        ("/config/users/alice", b'["geheim"]', HIDDEN, True),
        ("/delegation_token/tokens/abc", b'{"hmac":"geheim"}', HIDDEN, True),
    ],
)  # fmt: skip
def test_decode(path: str, data: bytes, value: Any, hidden: bool) -> None:
    assert decode(path, data) == (value, hidden)


@pytest.mark.parametrize("chroot", ["", "/kafka", "/a/b/c"])
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/config/users/alice", f'{{"config":{{"SCRAM-SHA-256":"{SCRAM}"}}}}'),
        ("/config/users/alice/clients/b", "not JSON: geheim"),
        ("/config/brokers/<default>", '{"config":{"ssl.keystore.password":"geheim"}}'),
        ("/delegation_token/tokens/abc", '{"hmac":"geheim"}'),
    ],
)
def test_secrets_below_a_chroot(chroot: str, path: str, data: str) -> None:
    found = decode(chroot + path, data.encode())
    assert found.hidden
    assert "geheim" not in str(found.value)
    assert "c3Q=" not in str(found.value)


def test_show_secrets() -> None:
    data = f'{{"config":{{"SCRAM-SHA-512":"{SCRAM}"}}}}'.encode()
    assert decode("/config/users/alice", data, show_secrets=True) == ({"config": {"SCRAM-SHA-512": SCRAM}}, False)


def test_numeric_order() -> None:
    data = b'{"partitions":{"10":[1],"9":[2],"0":[3]}}'
    assert list(decode("/brokers/topics/t", data).value["partitions"]) == ["0", "9", "10"]
    assert sorted(["isr_10", "isr_9", "b", "10", "9"], key=_natural) == ["9", "10", "b", "isr_9", "isr_10"]


@pytest.mark.parametrize(
    ("text", "path"), [("/", "/"), ("", "/"), ("brokers/ids", "/brokers/ids"), ("/a/b/", "/a/b"), ("/a b", "/a b")]
)
def test_paths(text: str, path: str) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["/a//b", "/a/../b", "/.", "/a\x00b", "/a\x1b[31m", "/\ud800"])
def test_invalid_paths(text: str) -> None:
    with pytest.raises(UsageError):
        parse_path(text)


def stat(**fields: int) -> Stat:
    zeros = dict.fromkeys(Stat._fields, 0) | {"czxid": 1, "mzxid": 1}
    return Stat(**(zeros | fields))


def test_node() -> None:
    node = node_of("/x", b"\xff", stat(ephemeralOwner=-1, ctime=1000, mtime=10**18), show_secrets=False)
    assert (node.value, node.text, node.base64) == (None, None, "/w==")
    assert node.stat.session == "0xffffffffffffffff"
    assert node.stat.created == datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
    secret = node_of("/delegation_token/tokens/a", b"geheim", stat(), show_secrets=False)
    assert (secret.hidden, secret.text, secret.base64) == (True, None, None)
    assert node_of("/x", None, stat(), show_secrets=False).text == ""
    assert node_of("/alice", b"geheim", stat(), show_secrets=False, chroot="/kafka/config/users").text is None


def test_grants() -> None:
    assert grant_of("world", "anyone", 31, show_secrets=False).permissions == [
        "read", "write", "create", "delete", "admin",
    ]  # fmt: skip
    assert grant_of("digest", "u:aGFzaA==", 1, show_secrets=False).id == f"u:{HIDDEN}"
    assert grant_of("digest", "u:aGFzaA==", 1, show_secrets=True).id == "u:aGFzaA=="
    assert grant_of("sasl", "kafka", 5, show_secrets=False).permissions == ["read", "create"]


SRVR = """Zookeeper version: 3.8.4-9316c2a7, built on 2024-02-12 22:16 UTC
Latency min/avg/max: 0/0.8286/48
Received: 711
Sent: 715
Connections: 4
Outstanding: 2
Zxid: 0x47
Mode: follower
Node count: 31
"""


def test_server() -> None:
    found = parse_srvr("a:1", SRVR)
    assert (found.healthy, found.mode, found.version, found.zxid) == (True, "follower", "3.8.4", "0x47")
    assert (found.latency_min_ms, found.latency_avg_ms, found.latency_max_ms) == (0.0, 0.8286, 48.0)
    assert (found.connections, found.outstanding, found.nodes) == (4, 2, 31)
    values = parse_mntr("zk_uptime\t5000\nzk_watch_count\t7\nzk_synced_followers\t2.0\nbroken line\nzk_alone\n")
    more = with_monitor(found, values)
    assert (more.uptime_ms, more.watches, more.synced_followers, more.open_files) == (5000, 7, 2, None)
    assert with_monitor(found, parse_mntr("mntr is not executed because it is not in the whitelist.")) is found
    assert parse_srvr("a:1", SRVR.replace("Connections: 4", "Connections: many")).connections is None


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ("This ZooKeeper instance is not currently serving requests\n", "no quorum"),
        ("srvr is not executed because it is not in the whitelist.\n", "whitelist"),
        ("Zookeeper version: 3.8.4\n", "no mode"),
    ],
)
def test_unhealthy_server(response: str, problem: str) -> None:
    found = parse_srvr("a:1", response)
    assert not found.healthy
    assert problem in str(found.problem)


@pytest.mark.parametrize(
    ("modes", "problem"),
    [
        (["leader", "follower", "follower"], None),
        (["standalone"], None),
        (["leader", None], "b0"),
        (["leader", "leader"], "several ensembles"),
        (["standalone", "leader"], "several ensembles"),
        (["follower", "follower"], "none of the servers is the leader"),
        (["follower"], "none of the servers is the leader"),
    ],
)
def test_ensemble_problems(modes: list[str | None], problem: str | None) -> None:
    servers = [
        Server(f"a{i}", True, mode) if mode else Server("b0", False, problem="down") for i, mode in enumerate(modes)
    ]
    found = problems(servers)
    assert (found == []) if problem is None else (problem in " ".join(found))


def snapshot(children: set[str] | None = None, **fields: int) -> _NodeSnapshot:
    node = node_of("/n", b"1", stat(**fields), show_secrets=False)
    return _NodeSnapshot(node, frozenset(children or ()))


MISSING = _NodeSnapshot(None, frozenset())


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        (MISSING, MISSING, []),
        (MISSING, snapshot({"a"}), [("created", "/n"), ("child added", "/n/a")]),
        (snapshot(), MISSING, [("deleted", "/n")]),
        (snapshot({"a"}), MISSING, [("deleted", "/n")]),
        (snapshot(), snapshot(), []),
        (snapshot(), snapshot(mzxid=2), [("changed", "/n")]),
        (snapshot(), snapshot(czxid=2, mzxid=2), [("deleted", "/n"), ("created", "/n")]),
        (snapshot({"a", "b"}), snapshot({"b", "c"}), [("child removed", "/n/a"), ("child added", "/n/c")]),
    ],
)
def test_changes(before: _NodeSnapshot, after: _NodeSnapshot, events: list[tuple[str, str]]) -> None:
    assert [(change.event, change.path) for change in changes("/n", before, after)] == events


def test_walk_stops_at_the_last_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger depth sends no further requests."""
    levels = []

    def read(_client: object, paths: list[str], depth: int) -> list[Any]:
        levels.append(depth)
        return [(nodes._unreadable_child(path, depth), ["b"] if depth == 1 else []) for path in paths]

    monkeypatch.setattr(nodes, "_read_each", read)
    client: Any = SimpleNamespace(get_children=lambda _path: ["a"])
    found, cut = walk(client, "/", depth=1000, limit=10)
    assert ([row.path for row in found], cut, levels) == (["/a", "/a/b"], False, [1, 2])


def test_ensemble_configuration() -> None:
    data = b"server.1=zk1:2888:3888:participant;2181\nserver.2=zk2:2888:3888\nversion=100000000"
    assert decode("/zookeeper/config", data).value == {
        "server.1": "zk1:2888:3888:participant;2181", "server.2": "zk2:2888:3888", "version": "100000000",
    }  # fmt: skip
    assert decode("/zookeeper/config", b"what").value == "what"
    assert decode("/other", data).value == data.decode()
