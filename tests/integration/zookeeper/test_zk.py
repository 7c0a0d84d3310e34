"""kctl zk against a real ZooKeeper: the same as zookeeper-shell says, hostile nodes, changes as they happen."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from kctl_testing import Kctl, TestCluster, closed_port, eventually, within

_numbers = count(1)


@pytest.fixture(scope="module")
def client(cluster: TestCluster) -> Iterator[KazooClient]:
    """What makes the nodes that are looked at: kctl changes none."""
    kazoo = KazooClient(hosts=cluster.zookeeper)
    kazoo.start()
    yield kazoo
    kazoo.stop()
    kazoo.close()


@pytest.fixture
def folder(client: KazooClient) -> Iterator[str]:
    """The path of a node of this test alone."""
    path = f"/zk-tests-{os.getpid()}-{next(_numbers)}"
    client.create(path, b"")
    yield path
    client.delete(path, recursive=True)


def zookeeper_shell(home: Path, address: str, *commands: str) -> str:
    """What Kafka's zookeeper-shell prints for some commands, in one session."""
    argv = ["java", "-Xmx128M", "-cp", f"{home}/libs/*", "org.apache.zookeeper.ZooKeeperMain", "-server", address]
    text = "\n".join([*commands, "quit", ""])
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=True, timeout=120).stdout


def test_the_same_as_zookeeper_shell(kctl: Kctl, cluster: TestCluster, kafka_home: Path) -> None:
    said = zookeeper_shell(
        kafka_home,
        cluster.zookeeper,
        "ls /",
        "get /brokers/ids/1",
        "stat /controller",
        "getAcl /config",
        "ls -R /admin",
    )
    (names,) = re.findall(r"^\[(.*admin.*)\]$", said, re.MULTILINE)
    assert [row["name"] for row in kctl.json("zk", "ls")] == sorted(names.split(", "))
    node = kctl.json("zk", "get", "/brokers/ids/1")
    assert node["text"] in said.splitlines()
    assert kctl.ok("zk", "get", "/brokers/ids/1", "--raw").out == node["text"]
    stat = kctl.json("zk", "stat", "/controller")
    for ours, theirs in {
        "czxid": "cZxid", "mzxid": "mZxid", "pzxid": "pZxid", "children_version": "cversion", "version": "dataVersion",
        "acl_version": "aclVersion", "session": "ephemeralOwner", "data_bytes": "dataLength",
        "children": "numChildren",
    }.items():  # fmt: skip
        assert f"{theirs} = {stat[ours]}" in said.splitlines()
    assert "'world,'anyone\n: cdrwa" in said
    assert kctl.json("zk", "acl", "/config") == [
        {"scheme": "world", "id": "anyone", "permissions": ["read", "write", "create", "delete", "admin"]}
    ]
    below = [line for line in said.splitlines() if line.startswith("/admin/")]
    assert sorted(row["path"] for row in kctl.json("zk", "tree", "/admin", "--depth", "9")) == sorted(below)


def test_what_kafka_keeps(kctl: Kctl, cluster: TestCluster) -> None:
    broker = kctl.json("zk", "get", "/brokers/ids/1")
    assert list(broker) == ["path", "meaning", "value", "hidden", "text", "base64", "stat"]
    assert broker["meaning"] == "broker 1: deleted when its session ends"
    assert f"{broker['value']['host']}:{broker['value']['port']}" in cluster.bootstrap
    assert broker["stat"]["session"].startswith("0x")
    assert broker["value"]["timestamp"].endswith("Z")
    controller = kctl.json("zk", "get", "controller")
    assert controller["value"]["brokerid"] in cluster.broker_ids
    ids = kctl.json("zk", "ls", "/brokers/ids/")
    assert list(ids[0]) == [
        "name", "path", "depth", "meaning", "readable", "children", "data_bytes", "ephemeral", "version", "created",
        "modified",
    ]  # fmt: skip
    assert [(row["name"], row["ephemeral"]) for row in ids] == [("1", True), ("2", True), ("3", True)]
    table = kctl.ok("zk", "get", "/controller").out
    assert table.startswith("/controller: current controller")
    assert "brokerid" in table
    assert "path" in kctl.ok("zk", "stat", "/controller").out


