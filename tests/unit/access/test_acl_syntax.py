"""The sentence form of ACLs: formatted, parsed, and rejected with the position."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.access.acl_syntax import (
    expressions,
    format_acl,
    format_resource,
    parse_acls,
    parse_filter,
    parse_principal,
    parse_resource,
)
from kctl.access.model import OPERATIONS, SUPPORTED, Acl, AclFilter
from kctl.base.text import printable
from kctl.commands.app import main
from kctl.errors import UsageError


def _acl(kind: str, name: str, pattern: str, principal: str, *rest: str) -> Acl:
    permission, operation, host = (*rest, "*")[:3]
    return Acl(kind, name, pattern, principal, permission, operation, host)


READ = [
    ("allow alice read topic orders", [_acl("TOPIC", "orders", "LITERAL", "User:alice", "ALLOW", "READ")]),
    ("allow alice read topic orders*", [_acl("TOPIC", "orders", "PREFIXED", "User:alice", "ALLOW", "READ")]),
    ("allow * describe topic *", [_acl("TOPIC", "*", "LITERAL", "User:*", "ALLOW", "DESCRIBE")]),
    (
        "deny User:bob write transactional-id payments from 10.0.0.1",
        [_acl("TRANSACTIONAL_ID", "payments", "LITERAL", "User:bob", "DENY", "WRITE", "10.0.0.1")],
    ),
    ("DENY bob ALL Cluster", [_acl("CLUSTER", "kafka-cluster", "LITERAL", "User:bob", "DENY", "ALL")]),
    ("allow Group:ops alter_configs cluster", [
        _acl("CLUSTER", "kafka-cluster", "LITERAL", "Group:ops", "ALLOW", "ALTER_CONFIGS")]),
    ("allow alice read , write topic orders", [
        _acl("TOPIC", "orders", "LITERAL", "User:alice", "ALLOW", "READ"),
        _acl("TOPIC", "orders", "LITERAL", "User:alice", "ALLOW", "WRITE")]),
    ("allow alice read,read topic orders", [_acl("TOPIC", "orders", "LITERAL", "User:alice", "ALLOW", "READ")]),
    ("allow etl produce topic events", [
        _acl("TOPIC", "events", "LITERAL", "User:etl", "ALLOW", op) for op in ("WRITE", "CREATE", "DESCRIBE")]),
    ("allow etl consume group g", [_acl("GROUP", "g", "LITERAL", "User:etl", "ALLOW", "READ")]),
    ('allow "User:CN=a b, O=c" read topic t', [_acl("TOPIC", "t", "LITERAL", "User:CN=a b, O=c", "ALLOW", "READ")]),
    ('allow alice read group "a \\"b\\" \\u0001"*', [
        _acl("GROUP", 'a "b" \x01', "PREFIXED", "User:alice", "ALLOW", "READ")]),
    ('allow alice read group "pay*"', [_acl("GROUP", "pay*", "LITERAL", "User:alice", "ALLOW", "READ")]),
    ('allow alice read group "*"*', [_acl("GROUP", "*", "PREFIXED", "User:alice", "ALLOW", "READ")]),
    ("allow alice read topic from", [_acl("TOPIC", "from", "LITERAL", "User:alice", "ALLOW", "READ")]),
    # Brokers compare text: that of InetAddress.getHostAddress.
    ("allow alice read topic t from ::1", [
        _acl("TOPIC", "t", "LITERAL", "User:alice", "ALLOW", "READ", "0:0:0:0:0:0:0:1")]),
    ("allow alice read topic t from 2001:DB8:0::0a", [
        _acl("TOPIC", "t", "LITERAL", "User:alice", "ALLOW", "READ", "2001:db8:0:0:0:0:0:a")]),
    ("allow alice read topic t from ::ffff:10.0.0.1", [
        _acl("TOPIC", "t", "LITERAL", "User:alice", "ALLOW", "READ", "10.0.0.1")]),
    ("allow alice read topic t from fe80::1%eth0", [
        _acl("TOPIC", "t", "LITERAL", "User:alice", "ALLOW", "READ", "fe80:0:0:0:0:0:0:1%eth0")]),
    ("allow alice read topic t from *", [_acl("TOPIC", "t", "LITERAL", "User:alice", "ALLOW", "READ")]),
    ("allow alice create-tokens user bob", [
        _acl("USER", "bob", "LITERAL", "User:alice", "ALLOW", "CREATE_TOKENS")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "acls"), READ, ids=[text for text, _ in READ])
def test_read(text: str, acls: list[Acl]) -> None:
    assert parse_acls(text) == acls


REFUSED = [
    ("", 1, '"allow" or "deny" is missing'),
    ("permit alice read topic t", 1, "not 'permit'"),
    ("allow", 6, "a principal is missing"),
    ("allow alice", 12, "an operation is missing"),
    ("allow alice reed topic orders", 13, "expected an operation, not 'reed'"),
    ("allow alice read,, write topic t", 18, "a comma must separate operations"),
    ("allow alice read, topic t", 19, "expected an operation, not 'topic'"),
    ("allow alice, bob read topic t", 14, "without a comma before it"),
    ("allow alice read topics t", 18, "expected a resource"),
    ("allow alice read topic", 23, "the name of a topic is missing"),
    ('allow alice read topic ""', 24, "the name is empty"),
    ('allow alice read topic "orders', 24, "missing closing quote"),
    ('allow alice read topic "a"b', 27, "missing space after"),
    ('allow alice read topic "\\q"', 24, "invalid quoted text"),
    ('allow alice read topic "*"', 24, "all resources of the type"),
    ("allow ali* read topic t", 7, "a principal cannot be a pattern"),
    ("allow :x read topic t", 7, "is not a principal"),
    ("allow alice write group g", 13, '"write" is not an operation on a group'),
    ("allow alice consume cluster", 13, '"consume" applies to a topic or group'),
    ("allow alice read topic t by noon", 26, 'expected "from HOST" or the end, not'),
    ("allow alice read topic t from", 30, "an IP address is missing"),
    ("allow alice read topic t from example.org", 31, "is not an IP address"),
    ("allow alice read topic t from 10.0.0.0/8", 31, "is not an IP address"),
    ("allow alice read topic t,", 26, "nothing follows the comma"),
    ("allow alice all cluster kafka-cluster", 25, "the end"),
]


@pytest.mark.parametrize(("text", "position", "says"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_refused_with_the_place(text: str, position: int, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_acls(text)
    assert says in caught.value.message
    assert f"at character {position}:" in caught.value.message
    assert caught.value.details["position"] == position
    assert (caught.value.hint or "").splitlines()[1:2] == [" " * (position - 1) + "^"]


def test_what_was_meant_is_told() -> None:
    with pytest.raises(UsageError) as caught:
        parse_acls("allow alice descrieb topic t")
    assert "did you mean describe" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["a\u202eb", "\x9b31m", "\x7f", "a\u200f", "\u2028", "\ud800", 'a "\x85" b'])
def test_what_a_terminal_shows_is_what_is_read(name: str) -> None:
    acl = Acl("GROUP", name, "LITERAL", f"User:{name}", "ALLOW", "READ")
    assert printable(format_acl(acl)) == format_acl(acl)
    assert parse_acls(format_acl(acl)) == [acl]


def test_what_is_there_can_be_named_for_removal_whatever_it_is() -> None:
    (acl,) = parse_acls("allow alice write group g from example.org", strict=False)
    assert (acl.operation, acl.host) == ("WRITE", "example.org")


_names = st.text(min_size=1, max_size=12)
_kinds = st.sampled_from(sorted(set(SUPPORTED) - {"CLUSTER"}))


@given(
    _kinds, _names, st.sampled_from(["LITERAL", "PREFIXED"]), st.sampled_from(["User", "Group"]), _names,
    st.sampled_from(["ALLOW", "DENY"]), st.sampled_from(sorted(OPERATIONS)), st.sampled_from(["*", "10.0.0.1", "::1"]),
)  # fmt: skip
def test_words_are_read_as_what_they_were_written_of(
    kind: str, name: str, pattern: str, principal_type: str, principal: str, permission: str, operation: str, host: str
) -> None:
    acl = Acl(kind, name, pattern, f"{principal_type}:{principal}", permission, operation, host)
    assert parse_acls(format_acl(acl), strict=False) == [acl]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    caught: UsageError | None = None
    try:
        parse_acls(text)
    except UsageError as exc:
        caught = exc
    assert caught is None or 1 <= int(str(caught.details["position"])) <= len(text) + 1


def test_an_expression_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="the maximum is 10,000"):
        parse_acls("allow alice read topic " + "x" * 10_000)


def test_words_of_one_expression_may_be_given_apart() -> None:
    assert expressions(["allow", "alice", "read", "topic", "t"]) == ["allow alice read topic t"]
    assert expressions(["allow a read topic t", "allow b read topic t"]) == [
        "allow a read topic t", "allow b read topic t",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("topic", ("TOPIC", None, None)),
        ("Transactional_Id", ("TRANSACTIONAL_ID", None, None)),
        ("topic orders", ("TOPIC", "orders", "LITERAL")),
        ("topic orders*", ("TOPIC", "orders", "PREFIXED")),
        ("cluster", ("CLUSTER", None, None)),
    ],
)
def test_resources(text: str, found: tuple[str, str | None, str | None]) -> None:
    assert parse_resource(text) == found


def test_cluster_has_no_name_in_words() -> None:
    assert format_resource("CLUSTER", "kafka-cluster", "LITERAL") == "cluster"


@pytest.mark.parametrize("text", ["", " ", "User:", ":alice"])
def test_no_principal(text: str) -> None:
    with pytest.raises(UsageError):
        parse_principal(text)


def test_filters() -> None:
    none = {"principal": None, "resource": None, "covering": None, "operation": None, "permission": None, "host": None}
    assert parse_filter(**none) == AclFilter()
    assert parse_filter(**{**none, "host": "::1"}) == AclFilter(host="0:0:0:0:0:0:0:1")
    assert parse_filter(**{**none, "covering": "topic t", "principal": "alice", "permission": "Deny"}) == AclFilter(
        "TOPIC", "t", "LITERAL", covering=True, principal="User:alice", permission_type="DENY"
    )
    for wrong in (
        {"covering": "topic t*"}, {"covering": "topic"}, {"permission": "perhaps"}, {"operation": "reed"},
        {"resource": "topic t", "covering": "topic t"},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            parse_filter(**{**none, **wrong})


QUOTES = "enclose a whole name"


@pytest.mark.parametrize(
    ("text", "advised"),
    [
        ("allow User:CN=a,O=b read topic x", True),
        ("allow CN=a, O=b read topic x", True),
        ('allow User:"CN=a,O=b" read topic x', True),
        ("allow Bob Smith read topic x", True),
        ("allow bob read group my group", True),
        ("allow bob read group a,b", True),
        ("permit bob read topic x", False),
        ("allow bob", False),
    ],
)
def test_names_that_need_quotes(text: str, advised: bool) -> None:
    with pytest.raises(UsageError) as caught:
        parse_acls(text)
    assert (QUOTES in (caught.value.hint or "")) is advised


@pytest.mark.parametrize(
    ("words", "principal", "name"),
    [
        (["allow", "User:CN=a,O=b", "read", "topic", "x"], "User:CN=a,O=b", "x"),
        (["allow", "CN=a, O=b", "read,write", "topic", "x"], "User:CN=a, O=b", "x"),
        (["allow", "Bob Smith", "read", "group", "my group"], "User:Bob Smith", "my group"),
        (["allow", '"Bob Smith"', "read", "group", "g"], "User:Bob Smith", "g"),
        (["allow", "bob", "read,", "write", "topic", "x"], "User:bob", "x"),
        (['allow "CN=a,O=b" read topic x'], "User:CN=a,O=b", "x"),
    ],
)
def test_words_that_a_shell_has_freed_from_their_quotes(words: list[str], principal: str, name: str) -> None:
    (text,) = expressions(words)
    acls = parse_acls(text)
    assert {(acl.principal, acl.resource_name) for acl in acls} == {(principal, name)}


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        ("User:alice --topic orders", 'run `kctl acl add "allow alice read topic orders"`'),
        ("User:alice --topic=orders --operation Write", 'run `kctl acl add "allow alice write topic orders"`'),
        ("--deny-principal User:bob --deny-host 10.0.0.1 --cluster", '"deny bob describe cluster from 10.0.0.1"'),
        ("--allow-principal User:* --topic o --resource-pattern-type prefixed", '"allow * read topic o*"'),
        (
            "--allow-principal User:a --consumer --topic t --group g",
            '"allow a consume topic t" "allow a consume group g"',
        ),
        ("--producer --topic x", 'e.g. kctl acl add "allow alice read,write topic orders"'),
        ("User:alice --operation fly --topic x", 'e.g. kctl acl add "allow alice read,write topic orders"'),
    ],
)
def test_options_of_kafka_acls_become_sentences(args: str, hint: str, capsys: Any) -> None:
    assert main(["acl", "add", *args.split()]) == 2
    assert hint in capsys.readouterr().err


def test_other_unknown_options_show_no_sentence(capsys: Any) -> None:
    assert main(["acl", "add", "User:alice", "--bogus", "orders"]) == 2
    assert 'kctl acl add "' not in capsys.readouterr().err
