"""Feature levels of a Kafka 4.4 broker that was formatted with the levels of 3.9, compared with Kafka's own tool."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import features_killed
from command_tree import every_command, examples_of
from feature_levels import levels_of, merged
from java_tools import java_tool
from kctl_testing import Kctl, free_ports
from kraft_process import KraftProcess

RELEASES = ("3.9", "4.0", "4.1", "4.2", "4.3", "4.4")
_TOOL = "org.apache.kafka.tools.FeatureCommand"


@pytest.fixture(scope="module")
def old_levels(tmp_path_factory: pytest.TempPathFactory, kafka_4_home: Path) -> Iterator[str]:
    """The bootstrap server of the broker, which is also the only controller."""
    from kctl.deploy.runtime.java import find_java

    folder = tmp_path_factory.mktemp("features")
    port, controller = free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": folder / "data",
        "min.insync.replicas": 2,
        "log.cleaner.dedupe.buffer.size": 8 * 2**20,
    }
    libs = kafka_4_home / "libs"
    process = KraftProcess(
        folder, find_java().executable, libs, settings, [port], format_options=("--release-version", "3.9")
    )
    with process.running():
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def kctl(old_levels: str, tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    kctl = Kctl(tmp_path_factory.mktemp("features-kctl"), shared)
    kctl.ok("context", "add", "levels", "--bootstrap-server", old_levels)
    kctl.ok("context", "use", "levels")
    return kctl


def java_levels(home: Path, bootstrap: str) -> dict[str, str]:
    """Return the finalized level of each feature, as Kafka's tool prints it."""
    out = java_tool(home, _TOOL, "--bootstrap-server", bootstrap, "describe")
    return dict(re.findall(r"^Feature: (\S+) .*FinalizedVersionLevel: (\S+)", out, re.MULTILINE))


def levels(kctl: Kctl) -> dict[str, str]:
    return {row["feature"]: row["finalized_name"] for row in kctl.json("feature", "list")}


def test_the_table_of_levels_is_what_kafkas_classes_say(kafka_home: Path, kafka_4_home: Path) -> None:
    import json

    from kctl.features import levels as module

    committed = json.loads(Path(module.__file__).with_name("feature_levels.json").read_text(encoding="utf-8"))
    assert committed == merged([levels_of(kafka_home), levels_of(kafka_4_home)])


def test_list_as_kafkas_own_tool(kctl: Kctl, old_levels: str, kafka_4_home: Path) -> None:
    assert levels(kctl) == java_levels(kafka_4_home, old_levels)
    row = next(row for row in kctl.json("feature", "list") if row["feature"] == "metadata.version")
    assert (row["finalized_version"], row["finalized_name"], row["max_name"]) == (21, "3.9-IV0", "4.4-IV2")
    assert row["supported"] == [
        {"brokers": [1], "controllers": [], "releases": ["4.4"], "min_version": 7, "max_version": 33,
         "min_name": "3.3-IV3", "max_name": "4.4-IV2"}
    ]  # fmt: skip
    assert row["finalized_epoch"] > 0
    table = kctl.ok("feature", "list", "--levels").out
    assert re.search(r"metadata\.version +4\.4-IV2 +available +unregistering controllers \(KIP-1312\)", table)


@pytest.mark.parametrize("release", [pytest.param(r, marks=pytest.mark.long) for r in RELEASES[:-1]] + [RELEASES[-1]])
def test_a_release_as_kafkas_own_tool(release: str, kctl: Kctl, old_levels: str, kafka_4_home: Path) -> None:
    """The features that --release raises, and their levels; Kafka's tool also repeats those that are reached."""
    out = java_tool(
        kafka_4_home, _TOOL, "--bootstrap-server", old_levels, "upgrade", "--release-version", release, "--dry-run"
    )
    java = {name: int(level) for name, level in re.findall(r"^(\S+) can be upgraded to (\d+)\.", out, re.MULTILINE)}
    rows = kctl.json("feature", "upgrade", "--release", release, "--dry-run")
    assert {row["feature"]: row["after"] for row in rows} == java
    assert {row["result"] for row in rows} <= {"would set", "unchanged"}
    assert levels(kctl)["metadata.version"] == "3.9-IV0"