def test_lists_are_bounded(kctl: Kctl, client: KazooClient, folder: str) -> None:
    for number in range(12):
        client.create(f"{folder}/n{number}/deep/er", b"x" * number, makepath=True)
    first = kctl("zk", "ls", folder, "--limit", "3", "-o", "json")
    assert [row["name"] for row in json.loads(first.out)] == ["n0", "n1", "n2"]
    assert "has 12 children; --limit 12 lists all" in first.err
    tree = kctl("zk", "tree", folder, "--limit", "5", "-o", "json")
    assert [row["path"].removeprefix(folder) for row in json.loads(tree.out)] == [
        "/n0", "/n0/deep", "/n0/deep/er", "/n1", "/n1/deep",
    ]  # fmt: skip
    assert "only the first 5 nodes are listed" in tree.err
    flat = kctl("zk", "tree", folder, "--depth", "1", "-o", "json")
    assert [row["name"] for row in json.loads(flat.out)] == [f"n{number}" for number in range(12)]
    assert flat.err == ""
    lines = kctl.ok("zk", "tree", folder, "--limit", "2").out.splitlines()
    assert [line.split("  ")[0] or line.strip().split()[0] for line in lines] == ["NODE", "n0", "deep"]


def test_hostile_nodes(kctl: Kctl, client: KazooClient, folder: str) -> None:
    nodes = {
        "steers \u202e it": b"\x1b[31mred\x1b[0m\r\n\x00",
        "broken": b"\xff\xfe\x80",
        "large": b"x" * 1_000_000,
        "deep": b"[" * 50_000,
        "odd": b'{"a":NaN,"b":1e999,"c":"\\ud800\\u001b[31m"}',
        "half": b'{"c":"\\ud800\\u001b[31m","n":' + b"9" * 5000 + b"}",
    }
    for name, data in nodes.items():
        client.create(f"{folder}/{name}", data)
    shown = kctl.ok("zk", "ls", folder).out + kctl.ok("zk", "tree", folder).out
    for name, data in nodes.items():
        path = f"{folder}/{name}"
        node = kctl.json("zk", "get", path)
        assert node["stat"]["data_bytes"] == len(data)
        assert (node["text"] is None) == (name == "broken")
        shown += kctl.ok("zk", "get", path).out
    assert kctl.json("zk", "get", f"{folder}/broken")["base64"] == "//6A"
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\x00" not in shown


def test_secrets_are_hidden(kctl: Kctl, client: KazooClient, cluster: TestCluster) -> None:
    """As brokers write them; they are not told of this one."""
    user = f"/config/users/zk-tests%40{os.getpid()}"
    scram = "salt=Z2VoZWlt,stored_key=Z2VoZWlt,server_key=Z2VoZWlt,iterations=4096"
    client.create(user, json.dumps({"version": 1, "config": {"SCRAM-SHA-512": scram}}).encode())
    try:
        hidden = kctl("zk", "get", user)
        assert hidden.code == 0
        assert f"user zk-tests@{os.getpid()}" in hidden.out
        assert "iterations=4096" in hidden.out
        assert "--show-secrets" in hidden.err
        watched = kctl("zk", "watch", user, "--for", "1s", "-o", "json")
        raw = kctl("zk", "get", user, "--raw")
        assert raw.code == 4
        address, _, chroot = cluster.zookeeper.partition("/")
        for place, path in (
            (address, f"/{chroot}{user}"),
            (f"{cluster.zookeeper}/config/users", f"/{user.rsplit('/', maxsplit=1)[-1]}"),
        ):
            elsewhere = kctl("zk", "get", path, "--zookeeper", place)
            assert (elsewhere.code, "Z2VoZWlt" in elsewhere.out) == (0, False), "behind any chroot"
            assert "Z2VoZWlt" not in kctl.ok("zk", "get", path, "--zookeeper", place, "-o", "json").out
            assert kctl("zk", "get", path, "--zookeeper", place, "--raw").code == 4
        everything = hidden.out + kctl.ok("zk", "get", user, "-o", "json").out + watched.out + raw.out + raw.err
        assert "Z2VoZWlt" not in everything
        assert scram in kctl.ok("zk", "get", user, "--show-secrets").out
        assert scram in kctl.ok("zk", "get", user, "--show-secrets", "--raw").out
    finally:
        client.delete(user)


