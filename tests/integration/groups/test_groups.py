"""kctl group's changing commands against a real cluster: plans, refusals, and what is read back."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from group_admin import Admin
from kctl_testing import Kctl, TestCluster

CHANGE_KEYS = [
    "group", "topic", "partition", "result", "old_offset", "new_offset", "difference", "skipped", "read_again",
    "log_start_offset", "log_end_offset", "metadata", "note", "error",
]  # fmt: skip


@pytest.fixture(scope="module")
def admin(cluster: TestCluster) -> Admin:
    return Admin(cluster.bootstrap)


@pytest.fixture(scope="module")
def filled(kctl: Kctl, cluster: TestCluster, admin: Admin) -> str:
    """A topic of three partitions with ten records each; the log of 2 starts at 6."""
    name = f"groups-{os.getpid()}"
    kctl.ok("topic", "create", name, "--partitions", "3")
    admin.fill(name, partitions=3, records=10)
    admin.cut(name, 2, 6)
    return name


@pytest.fixture
def group(admin: Admin, filled: str, request: pytest.FixtureRequest) -> str:
    """A group without members that has committed 4 for partition 0 and 8 for partition 2."""
    name = f"{request.node.name}-{os.getpid()}"
    admin.commit(name, filled, {0: 4, 2: 8})
    return name


def committed(kctl: Kctl, *groups: str) -> dict[tuple[str, int], int]:
    """(topic, partition) → offset, as `group export` has it."""
    return {(row["topic"], row["partition"]): row["committed_offset"] for row in kctl.json("group", "export", *groups)}


def reset(kctl: Kctl, *args: str) -> list[tuple[Any, ...]]:
    """The rows of a reset as (partition, result, old, new, skipped, read again)."""
    return [
        (row["partition"], row["result"], row["old_offset"], row["new_offset"], row["skipped"], row["read_again"])
        for row in kctl.json("group", "reset-offsets", *args)
    ]


def test_a_reset_is_planned_confirmed_done_and_read_back(kctl: Kctl, group: str, filled: str) -> None:
    args = (group, "--topic", filled, "--to-offset", "7")
    before = committed(kctl, group)
    planned = kctl("group", "reset-offsets", *args, "--dry-run", "-o", "json")
    assert planned.code == 0
    rows = json.loads(planned.out)
    assert [list(row) for row in rows] == [CHANGE_KEYS] * 3
    assert rows[2] == {
        "group": group, "topic": filled, "partition": 2, "result": "would reset", "old_offset": 8, "new_offset": 7,
        "difference": -1, "skipped": 0, "read_again": 1, "log_start_offset": 6, "log_end_offset": 10, "metadata": "",
        "note": None, "error": None,
    }  # fmt: skip
    assert "3 messages skipped, 1 message read again, 1 partition without a previous commit" in planned.err

    unconfirmed = kctl("group", "reset-offsets", *args)
    assert unconfirmed.code == 4
    assert "not confirmed: Reset 3 offsets of 1 group" in unconfirmed.err
    assert f"{group} {filled}-1: no commit → 7" in unconfirmed.err
    assert committed(kctl, group) == before == {(filled, 0): 4, (filled, 2): 8}

    assert reset(kctl, *args, "--yes") == [
        (0, "reset", 4, 7, 3, 0), (1, "reset", None, 7, None, None), (2, "reset", 8, 7, 0, 1),
    ]  # fmt: skip
    assert committed(kctl, group) == {(filled, 0): 7, (filled, 1): 7, (filled, 2): 7}
    again = kctl("group", "reset-offsets", *args, "-o", "json")
    assert again.code == 0, "nothing to do: nothing to confirm"
    assert {row["result"] for row in json.loads(again.out)} == {"unchanged"}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (("--to-current",), [(0, 4), (2, 8)]),
        (("--shift-by", "-3"), [(0, 1), (2, 6)]),
        (("--to-datetime", "2020-01-01T00:00:00"), [(0, 0), (2, 6)]),
        (("--by-duration", "0s"), [(0, 10), (2, 10)]),
    ],
)
def test_targets(kctl: Kctl, group: str, target: tuple[str, ...], expected: list[tuple[int, int]]) -> None:
    """The others are looked at beside Kafka's own tool (test_beside_kafka.py)."""
    rows = reset(kctl, group, "--all-topics", *target, "--dry-run")
    assert [(row[0], row[3]) for row in rows] == expected


