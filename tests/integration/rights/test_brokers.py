"""What a user without rights sees of brokers and health: that it may not see it, never that there is nothing."""

from __future__ import annotations

import json

import pytest

from kctl_testing import Kctl
from secure_cluster import SecureCluster


@pytest.mark.parametrize(
    "arguments",
    [
        ("broker", "log-dirs"),
        ("broker", "loggers", "list"),
        ("broker", "loggers", "set", "kafka.request.logger=ERROR", "--yes"),
        ("controller",),
    ],
)
def test_refused(own_kctl: Kctl, secure: SecureCluster, arguments: tuple[str, ...]) -> None:
    result = own_kctl(*arguments, *secure.options(secure.nobody), "-o", "json")
    assert (result.code, result.out) == (4, ""), str(result)
    error = json.loads(result.err)
    assert (error["code"], error["kafka_error"]) == ("not_authorized", "CLUSTER_AUTHORIZATION_FAILED")
    assert own_kctl(*arguments, *secure.options(secure.admin)).code == 0, "with the right it works"


def test_health_says_what_it_could_not_see(own_kctl: Kctl, secure: SecureCluster) -> None:
    result = own_kctl("cluster", "health", "-o", "json", *secure.options(secure.nobody))
    assert result.code == 5, str(result)
    found = json.loads(result.out)
    assert found["healthy"] is False
    unknown = {check["check"] for check in found["checks"] if check["status"] == "unknown"}
    assert unknown == {"controller", "log_dirs", "disks"}
    whole = own_kctl.json("cluster", "health", "--max-disk-percent", "100", *secure.options(secure.admin))
    assert whole["healthy"]


def test_brokers_are_listed_without_their_disks(own_kctl: Kctl, secure: SecureCluster) -> None:
    result = own_kctl("broker", "list", "-o", "json", *secure.options(secure.nobody))
    assert result.code == 5, str(result)
    (row,) = json.loads(result.out)
    assert (row["id"], row["state"], row["size_bytes"], row["log_dirs"]) == (1, "up", None, None)
    assert "CLUSTER_AUTHORIZATION_FAILED" in row["error"]
