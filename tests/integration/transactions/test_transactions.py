"""Transactions: what coordinators say of them, what partitions say of producers, and ending the ones that hang."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from hanging_transaction import hang
from java_tools import java_tool
from kctl.contexts.command_config import read_command_config
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import Kctl, TestCluster
from secure_cluster import SecureCluster, remove_acls

Row: TypeAlias = dict[str, object]
TOOL = "org.apache.kafka.tools.TransactionsCommand"


@contextmanager
def _open_transaction(bootstrap: str, name: str, *topics: str) -> Iterator[None]:
    """A transaction of a live producer, open as long as the block, then aborted."""
    with connect(Target("x", tuple(bootstrap.split(",")))) as client:
        producer = client.producer(transactional_id=name, transaction_timeout_ms=600_000)
        try:
            producer.init_transactions()
            producer.begin_transaction()
            for topic in topics:
                producer.send(topic, b"v", partition=0).get(timeout=60)
            yield
        finally:
            producer.abort_transaction()
            producer.close()


def test_of_a_live_producer(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path) -> None:
    one, two = topic(partitions=2), topic()
    name = f"access-{one}"
    with _open_transaction(cluster.bootstrap, name, one, two):
        (listed,) = kctl.json("transaction", "list", "--match", f"{re.escape(name[:-1])}.")
        assert (listed["transactional_id"], listed["state"]) == (name, "Ongoing")
        assert list(listed) == ["transactional_id", "coordinator", "producer_id", "state"]
        producer_id = listed["producer_id"]
        by_id = kctl.json("transaction", "list", "--producer-id", str(producer_id), "--state", "ongoing")
        assert by_id == [listed]
        assert name not in kctl.ok("transaction", "list", "--duration-filter", "1h").out
        assert name in kctl.ok("transaction", "list", "--duration-filter", "1ms").out
        assert name not in kctl.ok("transaction", "list", "--state", "Empty").out

        (described,) = kctl.json("transaction", "describe", name)
        assert described["topic_partitions"] == sorted([f"{one}-0", f"{two}-0"])
        assert (described["transaction_timeout_ms"], described["coordinator"]) == (600_000, listed["coordinator"])
        assert described["transaction_start_time"].endswith("Z")
        assert 0 <= described["duration_ms"] < 600_000
        half = kctl("transaction", "describe", name, "access-nobody", "-o", "json")
        assert half.code == 5, str(half)
        assert [row["transactional_id"] for row in json.loads(half.out)] == [name]
        assert "TRANSACTIONAL_ID_NOT_FOUND" in half.err

        (producer,) = kctl.json("transaction", "producers", one)
        assert (producer["partition"], producer["producer_id"]) == (0, producer_id)
        assert producer["current_transaction_start_offset"] == 0
        hint = kctl("transaction", "hanging", "--topic", one, "--max-transaction-timeout", "0s")
        assert (hint.code, hint.out) == (0, ""), f"its coordinator knows of it: {hint}"
        refused = kctl("transaction", "abort", one, "--partition", "0", "--start-offset", "0", "--yes")
        assert (refused.code, f"transactional id {name} is Ongoing" in refused.err) == (4, True), str(refused)
        assert kctl.json("transaction", "producers", one)[0]["current_transaction_start_offset"] == 0

        _compare_with_the_tool(kafka_home, cluster.bootstrap, listed, described, producer)
    (ended,) = kctl.json("transaction", "describe", name)
    assert ended["state"] in {"PrepareAbort", "CompleteAbort"}


def _compare_with_the_tool(
    kafka_home: Path,
    bootstrap: str,
    listed: dict[str, object],
    described: dict[str, object],
    producer: dict[str, object],
) -> None:
    server = ("--bootstrap-server", bootstrap)
    name, topic = str(listed["transactional_id"]), str(producer["topic"])
    rows = [line.split() for line in java_tool(kafka_home, TOOL, *server, "list").splitlines()]
    assert [str(value) for value in listed.values()] == next(
        [row[0], row[1], row[2], row[3]] for row in rows if row[:1] == [name]
    )
    heading, row = java_tool(kafka_home, TOOL, *server, "describe", "--transactional-id", name).splitlines()
    theirs = dict(zip(heading.split(), row.split(), strict=False))
    assert theirs["CoordinatorId"] == str(described["coordinator"])
    assert theirs["ProducerEpoch"] == str(described["producer_epoch"])
    assert theirs["TransactionTimeoutMs"] == str(described["transaction_timeout_ms"])
    assert sorted(row.split()[-1].split(",")) == described["topic_partitions"]
    shown = java_tool(kafka_home, TOOL, *server, "describe-producers", "--topic", topic, "--partition", "0")
    heading, row = shown.splitlines()
    theirs = dict(zip(heading.split(), row.split(), strict=False))
    assert theirs["ProducerId"] == str(producer["producer_id"])
    assert theirs["LastSequence"] == str(producer["last_sequence"])
    assert theirs["CurrentTransactionStartOffset"] == str(producer["current_transaction_start_offset"])


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["list", "--state", "Ongong"], 2, "did you mean Ongoing"),
        (["list", "--match", "("], 2, "is not a valid regular expression"),
        (["list", "--duration-filter", "long"], 2, "not a duration"),
        (["list", "--match", "access-no-such-.*"], 4, "no transactional id matches access-no-such-.*"),
        (["list", "--producer-id", "99999999999999999999"], 2, "--producer-id"),
        (["describe", ""], 2, "brokers take no empty one"),
        (["describe", "x" * 40_000], 2, "has 40,000 bytes"),
        (["describe", "access-nobody"], 4, "TRANSACTIONAL_ID_NOT_FOUND"),
        (["producers", "access-no-such-topic"], 4, "topic access-no-such-topic does not exist"),
        (["hanging", "--partition", "0"], 2, "--topic"),
        (["hanging", "--topic", "access-no-such-topic"], 4, "topic access-no-such-topic does not exist"),
        (["hanging", "--broker-id", "99"], 4, "broker 99 is not in the cluster"),
        (
            ["abort", "access-no-such-topic", "--partition", "0", "--start-offset", "0"],
            4,
            "topic access-no-such-topic does not exist",
        ),
    ],
)
def test_bad_input(kctl: Kctl, cluster: TestCluster, command: list[str], code: int, says: str) -> None:
    result = kctl("transaction", *command)
    assert (result.code, result.out) == (code, ""), str(result)
    assert says in result.err


def test_partitions_that_are_not_there(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic(partitions=2)
    assert kctl("transaction", "producers", mine, "--partition", "2").code == 4
    assert kctl("transaction", "producers", mine, "--broker-id", "99").code == 4
    abort = kctl("transaction", "abort", mine, "--partition", "1", "--start-offset", "5", "--yes")
    assert (abort.code, "none is open there" in abort.err) == (4, True), str(abort)


def test_a_hanging_one_is_found_and_ended(own_kctl: Kctl, secure: SecureCluster, kafka_home: Path) -> None:
    """On the cluster whose brokers do not verify transactions; the tool finds the same one."""
    admin = secure.options(secure.admin)
    mine = "hanging-orders"
    own_kctl.ok("topic", "create", mine, "--partitions", "1", "--replication-factor", "1", *admin)
    security = read_command_config(secure.admin)
    with connect(Target("x", (secure.bootstrap,), security=security)) as client:
        producer_id, start = hang(client, mine, minutes=20)
        _, young = hang(client, mine, minutes=1)
    own_kctl.ok("produce", mine, *admin, stdin="after\n")
    read = ("consume", mine, "--from-beginning", "--exit-eof", "--read-committed", *admin)

    found = own_kctl("transaction", "hanging", "-o", "json", *admin)
    assert found.code == 1, str(found)
    (row,) = json.loads(found.out)
    assert row.pop("last_timestamp").endswith("Z")
    assert 20 * 60_000 <= row.pop("duration_ms") < 60 * 60_000
    assert row == {
        "topic": mine, "partition": 0, "producer_id": producer_id, "producer_epoch": 0, "coordinator_epoch": None,
        "start_offset": start, "transactional_id": None,
    }  # fmt: skip
    assert own_kctl("transaction", "hanging", "--max-transaction-timeout", "1h", *admin).code == 0
    wider = own_kctl(
        "transaction", "hanging", "--topic", mine, "--max-transaction-timeout", "30s", "-o", "json", *admin
    )
    assert [row["start_offset"] for row in json.loads(wider.out)] == [start, young]

    server = ("--bootstrap-server", secure.bootstrap, "--command-config", secure.admin)
    theirs = java_tool(kafka_home, TOOL, *server, "find-hanging", "--topic", mine).splitlines()
    assert [line.split()[:6] for line in theirs[1:]] == [[mine, "0", str(producer_id), "0", "-1", str(start)]]

    abort = ("transaction", "abort", mine, "--partition", "0", "--start-offset", str(start), *admin)
    assert own_kctl.json(*abort, "--dry-run")["result"] == "would abort"
    unconfirmed = own_kctl(*abort)
    assert (unconfirmed.code, "there is no terminal to ask on" in unconfirmed.err) == (4, True), str(unconfirmed)
    nobody = own_kctl(*abort[:-1], secure.nobody, "--yes")
    assert nobody.code == 4, str(nobody)
    assert own_kctl("transaction", "hanging", *admin).code == 1, "none of these changed anything"

    done = own_kctl.json(*abort, "--yes")
    assert done == {
        "topic": mine, "partition": 0, "start_offset": start, "producer_id": producer_id, "producer_epoch": 0,
        "result": "aborted",
    }  # fmt: skip
    assert own_kctl("transaction", "hanging", *admin).code == 0
    again = own_kctl(*abort, "--yes")
    assert (again.code, f"open ones begin at: {young}" in again.err) == (4, True), str(again)
    own_kctl.ok("transaction", "abort", mine, "--partition", "0", "--start-offset", str(young), "--yes", *admin)
    assert own_kctl.ok(*read).out == "after\n"
    own_kctl.ok("topic", "delete", mine, "--yes", *admin)


def test_without_rights(own_kctl: Kctl, secure: SecureCluster) -> None:
    admin, nobody = secure.options(secure.admin), secure.options(secure.nobody)
    own_kctl.ok("topic", "create", "hidden-orders", "--partitions", "1", "--replication-factor", "1", *admin)
    listed = own_kctl.ok("transaction", "list", *nobody)
    assert "there may be more: not every transactional id may be described" in listed.err
    assert "there may be more" not in own_kctl.ok("transaction", "list", *admin).err
    described = own_kctl("transaction", "describe", "any", *nobody)
    assert (described.code, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in described.err) == (4, True), str(described)
    for command in (["producers", "hidden-orders"], ["hanging", "--topic", "hidden-orders"]):
        result = own_kctl("transaction", *command, *nobody)
        assert (result.code, "not authorized" in result.err) == (4, True), str(result)
    unseen = own_kctl("transaction", "hanging", *nobody)
    assert (unseen.code, "not every topic may be described" in unseen.err) == (5, True), str(unseen)
    own_kctl.ok("acl", "add", "allow nobody describe topic hidden-orders", *admin)
    try:
        result = own_kctl("transaction", "hanging", *nobody)
        assert (result.code, "producers of hidden-orders-0" in result.err) == (4, True), str(result)
        own_kctl.ok("acl", "add", "allow nobody read topic hidden-orders", *admin)
        with connect(Target("x", (secure.bootstrap,), security=read_command_config(secure.admin))) as client:
            _, start = hang(client, "hidden-orders", minutes=20)
        blind = own_kctl("transaction", "hanging", *nobody)
        assert (blind.code, "cannot be told: " in blind.err) == (4, True), str(blind)
        where = ("hidden-orders", "--partition", "0", "--start-offset", str(start), "--yes")
        refused = own_kctl("transaction", "abort", *where, *nobody)
        assert (refused.code, "cannot be told: " in refused.err) == (4, True), str(refused)
        own_kctl.ok("acl", "add", "allow nobody describe transactional-id *", *admin)
        half = own_kctl("transaction", "hanging", *nobody)
        assert (half.code, "topic __transaction_state may not be described" in half.err) == (4, True), str(half)
        refused = own_kctl("transaction", "abort", *where, *nobody)
        assert (refused.code, "whether all coordinators were asked" in refused.err) == (4, True), str(refused)
        assert "topic __transaction_state may not be described" in own_kctl.ok("transaction", "list", *nobody).err
        own_kctl.ok("acl", "add", "allow nobody describe topic __transaction_state", *admin)
        assert own_kctl("transaction", "hanging", "--topic", "hidden-orders", *nobody).code == 1
        wider = own_kctl("transaction", "hanging", *nobody)
        assert (wider.code, "hidden-orders" in wider.out) == (5, True), str(wider)
        unable = own_kctl("transaction", "abort", *where, *nobody)
        assert (unable.code, "it needs an ACL for ClusterAction" in unable.err) == (4, True), str(unable)
        own_kctl.ok("acl", "add", "allow nobody cluster-action cluster", *admin)
        own_kctl.ok("transaction", "abort", *where, *nobody)
    finally:
        remove_acls(own_kctl, "nobody", *admin)
        own_kctl.ok("topic", "delete", "hidden-orders", "--yes", *admin)
