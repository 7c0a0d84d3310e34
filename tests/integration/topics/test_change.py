"""kctl topic alter, delete and truncate: what is shown before, what is refused, what is there afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from java_tools import java_tool
from kctl_testing import Kctl, TestCluster, eventually

_numbers = count(1)


@pytest.fixture
def name(kctl: Kctl, cluster: TestCluster) -> Iterator[str]:
    """A topic of this test alone, with two partitions and two replicas; deleted afterwards."""
    topic = f"change-{os.getpid()}-{next(_numbers)}"
    kctl.ok("topic", "create", topic, "--partitions", "2", "--replication-factor", "2")
    yield topic
    kctl.ok("topic", "delete", topic, "--if-exists", "--yes")


def _described(kctl: Kctl, name: str) -> tuple[int, dict[str, str]]:
    """Partitions, and the configs that are set on the topic."""
    (topic,) = kctl.json("topic", "describe", name)
    return topic["partition_count"], {c["name"]: c["value"] for c in topic["config_entries"] if c["source"] == "topic"}


def test_alter(kctl: Kctl, name: str) -> None:
    options = ("--partitions", "5", "--config", "retention.ms=3600000", "--config", "segment.bytes=1000000")
    (planned,) = kctl.json("topic", "alter", name, *options, "--dry-run")
    assert list(planned) == [
        "topic", "result", "partition_count_before", "partition_count_after", "config_changes", "error",
    ]  # fmt: skip
    assert (planned["result"], planned["partition_count_before"], planned["partition_count_after"]) == (
        "would alter",
        2,
        5,
    )
    retention = planned["config_changes"][0]
    assert retention == {
        "resource": f"topic/{name}", "name": "retention.ms", "result": "would set", "before": "604800000",
        "before_source": retention["before_source"], "after": "3600000", "after_source": "topic", "sensitive": False,
    }  # fmt: skip
    refused = kctl("topic", "alter", name, *options)
    assert refused.code == 4
    assert "partitions 2 -> 5" in refused.err
    assert "which breaks ordering" in refused.err
    assert "retention.ms is lowered: records older than the new limit are deleted" in refused.err
    assert _described(kctl, name) == (2, {}), "neither a dry run nor a refusal changes anything"

    (done,) = kctl.json("topic", "alter", name, *options, "--yes")
    assert (done["result"], done["partition_count_after"]) == ("altered", 5)
    assert [(c["name"], c["result"], c["after"]) for c in done["config_changes"]] == [
        ("retention.ms", "set", "3600000"), ("segment.bytes", "set", "1000000"),
    ]  # fmt: skip
    assert _described(kctl, name) == (5, {"retention.ms": "3600000", "segment.bytes": "1000000"})
    again = kctl.json("topic", "alter", name, *options, "--yes")
    assert (again[0]["result"], {c["result"] for c in again[0]["config_changes"]}) == ("unchanged", {"unchanged"})
    (back,) = kctl.json("topic", "alter", name, "--delete-config", "segment.bytes", "--yes")
    assert [(c["result"], c["before"], c["after_source"] == "topic") for c in back["config_changes"]] == [
        ("unset", "1000000", False)
    ]
    assert _described(kctl, name) == (5, {"retention.ms": "3600000"})


def test_a_lower_retention_is_warned_of_with_an_estimate(kctl: Kctl, name: str) -> None:
    kctl.ok("produce", name, "--partition", "0", "--timestamp", "2h ago", stdin="1\n2\n3\n")
    kctl.ok("produce", name, "--partition", "0", stdin="4\n5\n")
    hour = "retention.ms=3600000"
    for command in (("config", "set", f"topic/{name}", hour), ("topic", "alter", name, "--config", hour)):
        assert f"{name}: estimate: 3 of 5 records will be deleted (" in kctl.ok(*command, "--dry-run").err
    day = kctl.ok("config", "set", f"topic/{name}", "retention.ms=86400000", "--dry-run").err
    assert f"{name}: estimate: no records will be deleted now" in day


def test_the_brokers_of_new_partitions_can_be_chosen(kctl: Kctl, name: str) -> None:
    (topic,) = kctl.json("topic", "describe", name)
    there = ",".join(":".join(map(str, p["replicas"])) for p in topic["partitions"])
    kctl.ok("topic", "alter", name, "--replica-assignment", f"{there},3:1", "--yes")
    assert kctl.json("topic", "describe", name)[0]["partitions"][2]["replicas"] == [3, 1]
    moved = kctl("topic", "alter", name, "--replica-assignment", "1:2,1:2,1:2,1:2", "--yes")
    assert (moved.code, "differs from the replicas" in moved.err) == (4, True)
    absent = kctl("topic", "alter", name, "--replica-assignment", f"{there},3:1,99:1", "--yes")
    assert (absent.code, "unknown brokers: 99" in absent.err) == (4, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("alter", "NAME", "--partitions", "1"), 4, "cannot be reduced to 1"),
        (("alter", "NAME", "--partitions", "200000000"), 2, "is not in the range"),
        (("alter", "NAME", "--config", "retention.mss=1"), 4, "did you mean retention.ms"),
        (("alter", "NAME", "--config", "retention.ms=7d"), 4, "that is retention.ms=604800000"),
        (("alter", "NAME", "--config", "cleanup.policy=shred"), 4, "Invalid value shred"),
        (("alter", "NAME", "--delete-config", "no.such"), 4, "has no config no.such"),
        (("alter", "NAME", "--config", "retention.ms=1", "--delete-config", "retention.ms"), 2, "is in both --config"),
        (("alter", "NAME"), 2, "nothing to change"),
        (("alter", "--partitions", "3"), 2, "no topic is selected"),
        (("alter", "no-such-topic", "--partitions", "3"), 4, "topic no-such-topic does not exist"),
        (("alter", "--match", "NAME", "--partitions", "3"), 4, "add --expect 1 to --yes"),
        (("alter", "--match", "NAME", "--partitions", "3", "--expect", "2"), 4, "--match selects 1, not 2"),
        (("delete", "--match", "NAME"), 4, "add --expect 1 to --yes"),
        (("delete", "--match", "NAME", "--expect", "2"), 4, "--match selects 1, not 2"),
        (("delete", "NAME", "--expect", "1"), 2, "--expect requires --match"),
        (("delete",), 2, "no topic specified"),
        (("truncate", "NAME"), 2, "specify exactly one of --before-offset"),
        (("truncate", "NAME", "--all", "--before-offset", "1"), 2, "specify exactly one of --before-offset"),
        (("truncate", "NAME", "--before-offset", "7"), 4, "ends at 0, before 7"),
        (("truncate", "NAME", "--all", "--partitions", "2"), 4, "has no partition 2"),
        (("truncate", "NAME", "--before-time", "soon"), 2, "'soon' is not a time"),
        (("truncate", "NAME", "-f", "x.json"), 2, "already selects the partitions"),
        (("truncate", "-f", "no-such-file.json"), 4, "there is no file no-such-file.json"),
        (("truncate", "__consumer_offsets", "--all"), 4, "internal topic"),
        (("clone", "NAME", "NAME"), 2, "cannot be cloned into itself"),
        (("clone", "NAME", "b@d"), 2, "only ASCII letters"),
        (("clone", "no-such-topic", "new"), 4, "topic no-such-topic does not exist"),
    ],
)
def test_what_is_refused_changes_nothing(
    kctl: Kctl, refused_topic: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = kctl("topic", *(each.replace("NAME", refused_topic) for each in arguments), "--yes")
    assert (result.code, result.out) == (code, ""), str(result)
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.fixture(scope="module")
def refused_topic(kctl: Kctl, cluster: TestCluster) -> Iterator[str]:
    """A topic that is the same at the end."""
    topic = f"refused-{os.getpid()}"
    kctl.ok("topic", "create", topic, "--partitions", "2", "--replication-factor", "2")
    kctl.ok("consume", topic, "--group", f"{topic}-g", "--exit-eof")  # makes __consumer_offsets
    yield topic
    assert _described(kctl, topic) == (2, {})
    kctl.ok("topic", "delete", topic, "--yes")


def test_who_reads_a_topic_is_told_before_it_is_deleted(kctl: Kctl, name: str) -> None:
    kctl.ok("produce", name, stdin="a\nb\nc\n")
    kctl.ok("consume", name, "--group", f"{name}-done", "--from-beginning", "--exit-eof")
    with kctl.running("consume", name, "--group", f"{name}-live", "--from-beginning"):
        eventually(lambda: _readers(kctl, name) == {f"{name}-done": 0, f"{name}-live": 2}, what="both are shown")
        (row,) = kctl.json("topic", "delete", name, "--dry-run")
        assert row["newest_timestamp"].endswith("Z")
        refused = kctl("topic", "delete", name)
        assert refused.code == 4
        assert f"group {name}-live (2 assigned now)" in refused.err
        assert f"group {name}-done (Empty)" in refused.err
    (gone,) = kctl.json("topic", "delete", "--match", f"{name}.*", "--expect", "1", "--yes")
    assert gone["result"] == "deleted"


def _readers(kctl: Kctl, name: str) -> dict[str, int]:
    (row,) = kctl.json("topic", "delete", name, "--dry-run")
    return {reader["group"]: reader["assigned_partitions"] for reader in row["readers"]}


def test_truncate(kctl: Kctl, name: str) -> None:
    for number in range(2):
        kctl.ok("produce", name, "--partition", str(number), stdin="x\n" * 10)
    kctl.ok("consume", name, "--group", f"{name}-g", "--from-beginning", "--max-messages", "3")
    (first, _) = planned = kctl.json("topic", "truncate", name, "--before-offset", "6", "--dry-run")
    assert first == {
        "topic": name, "partition": 0, "result": "would delete", "log_start_offset": 0, "before_offset": 6,
        "log_end_offset": 10, "messages": 6, "low_watermark": None, "error": None,
    }  # fmt: skip
    refused = kctl("topic", "truncate", name, "--before-offset", "6")
    assert refused.code == 4
    assert f"group {name}-g has not read 9 of the records to delete" in refused.err
    assert "6 records from 0 to before 6; the log ends at 10" in refused.err
    assert _starts(kctl, name) == [0, 0]
    done = kctl.json("topic", "truncate", name, "--before-offset", "6", "--partitions", "0", "--yes")
    assert [(row["result"], row["low_watermark"]) for row in done] == [("deleted", 6)]
    assert _starts(kctl, name) == [6, 0]
    again = kctl.json("topic", "truncate", name, "--before-offset", "6", "--partitions", "0", "--yes")
    assert [row["result"] for row in again] == ["unchanged"]
    assert [row["result"] for row in kctl.json("topic", "truncate", name, "--before-time", "-1h", "--yes")] == [
        "unchanged", "unchanged",
    ], "all of it is younger"  # fmt: skip
    rest = kctl.json("topic", "truncate", name, "--before-time", "now", "--yes")
    assert [row["low_watermark"] for row in rest] == [10, 10]
    assert len(planned) == 2


def _starts(kctl: Kctl, name: str) -> list[int]:
    return [row["offset"] for row in kctl.json("topic", "offsets", name, "--time", "earliest")]


def test_a_file_of_offsets_as_kafka_delete_records_takes_it(
    kctl: Kctl, cluster: TestCluster, kafka_home: Path, name: str, tmp_path: Path
) -> None:
    """Both tools leave their topics alike."""
    kctl.ok("topic", "clone", name, f"{name}.theirs")
    for topic in (name, f"{name}.theirs"):
        for number in range(2):
            kctl.ok("produce", topic, "--partition", str(number), stdin="x\n" * 10)

    def file(topic: str) -> str:
        rows = [{"topic": topic, "partition": 0, "offset": 4}, {"topic": topic, "partition": 1, "offset": -1}]
        path = tmp_path / f"{topic}.json"
        path.write_text(json.dumps({"partitions": rows, "version": 1}))
        return str(path)

    kctl.ok("topic", "truncate", "--offset-json-file", file(name), "--yes")
    java_tool(
        kafka_home, "org.apache.kafka.tools.DeleteRecordsCommand", "--bootstrap-server", cluster.bootstrap,
        "--offset-json-file", file(f"{name}.theirs"),
    )  # fmt: skip
    assert _starts(kctl, name) == _starts(kctl, f"{name}.theirs") == [4, 10]
    kctl.ok("topic", "delete", f"{name}.theirs", "--yes")


def test_a_compacted_topic_is_not_truncated(kctl: Kctl, name: str) -> None:
    kctl.ok("topic", "alter", name, "--config", "cleanup.policy=compact", "--yes")
    refused = kctl("topic", "truncate", name, "--all", "--yes")
    assert refused.code == 4
    assert "cleanup.policy=compact" in refused.err
    kctl.ok("topic", "alter", name, "--config", "cleanup.policy=compact,delete", "--yes")
    kctl.ok("topic", "truncate", name, "--all", "--yes")


def test_errors_are_json_when_asked(kctl: Kctl, refused_topic: str) -> None:
    result = kctl("topic", "alter", refused_topic, "--partitions", "1", "--yes", "-o", "json")
    found: dict[str, Any] = json.loads(result.err)
    assert (result.code, found["code"]) == (4, "refused")
