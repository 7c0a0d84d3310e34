"""kctl config as a user without rights: what may not be seen is said."""

from __future__ import annotations

import re

import pytest

from kctl_testing import Kctl
from secure_cluster import SecureCluster


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "broker/1"),
        ("get", "brokers"),
        ("get", "topic/configs-rights"),
        ("get", "user/alice"),
        ("set", "user/alice", "producer_byte_rate=1", "--yes"),
        ("explain", "retention.ms"),
        ("diff", "--all-brokers"),
        ("set", "topic/configs-rights", "retention.ms=1", "--yes"),
        ("unset", "brokers", "log.cleaner.threads", "--yes"),
    ],
)
def test_what_may_not_be_seen_or_changed_is_said(
    own_kctl: Kctl, secure: SecureCluster, arguments: tuple[str, ...]
) -> None:
    result = own_kctl("config", *arguments, *secure.options(secure.nobody))
    assert result.code == 4, str(result)
    assert "AUTHORIZATION_FAILED" in result.err or "not authorized" in result.err
    assert re.search(r"(ACL (operation|for)|requires) Describe(Configs)? on ", result.err), "which right is missing"
    assert "does not exist" not in result.err
    assert result.out == ""
