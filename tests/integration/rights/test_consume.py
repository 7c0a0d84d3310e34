"""kctl consume on a cluster with an authorizer: what may not be read is said, and never shown as absent or empty."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from kctl.protocol.client import connect
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl_testing import Kctl
from secure_cluster import PASSWORDS, SecureCluster

TOPIC = "consume-secret"
READ = ("--from-beginning", "--exit-eof")
READ_RECORDS, DESCRIBE = 3, 8


@pytest.fixture
def secret(own_kctl: Kctl, secure: SecureCluster) -> Iterator[str]:
    """A topic with one record, written by the super user."""
    admin = secure.options(secure.admin)
    own_kctl.ok("topic", "create", TOPIC, *admin)
    own_kctl.ok("produce", TOPIC, *admin, stdin="hidden\n")
    yield TOPIC
    own_kctl.ok("topic", "delete", TOPIC, "--yes", *admin)


def test_a_topic_that_may_not_be_read(own_kctl: Kctl, secure: SecureCluster, secret: str) -> None:
    assert own_kctl.ok("consume", secret, *READ, *secure.options(secure.admin)).out == "hidden\n"
    for more in (READ, (*READ, "--group", "g"), ("--tail", "1")):
        result = own_kctl("consume", secret, *more, *secure.options(secure.nobody))
        assert (result.code, result.out) == (4, ""), str(result)
        assert "not authorized" in result.err.lower()
        assert secret in result.err


def test_described_but_not_read(own_kctl: Kctl, secure: SecureCluster, secret: str) -> None:
    """Describe alone shows that it is there; the record needs Read, and a group its own right."""
    admin, nobody = secure.options(secure.admin), secure.options(secure.nobody)
    _allow(secure, DESCRIBE, secret)
    result = own_kctl("consume", secret, *READ, *nobody)
    assert (result.code, result.out) == (4, ""), str(result)
    assert "not authorized" in result.err
    assert "ask for the ACL operation Read on the topic" in result.err
    _allow(secure, READ_RECORDS, secret)
    assert own_kctl.ok("consume", secret, *READ, *nobody).out == "hidden\n"
    result = own_kctl("consume", secret, *READ, "--group", "not-mine", *nobody)
    assert (result.code, result.out) == (4, ""), str(result)
    assert "group not-mine" in result.err
    assert own_kctl.ok("consume", secret, *READ, "--group", "mine", *admin).out == "hidden\n"


def test_an_empty_topic_that_may_only_be_described(own_kctl: Kctl, secure: SecureCluster) -> None:
    """Nothing is fetched of an empty log, so no broker refuses; what may not be read is not told to be empty."""
    admin, nobody = secure.options(secure.admin), secure.options(secure.nobody)
    own_kctl.ok("topic", "create", "consume-hollow", *admin)
    _allow(secure, DESCRIBE, "consume-hollow")
    for more in (READ, ("--max-messages", "0")):
        result = own_kctl("consume", "consume-hollow", *more, *nobody)
        assert (result.code, result.out) == (4, ""), str(result)
        assert "not authorized to read topic consume-hollow" in result.err
    own_kctl.ok("topic", "delete", "consume-hollow", "--yes", *admin)


def _allow(secure: SecureCluster, operation: int, topic: str) -> None:
    """An ACL for the user without rights (org.apache.kafka.common.acl.AclOperation)."""
    protocol: Any = import_module("kafka.protocol.admin")
    creation = protocol.CreateAclsRequest.AclCreation(
        resource_type=2, resource_name=topic, resource_pattern_type=3, principal="User:nobody", host="*",
        operation=operation, permission_type=3,
    )  # fmt: skip
    security = Security(
        protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="admin",
        sasl_password=PASSWORDS["admin"],
    )
    with connect(Target("secure", (secure.bootstrap,), security=security)) as client:
        (result,) = client.send_to_controller(protocol.CreateAclsRequest(creations=[creation])).results
    assert result.error_code == 0
