"""kctl lag and kctl group against a real cluster, beside Kafka's own tool."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer_groups_tool import described
from group_admin import Admin
from kafka_admin import kafka_admin
from kctl.protocol.client import connect
from kctl_testing import SCRIPT, Kctl, TestCluster, eventually, within

KEYS = [
    "group", "state", "topic", "partition", "committed_offset", "log_start_offset", "log_end_offset", "lag", "lost",
    "client_id", "host", "ahead", "control_records",
]  # fmt: skip


@pytest.fixture
def admin(cluster: TestCluster) -> Admin:
    return Admin(cluster.bootstrap)


@pytest.fixture
def filled(admin: Admin, topic: Callable[..., str]) -> str:
    """A topic of three partitions with ten records each."""
    name = topic(partitions=3)
    admin.fill(name, partitions=3, records=10)
    return name


def test_the_rows(kctl: Kctl, admin: Admin, filled: str) -> None:
    group = f"rows-{filled}"
    admin.commit(group, filled, {0: 4, 1: 10, 2: 1})
    admin.cut(filled, 2, 6)
    rows = kctl.json("lag", group)
    assert [list(row) for row in rows] == [KEYS] * 3
    assert [
        (r["partition"], r["committed_offset"], r["log_start_offset"], r["log_end_offset"], r["lag"], r["lost"])
        for r in rows
    ] == [(0, 4, 0, 10, 6, 0), (1, 10, 0, 10, 0, 0), (2, 1, 6, 10, 4, 5)]
    assert {(r["group"], r["state"], r["topic"], r["client_id"], r["host"]) for r in rows} == {
        (group, "Empty", filled, None, None)
    }
    every = [row for row in kctl.json("lag") if row["group"] == group]
    assert every == rows, "one group or all: the same rows"


def test_sums(kctl: Kctl, admin: Admin, filled: str) -> None:
    group = f"sums-{filled}"
    admin.commit(group, filled, {0: 4, 1: 10, 2: 1})
    admin.cut(filled, 2, 6)
    (by_topic,) = kctl.json("lag", group, "--by", "topic")
    assert by_topic == {
        "group": group, "state": "Empty", "topic": filled, "partition_count": 3, "lag": 10, "max_lag": 6, "lost": 5,
        "not_committed": 0, "unknown": 0, "ahead": 0, "control_records": 0,
    }  # fmt: skip
    (by_group,) = kctl.json("lag", group, "--by", "group")
    assert by_group == {
        "group": group, "state": "Empty", "topic_count": 1, "partition_count": 3, "lag": 10, "max_lag": 6, "lost": 5,
        "not_committed": 0, "unknown": 0, "ahead": 0, "control_records": 0,
    }  # fmt: skip


def test_beside_kafkas_own_tool(kctl: Kctl, cluster: TestCluster, admin: Admin, filled: str, kafka_home: Path) -> None:
    """lag + lost is LAG there; offsets and members are the same."""
    empty, live = f"java-{filled}-empty", f"java-{filled}-live"
    admin.commit(empty, filled, {0: 4, 2: 1})
    admin.commit(live, filled, {0: 0, 1: 3})
    admin.cut(filled, 2, 6)
    with admin.member(live, filled, client_id="the-member"):
        ours = kctl.json("lag", empty, live)
        theirs = described(cluster.bootstrap, kafka_home, empty, live)
    expected = {
        (row["group"], row["topic"], str(row["partition"])): (
            "-" if row["committed_offset"] is None else str(row["committed_offset"]),
            str(row["log_end_offset"]),
            "-" if row["lag"] is None else str(row["lag"] + row["lost"]),
            row["client_id"] or "-",
            f"/{row['host']}" if row["host"] else "-",
        )
        for row in ours
    }
    assert theirs == expected
    assert len(theirs) == 5


def test_members(kctl: Kctl, admin: Admin, filled: str) -> None:
    """What is assigned and was never committed is a row too, with nulls."""
    group = f"members-{filled}"
    admin.commit(group, filled, {0: 4})
    with admin.member(group, filled, client_id="worker-7"):
        rows = kctl.json("lag", group)
        without = kctl.json("lag", group, "--no-members")
        (described,) = kctl.json("group", "describe", group)
        (listed,) = [row for row in kctl.json("group", "list") if row["group"] == group]
    assert [(r["partition"], r["committed_offset"], r["lag"], r["lost"]) for r in rows] == [
        (0, 4, 6, 0), (1, None, None, None), (2, None, None, None),
    ]  # fmt: skip
    assert {(r["state"], r["client_id"], r["host"]) for r in rows} == {("Stable", "worker-7", "127.0.0.1")}
    assert [(r["partition"], r["client_id"]) for r in without] == [(0, None)]
    assert list(described) == [
        "group", "state", "protocol_type", "type", "assignor", "coordinator", "epoch", "assignment_epoch", "topology",
        "members", "offsets", "start_offsets",
    ]  # fmt: skip
    assert (described["state"], described["protocol_type"], described["assignor"]) == ("Stable", "consumer", "range")
    (member,) = described["members"]
    assert member["client_id"] == "worker-7"
    assert member["assignments"] == [{"topic": filled, "partitions": [0, 1, 2]}]
    assert described["offsets"] == rows
    assert list(listed) == ["group", "state", "protocol_type", "type", "coordinator", "member_count"]
    assert (listed["state"], listed["member_count"], listed["protocol_type"]) == ("Stable", 1, "consumer")


def test_a_deleted_topic_is_tolerated(kctl: Kctl, admin: Admin, filled: str, topic: Callable[..., str]) -> None:
    """Brokers drop the commits of a deleted topic after a while; until then they are shown without offsets."""
    gone = topic(partitions=2)
    group = f"deleted-{filled}"
    admin.commit(group, filled, {0: 4})
    admin.commit(group, gone, {0: 3})
    kctl.ok("topic", "delete", gone, "--yes")
    admin.commit(group, filled, {1: 5})
    result = kctl.ok("lag", group, "-o", "json")
    rows = {(row["topic"], row["partition"]): row for row in json.loads(result.out)}
    assert rows[filled, 0]["lag"] == 6
    left = rows.get((gone, 0))
    if left is not None:  # else the coordinator was quicker
        assert (left["committed_offset"], left["log_end_offset"], left["lag"], left["lost"]) == (3, None, None, None)
        assert f"there are commits for {gone} 0, which no longer exists" in result.err


def test_filters(kctl: Kctl, admin: Admin, filled: str, topic: Callable[..., str]) -> None:
    other = topic()
    group = f"filters-{filled}"
    admin.commit(group, filled, {0: 1})
    admin.commit(group, other, {0: 0})
    assert {row["topic"] for row in kctl.json("lag", group, "--topic", other)} == {other}
    assert kctl.json("lag", group, "--state", "stable") == []
    assert len(kctl.json("lag", group, "--state", "empty")) == 2
    listed = {row["group"] for row in kctl.json("group", "list", "--state", "empty")}
    assert group in listed
    assert group not in {row["group"] for row in kctl.json("group", "list", "--state", "Stable")}


def test_markers_of_transactions_are_no_messages(kctl: Kctl, admin: Admin, topic: Callable[..., str]) -> None:
    """Five records and their marker, then three that are aborted, with theirs: offsets 0 to 9."""
    name = topic()
    group = f"g-{name}"
    with connect(admin.target) as client:
        producer = client.producer(transactional_id=f"tx-{name}")
        producer.init_transactions()
        for count, end in ((5, producer.commit_transaction), (3, producer.abort_transaction)):
            producer.begin_transaction()
            for number in range(count):
                producer.send(name, b"%d" % number)
            producer.flush()
            end()
            if count == 5:
                eventually(lambda: _end(kctl, name) == 6, what="the marker is written")
                admin.commit(group, name, {0: 5})
                judged = kctl("lag", group, "--max-lag", "0", "-o", "json")
                assert judged.code == 0, str(judged)
                (row,) = json.loads(judged.out)
                assert (row["lag"], row["control_records"]) == (1, 1)
                described = kctl.json("group", "describe", group)[0]["offsets"][0]
                assert (described["lag"], described["control_records"]) == (1, 1)
        producer.close()
    eventually(lambda: _end(kctl, name) == 10, what="the second marker is written")
    judged = kctl("lag", group, "--max-lag", "0", "-o", "json")
    (row,) = json.loads(judged.out)
    assert (judged.code, row["lag"], row["control_records"]) == (1, 5, 2), "aborted records are read_uncommitted's"
    assert kctl("lag", group, "--max-lag", "3").code == 0


def _end(kctl: Kctl, topic: str) -> int:
    (row,) = kctl.json("topic", "offsets", topic)
    end: int = row["offset"]
    return end


def test_a_commit_beyond_the_end_of_the_log_passes_no_gate(kctl: Kctl, admin: Admin, topic: Callable[..., str]) -> None:
    name = topic(partitions=2)
    group = f"g-{name}"
    kctl.ok("produce", name, "--partition", "1", stdin="a\n")
    admin.commit(group, name, {0: 500, 1: 1})
    judged = kctl("lag", group, "--max-lag", "1000000", "-o", "json")
    rows = json.loads(judged.out)
    assert [(row["lag"], row["ahead"]) for row in rows] == [(0, 500), (0, 0)]
    assert (judged.code, "500 beyond the end of the log" in judged.err) == (1, True)
    for args in (("lag", group), ("group", "describe", group)):
        shown = kctl(*args)
        assert (shown.code, "BEYOND END" in shown.out) == (0, True)
        assert "committed 500, but the log ends at 0" in shown.err
    (by_group,) = kctl.json("lag", group, "--by", "group")
    assert by_group["ahead"] == 500


def test_max_lag(kctl: Kctl, admin: Admin, filled: str) -> None:
    group = f"gate-{filled}"
    admin.commit(group, filled, {0: 4, 1: 9})
    assert kctl("lag", group, "--max-lag", "6").code == 0
    over = kctl("lag", group, "--max-lag", "5", "-o", "json")
    assert over.code == 1
    assert len(json.loads(over.out)) == 2
    error = json.loads(over.err)
    assert (error["code"], error["over_limit"]) == ("not_healthy", 1)
    assert kctl("lag", group, "--max-lag", "6", "--by", "group").code == 1, "7 in the group, at most 6 in a partition"
    assert f"group {group}, {filled}, partition 0 has a lag of 6" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("lag", "no-such-group"), 4, "group 'no-such-group' does not exist"),
        (("lag", "no-such-group", "nor-this"), 4, "'no-such-group', 'nor-this' do not exist"),
        (("lag", "--topic", "no-such-topic"), 4, "topic no-such-topic does not exist"),
        (("lag", "--topic", "b@d"), 2, "only ASCII letters"),
        (("lag", "--state", "happy"), 2, "is not a group state"),
        (("lag", "--by", "broker"), 2, "'broker' is not one of"),
        (("lag", "--max-lag", "-1"), 2, "not in the range"),
        (("lag", "--watch", "-o", "csv"), 2, "--watch supports only tables"),
        (("lag", "--watch", "--interval", "0s"), 2, "at least 100ms"),
        (("group", "describe", "no-such-group"), 4, "group 'no-such-group' does not exist"),
        (("group", "describe"), 2, "name groups"),
        (("group", "list", "--state", "happy"), 2, "is not a group state"),
    ],
)
def test_bad_input(kctl: Kctl, cluster: TestCluster, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl(*arguments)
    assert result.code == code, str(result)
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    assert result.seconds < within(5)


def test_watch_as_json_lines(kctl: Kctl, admin: Admin, filled: str) -> None:
    group = f"watch-{filled}"
    admin.commit(group, filled, {0: 4})
    process = subprocess.Popen(
        [str(SCRIPT), "lag", group, "--watch", "--interval", "300ms", "-o", "json"],
        env=kctl.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    first = json.loads(process.stdout.readline())
    admin.commit(group, filled, {0: 9})
    deadline = time.monotonic() + 20
    later = first
    while later["rows"][0]["lag"] != 1 and time.monotonic() < deadline:
        later = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert list(first) == ["time", "rows", "failures"]
    assert (first["rows"][0]["lag"], later["rows"][0]["lag"]) == (6, 1)
    assert later["time"] > first["time"]
    assert (process.returncode, err) == (130, "interrupted\n")


def test_watch_on_a_terminal(kctl: Kctl, admin: Admin, filled: str) -> None:
    group = f"screen-{filled}"
    admin.commit(group, filled, {0: 4})
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(SCRIPT), "lag", group, "--watch", "--interval", "200ms"],
        env=kctl.environment, stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    out = b""
    deadline = time.monotonic() + 30
    while out.count(b"\x1b[2J") < 3 and time.monotonic() < deadline:
        if select.select([master], [], [], 1)[0]:
            out += os.read(master, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    os.close(master)
    assert out.count(b"\x1b[2J") >= 3, "redrawn"
    assert group.encode() in out.replace(b"\r\n", b"")
    assert b"Traceback" not in out


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_a_terminal(kctl: Kctl, admin: Admin, topic: Callable[..., str], columns: int) -> None:
    mine = topic()
    group = f"fit-{columns}"
    admin.commit(group, mine, {0: 0})
    for command in (("lag", group), ("lag", group, "--by", "topic"), ("group", "describe", group), ("group", "list")):
        out = _on_a_terminal(kctl, columns, *command)
        assert max(map(len, out.splitlines())) <= columns, out


def _on_a_terminal(kctl: Kctl, columns: int, *args: str) -> str:
    import re

    master, slave = pty.openpty()
    environment = {**kctl.environment, "COLUMNS": str(columns), "NO_COLOR": "1"}
    process = subprocess.Popen([str(SCRIPT), *args], env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        out += data
    assert process.wait(timeout=30) == 0
    os.close(master)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.decode())


def test_a_script_reads_the_table(kctl: Kctl, admin: Admin, filled: str) -> None:
    """No terminal: aligned columns, never cut, one row a line."""
    group = f"awk-{filled}-{'x' * 150}"
    admin.commit(group, filled, {0: 4})
    header, row = kctl.ok("lag", group).out.splitlines()
    assert header.split() == ["GROUP", "TOPIC", "PART", "COMMITTED", "START", "END", "LAG", "LOST"]
    assert row.split() == [group, filled, "0", "4", "0", "10", "6", "0"]
    lines = kctl.ok("lag", group, "-o", "csv").out.splitlines()
    assert lines[0] == ",".join(KEYS)


def test_control_characters_in_a_group_id(kctl: Kctl, admin: Admin, filled: str) -> None:
    group = f"evil-\x1b[31m{filled}"
    admin.commit(group, filled, {0: 4})
    out = kctl.ok("group", "list").out
    assert "\x1b" not in out
    assert "evil-\\x1b[31m" in out
    assert kctl.json("lag", group)[0]["group"] == group


def test_many_groups(kctl: Kctl, cluster: TestCluster, admin: Admin, filled: str) -> None:
    """300 groups cost little more than one: requests go to brokers, not to groups."""
    from kafka.structs import OffsetAndMetadata, TopicPartition

    positions = {TopicPartition(filled, p): OffsetAndMetadata(p, "", -1) for p in range(3)}
    with connect(admin.target) as client, kafka_admin(client) as kafka:
        for number in range(300):
            kafka.alter_group_offsets(f"many-{filled}-{number:03}", positions)
    rows = [row for row in kctl.json("lag") if row["group"].startswith(f"many-{filled}")]
    assert len(rows) == 900
    assert sum(row["lag"] for row in rows) == 300 * 27
    assert [row["group"] for row in rows] == sorted(row["group"] for row in rows)
