"""Files of ACLs and quotas: what is taken, what is refused with its line; values of quotas; plans."""

from __future__ import annotations

import pytest

from kctl.access.access_file import parse_access_file
from kctl.access.acl_syntax import parse_acls
from kctl.access.changes import plan_changes
from kctl.access.quotas import DEFAULT, QuotaEntity, plan_quotas
from kctl.access.users import ScramUser, parse_mechanisms, plan_add, plan_remove, salted_password
from kctl.errors import InvalidFile, UsageError

FILE = """
acls:
  - allow alice read topic orders*
  - "deny bob all cluster"
  - allow alice read topic orders*
quotas:
  - {user: alice, producer_byte_rate: 10MB, request_percentage: 12.5}
  - {user: <default>, client_id: x, consumer_byte_rate: 1000}
  - ip: 10.0.0.1
    connection_creation_rate: 5
"""


def test_a_file() -> None:
    found = parse_access_file(FILE, source="f")
    assert found.acls == [*parse_acls("allow alice read topic orders*"), *parse_acls("deny bob all cluster")]
    assert found.quotas == {
        QuotaEntity("alice"): {"producer_byte_rate": 10_000_000, "request_percentage": 12.5},
        QuotaEntity(DEFAULT, "x"): {"consumer_byte_rate": 1000},
        QuotaEntity(ip="10.0.0.1"): {"connection_creation_rate": 5},
    }


def test_a_section_that_is_not_there_is_not_spoken_of() -> None:
    assert parse_access_file("acls: []", source="f").quotas is None
    assert parse_access_file("quotas: []", source="f").acls is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a mapping with acls"),
        ("{}", "neither acls nor quotas"),
        ("acls:\n", "f:1:1: acls is not a list"),
        ("users: []\n", "f:1:1: 'users' is not a valid key"),
        ("acls:\n  - 12\n", "f:2:5: expected an ACL as text"),
        ("acls:\n  - allow alice reed topic t\n", "f:2:5: invalid ACL at character 13"),
        ("quotas:\n  - x\n", "f:2:5: expected a mapping"),
        ("quotas:\n  - {producer_byte_rate: 1}\n", "f:2:5: no user, client id or address"),
        ("quotas:\n  - {user: true, producer_byte_rate: 1}\n", "f:2:6: user must be a string"),
        ("quotas:\n  - {user: 0123, producer_byte_rate: 1}\n", "f:2:6: user must be a string"),
        ("quotas:\n  - {client_id: 0x10, producer_byte_rate: 1}\n", "f:2:6: client_id must be a string"),
        ("quotas:\n  - {user: a}\n", "f:2:5: user a has no quotas"),
        ("quotas:\n  - {user: a, producer_rate: 1}\n", "f:2:15: 'producer_rate' is not a quota of user a"),
        ("quotas:\n  - {user: a, producer_byte_rate: 0}\n", "f:2:15: 0 is not a valid producer_byte_rate"),
        ("quotas:\n  - {user: a, producer_byte_rate: [1]}\n", "f:2:15: producer_byte_rate has no value"),
        ("quotas:\n  - {user: a, ip: 1.2.3.4, request_percentage: 1}\n", "cannot be combined with a user"),
        ("quotas:\n  - {ip: 1.2.3.4, request_percentage: 1}\n", "'request_percentage' is not a quota of ip 1.2.3.4"),
        ("quotas:\n  - {user: a, request_percentage: .inf}\n", "not a finite number"),
        ("quotas:\n  - {user: a, request_percentage: nan}\n", "nan is not a valid"),
        ("quotas:\n  - {user: a, request_percentage: 1}\n  - {user: a, request_percentage: 1}\n",
         "f:3:5: user a is listed twice"),
        ("acls: &x []\nquotas: *x\n", "f:1:7: the anchor"),
    ],
)  # fmt: skip
def test_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_access_file(text, source="f")
    assert says in caught.value.message


