"""Plans of a live cluster: the same as of its export, and accepted by Kafka's own tool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.deploy.runtime.java import find_java
from kctl.reassign.plan_file.read import read_plan
from kctl_testing import Kctl, TestCluster, eventually

PLAN = ("topic", "reassign", "plan")


def kafka_reassign(kafka_home: Path, cluster: TestCluster, *args: str) -> str:
    """kafka-reassign-partitions of the jars; its output."""
    done = subprocess.run(
        [
            str(find_java().executable), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_home}/libs/*",
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--bootstrap-server", cluster.bootstrap, *args,
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_live_cluster_and_its_export_give_the_same_plan(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic(partitions=6, replication_factor=2)
    goals = ("--topic", name, "--remove-broker", "3", "--balance", "leaders", "-o", "json")
    live = kctl.json(*PLAN, *goals)
    kctl.ok("cluster", "export", "--out", str(tmp_path / "cluster.json"))
    assert kctl.json(*PLAN, "--from-file", str(tmp_path / "cluster.json"), *goals) == live
    assert live["moves"] == live["lower_bound"] == 4, "a third of twelve replicas leaves"
    assert live["cluster_id"]
    assert live["topics"][name]["topic_id"]
    assert live["topics"][name]["partitions"] == 6
    assert [row["replicas"] for row in live["after"]] == [6, 6, 0]
    assert all("size_bytes" in row for row in live["current"]["partitions"])


@pytest.mark.long
def test_kafkas_own_tool_carries_out_a_plan_and_its_rollback(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path, tmp_path: Path
) -> None:
    name = topic(partitions=3, replication_factor=2)
    kctl.ok("produce", name, stdin="".join(f"{n}\n" for n in range(300)))
    file = tmp_path / "plan.json"
    kctl.ok(*PLAN, "--topic", name, "--remove-broker", "3", "--out", str(file))
    before = {r.tp.partition: list(r.before or ()) for r in read_plan(file).reassignments}
    assert before

    def reached(path: Path) -> bool:
        lines = kafka_reassign(kafka_home, cluster, "--reassignment-json-file", str(path), "--verify").splitlines()
        return sum(line.startswith(f"Reassignment of partition {name}-") for line in lines) == len(before) and all(
            line.endswith("is completed.") for line in lines if line.startswith("Reassignment of partition")
        )

    kafka_reassign(kafka_home, cluster, "--reassignment-json-file", str(file), "--execute")
    eventually(lambda: reached(file), seconds=60, what="kafka-reassign-partitions completes the plan")
    assert kctl.json(*PLAN, "--topic", name, "--remove-broker", "3")["partitions"] == []

    back = tmp_path / "rollback.json"
    back.write_text(json.dumps(json.loads(file.read_text())["rollback"]))
    kafka_reassign(kafka_home, cluster, "--reassignment-json-file", str(back), "--execute")
    eventually(lambda: reached(back), seconds=60, what="kafka-reassign-partitions completes the rollback")
    (found,) = kctl.json("topic", "describe", name)
    assert {p["partition"]: p["replicas"] for p in found["partitions"] if p["partition"] in before} == before


def _of_one_log_dir(kctl: Kctl, topic: str) -> list[str]:
    """Two partitions that broker 1 keeps in one log dir: where three partitions or more are in two, there are some."""
    held: dict[str, list[str]] = {}
    for row in kctl.json("broker", "log-dirs", "1", "--replicas"):
        if row["topic"] == topic:
            held.setdefault(row["log_dir"], []).append(str(row["partition"]))
    return next(numbers for numbers in held.values() if len(numbers) >= 2)[:2]


@pytest.mark.long
def test_kafkas_own_tool_moves_replicas_between_log_dirs(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path, tmp_path: Path
) -> None:
    """A broker spreads new replicas over its log dirs by their number; with sizes that differ they are not even."""
    name = topic(partitions=4, replication_factor=3)
    for partition in _of_one_log_dir(kctl, name):
        kctl.ok("produce", name, "--partition", partition, "--size", "100kB", "--count", "100")
    file = tmp_path / "plan.json"
    kctl(*PLAN, "--topic", name, "--log-dirs", "--out", str(file))  # 1 where the other topics keep it from being even
    plan = read_plan(file)
    wanted = {
        (r.tp, node): path
        for r in plan.reassignments
        for node, path in zip(r.after, r.log_dirs or (), strict=True)
        if path
    }
    assert all(set(r.before or ()) == set(r.after) for r in plan.reassignments)
    assert wanted, "nothing is uneven: this test shows nothing"
    # The tool asks for log dirs and reassignments in one go, and says so of the log dirs once brokers know them.
    kafka_reassign(kafka_home, cluster, "--reassignment-json-file", str(file), "--execute")

    def there() -> bool:
        state = kctl.json("cluster", "export")
        found = {
            (replica["topic"], replica["partition"], broker["id"]): log_dir["path"]
            for broker in state["brokers"]
            for log_dir in broker["log_dirs"]
            for replica in log_dir["replicas"]
            if not replica["future"]
        }
        return all(found[tp.topic, tp.partition, node] == path for (tp, node), path in wanted.items())

    eventually(there, seconds=60, what="replicas are in the log dirs that the plan says")