def test_what_lies_outside_of_the_log_is_moved_into_it_and_told(kctl: Kctl, group: str, filled: str) -> None:
    out = kctl.ok("group", "reset-offsets", group, "--topic", f"{filled}:0,2", "--to-offset", "99", "--dry-run").out
    assert out.count("99 is after the log end") == 2
    rows = kctl.json("group", "reset-offsets", group, "--topic", f"{filled}:2", "--to-offset", "0", "--yes")
    assert [(row["new_offset"], row["note"]) for row in rows] == [(6, "0 is before the log start")]
    assert committed(kctl, group) == {(filled, 0): 4, (filled, 2): 6}, "only what was chosen"


def test_times_find_the_first_message_that_is_not_older(
    kctl: Kctl, admin: Admin, topic: Callable[..., str], group: str
) -> None:
    mine = topic()
    kctl.ok("produce", mine, stdin="a\nb\n")
    time.sleep(0.05)
    moment = round(time.time() * 1000)
    kctl.ok("produce", mine, stdin="c\n")
    admin.commit(group, mine, {0: 3})
    assert reset(kctl, group, "--topic", mine, "--to-datetime", str(moment), "--yes") == [(0, "reset", 3, 2, 0, 1)]


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-11-22T09:30", "2026-11-22T09:30:00.000Z"),
        ("2026-11-22T09:30:00Z", "2026-11-22T09:30:00.000Z"),
        ("2026-11-22T09:30+05:30", "2026-11-22T04:00:00.000Z"),
        ("1795339800000", "2026-11-22T09:30:00.000Z"),
    ],
)
def test_the_plan_and_the_question_name_the_time_in_utc(kctl: Kctl, group: str, written: str, moment: str) -> None:
    planned = kctl("group", "reset-offsets", group, "--all-topics", "--to-datetime", written, "--dry-run")
    assert f"to the first message at or after {moment} (UTC)" in planned.err
    asked = kctl("group", "reset-offsets", group, "--all-topics", "--to-datetime", written)
    assert asked.code == 4
    assert f"to the first message at or after {moment} (UTC)" in asked.err
    assert f" to {moment} (UTC) (" in asked.err, "the question"


def test_refused_while_members_are_active(kctl: Kctl, admin: Admin, group: str, filled: str, tmp_path: Path) -> None:
    """The plan is shown to who wants it; nothing changes."""
    saved = tmp_path / "saved.json"
    kctl.ok("group", "export", group, "--out", str(saved))
    with admin.member(group, filled, client_id="worker-7"):
        before = committed(kctl, group)
        planned = kctl("group", "reset-offsets", group, "--topic", filled, "--to-latest", "--dry-run", "-o", "json")
        assert planned.code == 4
        assert [row["new_offset"] for row in json.loads(planned.out)] == [10, 10, 10]
        error = json.loads(planned.err)
        assert error["code"] == "refused"
        assert [m["client_id"] for m in error["groups"][0]["members"]] == ["worker-7"]
        for args in (
            ("reset-offsets", group, "--all-topics", "--to-earliest", "--yes"),
            ("import", str(saved), "--topic", filled, "--yes"),
            ("delete", group, "--yes"),
            ("delete-offsets", group, "--topic", filled, "--yes"),
        ):
            refused = kctl("group", *args)
            assert refused.code == 4, str(refused)
            if args[0] != "delete-offsets":
                assert "is Stable, with members: worker-7 at 127.0.0.1" in refused.err
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in refused.err
        assert committed(kctl, group) == before