def test_names_of_digits_are_as_they_are_written() -> None:
    found = parse_access_file('quotas:\n  - {user: "0123", request_percentage: 1}\n', source="f")
    assert list(found.quotas or {}) == [QuotaEntity("0123")]


def test_plans_of_acls() -> None:
    one, two = parse_acls("allow alice read,write topic t")
    plan = plan_changes([one], add=[one, two], remove=[one])
    assert [row.result for row in plan] == ["already there", "would add", "would remove"]
    assert [row.result for row in plan_changes([], remove=[one])] == ["not there"]
    assert plan[0].acl == "allow alice read topic t"


def test_plans_of_quotas() -> None:
    who = QuotaEntity("a", "b")
    plan = plan_quotas(
        {who: {"request_percentage": 5.0, "producer_byte_rate": 7.0}},
        {who: {"request_percentage": 5.0, "producer_byte_rate": None, "consumer_byte_rate": 9.0},
         QuotaEntity("a"): {"request_percentage": None}},
    )  # fmt: skip
    assert [(row.entity, row.key, row.before, row.after, row.result) for row in plan] == [
        ("user a, client-id b", "request_percentage", 5.0, 5.0, "unchanged"),
        ("user a, client-id b", "producer_byte_rate", 7.0, None, "would unset"),
        ("user a, client-id b", "consumer_byte_rate", None, 9.0, "would set"),
        ("user a", "request_percentage", None, None, "unchanged"),
    ]


def test_plans_of_users() -> None:
    there = [ScramUser("a", "SCRAM-SHA-256", 4096), ScramUser("a", "SCRAM-SHA-512", 8192)]
    assert [row.result for row in plan_add(there[:1], "a", parse_mechanisms(["sha-256", "SCRAM-SHA-512"]), 4096)] == [
        "would replace", "would add",
    ]  # fmt: skip
    assert [(row.mechanism, row.result) for row in plan_remove(there, ["a", "b"], [])] == [
        ("SCRAM-SHA-256", "would remove"), ("SCRAM-SHA-512", "would remove"), (None, "not there"),
    ]  # fmt: skip
    assert [row.result for row in plan_remove(there[:1], ["a"], ["SCRAM-SHA-512"])] == ["not there"]
    for iterations in (4095, 16385):
        with pytest.raises(UsageError, match="4,096 and 16,384"):
            plan_add([], "a", ["SCRAM-SHA-256"], iterations)
    with pytest.raises(UsageError, match="--mechanism"):
        parse_mechanisms(["PLAIN"])


def test_salted_passwords() -> None:
    """The first is PBKDF2-HMAC-SHA-256's vector of RFC 7914, section 11, cut to the length of the hash."""
    assert salted_password("passwd", "SCRAM-SHA-256", b"salt", 1).hex() == (
        "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
    )
    assert len(salted_password("passwd", "SCRAM-SHA-512", b"salt", 1)) == 64


@pytest.mark.parametrize(
    ("name", "logs_in"),
    [
        # Each was added to Kafka 3.9.2 and tried with Java's client and kctl's.
        ("alice", True), ("a=b", True), ("a,b", True), (" a", True), ("a ", True), ("a b", True), ("a\tb", True),
        ("a\x01b", True), ("a\x7fb", True), ("=2C", True), ('"q"', True), ("a\\b", True), ("a/b", True), ("*", True),
        ("", False), ("\u00e4", False), ("A\u030a", False), ("\u2163", False), ("\ufb01", False), ("a\u00adb", False),
        ("a\u200bb", False), ("\u0645", False), ("\U0001f600", False), ("\u00a0x", False), ("x\ufeffy", False),
        ("x\0y", False),
    ],
)  # fmt: skip
def test_names_that_scram_logs_in(name: str, logs_in: bool) -> None:
    if logs_in:
        assert plan_add([], name, ["SCRAM-SHA-512"], 8192)[0].result == "would add"
    else:
        with pytest.raises(UsageError):
            plan_add([], name, ["SCRAM-SHA-512"], 8192)
