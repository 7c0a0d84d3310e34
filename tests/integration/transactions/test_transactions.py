"""Transactions: what coordinators say of them, what partitions say of producers, and ending the ones that hang."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from java_tools import java_tool
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import Kctl, TestCluster

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
        (["describe", ""], 2, "the transactional id is empty"),
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
    assert (abort.code, "no open transaction of" in abort.err) == (4, True), str(abort)
