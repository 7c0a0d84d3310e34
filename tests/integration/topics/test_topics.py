"""kctl topic against a real cluster: every option, and what goes wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from kctl_testing import Kctl, TestCluster, within

_numbers = count(1)


@pytest.fixture
def name(kctl: Kctl, cluster: TestCluster) -> Iterator[str]:
    """A topic name of this test alone; the topic is deleted afterwards if the test made one."""
    topic = f"topics-{os.getpid()}-{next(_numbers)}"
    yield topic
    kctl.ok("topic", "delete", topic, "--if-exists", "--yes")


def test_create_describe_delete(kctl: Kctl, name: str) -> None:
    options = ("--partitions", "3", "--replication-factor", "2", "--config", "retention.ms=60000")
    planned = kctl.json("topic", "create", name, *options, "--dry-run")
    assert planned == [
        {"topic": name, "result": "would create", "partition_count": 3, "replication_factor": 2,
         "configs": {"retention.ms": "60000"}, "differs": None, "error": None}
    ]  # fmt: skip
    assert kctl("topic", "describe", name).code == 4, "a dry run creates nothing"
    (created,) = kctl.json("topic", "create", name, *options)
    assert (created["result"], created["partition_count"], created["replication_factor"]) == ("created", 3, 2)

    (described,) = kctl.json("topic", "describe", name)
    assert list(described) == [
        "topic", "topic_id", "internal", "partition_count", "replication_factor", "config_entries", "configs_error",
        "partitions",
    ]  # fmt: skip
    assert {"name": "retention.ms", "value": "60000", "source": "topic"} in described["config_entries"]
    assert [p["partition"] for p in described["partitions"]] == [0, 1, 2]
    first = described["partitions"][0]
    assert list(first) == [
        "partition", "leader", "preferred_leader", "replicas", "isr", "offline_replicas", "adding_replicas",
        "removing_replicas", "under_replicated", "under_min_isr", "at_min_isr", "offline", "size_bytes",
        "leader_size_bytes", "offsets", "eligible", "last_known_eligible",
    ]  # fmt: skip
    assert (first["eligible"], first["last_known_eligible"]) == (None, None), "with ZooKeeper there are none"
    assert len(first["replicas"]) == 2
    assert first["leader"] == first["preferred_leader"] == first["replicas"][0]
    assert sorted(first["isr"]) == sorted(first["replicas"])
    assert (first["under_replicated"], first["offline"], first["under_min_isr"]) == (False, False, False)

    again = kctl("topic", "create", name)
    assert again.code == 4
    assert "already exists" in again.err
    kept = kctl("topic", "create", name, "--if-not-exists", "--partitions", "5")
    assert kept.code == 0
    assert "has 3 partitions, not 5" in kept.err

    refused = kctl("topic", "delete", name)
    assert refused.code == 4
    assert "3 partitions, replication factor 2, 0 B on disk" in refused.err
    (shown,) = kctl.json("topic", "delete", name, "--dry-run")
    assert (shown["result"], shown["partition_count"], shown["size_bytes"]) == ("would delete", 3, 0)
    (gone,) = kctl.json("topic", "delete", name, "--yes")
    assert gone["result"] == "deleted"
    assert kctl("topic", "delete", name, "--yes").code == 4
    assert kctl.json("topic", "delete", name, "--yes", "--if-exists")[0]["result"] == "absent"


def test_a_name_can_be_used_again_at_once(kctl: Kctl, name: str) -> None:
    """Deleted means gone on all brokers: with ZooKeeper the name stays blocked while replicas are being deleted."""
    for partitions in ("20", "1"):
        kctl.ok("topic", "create", name, "--partitions", partitions, "--replication-factor", "3")
        kctl.ok("topic", "delete", name, "--yes")


def test_list(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=4, replication_factor=3)
    rows = {row["topic"]: row for row in kctl.json("topic", "list")}
    assert rows[mine] == {
        "topic": mine, "partition_count": 4, "replication_factor": 3, "internal": False,
        "under_replicated_partitions": 0, "offline_partitions": 0, "size_bytes": None, "leader_size_bytes": None,
        "messages": None,
    }  # fmt: skip
    assert "__consumer_offsets" not in rows
    assert list(rows) == sorted(rows)
    kctl.ok("consume", mine, "--group", "makes-the-offsets-topic", "--exit-eof")
    assert "__consumer_offsets" in kctl.ok("topic", "list", "--internal").out
    header, *lines = kctl.ok("topic", "list", "-o", "csv").out.splitlines()
    assert header == ",".join(rows[mine])
    assert f"{mine},4,3,false,0,0,,," in lines


def test_the_table_names_every_partition(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=2, replication_factor=3, **{"cleanup.policy": "compact"})
    out = kctl.ok("topic", "describe", mine).out
    assert f"{mine}: 2 partitions, replication factor 3" in out
    assert "PARTITION  LEADER  REPLICAS  ISR" in out
    assert "cleanup.policy" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_moved_leader_is_marked(kctl: Kctl, cluster: TestCluster, name: str) -> None:
    """The preferred leader is the first replica; an assignment puts it on a broker of our choice."""
    first, second, third = cluster.broker_ids
    assignment = f"{first}:{second},{second}:{third},{third}:{first}"
    kctl.ok("topic", "create", name, "--replica-assignment", assignment)
    (described,) = kctl.json("topic", "describe", name)
    assert [p["replicas"] for p in described["partitions"]] == [[first, second], [second, third], [third, first]]
    assert [p["leader"] for p in described["partitions"]] == [first, second, third]


def test_several_names(kctl: Kctl, name: str) -> None:
    both = [name, f"{name}-b"]
    assert [row["result"] for row in kctl.json("topic", "create", *both)] == ["created", "created"]
    mixed = kctl.json("topic", "create", *both, f"{name}-c", "--if-not-exists")
    assert [row["result"] for row in mixed] == ["exists", "exists", "created"]
    assert [row["topic"] for row in kctl.json("topic", "describe", both[1], both[0])] == [both[1], both[0]]
    missing = kctl("topic", "delete", *both, "no-such-topic", "--yes")
    assert missing.code == 4, "one that is not there: nothing is deleted"
    assert len(kctl.json("topic", "describe", *both)) == 2
    deleted = kctl.json("topic", "delete", *both, f"{name}-c", "--yes")
    assert [row["result"] for row in deleted] == ["deleted"] * 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("create", "b@d"), 2, "only ASCII letters"),
        (("create", ".."), 2, "not allowed"),
        (("create", "x" * 250), 2, "the maximum is 249"),
        (("create", ""), 2, "it is empty"),
        (("create", "bad-rf", "--replication-factor", "4"), 4, "larger than available brokers: 3"),
        (("create", "bad-config", "--config", "no.such=1"), 4, "Unknown topic config name: no.such"),
        (("create", "bad-config", "--config", "retention.ms=soon"), 4, "Invalid value soon"),
        (("create", "bad-config", "--config", "retention.ms"), 2, "a config must be KEY=VALUE"),
        (("create", "bad-count", "--partitions", "0"), 2, "0 is not in the range"),
        (("create", "bad-count", "--partitions", "200000000"), 2, "is not in the range"),
        (("create", "bad-brokers", "--replica-assignment", "1:2,2:99"), 4, "unknown brokers: 99"),
        (("create", "bad-brokers", "--replica-assignment", "1:1"), 2, "a duplicate broker"),
        (("create", "both", "--replica-assignment", "1:2", "--partitions", "1"), 2, "--replica-assignment excludes"),
        (("create", "twice", "twice"), 2, "listed twice"),
        (("create",), 2, "NAME"),
        (("describe", "no-such-topic"), 4, "topic no-such-topic does not exist"),
        (("describe", "no-such-topic", "nor-this"), 4, "topics no-such-topic, nor-this do not exist"),
        (("describe", "b@d"), 2, "only ASCII letters"),
        (("delete", "no-such-topic", "--yes"), 4, "topic no-such-topic does not exist"),
        (("delete", "__consumer_offsets", "--yes"), 4, "internal topic"),
        (("list", "-o", "xml"), 2, "xml is not a format"),
    ],
)
def test_bad_input(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    if "__consumer_offsets" in arguments:
        kctl.ok("consume", topic(), "--group", "makes-the-offsets-topic", "--exit-eof")
    result = kctl("topic", *arguments)
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    assert result.seconds < within(5)
    assert not {row["topic"] for row in kctl.json("topic", "list")} & {"bad-rf", "bad-config", "bad-brokers", "twice"}


def test_a_colliding_name_is_refused(kctl: Kctl, name: str) -> None:
    dotted, scored = f"{name}.x", f"{name}_x"
    kctl.ok("topic", "create", dotted)
    refused = kctl("topic", "create", scored)
    kctl.ok("topic", "delete", dotted, "--yes")
    assert refused.code == 4
    assert f"collides with {dotted}" in refused.err


def test_an_error_is_json_when_asked(kctl: Kctl, cluster: TestCluster) -> None:
    result = kctl("topic", "describe", "no-such-topic", "-o", "json")
    assert result.code == 4
    assert json.loads(result.err)["code"] == "not_found"


def test_the_log_size_of_a_topic_is_told_before_it_is_deleted(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=1, replication_factor=3)
    kctl.ok("produce", mine, stdin="x" * 10_000 + "\n")
    (planned,) = kctl.json("topic", "delete", mine, "--dry-run")
    assert planned["size_bytes"] > 3 * 10_000
