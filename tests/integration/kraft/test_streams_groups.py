"""kctl group and streams groups (KIP-1071): topology and tasks, committed offsets, what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kraft_broker
from group_admin import Admin
from java_tools import java_tool
from kctl.deploy.runtime.runtime import ensure_runtime
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import Kctl, eventually
from streams_member import StreamsMember, heartbeat_messages, streams_member

_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
GROUP = f"kraft-streams-{os.getpid()}\x1b[31m"


@pytest.fixture(scope="module")
def kctl(kraft: str, tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    kctl = Kctl(tmp_path_factory.mktemp("kraft-streams"), shared)
    kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    kctl.ok("context", "use", "kraft")
    return kctl


@pytest.fixture(scope="module")
def topics(kctl: Kctl) -> Iterator[tuple[str, str]]:
    """Of three partitions and of one, read by one sub-topology: tasks 1 and 2 have no partition of the latter."""
    names = (f"kraft-streams-{os.getpid()}-in", f"kraft-streams-{os.getpid()}-short")
    for name, partitions in zip(names, ("3", "1"), strict=True):
        kctl.ok("topic", "create", name, "--partitions", partitions)
    yield names
    kctl.ok("topic", "delete", *names, "--yes")


@pytest.fixture(scope="module")
def member(kraft: str, topics: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsMember]:
    jar = ensure_runtime(kraft_broker.VERSION).libs / f"kafka-clients-{kraft_broker.VERSION}.jar"
    messages = heartbeat_messages(jar, tmp_path_factory.mktemp("messages"))
    with (
        connect(Target("tests", (kraft,))) as client,
        streams_member(client, messages[0], GROUP, {"0": {"source_topics": sorted(topics)}}) as member,
    ):
        yield member


def test_described_with_topology_and_tasks(kctl: Kctl, topics: tuple[str, str], member: StreamsMember) -> None:
    (found,) = kctl.json("group", "describe", GROUP)
    assert (found["type"], found["state"], found["assignor"]) == ("streams", "Stable", None)
    assert found["topology"] == {
        "epoch": 0,
        "subtopologies": [{
            "subtopology_id": "0", "source_topics": sorted(topics), "repartition_source_topics": [],
            "repartition_sink_topics": [], "state_changelog_topics": [],
        }],
    }  # fmt: skip
    (told,) = found["members"]
    tasks = {"active": [{"subtopology_id": "0", "partitions": [0, 1, 2]}], "standby": [], "warmup": []}
    assert (told["member_id"], told["type"], told["assignments"]) == (member.member_id, "streams", None)
    assert told["streams"] == {
        "topology_epoch": 0, "process_id": "process-1", "user_endpoint": None, "client_tags": {}, "tasks": tasks,
        "target_tasks": tasks,
    }  # fmt: skip
    read = [(row["topic"], row["partition"], row["client_id"]) for row in found["offsets"]]
    assert read == [(topics[0], 0, "kctl"), (topics[0], 1, "kctl"), (topics[0], 2, "kctl"), (topics[1], 0, "kctl")]
    (row,) = kctl.json("group", "members", GROUP)
    assert (row["partition_count"], row["streams"]["tasks"]) == (None, tasks)
    shown = kctl.ok("group", "describe", GROUP)
    assert "active 0:0-2" in shown.out
    assert "topology of epoch 0" in shown.out
    assert "\x1b" not in shown.out
    assert "do not exist" not in kctl.ok("lag", GROUP).err, "the partitions that a short topic lacks are no loss"


def test_as_kafkas_tool_has_it(kctl: Kctl, kraft: str, member: StreamsMember) -> None:
    libs = ensure_runtime(kraft_broker.VERSION).libs
    written = java_tool(
        libs.parent, _TOOL, "--bootstrap-server", kraft, "--describe", "--group", GROUP, "--members", "--verbose"
    )
    (found,) = kctl.json("group", "describe", GROUP)
    (line,) = [line for line in written.splitlines() if member.member_id in line]
    epochs = [found["assignment_epoch"], found["topology"]["epoch"]]
    assert line.split()[1:3] == [str(each) for each in epochs], written
    assert "ACTIVE: 0:[0,1,2]" in line


def test_changes_wait_until_it_is_empty(kctl: Kctl, topics: tuple[str, str], member: StreamsMember) -> None:
    reset = ("group", "reset-offsets", GROUP, "--topic", topics[0], "--to-latest", "--yes")
    for args in (reset, ("group", "delete", GROUP, "--yes"), ("group", "remove-member", GROUP, "--all", "--yes")):
        refused = kctl(*args, "-o", "json")
        assert refused.code == 4, str(refused)
        assert json.loads(refused.err)["code"] == "refused"
    member.leave()
    rows: list[dict[str, Any]] = kctl.json(*reset)
    assert [(row["partition"], row["result"]) for row in rows] == [(0, "reset"), (1, "reset"), (2, "reset")]
    (gone,) = kctl.json("group", "delete", GROUP, "--yes")
    assert (gone["type"], gone["result"]) == ("streams", "deleted")


def test_a_reset_sets_the_input_and_names_the_internal_topics(
    kctl: Kctl, kraft: str, tmp_path: Path, topics: tuple[str, str]
) -> None:
    """As kafka-streams-groups with --all-input-topics: the offsets of the repartition topic are not set."""
    app = f"kraft-streams-{os.getpid()}-app"
    repartition, changelog = f"{app}-key-repartition", f"{app}-count-changelog"
    home = ensure_runtime(kraft_broker.VERSION).libs.parent
    messages = heartbeat_messages(home / "libs" / f"kafka-clients-{kraft_broker.VERSION}.jar", tmp_path)
    info = partial(messages[0].Topology.Subtopology.TopicInfo, replication_factor=0, topic_configs=[])
    parts = {
        "0": {"source_topics": [topics[1]], "repartition_sink_topics": [repartition]},
        "1": {
            "repartition_source_topics": [info(name=repartition, partitions=1)],
            "state_changelog_topics": [info(name=changelog, partitions=0)],
        },
    }
    with connect(Target("tests", (kraft,))) as client, streams_member(client, messages[0], app, parts):
        eventually(
            lambda: {repartition, changelog} <= {row["topic"] for row in kctl.json("topic", "list")},
            seconds=60, what="the coordinator created the internal topics",
        )  # fmt: skip
    for topic in (topics[1], repartition):
        kctl.ok("group", "reset-offsets", app, "--topic", topic, "--to-latest", "--yes")
    Admin(kraft).fill(topics[1], partitions=1, records=3)
    options = ("--to-latest", "--dry-run")
    plan = kctl.ok("group", "reset-offsets", app, "--all-topics", *options, "-o", "kafka")
    written = java_tool(
        home, _TOOL, "--bootstrap-server", kraft, "--reset-offsets", "--group", app, "--all-input-topics", *options,
        "--export",
    )  # fmt: skip
    assert plan.out.split() == written.replace('"', "").split() == [f"{topics[1]},0,3"]
    said = " ".join(plan.err.split())
    assert "keeps its state and its intermediate records in 2 topics; to compute them again" in said
    assert f"kctl topic delete {changelog} {repartition}" in said
    (gone,) = kctl.json("group", "delete", app, "--dry-run")
    assert gone["internal_topics"] == [changelog, repartition]
    kctl.ok("topic", "delete", changelog, repartition, "--yes")
    done = kctl.ok("group", "reset-offsets", app, "--all-topics", "--to-latest", "--yes")
    assert ("reset" in done.out, "intermediate records" in done.err) == (True, False)
    kctl.ok("group", "delete", app, "--yes")
