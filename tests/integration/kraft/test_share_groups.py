"""Share groups (KIP-932) that have been read: lag, start offsets that are set and deleted, as Kafka's own tool."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import kraft_broker
from group_admin import Admin
from java_tools import java_tool
from kctl.deploy.runtime.runtime import ensure_runtime
from kctl_testing import Kctl, eventually

_TOOLS = "org.apache.kafka.tools.consumer"


@dataclasses.dataclass(frozen=True)
class Share:
    """A share group, and a topic of two partitions with ten records each."""

    kctl: Kctl
    bootstrap: str
    topic: str
    group: str

    def read(self, records: int) -> list[str]:
        """Read as a member of the group, and leave it."""
        lines = java_tool(
            self._home, f"{_TOOLS}.ConsoleShareConsumer", "--bootstrap-server", self.bootstrap, "--topic", self.topic,
            "--group", self.group, "--max-messages", str(records), "--timeout-ms", "30000",
            "--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true",
        ).splitlines()  # fmt: skip
        eventually(lambda: self.describe()["state"] == "Empty", seconds=60, what="the member has left")
        return lines

    def tool(self, *args: str) -> str:
        return java_tool(
            self._home, f"{_TOOLS}.group.ShareGroupCommand", "--bootstrap-server", self.bootstrap,
            "--group", self.group, *args,
        )  # fmt: skip

    def theirs(self) -> list[tuple[int, int | None, int | None]]:
        """Partition, start offset and lag, as Kafka's tool shows them."""
        rows = [line.split() for line in self.tool("--describe").splitlines() if line.startswith(self.group)]
        return [(int(row[2]), _number(row[3]), _number(row[4])) for row in rows]

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any]
        (described,) = self.kctl.json("group", "describe", self.group)
        return described

    def starts(self) -> list[tuple[int, int | None, int | None]]:
        return [(row["partition"], row["start_offset"], row["lag"]) for row in self.describe()["start_offsets"]]

    def reset(self, *args: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.kctl.json("group", "reset-offsets", self.group, *args)
        return rows

    @property
    def _home(self) -> Any:
        return ensure_runtime(kraft_broker.VERSION).libs.parent


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


@pytest.fixture(scope="module")
def share(kraft: str, tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Share:
    """While it is empty; it has read four records."""
    kctl = Kctl(tmp_path_factory.mktemp("kraft-share"), shared)
    kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    kctl.ok("context", "use", "kraft")
    topic = f"share-{os.getpid()}"
    share = Share(kctl, kraft, topic, f"{topic}-readers")
    kctl.ok("topic", "create", topic, "--partitions", "2")
    Admin(kraft).fill(topic, partitions=2, records=10)
    kctl.ok("config", "set", f"group/{share.group}", "share.auto.offset.reset=earliest", "--yes")
    assert len(share.read(4)) == 4
    return share


def test_its_lag_is_that_of_kafkas_tool(share: Share) -> None:
    theirs = share.theirs()
    assert share.starts() == theirs
    rows = share.kctl.json("lag", share.group)
    assert [(row["partition"], row["committed_offset"], row["lag"]) for row in rows] == theirs
    total = sum(lag or 0 for _, _, lag in theirs)
    assert total > 0, "else a limit of 0 says nothing"
    most = max(lag or 0 for _, _, lag in theirs)
    assert share.kctl("lag", share.group, "--max-lag", str(most)).code == 0
    assert share.kctl("lag", share.group, "--max-lag", str(most - 1)).code == 1


def test_start_offsets_are_planned_set_and_read_back(share: Share) -> None:
    before = share.starts()
    planned = share.reset("--topic", f"{share.topic}:1", "--to-offset", "7", "--dry-run")
    assert [(row["partition"], row["result"], row["old_offset"], row["new_offset"]) for row in planned] == [
        (1, "would reset", before[1][1], 7)
    ]
    assert share.starts() == before
    refused = share.kctl("group", "reset-offsets", share.group, "--all-topics", "--to-earliest", stdin="")
    assert (refused.code, "not confirmed" in refused.err) == (4, True), str(refused)
    (row,) = share.reset("--topic", f"{share.topic}:1", "--to-offset", "7", "--yes")
    assert (row["result"], row["new_offset"], row["log_end_offset"]) == ("reset", 7, 10)
    (row,) = share.reset("--topic", f"{share.topic}:1", "--shift-by", "2", "--yes")
    assert (row["result"], row["old_offset"], row["new_offset"], row["skipped"]) == ("reset", 7, 9, 2)
    assert share.starts()[0] == before[0], "the other partition is left alone"
    rows = share.reset("--all-topics", "--to-latest", "--yes")
    assert [row["result"] for row in rows] == ["reset", "reset"]
    assert [start for _, start, _ in share.theirs()] == [10, 10]
    assert [row["result"] for row in share.reset("--all-topics", "--to-latest", "--yes")] == ["unchanged", "unchanged"]


def test_the_plan_is_that_of_kafkas_tool(share: Share) -> None:
    """And its readers get the records from the new offsets on."""
    options = ("--all-topics", "--to-earliest", "--dry-run")
    plan = share.kctl.ok("group", "reset-offsets", share.group, *options, "-o", "kafka")
    theirs = share.tool("--reset-offsets", *options, "--export")
    assert sorted(plan.out.split()) == sorted(theirs.replace('"', "").split())
    share.reset("--topic", f"{share.topic}:0", "--to-offset", "8", "--yes")
    offsets = [int(number) for line in share.read(2) for number in re.findall(r"Offset:(\d+)", line)]
    assert sorted(offsets) == [8, 9]


def test_records_after_the_start_offset_that_are_done(share: Share, kraft: str) -> None:
    """A member accepts all records but the first: the lag is not the distance to the end of the log, and a reset to
    the same start offset makes all records available again."""
    group, topic = f"{share.topic}-gaps", f"{share.topic}-gap"
    share.kctl.ok("topic", "create", topic)
    Admin(kraft).fill(topic, partitions=1, records=10)
    share.kctl.ok("config", "set", f"group/{group}", "share.auto.offset.reset=earliest", "--yes")
    source = Path(__file__).parents[2] / "support" / "ShareGaps.java"
    home = ensure_runtime(kraft_broker.VERSION).libs.parent
    assert java_tool(home, str(source), kraft, group, topic, "9").split() == [str(number) for number in range(1, 10)]
    gaps = dataclasses.replace(share, group=group)
    eventually(lambda: gaps.describe()["state"] == "Empty", seconds=60, what="the member has left")
    assert gaps.starts() == gaps.theirs() == [(0, 0, 1)]
    (row,) = share.kctl.json("lag", group)
    assert (row["committed_offset"], row["log_end_offset"], row["lag"]) == (0, 10, 1)
    (row,) = gaps.reset("--all-topics", "--to-current", "--yes")
    assert (row["result"], gaps.starts()) == ("unchanged", [(0, 0, 1)])
    (row,) = gaps.reset("--all-topics", "--to-earliest", "--yes")
    assert (row["result"], row["note"]) == ("reset", "records after it become available again")
    assert gaps.starts() == gaps.theirs() == [(0, 0, 10)]
    (row,) = gaps.reset("--all-topics", "--to-earliest", "--yes")
    assert row["result"] == "unchanged"


def test_start_offsets_are_deleted_by_topic(share: Share) -> None:
    refused = share.kctl("group", "delete-offsets", share.group, "--topic", f"{share.topic}:0", "--yes", "-o", "json")
    assert (refused.code, json.loads(refused.err)["reason"]) == (4, "wrong_type"), str(refused)
    rows = share.kctl.json("group", "delete-offsets", share.group, "--topic", share.topic, "--yes")
    assert [(row["partition"], row["result"]) for row in rows] == [(0, "deleted"), (1, "deleted")]
    assert share.starts() == share.theirs() == []
    assert share.kctl.json("group", "delete-offsets", share.group, "--topic", share.topic, "--yes") == []


def test_a_share_group_is_created_at_an_offset_and_deleted(share: Share) -> None:
    group = f"{share.topic}-new"
    rows = share.kctl.json(
        "group",
        "reset-offsets",
        group,
        "--topic",
        share.topic,
        "--to-offset",
        "3",
        "--create",
        "--type",
        "share",
        "--yes",
    )
    assert [(row["old_offset"], row["new_offset"], row["result"]) for row in rows] == [(None, 3, "reset")] * 2
    (listed,) = share.kctl.json("group", "list", "--match", group)
    assert (listed["type"], listed["state"]) == ("share", "Empty")
    (gone,) = share.kctl.json("group", "delete", group, "--yes")
    assert (gone["result"], [row["committed_offset"] for row in gone["offsets"]]) == ("deleted", [3, 3])
