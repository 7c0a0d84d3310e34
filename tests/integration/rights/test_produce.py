"""kctl produce as a principal that may see a topic and not write it: said, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafka_admin import kafka_admin
from kctl.contexts.choose import resolve_target
from kctl.protocol.client import connect
from kctl_testing import Kctl
from secure_cluster import SecureCluster


@pytest.fixture(scope="module")
def orders(kctl: Kctl, secure: SecureCluster) -> str:
    """A topic of the super user's."""
    kctl.ok("topic", "create", "produce-orders", *secure.options(secure.admin))
    return "produce-orders"


@contextmanager
def _allowed(secure: SecureCluster, topic: str, *operations: str) -> Iterator[None]:
    """The user without rights has these on the topic while the block runs."""
    kafka: Any = import_module("kafka.admin")
    target = resolve_target(
        context=None, bootstrap_server=secure.bootstrap, zookeeper=None, command_config=secure.admin
    )
    pattern = kafka.ResourcePattern(kafka.ResourceType.TOPIC, topic)
    allow = kafka.ACLPermissionType.ALLOW
    rules = [kafka.ACL("User:nobody", "*", kafka.ACLOperation[name], allow, pattern) for name in operations]
    with connect(target) as client, kafka_admin(client) as admin:
        admin.create_acls(rules)
        try:
            yield
        finally:
            admin.delete_acls(rules)


def test_a_topic_that_may_not_be_seen(kctl: Kctl, secure: SecureCluster, orders: str) -> None:
    result = kctl("produce", orders, *secure.options(secure.nobody), stdin="x\n")
    assert result.code == 4
    assert "not authorized" in result.err


def test_a_topic_that_may_only_be_seen(kctl: Kctl, secure: SecureCluster, orders: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    with _allowed(secure, orders, "DESCRIBE"):
        for more in ((), ("--dry-run",), ("--no-idempotence",), ("--acks", "1", "--failed-file", str(kept))):
            result = kctl("produce", orders, *secure.options(secure.nobody), *more, stdin="x\ny\n")
            assert result.code == 4, str(result)
            assert "not authorized" in result.err
    assert [json.loads(line)["value"] for line in kept.read_text().splitlines()] == ["x", "y"]
    described = kctl("consume", orders, "--from-beginning", "--exit-eof", *secure.options(secure.admin))
    assert (described.code, described.out) == (0, ""), "nothing was written"


def test_one_that_may_be_written_and_whose_configs_may_not_be_read(
    kctl: Kctl, secure: SecureCluster, orders: str
) -> None:
    """The limit of the topic's records is not known then: the broker tells."""
    with _allowed(secure, orders, "WRITE", "DESCRIBE"):
        mine = secure.options(secure.nobody)
        assert kctl.json("produce", orders, *mine, stdin="x\n" * 100)["acknowledged"] == 100
        large = kctl("produce", orders, *mine, stdin="x" * 2_000_000 + "\n")
    assert large.code == 5
    assert "MESSAGE_TOO_LARGE" in large.err
