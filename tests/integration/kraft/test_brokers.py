"""Brokers, controller and health with KRaft 4.x: a quorum instead of ZooKeeper, and features in force."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from java_tools import java_tool
from kctl_testing import Kctl
from kraft_broker import VERSION


@pytest.fixture(scope="module")
def libs() -> Path:
    """The folder of Kafka 4.x, whose tools know the quorum."""
    from kctl.deploy.runtime.runtime import ensure_runtime

    return ensure_runtime(VERSION).libs.parent


def test_controller_as_kafkas_own_tool(own_kctl: Kctl, kraft: str, libs: Path) -> None:
    found = own_kctl.json("controller", "--bootstrap-server", kraft)
    out = java_tool(
        libs, "org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-server", kraft, "describe", "--status"
    )
    java = dict(re.findall(r"^(\w+): +(.*)$", out, re.MULTILINE))
    assert (found["metadata"], found["controller_id"], found["epoch"]) == (
        "kraft",
        int(java["LeaderId"]),
        int(java["LeaderEpoch"]),
    )
    assert 0 < found["high_watermark"] <= int(java["HighWatermark"])
    (voter,) = found["voters"]
    assert list(voter) == [
        "node_id", "role", "directory_id", "host", "port", "log_end_offset", "lag", "last_fetch", "last_caught_up",
    ]  # fmt: skip
    assert (voter["node_id"], voter["role"], voter["lag"]) == (1, "leader", 0)
    assert f'"endpoints": ["CONTROLLER://{voter["host"]}:{voter["port"]}"]' in java["CurrentVoters"]
    assert found["observers"] == []
    zookeeper = own_kctl("controller", "--bootstrap-server", kraft, "--zookeeper", "127.0.0.1:1")
    assert zookeeper.code == 0, "there is none, and none is asked"


def test_features_as_kafkas_own_tool(own_kctl: Kctl, kraft: str, libs: Path) -> None:
    out = java_tool(libs, "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", kraft, "describe")
    pattern = (
        r"^Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)\s"
    )
    java = {
        name: tuple(map(int, levels)) for name, *levels in re.findall(pattern, out, re.MULTILINE) if levels[2].isdigit()
    }
    rows = own_kctl.json("broker", "features", "--bootstrap-server", kraft)
    assert [row["brokers"] for row in rows] == [[1]] * len(rows)
    # What is not in use has level 0; metadata.version the tool shows by its name, "4.3-IV0".
    mine = {
        row["feature"]: (row["min_version"], row["max_version"], row["finalized_version"] or 0)
        for row in rows
        if row["feature"] != "metadata.version"
    }
    assert len(mine) == len(rows) - 1 > 2
    assert mine == java


def test_the_same_commands(own_kctl: Kctl, kraft: str) -> None:
    own_kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    own_kctl.ok("context", "use", "kraft")
    (row,) = own_kctl.json("broker", "list")
    assert (row["broker"], row["state"], row["is_controller"], row["release"][:2]) == (1, "up", True, "4.")
    assert len(own_kctl.json("broker", "log-dirs")) == 2
    apis = {each["api"]: each for each in own_kctl.json("broker", "api-versions")}
    assert "DescribeQuorum" in apis
    assert "LeaderAndIsr" not in apis, "only brokers with ZooKeeper have it"
    found = own_kctl.json("cluster", "health", "--max-disk-percent", "100")
    assert found["healthy"]
    assert found["checks"][1] == {
        "check": "controller", "status": "ok", "summary": "1; 1 voter in the quorum", "subjects": [], "reasons": [],
    }  # fmt: skip
    own_kctl.ok("cluster", "diagnose")
    name = "org.apache.kafka.raft.LeaderState"
    (before,) = own_kctl.json("broker", "loggers", "list", name)
    (done,) = own_kctl.json("broker", "loggers", "set", f"{name}=ERROR", "--for", "100ms", "--yes")
    assert (done["before"], done["after"], done["result"]) == (before["level"], "ERROR", "put back")
    assert own_kctl.json("broker", "loggers", "list", name) == [before]
