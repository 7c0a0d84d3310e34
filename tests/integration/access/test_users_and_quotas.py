"""Users and quotas on the session's cluster, which has no authorizer."""

from __future__ import annotations

import pytest

from kctl_testing import Kctl, TestCluster, within


@pytest.mark.parametrize(
    "command", [["list"], ["add", "allow alice read topic t"], ["remove", "--host", "*"], ["explain", "alice"]]
)
def test_no_authorizer(kctl: Kctl, cluster: TestCluster, command: list[str]) -> None:
    result = kctl("acl", *command)
    assert (result.code, result.out) == (4, ""), str(result)
    assert "SECURITY_DISABLED" in result.err
    assert "authorizer.class.name" in result.err


def test_a_user_from_first_to_last(kctl: Kctl, cluster: TestCluster) -> None:
    options = ("--mechanism", "sha-256", "--password-file", "-")
    assert kctl.json("user", "add", "access-uma", *options, stdin="secret\n") == [
        {"user": "access-uma", "mechanism": "SCRAM-SHA-256", "iterations": 8192, "result": "added", "error": None}
    ]
    assert {"user": "access-uma", "mechanism": "SCRAM-SHA-256", "iterations": 8192} in kctl.json("user", "list")
    kctl.ok("user", "remove", "access-uma", "--yes")
    assert kctl("user", "list", "access-uma").code == 4


def test_quotas(kctl: Kctl, cluster: TestCluster) -> None:
    who = ("--user", "access-uma", "--client-id", "a\x1b[31m")
    checked = kctl.json("quota", "set", *who, "producer_byte_rate=10MB", "--dry-run")
    assert [row["result"] for row in checked] == ["would set"]
    unasked = kctl("quota", "set", *who, "producer_byte_rate=10MB")
    assert (unasked.code, "- → 10,000,000" in unasked.err) == (4, True), str(unasked)
    assert kctl.json("quota", "list", "--user", "access-uma") == []
    done = kctl.json("quota", "set", *who, "producer_byte_rate=10MB", "consumer_byte_rate=2000", "--yes")
    assert done[0] == {
        "entity": 'user access-uma, client-id "a\\u001b[31m"',
        "user": "access-uma", "client_id": "a\x1b[31m", "ip": None,
        "key": "producer_byte_rate", "before": None, "after": 10_000_000.0, "result": "set", "error": None,
    }  # fmt: skip
    listed = kctl.json("quota", "list", "--user", "access-uma")
    assert [(row["key"], row["value"]) for row in listed] == [
        ("consumer_byte_rate", 2000.0), ("producer_byte_rate", 10_000_000.0),
    ]  # fmt: skip
    assert "\x1b" not in kctl.ok("quota", "list").out
    assert "unchanged" in kctl.ok("quota", "set", *who, "producer_byte_rate=10000000").out
    refused = kctl("quota", "set", *who, "producer_byte_rate=20MB")
    assert (refused.code, "10,000,000 → 20,000,000" in refused.err) == (4, True), str(refused)
    gone = kctl.json("quota", "unset", *who, "producer_byte_rate", "consumer_byte_rate", "--yes")
    assert [(row["before"], row["after"], row["result"]) for row in gone] == [
        (10_000_000.0, None, "unset"), (2000.0, None, "unset"),
    ]  # fmt: skip
    assert kctl.json("quota", "list", "--user", "access-uma") == []
    again = kctl("quota", "unset", *who, "producer_byte_rate", "--yes")
    assert (again.code, "producer_byte_rate: not set for user" in again.err) == (4, True)
    assert "unchanged" in kctl.ok("quota", "unset", *who, "producer_byte_rate", "--if-exists").out


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["set", "producer_byte_rate=1"], "no user, client id or address specified"),
        (["set", "--user", "u", "--user-defaults", "producer_byte_rate=1"], "cannot be combined with a name"),
        (["set", "--user", "u", "--ip", "10.0.0.1", "producer_byte_rate=1"], "an IP address cannot be combined"),
        (["set", "--user", "u", "producer_rate=1"], "did you mean producer_byte_rate"),
        (["set", "--user", "u", "producer_byte_rate"], "is not KEY=VALUE"),
        (["set", "--user", "u", "producer_byte_rate=-1"], "is not a valid producer_byte_rate"),
        (["set", "--user", "u", "producer_byte_rate=1", "producer_byte_rate=2"], "is specified twice"),
        (["unset", "--ip", "10.0.0.1", "producer_byte_rate"], "connection_creation_rate"),
    ],
)
def test_bad_quotas(kctl: Kctl, cluster: TestCluster, command: list[str], says: str) -> None:
    result = kctl("quota", *command)
    assert (result.code, result.out) == (2, ""), str(result)
    assert says in result.err


@pytest.mark.parametrize("command", [["user", "list"], ["quota", "list"], ["acl", "list"], ["context", "test"]])
def test_a_bootstrap_server_that_is_down(kctl: Kctl, cluster: TestCluster, command: list[str]) -> None:
    """The others of the list are asked, and `context test` tells which one it is."""
    one_dead = ("--bootstrap-server", f"127.0.0.1:1,{cluster.bootstrap}")
    result, usual = kctl(*command, *one_dead), kctl(*command)
    assert result.seconds < within(5)
    if command[0] == "context":
        assert (result.code, "127.0.0.1:1" in result.err) == (1, True), str(result)
    else:
        warned = f"warning: 127.0.0.1:1 refused the connection\n{usual.err}"
        assert (result.code, result.out, result.err) == (usual.code, usual.out, warned), str(result)
    none = kctl(*command, "--bootstrap-server", "127.0.0.1:1")
    assert (none.code, none.out, none.seconds < within(5)) == (3, "", True), str(none)
