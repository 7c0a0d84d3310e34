"""What is said of a login's rights."""

from __future__ import annotations

import pytest

from kctl.cluster.context_rights import cluster_rights, principal_of, topic_rights
from kctl.protocol.security import Security


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (None, {"DESCRIBE": "unknown"}),
        (
            set(),
            {"DESCRIBE": "denied", "CREATE": "unknown", "ALTER": "unknown", "DESCRIBE_CONFIGS": "unknown",
             "ALTER_CONFIGS": "unknown", "CLUSTER_ACTION": "unknown"},
        ),
        (
            {8, 10},
            {"DESCRIBE": "ok", "CREATE": "denied", "ALTER": "denied", "DESCRIBE_CONFIGS": "ok",
             "ALTER_CONFIGS": "denied", "CLUSTER_ACTION": "denied"},
        ),
    ],
)  # fmt: skip
def test_cluster(allowed: set[int] | None, expected: dict[str, str]) -> None:
    assert {right.operation: right.result for right in cluster_rights(allowed)} == expected


def test_topics_that_are_not_seen_are_not_absent() -> None:
    (only,) = topic_rights([])
    assert (only.result, "you may not describe any" in only.detail) == ("unknown", True)


def test_topics_differ() -> None:
    found = {right.operation: right for right in topic_rights([{8, 3}, {8, 3, 4}])}
    assert {name: right.result for name, right in found.items()} == {
        "DESCRIBE": "ok", "READ": "ok", "WRITE": "partly", "DELETE": "denied", "ALTER": "denied",
        "DESCRIBE_CONFIGS": "denied", "ALTER_CONFIGS": "denied",
    }  # fmt: skip
    assert found["WRITE"].detail == "produce: 1 of 2 visible topics"


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        (Security(), "User:ANONYMOUS"),
        (Security("SSL", ssl_cafile="/ca.pem"), "User:ANONYMOUS"),
        (Security("SSL", ssl_certfile="/c.pem"), "the subject of /c.pem"),
        (Security("SASL_SSL", "PLAIN", "ops", "x", ssl_certfile="/c.pem"), "User:ops"),
    ],
)
def test_principal(security: Security, expected: str) -> None:
    assert principal_of(security) == expected
