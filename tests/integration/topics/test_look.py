"""kctl topic list, describe, offsets and watch: filters, sizes, offsets and times, beside Kafka's own tools."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from java_tools import java_tool
from kctl_testing import Kctl, TestCluster, eventually

PREFIX = f"look-{os.getpid()}"
FULL, SINGLE, EMPTY = f"{PREFIX}.full", f"{PREFIX}.single", f"{PREFIX}.empty"
OURS = f"{re.escape(PREFIX)}.*"


@pytest.fixture(scope="module", autouse=True)
def topics(kctl: Kctl, cluster: TestCluster) -> Iterator[None]:
    """Three topics: three replicas that are all needed, with records in partition 0; one replica; nothing in it."""
    kctl.ok(
        "topic", "create", FULL, "--partitions", "2", "--replication-factor", "3", "--config", "min.insync.replicas=3"
    )
    one = ("--partitions", "1", "--replication-factor", "1", "--config", "min.insync.replicas=1")
    kctl.ok("topic", "create", SINGLE, EMPTY, *one)
    kctl.ok("produce", FULL, "--partition", "0", stdin="x" * 1000 + "\n" + "y\n" * 9)
    kctl.ok("topic", "truncate", FULL, "--before-offset", "1", "--partitions", "0", "--yes")
    kctl.ok("produce", SINGLE, stdin="z\n" * 5)
    yield
    kctl.ok("topic", "delete", "--match", OURS, "--expect", "3", "--yes")


def test_list(kctl: Kctl) -> None:
    rows = {row["topic"]: row for row in kctl.json("topic", "list", "--match", OURS, "--size", "--count")}
    assert list(rows) == sorted([FULL, SINGLE, EMPTY])
    assert [rows[name]["messages"] for name in (FULL, SINGLE, EMPTY)] == [9, 5, 0]
    assert rows[FULL]["size_bytes"] == 3 * rows[FULL]["leader_size_bytes"] > 3000
    assert rows[EMPTY]["size_bytes"] == rows[EMPTY]["leader_size_bytes"] == 0
    assert kctl.json("topic", "list", "--match", OURS, "--under-replicated", "--unavailable") == []
    wide = kctl.ok("topic", "list", "--match", f"{PREFIX}.full", "--size", "-o", "wide").out.splitlines()
    assert wide[0].split()[4:] == ["OFFLINE", "INTERNAL", "SIZE", "ONE", "COPY"]


def test_describe(kctl: Kctl) -> None:
    (full, single) = kctl.json("topic", "describe", FULL, SINGLE, "--size", "--offsets")
    written, empty = full["partitions"]
    assert list(written["offsets"]) == [
        "log_start_offset", "log_end_offset", "messages", "first_timestamp", "max_timestamp", "max_timestamp_offset",
    ]  # fmt: skip
    assert [written["offsets"][key] for key in ("log_start_offset", "log_end_offset", "messages")] == [1, 10, 9]
    assert written["offsets"]["first_timestamp"] <= written["offsets"]["max_timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written["offsets"]["max_timestamp"])
    assert empty["offsets"] == {
        "log_start_offset": 0, "log_end_offset": 0, "messages": 0, "first_timestamp": None, "max_timestamp": None,
        "max_timestamp_offset": None,
    }  # fmt: skip
    assert written["size_bytes"] == 3 * written["leader_size_bytes"] > 0
    assert single["partitions"][0]["offsets"]["messages"] == 5
    table = kctl.ok("topic", "describe", FULL, "--size", "--offsets").out
    assert re.search(r"PARTITION +LEADER +REPLICAS +ISR +SIZE +START +END +MESSAGES +NEWEST", table)


def test_filters_as_kafka_topics_has_them(kctl: Kctl, cluster: TestCluster, kafka_home: Path) -> None:
    tool = "org.apache.kafka.tools.TopicCommand"
    options = ("--bootstrap-server", cluster.bootstrap, "--describe", "--topic", OURS)
    theirs = java_tool(kafka_home, tool, *options)
    ours = _partitions(kctl.json("topic", "describe", "--match", OURS))
    assert _lines(theirs) == ours
    at = kctl.json("topic", "describe", "--match", OURS, "--at-min-isr-partitions")
    assert _lines(java_tool(kafka_home, tool, *options, "--at-min-isr-partitions")) == _partitions(at)
    assert {FULL, SINGLE, EMPTY} == {topic["topic"] for topic in at}, "min.insync.replicas is 1 or all"
    table = kctl.ok("topic", "describe", "--match", OURS, "--at-min-isr").out.splitlines()
    assert table[0].split() == ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "MARKS"], "one table for all topics"
    assert [line.split()[0] for line in table[1:]] == [EMPTY, FULL, FULL, SINGLE]
    listed = kctl.json("topic", "list", "--match", OURS, "--at-min-isr", "--under-min-isr")
    assert [row["topic"] for row in listed] == sorted(topic["topic"] for topic in at)
    none = kctl("topic", "describe", "--match", OURS, "--under-replicated", "--unavailable", "--under-min-isr")
    assert (none.code, none.out) == (0, "")
    assert "no partition is under-replicated or unavailable or under-min-isr" in none.err
    own = kctl.json("topic", "describe", "--match", OURS, "--topics-with-overrides")
    assert len(own) == 3, "min.insync.replicas is set on each of them"


def _lines(text: str) -> set[tuple[str, int, str, str, str]]:
    found = re.findall(r"Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S+)\s+Isr: (\S+)", text)
    return {(name, int(number), leader, replicas, _sorted(isr)) for name, number, leader, replicas, isr in found}


def _sorted(ids: str) -> str:
    return ",".join(sorted(ids.split(",")))


def _partitions(topics: list[dict[str, Any]]) -> set[tuple[str, int, str, str, str]]:
    return {
        (
            topic["topic"], p["partition"], str(p["leader"]), ",".join(map(str, p["replicas"])),
            ",".join(sorted(map(str, p["isr"]))),
        )
        for topic in topics
        for p in topic["partitions"]
    }  # fmt: skip


@pytest.mark.parametrize("time", ["latest", "earliest", "max-timestamp", "2020-01-01"])
def test_offsets_as_kafka_get_offsets_has_them(kctl: Kctl, cluster: TestCluster, kafka_home: Path, time: str) -> None:
    ours = kctl.ok("topic", "offsets", "--match", OURS, "--time", time, "-o", "kafka").out
    asked = "1577836800000" if time == "2020-01-01" else time
    theirs = java_tool(
        kafka_home, "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", cluster.bootstrap,
        "--topic", OURS, "--time", asked,
    )  # fmt: skip
    assert sorted(ours.split()) == sorted(theirs.split())


def test_offsets(kctl: Kctl) -> None:
    rows = kctl.json("topic", "offsets", FULL, "--partitions", "0", "--time", "max-timestamp")
    assert [list(row) for row in rows] == [["topic", "partition", "offset", "timestamp"]]
    assert rows[0]["timestamp"].endswith("Z")
    assert kctl.json("topic", "offsets", FULL, "--time", "now")[0]["offset"] is None, "nothing is that young"
    for arguments, code, message in (
        ((FULL, "--partitions", "7"), 4, f"topic {FULL} has no partition 7"),
        ((FULL, "--partitions", "0,7"), 4, f"topic {FULL} has no partition 7"),
        ((FULL, "--time", "soon"), 2, "'soon' is not a time"),
        ((f"{PREFIX}.fulll",), 4, f"did you mean {FULL}"),
        (("--match", "("), 2, "--match '(' is not a valid regular expression"),
        (("--match", "no-such-topic.*"), 4, "no topic matches no-such-topic.*"),
    ):
        refused = kctl("topic", "offsets", *arguments)
        assert (refused.code, refused.out) == (code, ""), str(refused)
        assert message in refused.err


def test_watch(kctl: Kctl) -> None:
    with kctl.running("topic", "watch", SINGLE, "--interval", "500ms", "-o", "json") as process:
        assert process.stdout is not None
        (first,) = json.loads(process.stdout.readline())["rows"]
        assert (first["log_end_offset"], first["messages"], first["messages_per_s"]) == (5, None, None)
        kctl.ok("produce", SINGLE, stdin="w\n" * 20)
        seen: list[int] = []

        def all_came() -> bool:
            (row,) = json.loads(process.stdout.readline())["rows"]  # type: ignore[union-attr]  # it is a pipe
            seen.append(row["messages"])
            assert (row["messages_per_s"] > 0) == (row["messages"] > 0)
            return sum(seen) == 20

        eventually(all_came, seconds=60, what="the twenty records are seen")
    assert process.returncode == 130
    assert kctl("topic", "watch", SINGLE, "--interval", "1ms").code == 2