def test_the_broker_refuses_too(kctl: Kctl, cluster: TestCluster, admin: Admin, group: str, filled: str) -> None:
    """Members that have joined between plan and act: the coordinator refuses, and that is told row by row."""
    from kctl.errors import Refused
    from kctl.groups.delete import delete_groups, plan_delete
    from kctl.groups.reset import apply_reset, plan_reset
    from kctl.groups.reset_rules import ResetTarget, To
    from kctl.groups.topic_choice import TopicChoice
    from kctl.protocol.client import connect

    other = f"{group}-other"
    admin.commit(other, filled, {1: 1})
    with connect(admin.target) as client:
        plan = plan_reset(client, [group], ResetTarget(To.LATEST), [TopicChoice(filled, None)])
        deletion = plan_delete(client, [group, other])
        with admin.member(group, filled):
            done, errors = apply_reset(client, plan)
            deleted, refusals = delete_groups(client, deletion)
    assert [(row.group, row.result) for row in deleted] == [(group, "failed"), (other, "deleted")]
    assert [(type(error), "NON_EMPTY_GROUP" in error.message) for error in refusals] == [(Refused, True)]
    assert {offset.result for offset in deleted[0].offsets} == {"failed"}
    assert {row.result for row in done} == {"failed"}
    assert {type(error) for error in errors} == {Refused}
    assert f"group {group!r} has members now" in (done[0].error or "")
    assert committed(kctl, group) == {(filled, 0): 4, (filled, 2): 8}


def test_refused_while_a_transaction_has_an_offset(
    kctl: Kctl, cluster: TestCluster, admin: Admin, group: str, filled: str
) -> None:
    """It would take effect with the transaction, over what was set meanwhile. Partition 1 has no other commit."""
    reset_all = ("group", "reset-offsets", group, "--topic", filled, "--to-earliest", "--yes")
    with admin.open_commit(group, filled, {1: 5, 2: 9}):
        refused = kctl(*reset_all, "-o", "json")
        assert refused.code == 4, str(refused)
        rows = {row["partition"]: row["error"] for row in json.loads(refused.out)}
        assert rows[0] is None
        assert all(
            "an open transaction would replace the new offset when it commits" in rows[number] for number in (1, 2)
        ), rows
        assert committed(kctl, group) == {(filled, 0): 4, (filled, 2): 8}, "nothing by halves"
        (alone,) = reset(kctl, group, "--topic", f"{filled}:0", "--to-offset", "3", "--yes")
        assert alone[:4] == (0, "reset", 4, 3)
    assert [row[1] for row in reset(kctl, group, "--topic", filled, "--to-earliest", "--yes")] == ["reset"] * 3


