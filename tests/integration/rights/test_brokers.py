"""What a user without rights sees of brokers and health: that it may not see it, never that there is nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from java_tools import java_tool
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
    assert unknown == {"controller", "topics", "log_dirs", "disks"}
    whole = own_kctl.json("cluster", "health", "--max-disk-percent", "100", *secure.options(secure.admin))
    assert whole["healthy"]


def test_health_of_topics_that_are_not_seen(own_kctl: Kctl, secure: SecureCluster, kafka_home: Path) -> None:
    """Describe on the cluster alone: brokers leave the topics out of metadata, and all that is seen is fine."""

    def acl(*action: str) -> None:
        java_tool(
            kafka_home, "kafka.admin.AclCommand", "--bootstrap-server", secure.bootstrap,
            "--command-config", secure.admin, *action, "--allow-principal", "User:nobody", "--operation", "Describe",
            "--cluster",
        )  # fmt: skip

    own_kctl.ok("topic", "create", "rights-unseen", *secure.options(secure.admin))
    try:
        acl("--add")
        look = ("cluster", "health", "--max-disk-percent", "100", "-o", "json", *secure.options(secure.nobody))
        result = own_kctl(*look)
        assert result.code == 5, str(result)
        (unknown,) = (check for check in json.loads(result.out)["checks"] if check["status"] == "unknown")
        assert unknown["check"] == "topics"
        assert "rights-unseen" in unknown["subjects"]
        diagnosed = own_kctl("cluster", "diagnose", *secure.options(secure.nobody))
        assert diagnosed.code == 5, str(diagnosed)
        assert "hidden from this user" in diagnosed.err
        listed = own_kctl("broker", "list", "-o", "json", *secure.options(secure.nobody))
        assert listed.code == 5, str(listed)
        (row,) = json.loads(listed.out)
        assert (row["leaders"], row["replica_count"], row["not_in_sync"]) == (None, None, None)
        assert row["size_bytes"] is not None
        described = own_kctl("broker", "describe", "1", *secure.options(secure.nobody))
        assert described.code == 5, str(described)
        assert "hidden from this user" in described.err
    finally:
        own_kctl.ok("topic", "delete", "rights-unseen", "--yes", *secure.options(secure.admin))
        acl("--remove", "--force")


def test_brokers_are_listed_without_their_disks(own_kctl: Kctl, secure: SecureCluster) -> None:
    result = own_kctl("broker", "list", "-o", "json", *secure.options(secure.nobody))
    assert result.code == 5, str(result)
    (row,) = json.loads(result.out)
    assert (row["broker"], row["state"], row["size_bytes"], row["log_dir_count"]) == (1, "up", None, None)
    assert "CLUSTER_AUTHORIZATION_FAILED" in row["error"]
    assert (row["leaders"], row["replica_count"], row["is_controller"]) == (None, None, None)
    assert "the controller is unknown" in result.err