def test_what_may_not_be_read_is_said(kctl: Kctl, client: KazooClient, folder: str) -> None:
    client.create(f"{folder}/closed", b"secret", acl=[make_digest_acl("owner", "password", all=True)])
    refused = kctl("zk", "get", f"{folder}/closed")
    assert refused.code == 4
    assert "not authorized to read" in refused.err
    assert kctl("zk", "ls", f"{folder}/closed").code == 4
    listed = kctl("zk", "ls", folder, "-o", "json")
    tree = kctl("zk", "tree", folder)
    client.delete(f"{folder}/closed")
    (row,) = json.loads(listed.out)
    assert (row["name"], row["readable"], row["data_bytes"]) == ("closed", False, None)
    for result in (listed, tree):
        assert result.code == 0
        assert f"not authorized to read {folder}/closed" in result.err


def test_watch(kctl: Kctl, client: KazooClient, folder: str) -> None:
    path = f"{folder}/comes"
    with kctl.running("zk", "watch", path, "--max-changes", "4", "-o", "json") as process:
        assert process.stdout is not None
        absent = json.loads(process.stdout.readline())
        assert (absent["event"], absent["path"], absent["version"]) == ("absent", path, None)
        client.create(path, b'{"a":1}')
        created = json.loads(process.stdout.readline())
        client.set(path, b'{"a":2}')
        changed = json.loads(process.stdout.readline())
        client.create(f"{path}/child")
        added = json.loads(process.stdout.readline())
        client.delete(path, recursive=True)
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(timeout=within(20)) == 0
    assert list(created) == ["time", "event", "path", "value", "version", "children"]
    assert [(c["event"], c["value"], c["version"]) for c in (created, changed)] == [
        ("created", {"a": 1}, 0), ("changed", {"a": 2}, 1),
    ]  # fmt: skip
    assert (added["event"], added["path"]) == ("child added", f"{path}/child")
    assert rest[0]["event"] in {"deleted", "child removed"}
    ended = kctl("zk", "watch", "/controller", "--for", "1s", "-o", "json")
    assert ended.code == 0
    assert [json.loads(line)["event"] for line in ended.out.splitlines()] == ["is"]


def test_servers(kctl: Kctl, cluster: TestCluster) -> None:
    (before,) = kctl.json("zk", "stat")
    kctl.ok("topic", "create", "zk-nodes", "--partitions", "5")
    (server,) = kctl.json("zk", "stat")
    assert list(server) == [
        "server", "healthy", "mode", "version", "latency_min_ms", "latency_avg_ms", "latency_max_ms", "connections",
        "outstanding", "zxid", "nodes", "uptime_ms", "watches", "data_bytes", "open_files", "synced_followers",
        "problem",
    ]  # fmt: skip
    assert (server["healthy"], server["mode"], server["problem"]) == (True, "standalone", None)
    assert server["nodes"] >= before["nodes"] + 1 + 2 * 5, "at least the topic, and two nodes for each partition"
    address, _, chroot = cluster.zookeeper.partition("/")
    dead = f"127.0.0.1:{closed_port()}"
    partly = kctl("zk", "stat", "--zookeeper", f"{address},{dead}/{chroot}", "-o", "json")
    assert partly.code == 1
    assert [(row["server"], row["healthy"]) for row in json.loads(partly.out)] == [(address, True), (dead, False)]
    assert "refused the connection" in partly.err
    assert kctl("zk", "stat", "--zookeeper", dead).code == 3
    assert kctl.ok("zk", "ls", "/brokers/ids", "--zookeeper", f"{dead},{address}/{chroot}").out.count("broker") == 3


