"""Hanging transactions on brokers that do not verify transactions, and what a user without rights sees."""

from __future__ import annotations

import json
from pathlib import Path

from hanging_transaction import hang
from java_tools import java_tool
from kctl.contexts.command_config import read_client_config
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import Kctl
from secure_cluster import SecureCluster, remove_acls

TOOL = "org.apache.kafka.tools.TransactionsCommand"


def test_a_hanging_one_is_found_and_ended(own_kctl: Kctl, secure: SecureCluster, kafka_home: Path) -> None:
    """Kafka's own tool finds the same one."""
    admin = secure.options(secure.admin)
    mine = "hanging-orders"
    own_kctl.ok("topic", "create", mine, "--partitions", "1", "--replication-factor", "1", *admin)
    _, security, _ = read_client_config(secure.admin)
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
    assert (unconfirmed.code, "there is no terminal for a prompt" in unconfirmed.err) == (4, True), str(unconfirmed)
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
    assert (again.code, f"open transactions start at: {young}" in again.err) == (4, True), str(again)
    own_kctl.ok("transaction", "abort", mine, "--partition", "0", "--start-offset", str(young), "--yes", *admin)
    assert own_kctl.ok(*read).out == "after\n"
    own_kctl.ok("topic", "delete", mine, "--yes", *admin)


def test_without_rights(own_kctl: Kctl, secure: SecureCluster) -> None:
    admin, nobody = secure.options(secure.admin), secure.options(secure.nobody)
    own_kctl.ok("topic", "create", "hidden-orders", "--partitions", "1", "--replication-factor", "1", *admin)
    listed = own_kctl.ok("transaction", "list", *nobody)
    assert "the list may be incomplete: you may not describe every transactional id" in listed.err
    assert "the list may be incomplete" not in own_kctl.ok("transaction", "list", *admin).err
    described = own_kctl("transaction", "describe", "any", *nobody)
    assert (described.code, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in described.err) == (4, True), str(described)
    for command in (["producers", "hidden-orders"], ["hanging", "--topic", "hidden-orders"]):
        result = own_kctl("transaction", *command, *nobody)
        assert (result.code, "not authorized" in result.err) == (4, True), str(result)
    unseen = own_kctl("transaction", "hanging", *nobody)
    assert (unseen.code, "you may not describe every topic" in unseen.err) == (5, True), str(unseen)
    own_kctl.ok("acl", "add", "allow nobody describe topic hidden-orders", *admin)
    try:
        result = own_kctl("transaction", "hanging", *nobody)
        assert (result.code, "producers of hidden-orders-0" in result.err) == (4, True), str(result)
        own_kctl.ok("acl", "add", "allow nobody read topic hidden-orders", *admin)
        _, security, _ = read_client_config(secure.admin)
        with connect(Target("x", (secure.bootstrap,), security=security)) as client:
            _, start = hang(client, "hidden-orders", minutes=20)
        blind = own_kctl("transaction", "hanging", *nobody)
        assert (blind.code, "cannot be determined: " in blind.err) == (4, True), str(blind)
        where = ("hidden-orders", "--partition", "0", "--start-offset", str(start), "--yes")
        refused = own_kctl("transaction", "abort", *where, *nobody)
        assert (refused.code, "unknown whether a coordinator" in refused.err) == (4, True), str(refused)
        own_kctl.ok("acl", "add", "allow nobody describe transactional-id *", *admin)
        half = own_kctl("transaction", "hanging", *nobody)
        assert (half.code, "topic __transaction_state may not be described" in half.err) == (4, True), str(half)
        refused = own_kctl("transaction", "abort", *where, *nobody)
        assert (refused.code, "unknown whether a coordinator" in refused.err) == (4, True), str(refused)
        assert "topic __transaction_state may not be described" in own_kctl.ok("transaction", "list", *nobody).err
        own_kctl.ok("acl", "add", "allow nobody describe topic __transaction_state", *admin)
        assert own_kctl("transaction", "hanging", "--topic", "hidden-orders", *nobody).code == 1
        wider = own_kctl("transaction", "hanging", *nobody)
        assert (wider.code, "hidden-orders" in wider.out) == (5, True), str(wider)
        unable = own_kctl("transaction", "abort", *where, *nobody)
        assert (unable.code, "this requires ClusterAction" in unable.err) == (4, True), str(unable)
        own_kctl.ok("acl", "add", "allow nobody cluster-action cluster", *admin)
        own_kctl.ok("transaction", "abort", *where, *nobody)
    finally:
        remove_acls(own_kctl, "nobody", *admin)
        own_kctl.ok("topic", "delete", "hidden-orders", "--yes", *admin)
