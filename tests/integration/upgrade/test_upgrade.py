"""An upgrade of a real cluster: a target that does not start, kill -9 of kctl, rollback, finalization.

From 3.9.2, the oldest release for KRaft, to Kafka 4, on one node, which is broker and controller.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import clusters_dir, nothing_left_running
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.validate.experiment import Experiment
from kctl.validate.workload.records import new_run
from kctl.validate.workload.settings import ProducerSettings
from kctl_forks import KILLED_AT
from kctl_testing import Kctl, Result, within

pytestmark = pytest.mark.timeout(900)
_SECONDS = 240.0
OLD, NEW = "3.9.2", "4.4.0"
UPGRADE = ("cluster", "upgrade", "c", "--to", NEW, "--soak", "0s", "--yes")
ROLLBACK = ("cluster", "rollback", "c", "--yes")


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str], kafka_home: Path) -> Iterator[Kctl]:
    """A kctl with a cluster of Kafka 3.9.2 and a topic with records."""
    kctl = Kctl(tmp_path_factory.mktemp("upgrade"), shared)
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", "c", "--use", "--layout", "kraft-single", "--heap", "256m",
            "--kafka-home", str(kafka_home), timeout=_SECONDS,
        )  # fmt: skip
        kctl.ok("topic", "create", "orders", "--partitions", "2")
        kctl.ok("produce", "orders", stdin="one\ntwo\n")
        yield kctl


@pytest.fixture(scope="module")
def broken_home(tmp_path_factory: pytest.TempPathFactory, kafka_4_home: Path) -> Path:
    """Kafka 4 with one jar cut off."""
    libs = tmp_path_factory.mktemp("broken") / "libs"
    libs.mkdir()
    for jar in (kafka_4_home / "libs").glob("*.jar"):
        if jar.name.startswith("kafka-server-common"):
            (libs / jar.name).write_bytes(jar.read_bytes()[:5000])
        else:
            (libs / jar.name).symlink_to(jar)
    return libs.parent


def releases(kctl: Kctl) -> set[str]:
    """What the processes run, read from their class paths."""
    found = set()
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = line.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(clusters_dir(kctl)).encode() in word for word in argv) and b"-cp" in argv:
            libs = Path(os.fsdecode(argv[argv.index(b"-cp") + 1])).parent
            found |= {jar.name.removesuffix(".jar").rpartition("-")[2] for jar in libs.glob("kafka-clients-*.jar")}
    return found


def records(kctl: Kctl) -> list[str]:
    return sorted(kctl.ok("consume", "orders", "--from-beginning", "--exit-eof").out.split())


def killed(kctl: Kctl, moment: str, step: str, *command: str) -> Result:
    result = kctl(*command, env={KILLED_AT: f"{moment},{step},1"}, timeout=_SECONDS)
    assert result.code == -signal.SIGKILL, str(result)
    return result


def status(kctl: Kctl) -> Any:
    return json.loads(kctl("cluster", "status", "c", "-o", "json").out)


def test_a_target_that_does_not_start_and_the_way_back(upgraded: Kctl, broken_home: Path, kafka_4_home: Path) -> None:
    properties = clusters_dir(upgraded) / "c/broker-1/server.properties"
    before = properties.read_text()
    plan = upgraded.json("cluster", "upgrade", "c", "--to", NEW, "--kafka-home", str(kafka_4_home), "--dry-run")
    assert [(row["node"], row["kafka_version"]) for row in plan["nodes"]] == [("broker-1", OLD)]
    result = upgraded(*UPGRADE, "--kafka-home", str(broken_home), timeout=_SECONDS)
    assert result.code == 5, str(result)
    assert "broker-1 of cluster c did not start" in result.err
    assert "the end of its log" in result.err
    assert "kctl cluster rollback c" in result.err
    assert (status(upgraded)["upgrade_to"], releases(upgraded)) == (NEW, set())
    refused = upgraded("cluster", "finalize", "c", "--yes")
    assert refused.code == 4
    assert "broker-1 is down" in refused.err
    refused = upgraded("cluster", "restart", "c", "--rolling", "--yes")
    assert refused.code == 4
    assert "unfinished upgrade" in refused.err
    for moment, step in (("before", "start"), ("after", "start")):
        killed(upgraded, moment, step, *ROLLBACK)
    assert upgraded("cluster", "upgrade", "c", "--to", NEW, "--yes").code == 4
    back = upgraded.json(*ROLLBACK, timeout=_SECONDS)
    assert back["outcome"] == "rolled back"
    assert (status(upgraded)["upgrade_to"], releases(upgraded)) == (None, {OLD})
    assert properties.read_text() == before
    assert records(upgraded) == ["one", "two"]
    assert upgraded(*ROLLBACK).code == 4


def test_an_upgrade_killed_at_its_steps_and_finalized(upgraded: Kctl, kafka_4_home: Path) -> None:
    home = ("--kafka-home", str(kafka_4_home))
    for moment, step in (("before", "stop"), ("after", "stopped"), ("after", "start"), ("before", "end")):
        killed(upgraded, moment, step, *UPGRADE, *home)
    done = upgraded.json(*UPGRADE, *home, timeout=_SECONDS)
    assert (done["outcome"], releases(upgraded)) == ("upgraded", {NEW})
    assert records(upgraded) == ["one", "two"]
    upgraded.ok("produce", "orders", stdin="three\n")

    upgraded.ok("cluster", "stop", "c", "--yes", timeout=90)
    refused = upgraded("cluster", "finalize", "c", "--yes")
    assert refused.code == 4
    assert "broker-1 is down" in refused.err
    upgraded.ok("cluster", "start", "c", timeout=_SECONDS)
    plan = upgraded.json("cluster", "finalize", "c", "--dry-run")
    assert plan["features"][0]["feature"] == "metadata.version"
    assert upgraded.json("cluster", "finalize", "c", "--yes", timeout=90)["outcome"] == "finalized"
    finalized = {row["feature"]: row["finalized_version"] for row in upgraded.json("broker", "features")}
    assert finalized["metadata.version"] == plan["features"][0]["after"] > plan["features"][0]["before"]
    assert (status(upgraded)["kafka_version"], status(upgraded)["upgrade_to"]) == (NEW, None)
    assert records(upgraded) == ["one", "three", "two"]
    refused = upgraded(*ROLLBACK)
    assert refused.code == 4
    assert "has no unfinished upgrade" in refused.err
    assert upgraded.json(*UPGRADE)["outcome"] == "unchanged"


@pytest.mark.long
def test_nothing_acknowledged_is_lost_while_three_nodes_are_upgraded(
    tmp_path: Path, shared: dict[str, str], kafka_home: Path, kafka_4_home: Path
) -> None:
    (tmp_path / "home").mkdir()
    kctl = Kctl(tmp_path / "home", shared)
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", "c", "--use", "--layout", "kraft-combined", "--heap", "256m",
            "--kafka-home", str(kafka_home), timeout=_SECONDS,
        )  # fmt: skip
        kctl.ok("topic", "create", "orders", "--partitions", "6", "--replication-factor", "3")
        at = Target("c", tuple(kctl.json("context", "show", "c")["bootstrap_servers"]), None)
        (tmp_path / "journals").mkdir(mode=0o700)
        settings = ProducerSettings("orders", new_run(), per_s=200, value_bytes=100)
        with connect(at) as client, Experiment(at, settings, tmp_path / "journals") as experiment:
            experiment.wait_writes(50, timeout_s=within(30))
            done = kctl.json(*UPGRADE, "--kafka-home", str(kafka_4_home), timeout=600)
            experiment.wait_writes(50, timeout_s=within(60))
            experiment.wait_recovered(timeout_s=within(60))
            verdict = experiment.finish(client, timeout_s=within(60))
        assert done["outcome"] == "upgraded"
        assert {row["node"] for row in done["nodes"]} == {"broker-1", "broker-2", "broker-3"}
        assert releases(kctl) == {NEW}
        assert verdict.ok, verdict
        assert (verdict.findings.failed, verdict.findings.indeterminate) == (0, 0)
        assert verdict.findings.acked > 300


@pytest.mark.long
def test_zookeeper_keeps_the_old_protocol_until_the_end(tmp_path: Path, shared: dict[str, str]) -> None:
    """2.8 to 3.9: kctl is killed in the middle of the finalization, before and after the point of no return."""
    from kctl.deploy.runtime.runtime import ensure_runtime

    (tmp_path / "home").mkdir()
    kctl = Kctl(tmp_path / "home", shared)
    upgrade = ("cluster", "upgrade", "c", "--to", OLD, "--soak", "0s", "--yes")
    finalize = ("cluster", "finalize", "c", "--yes")
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", "c", "--use", "--layout", "single", "--heap", "256m",
            "--kafka-home", str(ensure_runtime("2.8.2").libs.parent), timeout=_SECONDS,
        )  # fmt: skip
        kctl.ok("topic", "create", "orders")
        kctl.ok("produce", "orders", stdin="one\n")
        refused = kctl("cluster", "upgrade", "c", "--to", NEW, "--yes")
        assert (refused.code, "does not support ZooKeeper" in refused.err) == (4, True)
        done = kctl.json(*upgrade, timeout=_SECONDS)
        assert [row["node"] for row in done["nodes"]] == ["zookeeper-1", "broker-1"]
        assert protocol(kctl) == "2.8"
        killed(kctl, "after", "stopped", *finalize)
        back = kctl.json(*ROLLBACK, timeout=_SECONDS)
        assert [row["node"] for row in back["nodes"]] == ["broker-1", "zookeeper-1"]
        kctl.json(*upgrade, timeout=_SECONDS)
        killed(kctl, "after", "started", *finalize)
        refused = kctl(*ROLLBACK)
        assert (refused.code, "may use the inter-broker protocol" in refused.err) == (4, True)
        assert kctl.json(*finalize, timeout=_SECONDS)["outcome"] == "finalized"
        assert (protocol(kctl), records(kctl)) == ("3.9-IV0", ["one"])


def protocol(kctl: Kctl) -> str:
    rows = kctl.json("config", "get", "broker/1", "inter.broker.protocol.version")
    return str(rows[0]["value"] if isinstance(rows, list) else rows["value"])