def test_servers_again_and_again(kctl: Kctl, cluster: TestCluster) -> None:
    with kctl.running("zk", "stat", "--watch", "--interval", "100ms", "-o", "json") as process:
        assert process.stdout is not None
        passes = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [(each["rows"][0]["mode"], each["failures"]) for each in passes] == [("standalone", [])] * 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("get", "/brokers/topic"), 4, "did you mean /brokers/topics?"),
        (("get", "/no/such/node"), 4, "has no node /no/such/node below the chroot"),
        (("ls", "/brokers/ids/99"), 4, "children of /brokers/ids: 1, 2, 3"),
        (("tree", "/nothing"), 4, "has no node"),
        (("stat", "/nothing"), 4, "has no node"),
        (("acl", "/nothing"), 4, "has no node"),
        (("stat", "/controller", "--watch"), 2, "kctl zk watch /controller"),
        (("get", "/a//b"), 2, "is not a ZooKeeper path"),
        (("get", "/a\x1bb"), 2, "characters that ZooKeeper does not allow"),
        (("get", "/controller", "--raw", "-o", "json"), 2, "cannot be combined"),
        (("watch", "/x", "-o", "yaml"), 2, "watch supports"),
        (("watch", "/x", "--for", "soon"), 2, "soon"),
        (("ls", "/", "--limit", "0"), 2, "0 is not in the range"),
        (("ls", "--zookeeper", "BOOTSTRAP"), 3, "is a Kafka broker's port"),
        (("ls", "--zookeeper", "ZOOKEEPER/none"), 4, "has no chroot /none"),
    ],
)
def test_bad_input(kctl: Kctl, cluster: TestCluster, arguments: tuple[str, ...], code: int, message: str) -> None:
    words = {"BOOTSTRAP": cluster.bootstrap.split(",")[0], "ZOOKEEPER/none": f"{cluster.zookeeper.split('/')[0]}/none"}
    result = kctl("zk", *(words.get(argument, argument) for argument in arguments))
    assert result.code == code, str(result)
    assert message in result.err
    assert result.out == ""


def test_a_cluster_without_zookeeper(own_kctl: Kctl, cluster: TestCluster) -> None:
    result = own_kctl("zk", "ls", "--bootstrap-server", cluster.bootstrap)
    assert result.code == 2
    assert "a KRaft cluster has no ZooKeeper" in result.err


@pytest.mark.long
def test_an_ensemble_that_loses_its_servers(own_kctl: Kctl) -> None:
    own_kctl.ok("cluster", "create", "c", "--use", "--layout", "three-node", "--heap", "256m", timeout=180)
    whole = own_kctl.json("zk", "stat")
    assert sorted(row["mode"] for row in whole) == ["follower", "follower", "leader"]
    assert [row["synced_followers"] for row in whole if row["mode"] == "leader"] in ([2], [None])
    (leader,) = (row["server"] for row in whole if row["mode"] == "leader")
    assert "the ensemble has 3 servers" in own_kctl.ok("zk", "stat", "--zookeeper", leader).err
    with own_kctl.running("zk", "watch", "/brokers/ids", "-o", "json", "--timeout", "60s") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "is"
        own_kctl.ok("cluster", "kill", "c", "zookeeper-leader", "--yes")

        def one_down() -> bool:
            result = own_kctl("zk", "stat", "-o", "json")
            modes = sorted(str(row["mode"]) for row in json.loads(result.out))
            return result.code == 1 and modes == ["None", "follower", "leader"]

        eventually(one_down, seconds=60, what="the two that are left have a leader")
        own_kctl.ok("cluster", "kill", "c", "3", "--yes")
        gone = json.loads(process.stdout.readline())
        assert (gone["event"], gone["path"]) == ("child removed", "/brokers/ids/3")
    own_kctl.ok("cluster", "kill", "c", "zookeeper-leader", "--yes")

    def no_quorum() -> bool:
        result = own_kctl("zk", "stat", "-o", "json")
        return result.code == 1 and any("no quorum" in str(row["problem"]) for row in json.loads(result.out))

    eventually(no_quorum, seconds=60, what="the last one says that it serves nobody")
    lost = own_kctl("zk", "ls", "/", "--timeout", "3s")
    assert lost.code == 3
    assert "quorum" in lost.err
