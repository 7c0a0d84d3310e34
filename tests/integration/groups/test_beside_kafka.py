"""kctl group and kafka-consumer-groups, Kafka's own tool, say and do the same on the same cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from consumer_groups_tool import offsets_in, resets_in, run_each
from group_admin import Admin
from kctl_testing import Kctl, TestCluster


@pytest.fixture(scope="module")
def admin(cluster: TestCluster) -> Admin:
    return Admin(cluster.bootstrap)


@pytest.fixture(scope="module")
def filled(kctl: Kctl, cluster: TestCluster, admin: Admin) -> str:
    """Three partitions with ten records each; the log of 2 starts at 6."""
    name = f"beside-{os.getpid()}"
    kctl.ok("topic", "create", name, "--partitions", "3")
    admin.fill(name, partitions=3, records=10)
    admin.cut(name, 2, 6)
    return name


TARGETS = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "7"],
    ["--to-offset", "99"],
    ["--by-duration", "P7D"],
    ["--to-datetime", "2099-01-01T00:00:00.000"],
]


def test_the_same_plans(kctl: Kctl, cluster: TestCluster, admin: Admin, filled: str, kafka_home: Path) -> None:
    """Every target; 4, nothing and 8 are committed."""
    group = f"plans-{filled}"
    admin.commit(group, filled, {0: 4, 2: 8})
    scopes = [["--topic", filled, *target] for target in TARGETS]
    scopes += [["--topic", f"{filled}:0,2", "--shift-by", "-3"], ["--all-topics", "--to-latest"]]
    written = run_each(
        cluster.bootstrap, kafka_home, *(["--reset-offsets", "--group", group, "--dry-run", *scope] for scope in scopes)
    )
    for scope, theirs in zip(scopes, written, strict=True):
        rows = kctl.json("group", "reset-offsets", group, *scope, "--dry-run")
        assert {(row["topic"], row["partition"]): row["new_offset"] for row in rows} == resets_in(theirs), scope


def test_files_go_both_ways(
    kctl: Kctl, cluster: TestCluster, admin: Admin, filled: str, kafka_home: Path, tmp_path: Path
) -> None:
    group = f"files-{filled}"
    admin.commit(group, filled, {0: 4, 2: 8})
    ours = tmp_path / "ours.csv"
    exported = kctl.ok("group", "reset-offsets", group, "--all-topics", "--to-earliest", "--dry-run", "-o", "kafka").out
    ours.write_text(f"{filled},0,9\n{filled},1,2\n")
    reset = ["--reset-offsets", "--group", group]
    theirs, done = run_each(
        cluster.bootstrap,
        kafka_home,
        [*reset, "--all-topics", "--to-earliest", "--dry-run", "--export"],
        [*reset, "--from-file", str(ours), "--execute"],
    )
    assert len(resets_in(done)) == 2
    assert {(r["partition"], r["committed_offset"]) for r in kctl.json("group", "export", group)} == {
        (0, 9), (1, 2), (2, 8),
    }  # fmt: skip
    assert sorted(theirs.replace('"', "").split()) == sorted(exported.split())
    rows = kctl.json("group", "reset-offsets", group, "--from-file", "-", "--yes", stdin=theirs)
    assert [(row["partition"], row["result"], row["new_offset"]) for row in rows] == [(0, "reset", 0), (2, "reset", 6)]


def test_the_same_groups_members_offsets_and_refusals(
    kctl: Kctl, cluster: TestCluster, admin: Admin, filled: str, kafka_home: Path
) -> None:
    """Where kctl refuses with exit code 4, Kafka's tool writes that it did not, and exits 0."""
    group = f"same-{filled}"
    admin.commit(group, filled, {0: 4, 1: 5, 2: 8})
    with admin.member(group, filled, client_id="reader"):
        (ours,) = kctl.json("group", "describe", group)
        (member,) = kctl.json("group", "members", group)
        listed = {row["group"]: row["state"] for row in kctl.json("group", "list", "--match", f".*-{filled}")}
        refused = kctl("group", "reset-offsets", group, "--all-topics", "--to-latest", "--yes", "-o", "json")
        offsets, members, state, states, told = run_each(
            cluster.bootstrap,
            kafka_home,
            ["--describe", "--group", group],
            ["--describe", "--group", group, "--members", "--verbose"],
            ["--describe", "--group", group, "--state"],
            ["--list", "--state"],
            ["--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute"],
        )
    assert {
        (row["group"], row["topic"], str(row["partition"])): (
            str(row["committed_offset"]), str(row["log_end_offset"]), str(row["lag"] + row["lost"]), row["client_id"],
            f"/{row['host']}",
        )
        for row in ours["offsets"]
    } == offsets_in(offsets)  # fmt: skip
    *said, assignment = _line(members, group)
    assert said == [group, member["member_id"], f"/{member['host']}", member["client_id"], "3"]
    assert assignment.endswith("(0,1,2)")  # 3.9.2 leaves the topic out
    assert member["assignments"] == [{"topic": filled, "partitions": [0, 1, 2]}]
    assert _line(state, group)[-3:] == [ours["assignor"], ours["state"], "1"]
    theirs = dict(line.split() for line in states.splitlines() if filled in line)
    assert listed == theirs
    assert listed[group] == "Stable"
    assert "Assignments can only be reset if the group" in told
    assert refused.code == 4
    assert json.loads(refused.err)["groups"][0]["state"] == "Stable"
    assert [row["committed_offset"] for row in kctl.json("group", "export", group)] == [4, 5, 8]


def _line(written: str, group: str) -> list[str]:
    (line,) = (line for line in written.splitlines() if line.startswith(group))
    return line.split()