def test_export_and_import(kctl: Kctl, cluster: TestCluster, group: str, filled: str, tmp_path: Path) -> None:
    from kctl.groups.commit import OffsetToCommit, commit_offsets
    from kctl.model import TopicPartition
    from kctl.protocol.client import connect
    from kctl.protocol.target import Target

    evil = 'with "quotes", \x1b[31m and ü'
    with connect(Target("tests", tuple(cluster.bootstrap.split(",")))) as client:
        entry = {TopicPartition(filled, 1): OffsetToCommit(3, evil)}
        assert commit_offsets(client, {group: entry}) == {group: {(filled, 1): None}}
    rows = kctl.json("group", "export", group)
    assert [list(row) for row in rows] == [
        ["group", "topic", "partition", "committed_offset", "leader_epoch", "metadata"]
    ] * 3
    assert rows[1] == {
        "group": group, "topic": filled, "partition": 1, "committed_offset": 3, "leader_epoch": None, "metadata": evil,
    }  # fmt: skip
    files = {"json": tmp_path / "offsets.json", "yaml": tmp_path / "offsets.yaml", "csv": tmp_path / "offsets.csv"}
    kctl.ok("group", "export", group, "--out", str(files["json"]))
    assert json.loads(files["json"].read_text()) == rows
    assert kctl("group", "export", group, "--out", str(files["json"])).code == 4, "never over a file unasked"
    for form in ("yaml", "csv"):
        files[form].write_text(kctl.ok("group", "export", group, "-o", form).out)
    assert json.loads(kctl.ok("group", "export", group).out) == rows, "as with `> FILE`"
    kctl.ok("group", "reset-offsets", group, "--all-topics", "--to-earliest", "--yes")
    for file in files.values():
        kctl.ok("group", "import", str(file), "--yes")
        assert kctl.json("group", "export", group) == rows, file.suffix
        kctl.ok("group", "delete", group, "--yes")  # a group that is not there is made
    renamed = json.dumps([{**row, "group": f"{group}-2"} for row in rows])
    (imported, *_) = kctl.json("group", "import", "-", "--topic", f"{filled}:0", "--yes", stdin=renamed)
    assert (imported["group"], imported["result"], imported["new_offset"]) == (f"{group}-2", "reset", 4)
    assert committed(kctl, f"{group}-2") == {(filled, 0): 4}


def test_from_another_group_and_from_a_plan(kctl: Kctl, admin: Admin, group: str, filled: str, tmp_path: Path) -> None:
    other = f"{group}-other"
    unknown = kctl("group", "reset-offsets", other, "--from-group", group, "--yes")
    assert unknown.code == 4
    assert "use --create to create the group" in unknown.err
    assert "did you mean" in unknown.err
    assert reset(kctl, other, "--from-group", group, "--create", "--yes") == [
        (0, "reset", None, 4, None, None), (2, "reset", None, 8, None, None),
    ]  # fmt: skip
    plan = tmp_path / "plan.csv"
    plan.write_text(
        kctl.ok("group", "reset-offsets", group, "--all-topics", "--shift-by", "1", "--dry-run", "-o", "kafka").out
    )
    assert plan.read_text() == f"{filled},0,5\n{filled},2,9\n"
    assert reset(kctl, other, "--from-file", str(plan), "--yes") == [(0, "reset", 4, 5, 1, 0), (2, "reset", 8, 9, 1, 0)]
    both = kctl.ok(
        "group", "reset-offsets", "--match", f"{group}.*", "--all-topics", "--to-latest", "--dry-run", "-o", "kafka"
    )
    assert both.out.splitlines()[0] == f"{group},{filled},0,10"
    assert len(both.out.splitlines()) == 4
    plan.write_text(both.out)
    wrong = kctl("group", "reset-offsets", "another", "--from-file", str(plan), "--create", "--yes")
    assert wrong.code == 2
    assert "the file has no offsets for group 'another'" in wrong.err


def test_a_plan_with_a_hole_is_not_carried_out(kctl: Kctl, group: str, filled: str) -> None:
    result = kctl("group", "reset-offsets", group, "--topic", filled, "--shift-by", "1", "--yes", "-o", "json")
    assert result.code == 4
    assert [row["error"] for row in json.loads(result.out)] == [None, "no commit to shift", None]
    assert "nothing was changed" in json.loads(result.err)["hint"]
    assert committed(kctl, group) == {(filled, 0): 4, (filled, 2): 8}


