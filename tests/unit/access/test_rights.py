"""What a principal may do: allowed, implied, denied."""

from __future__ import annotations

import pytest

from kctl.access.acl_syntax import parse_all
from kctl.access.rights import Right, rights_of

# (ACLs, host, resource) → rows "resource from host: may | implied | denied | exceptions"
CASES: list[tuple[str, list[str], str | None, tuple[str, str] | None, list[str]]] = [
    ("reading implies describing", ["allow alice read topic t"], None, None, ["topic t *: READ|DESCRIBE||"]),
    ("altering configs implies describing them", ["allow alice alter-configs topic t"], None, None,
     ["topic t *: ALTER_CONFIGS|DESCRIBE_CONFIGS||"]),
    ("a group's deletion implies describing", ["allow alice delete group g"], None, None,
     ["group g *: DELETE|DESCRIBE||"]),
    ("all is everything that there is", ["allow alice all transactional-id x"], None, None,
     ["transactional-id x *: WRITE DESCRIBE TWO_PHASE_COMMIT|||"]),
    ("everybody is alice too", ["allow * read topic t"], None, None, ["topic t *: READ|DESCRIBE||"]),
    ("others are not", ["allow bob read topic t", "allow Group:alice read topic t"], None, None, []),
    ("nothing is allowed by a denial", ["deny alice read topic t"], None, None, []),
    ("a denial wins", ["allow alice read topic t", "deny alice read topic t"], None, None,
     ["topic t *: |DESCRIBE|READ|"]),
    ("a denial implies nothing, and takes what is implied", ["allow alice read topic t", "deny alice describe topic t"],
     None, None, ["topic t *: READ||DESCRIBE|"]),
    ("a denial of all", ["allow alice read topic t", "deny * all topic t"], None, None,
     ["topic t *: ||READ DESCRIBE|"]),
    ("a denied prefix covers names", ["allow alice read topic ta", "deny alice read topic t*"], None, None,
     ["topic ta *: |DESCRIBE|READ|"]),
    ("a denied name is an exception of a prefix", ["allow alice read topic t*", "deny alice read topic ta"], None, None,
     ["topic t* *: READ|DESCRIBE||deny alice read topic ta"]),
    ("a denied prefix is an exception of a shorter one", ["allow alice read topic t*", "deny alice read topic ta*"],
     None, None, ["topic t* *: READ|DESCRIBE||deny alice read topic ta*"]),
    ("a denied prefix is an exception of everything", ["allow alice read topic *", "deny alice read topic t*"],
     None, None, ["topic * *: READ|DESCRIBE||deny alice read topic t*"]),
    ("everything denied covers a prefix", ["allow alice read topic t*", "deny alice read topic *"], None, None,
     ["topic t* *: |DESCRIBE|READ|"]),
    ("a prefix that only begins alike", ["allow alice read topic ta*", "deny alice read topic tb*"], None, None,
     ["topic ta* *: READ|DESCRIBE||"]),
    ("a denial of a host is an exception", ["allow alice read topic t", "deny alice read topic t from 10.0.0.1"],
     None, None, ["topic t *: READ|DESCRIBE||deny alice read topic t from 10.0.0.1"]),
    ("hosts apart", ["allow alice read topic t from 10.0.0.1", "deny alice read topic t from 10.0.0.2"], None, None,
     ["topic t 10.0.0.1: READ|DESCRIBE||"]),
    ("from one host", ["allow alice read topic t", "deny alice read topic t from 10.0.0.1"], "10.0.0.1", None,
     ["topic t 10.0.0.1: |DESCRIBE|READ|"]),
    ("from another host", ["allow alice read topic t from 10.0.0.2"], "10.0.0.1", None, []),
    ("on one resource, from all patterns",
     ["allow alice read topic *", "allow alice write topic t*", "allow alice all topic x", "deny alice write topic ta"],
     None, ("TOPIC", "ta"), ["topic ta *: READ|DESCRIBE|WRITE|"]),
    ("other types", ["allow alice read group *"], None, ("TOPIC", "ta"), []),
]  # fmt: skip


@pytest.mark.parametrize(("acls", "host", "resource", "rows"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_rights(acls: list[str], host: str | None, resource: tuple[str, str] | None, rows: list[str]) -> None:
    found = rights_of("User:alice", parse_all(acls), host=host, resource=resource)
    assert [_text(right) for right in found] == rows


def _text(right: Right) -> str:
    parts = (right.operations, right.implied_operations, right.denied_operations)
    return f"{right.resource} {right.host}: {'|'.join(map(' '.join, parts))}|{'; '.join(right.exceptions)}"
