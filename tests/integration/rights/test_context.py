"""kctl context test, as a user without rights: what may not be seen is said, never shown as absent."""

from __future__ import annotations

from kctl_testing import Kctl
from secure_cluster import SecureCluster


def test_what_may_not_be_seen_is_unknown(own_kctl: Kctl, secure: SecureCluster) -> None:
    found = own_kctl.json("context", "test", *secure.options(secure.nobody))
    assert (found["principal"], found["healthy"]) == ("User:nobody", True)
    rights = {(right["resource"], right["operation"]): right["result"] for right in found["rights"]}
    assert rights["cluster", "DESCRIBE"] == "denied"
    assert rights["cluster", "ALTER"] == "unknown"
    assert rights["topics", "DESCRIBE"] == "unknown"
    assert rights["groups", "DESCRIBE"] == "unknown"
    assert rights["acls", "DESCRIBE"] == "denied"


def test_a_super_user_may_do_everything(own_kctl: Kctl, secure: SecureCluster) -> None:
    own_kctl.ok("topic", "create", "context-rights", *secure.options(secure.admin))
    found = own_kctl.json("context", "test", *secure.options(secure.admin))
    assert found["principal"] == "User:admin"
    assert {right["result"] for right in found["rights"]} == {"ok"}
    own_kctl.ok("topic", "delete", "context-rights", "--yes", *secure.options(secure.admin))
