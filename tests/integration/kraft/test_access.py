"""Users, quotas, transactions and the lack of ACLs on a broker of 4.x."""

from __future__ import annotations

from kctl_testing import Kctl


def test_users_and_quotas(own_kctl: Kctl, kraft: str) -> None:
    server = ("--bootstrap-server", kraft)
    made = own_kctl.json("user", "add", "kraft-ulla", "--password-file", "-", *server, stdin="secret\n")
    assert [row["result"] for row in made] == ["added"]
    assert own_kctl.json("user", "list", "kraft-ulla", *server)[0]["iterations"] == 8192
    own_kctl.ok("user", "remove", "kraft-ulla", "--yes", *server)
    who = ("--user", "kraft-ulla", "--client-defaults")
    done = own_kctl.json("quota", "set", *who, "producer_byte_rate=10MB", "--yes", *server)
    assert [(row["before"], row["after"], row["result"]) for row in done] == [(None, 10_000_000.0, "set")]
    assert own_kctl.json("quota", "list", *who, *server)[0]["entity"] == "user kraft-ulla, default client-id"
    own_kctl.ok("quota", "unset", *who, "producer_byte_rate", "--yes", *server)
    assert own_kctl.json("quota", "list", *who, *server) == []


def test_no_authorizer(own_kctl: Kctl, kraft: str) -> None:
    for command in (["list"], ["add", "allow alice read topic t"], ["explain", "alice"], ["remove", "--host", "*"]):
        result = own_kctl("acl", *command, "--bootstrap-server", kraft)
        assert (result.code, result.out) == (4, ""), str(result)
        assert "SECURITY_DISABLED" in result.err


def test_transactions(own_kctl: Kctl, kraft: str) -> None:
    server = ("--bootstrap-server", kraft)
    own_kctl.ok("transaction", "list", *server)
    assert own_kctl("transaction", "describe", "kraft-nobody", *server).code == 4
    assert own_kctl("transaction", "hanging", *server).code == 0
