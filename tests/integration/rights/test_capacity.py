"""kctl capacity as a user without rights: nothing is measured, nothing made, and nothing shown as absent."""

from __future__ import annotations

from kctl_testing import Kctl
from secure_cluster import SecureCluster


def test_a_user_without_rights(own_kctl: Kctl, secure: SecureCluster) -> None:
    kctl, admin, nobody = own_kctl, secure.options(secure.admin), secure.options(secure.nobody)
    refused = kctl("capacity", "--measure", "--replication-factor", "1", "--yes", *nobody)
    assert (refused.code, refused.out) == (4, ""), str(refused)
    assert "not authorized" in refused.err.lower(), str(refused)
    seen = kctl("capacity", "--from-cluster", "--window", "100ms", *nobody)
    assert (seen.code, seen.out) == (4, ""), str(seen)
    assert "this user may describe" in seen.err
    assert not [r for r in kctl.json("topic", "list", *admin) if r["topic"].startswith("kctl-capacity-")]
