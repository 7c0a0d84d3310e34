"""What a user without rights learns from the doctor: that it may not see it, never that it is fine."""

from __future__ import annotations

import json

from kctl_testing import Kctl
from secure_cluster import SecureCluster

# What metadata and ApiVersions tell everybody.
OPEN = {"brokers", "advertised-listeners", "metadata-version"}


def test_unknown_is_never_fine(own_kctl: Kctl, secure: SecureCluster) -> None:
    result = own_kctl("doctor", "--fail-on", "never", "-o", "json", *secure.options(secure.nobody))
    assert result.code == 5, str(result)
    found = json.loads(result.out)
    told = {each["rule"] for each in found["rules"] if each["outcome"] in ("ok", "found")}
    assert told <= OPEN
    assert len(found["unknown"]) >= 5
    assert all("authorized" in line or "may describe" in line for line in found["unknown"])
    assert "the result is incomplete" in result.err


def test_who_may_see_it_sees_it(own_kctl: Kctl, secure: SecureCluster) -> None:
    found = own_kctl.json("doctor", "--fail-on", "never", *secure.options(secure.admin))
    assert found["unknown"] == []
    outcomes = {each["rule"]: each["outcome"] for each in found["rules"]}
    assert (outcomes["no-authorizer"], outcomes["no-super-users"], outcomes["plaintext-listeners"]) == ("ok",) * 3