def test_delete_groups(kctl: Kctl, admin: Admin, group: str, filled: str) -> None:
    other = f"{group}-other"
    admin.commit(other, filled, {1: 1})
    planned = kctl.json("group", "delete", group, other, "--dry-run")
    assert [list(row) for row in planned] == [
        ["group", "result", "state", "type", "topic_count", "offsets", "error", "internal_topics"]
    ] * 2
    assert planned[0]["offsets"][1] == {
        "group": group, "topic": filled, "partition": 2, "result": "would delete", "committed_offset": 8, "error": None,
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(kctl.ok("group", "delete", group, other, "--dry-run", "-o", "csv").out)))
    assert [(row["group"], row["partition"], row["committed_offset"]) for row in rows] == [
        (group, "0", "4"), (group, "2", "8"), (other, "1", "1"),
    ]  # fmt: skip
    unconfirmed = kctl("group", "delete", group, other)
    assert unconfirmed.code == 4
    assert f"{group}: 2 offsets in 1 topic" in unconfirmed.err
    missing = kctl("group", "delete", group, "no-such-group", "--yes")
    assert missing.code == 4
    assert committed(kctl, group, other) == {(filled, 0): 4, (filled, 1): 1, (filled, 2): 8}, "all or none"
    unseen = kctl("group", "delete", "--match", f"{group}.*", "--yes")
    assert unseen.code == 4
    assert "--match selects 2" in unseen.err
    done = kctl.json("group", "delete", "--match", f"{group}.*", "--expect", "2", "--yes")
    assert [(row["group"], row["result"]) for row in done] == [(group, "deleted"), (other, "deleted")]
    assert kctl("group", "delete", group, "--yes").code == 4
    assert kctl.json("group", "delete", group, "--if-exists", "--yes")[0]["result"] == "absent"


def test_delete_offsets(kctl: Kctl, group: str, filled: str) -> None:
    args = ("group", "delete-offsets", group, "--topic", f"{filled}:1,2")
    assert [(row["partition"], row["result"]) for row in kctl.json(*args, "--dry-run")] == [
        (1, "absent"), (2, "would delete"),
    ]  # fmt: skip
    assert kctl(*args).code == 4
    assert committed(kctl, group) == {(filled, 0): 4, (filled, 2): 8}
    done = kctl.json(*args, "--yes")
    assert [(row["partition"], row["result"], row["committed_offset"]) for row in done] == [
        (1, "absent", None), (2, "deleted", 8),
    ]  # fmt: skip
    assert committed(kctl, group) == {(filled, 0): 4}
    assert [row["result"] for row in kctl.json(*args)] == ["absent", "absent"], "twice is harmless"


def test_members_and_their_removal(kctl: Kctl, admin: Admin, group: str, filled: str) -> None:
    with admin.member(group, filled, client_id="\x1b[31mstatic", instance_id="node-1"):
        (row,) = kctl.json("group", "members", "--match", re.escape(group))
        assert list(row) == [
            "group", "assignor", "member_id", "group_instance_id", "client_id", "host", "rack", "type", "member_epoch",
            "partition_count", "subscribed_topics", "subscribed_topics_regex", "assignments", "target_assignments",
            "owned_assignments",
            "streams",
        ]  # fmt: skip
        assert (row["group_instance_id"], row["subscribed_topics"], row["partition_count"]) == ("node-1", [filled], 3)
        assert row["assignments"] == [{"topic": filled, "partitions": [0, 1, 2]}]
        table = kctl.ok("group", "members", group, "-o", "wide").out
        assert "\\x1b[31mstatic" in table
        assert "\x1b" not in table

        wrong = kctl("group", "remove-member", group, "--member", "nobody", "--yes")
        assert wrong.code == 4
        assert "has no member 'nobody'" in wrong.err
        assert kctl("group", "remove-member", group, "--all").code == 4
        assert kctl.json("group", "members", group) == [row], "refused: nothing changed"
        (described,) = kctl.json("group", "describe", "--match", re.escape(group), "--type", "classic")
        assert [member["member_id"] for member in described["members"]] == [row["member_id"]]
        (gone,) = kctl.json("group", "remove-member", group, "--instance", "node-1", "--yes")
        assert (gone["member_id"], gone["result"]) == (row["member_id"], "removed")
        assert row["member_id"] not in {each["member_id"] for each in kctl.json("group", "members", group)}
    with admin.member(f"{group}-2", filled):
        (row,) = kctl.json("group", "members", f"{group}-2")
        (gone,) = kctl.json("group", "remove-member", f"{group}-2", "--member", row["member_id"], "--yes")
        assert gone["result"] == "removed"
    assert kctl.json("group", "remove-member", f"{group}-2", "--all", "--yes") == []