def test_what_the_controller_refuses(kctl: Kctl) -> None:
    refused = kctl("feature", "upgrade", "metadata.version=34", "--yes")
    assert refused.code == 4
    assert "metadata.version 4.5-IV0 is not supported by broker 1 (Kafka 4.4, 3.3-IV3 to 4.4-IV2)" in refused.err
    refused = kctl("feature", "downgrade", "metadata.version=3.4-IV0", "--unsafe", "--dry-run")
    assert refused.code == 4
    assert "INVALID_UPDATE_VERSION" in refused.err
    assert "Unsafe metadata downgrade is not supported" in refused.err
    assert kctl("feature", "upgrade").code == 2
    assert kctl("feature", "upgrade", "--release", "4.4", "group.version=1").code == 2
    assert kctl("feature", "upgrade", "--release", "7.0", "--yes").code == 4
    unconfirmed = kctl("feature", "upgrade", "--release", "4.4")
    assert unconfirmed.code == 4
    assert "would set metadata.version: 3.9-IV0 → 4.4-IV2" in unconfirmed.err
    assert levels(kctl)["metadata.version"] == "3.9-IV0"


def test_killed_before_it_reads_back(kctl: Kctl, old_levels: str, kafka_4_home: Path) -> None:
    """A level and back again, both safe: kill -9 right after the answer, then the same command."""
    command = ("feature", "upgrade", "group.version=1", "--yes")
    killed = subprocess.run(
        [sys.executable, features_killed.__file__, *command], env=kctl.environment, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = kctl.ok(*command, "-o", "json")
    assert '"result": "unchanged"' in again.out
    assert "already has these levels" in again.err
    assert java_levels(kafka_4_home, old_levels)["group.version"] == "1"
    (row,) = kctl.json("feature", "downgrade", "group.version=0", "--yes")
    assert (row["result"], row["before"], row["after"]) == ("set", 1, 0)
    assert levels(kctl)["group.version"] == "0"


def test_upgrade_to_the_release_of_the_software(kctl: Kctl, old_levels: str, kafka_4_home: Path) -> None:
    """All features in one step; min.insync.replicas of the file becomes that of all brokers; then no way back."""
    upgraded = kctl.ok("feature", "upgrade", "--release", "4.4", "--yes")
    assert "metadata.version cannot be lowered below 4.4-IV2 afterwards" in upgraded.err
    assert "kraft.version cannot be lowered afterwards" in upgraded.err
    assert "min.insync.replicas is 2, but not set for all brokers" in upgraded.err
    assert levels(kctl) == java_levels(kafka_4_home, old_levels)
    assert levels(kctl)["metadata.version"] == "4.4-IV2"
    assert _value(kctl.json("config", "get", "brokers", "min.insync.replicas")) == "2"

    again = kctl.ok("feature", "upgrade", "--release", "4.4", "--yes")
    assert "nothing to do" in again.err
    for refused in (("metadata.version=4.3",), ("kraft.version=0",), ("--release", "4.3")):
        done = kctl("feature", "downgrade", *refused, "--yes")
        assert done.code == 4, str(done)
    dead_letters = kctl.json("feature", "downgrade", "share.version=1", "--yes")
    assert [(row["before"], row["after"], row["result"]) for row in dead_letters] == [(2, 1, "set")]
    rows = kctl.json("feature", "upgrade", "--release", "4.4", "--yes")
    assert [row["feature"] for row in rows if row["result"] == "set"] == ["share.version"]


def test_a_protected_context_asks_for_its_name(kctl: Kctl, old_levels: str) -> None:
    kctl.ok("context", "add", "prod", "--bootstrap-server", old_levels, "--protected")
    try:
        refused = kctl("feature", "downgrade", "group.version=0", "--yes")
        assert refused.code == 4
        assert "--confirm-cluster prod" in refused.err
        assert levels(kctl)["group.version"] == "1"
    finally:
        kctl.ok("context", "remove", "prod", "--yes", "--confirm-cluster", "prod")


@pytest.mark.parametrize("path", ["list", "upgrade", "downgrade"])
def test_the_examples_of_the_help(path: str, kctl: Kctl) -> None:
    examples = [line for name, command in every_command() if name == f"feature {path}" for line in examples_of(command)]
    assert examples
    for example in examples:
        kctl.ok(*shlex.split(example.command)[1:])


def _value(rows: list[dict[str, Any]]) -> Any:
    (row,) = rows
    return row["value"]
