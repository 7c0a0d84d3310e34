"""kctl leader status, elect --preferred and balance on the session's cluster, each with topics of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.model import TopicPartition
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target
from kctl.reassign.run.alter import alter_reassignments
from kctl.topics.elect import elect_leaders
from kctl_testing import Kctl, TestCluster, eventually


@pytest.fixture
def client(cluster: TestCluster) -> Iterator[ClusterClient]:
    with connect(Target("tests", tuple(cluster.bootstrap.split(",")))) as client:
        yield client


@pytest.fixture
def skewed(topic: Callable[..., str], client: ClusterClient) -> str:
    """Six partitions, all led by broker 1; broker 2 is preferred for two of them."""
    name = topic(6, 2)
    wanted: list[tuple[int, ...]] = [(1, 2), (1, 3), (1, 2), (1, 3), (1, 2), (1, 2)]
    _reorder(client, name, wanted)
    assert set(elect_leaders(client, [TopicPartition(name, p) for p in range(6)]).values()) == {None}
    eventually(lambda: _leaders(client, name) == [1] * 6, what="broker 1 leads all")
    _reorder(client, name, [*wanted[:4], (2, 1), (2, 1)])
    return name


def _reorder(client: ClusterClient, name: str, wanted: list[tuple[int, ...]]) -> None:
    assert alter_reassignments(client, {TopicPartition(name, p): row for p, row in enumerate(wanted)}) == {}

    def there() -> bool:
        partitions = client.metadata([name]).topics[name].partitions
        return all(p.replicas == wanted[p.partition] and set(p.isr) == set(p.replicas) for p in partitions)

    eventually(there, what="the replicas are in order and in sync")


def _leaders(client: ClusterClient, name: str) -> list[int]:
    return [p.leader for p in client.metadata([name]).topics[name].partitions]


def test_status(kctl: Kctl, skewed: str) -> None:
    unhealthy = kctl("leader", "status", "--topic", skewed, "-o", "json")
    assert unhealthy.code == 1
    body = json.loads(unhealthy.out)
    assert list(body) == [
        "partition_count", "preferred", "preferred_percent", "leaderless", "auto_rebalance", "imbalance_limit_percent",
        "brokers", "not_preferred", "idle_brokers", "empty_brokers",
    ]  # fmt: skip
    assert (body["partition_count"], body["preferred"], body["leaderless"]) == (6, 4, 0)
    assert (body["auto_rebalance"], body["imbalance_limit_percent"]) == (True, 100.0)
    rows = {row["broker"]: row for row in body["brokers"]}
    assert rows[2] == {
        "broker": 2, "rack": None, "alive": True, "leaders": 0, "preferred": 2, "missing": 2, "imbalance_percent": 100.0
    }  # fmt: skip
    assert (rows[1]["leaders"], rows[1]["imbalance_percent"], rows[3]["preferred"]) == (6, 0, 0)
    assert (body["idle_brokers"], body["empty_brokers"]) == ([3], [])
    assert body["not_preferred"][0] == {
        "topic": skewed, "partition": 4, "leader": 1, "preferred_leader": 2, "electable": True, "reason": None
    }  # fmt: skip
    assert "the largest 100 % on broker 2" in json.loads(unhealthy.err)["message"]
    assert kctl("leader", "status", "--topic", skewed, "--max-imbalance", "100").code == 0
    assert kctl("leader", "status", "--topic", "no-such-topic").code == 4


def test_elect_preferred(kctl: Kctl, skewed: str, client: ClusterClient) -> None:
    args = ("leader", "elect", "--preferred", "--topic", skewed)
    planned = kctl.json(*args, "--dry-run")
    assert [(row["partition"], row["leader"], row["elected"], row["result"]) for row in planned] == [
        (4, 1, 2, "would elect"), (5, 1, 2, "would elect"),
    ]  # fmt: skip
    assert kctl(*args).code == 4, "not confirmed"
    assert _leaders(client, skewed) == [1] * 6
    (one,) = kctl.json(*args, "--partition", "4", "--yes")
    assert (one["result"], one["elected"]) == ("elected", 2)
    assert _leaders(client, skewed) == [1, 1, 1, 1, 2, 1]
    assert len(kctl.json(*args, "--yes")) == 1
    assert _leaders(client, skewed) == [1, 1, 1, 1, 2, 2]
    assert kctl.json(*args, "--yes") == [], "twice is harmless"
    for wrong in (("--partition", "6"), ("--topic", "no-such-topic")):
        refused = kctl(*args, *wrong, "--yes")
        assert refused.code == 4, str(refused)
        assert "no-such-topic does not exist" in refused.err or "has no partition 6" in refused.err
    assert kctl("leader", "elect", "--preferred", "--unclean").code == 2
    assert kctl("leader", "elect", "--preferred", "--partition", "0").code == 2


def test_elect_the_partitions_of_a_file(kctl: Kctl, skewed: str, client: ClusterClient, tmp_path: Path) -> None:
    """As kafka-leader-election takes it, without a version and with fields of its writer."""
    file = tmp_path / "election.json"
    args = ("leader", "elect", "--preferred", "--path-to-json-file", str(file))
    entries = [{"topic": skewed, "partition": p, "why": "restart"} for p in (4, 0)]
    file.write_text(json.dumps({"partitions": [*entries, {"topic": skewed, "partition": 6}]}))
    absent = kctl(*args, "--yes")
    assert (absent.code, f"topic {skewed} has no partition 6" in absent.err) == (4, True)
    file.write_text(json.dumps({"partitions": entries, "owner": "ops"}))
    assert [row["partition"] for row in kctl.json(*args, "--dry-run")] == [4], "partition 0 has its preferred leader"
    assert kctl(*args).code == 4, "not confirmed"
    assert _leaders(client, skewed) == [1] * 6
    (one,) = kctl.json(*args, "--yes")
    assert (one["partition"], one["result"]) == (4, "elected")
    assert _leaders(client, skewed) == [1, 1, 1, 1, 2, 1]
    assert kctl(*args, "--topic", skewed).code == 2
    assert kctl(*args, "--partition", "0").code == 2
    file.write_text(json.dumps({"partitions": [entries[0], entries[0]]}))
    twice = kctl(*args, "--yes")
    assert (twice.code, "is listed twice" in twice.err) == (2, True)


def test_balance(kctl: Kctl, skewed: str, client: ClusterClient, tmp_path: Path) -> None:
    args = ("leader", "balance", "--topic", skewed)
    plan = tmp_path / "plan.json"
    planned = kctl.json(*args, "--dry-run", "--out", str(plan))
    # Preferred are broker 1 for four and broker 2 for two; two of the four have to go to broker 3.
    assert (planned["leader_changes"], planned["leader_lower_bound"], planned["complete"]) == (2, 2, True)
    assert [b["leaders_after"] for b in planned["brokers"]] == [None] * 3
    saved = json.loads(plan.read_text())
    assert (saved["version"], len(saved["partitions"]), saved["moves"]) == (1, 2, 0)
    assert _leaders(client, skewed) == [1] * 6, "a dry run changes nothing"

    done = kctl.json(*args, "--yes")
    counts = [(b["leaders_before"], b["preferred_before"], b["leaders_after"]) for b in done["brokers"]]
    assert counts == [(6, 4, 2), (0, 2, 2), (0, 0, 2)]
    assert {row["result"] for row in done["elections"]} == {"elected"}
    assert (len(done["elections"]), done["failed"]) == (4, {})
    assert sorted(_leaders(client, skewed)) == [1, 1, 2, 2, 3, 3]
    replicas: list[Any] = [sorted(p.replicas) for p in client.metadata([skewed]).topics[skewed].partitions]
    assert replicas == [[1, 2], [1, 3], [1, 2], [1, 3], [1, 2], [1, 2]], "no replica moved"
    again = kctl.json(*args, "--yes")
    assert (again["leader_changes"], again["reorders"], again["elections"]) == (0, 0, [])