def test_list_filters(kctl: Kctl, group: str) -> None:
    def listed(*args: str) -> set[str]:
        return {row["group"] for row in kctl.json("group", "list", *args)}

    assert listed("--match", f"{group[:-1]}.", "--type", "classic") == {group}
    assert group not in listed("--type", "consumer")
    part = kctl("group", "list", "--match", group[:-1])
    assert part.code == 4, "whole ids"
    assert f"no group matches {group[:-1]}" in part.err
    assert "Classic" in kctl.ok("group", "list", "--match", group).out


@pytest.mark.parametrize("name", ["groups \x1b]0;x\x07\n\t\u202e群🐘", "groups-" + "x" * 300, "--help,\"a\",'b'"])
def test_hostile_group_ids(kctl: Kctl, filled: str, name: str) -> None:
    """Every command takes them; tables show them escaped; JSON and CSV take them there and back."""
    mine = f"{name}{os.getpid()}"
    one = ("--topic", f"{filled}:0")
    assert kctl("group", "reset-offsets", *one, "--to-latest", "--create", "--yes", "--", mine).code == 0
    shown = kctl.ok("group", "describe", "--", mine)
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.out + shown.err)
    rows = list(csv.DictReader(io.StringIO(kctl.ok("group", "describe", "-o", "csv", "--", mine).out)))
    assert [(row["group"], row["topic"], row["partition"], row["lag"]) for row in rows] == [(mine, filled, "0", "0")]
    for form in ("json", "csv"):
        file = kctl.ok("group", "export", "-o", form, "--", mine).out
        (row,) = kctl.json("group", "import", "-", "--dry-run", stdin=file)
        assert (row["group"], row["result"]) == (mine, "unchanged"), form
    assert json.loads(kctl.ok("group", "delete", "--yes", "-o", "json", "--", mine).out)[0]["result"] == "deleted"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe", ""), "group '' does not exist"),
        (("members", "no-such-group"), "group 'no-such-group' does not exist"),
        (("export", "no-such-group", "nor-this"), "groups 'no-such-group', 'nor-this' do not exist"),
        (("export", "--match", "no-such-.*"), "no group matches no-such-.*"),
        (("remove-member", "no-such-group", "--all", "--yes"), "does not exist"),
        (("delete-offsets", "no-such-group", "--topic", "t"), "does not exist"),
        (("reset-offsets", "no-such-group", "--to-latest", "--all-topics"), "use --create to create the group"),
    ],
)
def test_groups_that_are_not_there(kctl: Kctl, cluster: TestCluster, arguments: tuple[str, ...], message: str) -> None:
    result = kctl("group", *arguments)
    assert result.code == 4, str(result)
    assert message in result.err
    assert result.out == ""


def test_topics_and_partitions_that_are_not_there(kctl: Kctl, group: str, filled: str) -> None:
    for choice, message in (("no-such-topic", "does not exist"), (f"{filled}:0,7", "has no partition 7")):
        result = kctl("group", "reset-offsets", group, "--topic", choice, "--to-latest", "--yes")
        assert result.code == 4
        assert message in result.err
    assert kctl("group", "delete-offsets", group, "--topic", "no-such-topic", "--yes").code == 4
    file = f"{filled},0,5\n{filled},7,5\n"
    result = kctl("group", "reset-offsets", group, "--from-file", "-", "--yes", "-o", "json", stdin=file)
    assert result.code == 4
    assert [row["error"] for row in json.loads(result.out)] == [None, "the topic or partition does not exist"]
    assert committed(kctl, group) == {(filled, 0): 4, (filled, 2): 8}, "not the good half of it either"
