"""Names chosen exactly or by patterns, and what was meant by those that are not known."""

from __future__ import annotations

import pytest

from kctl.base.name_patterns import not_there, parse_patterns, select
from kctl.base.suggestions import closest, did_you_mean
from kctl.errors import NotFound, UsageError

KNOWN = ["orders", "orders-v2", "payments"]


@pytest.mark.parametrize(
    ("exact", "patterns", "chosen"),
    [
        ([], [], KNOWN),
        (["payments"], [], ["payments"]),
        ([], ["orders.*"], ["orders", "orders-v2"]),
        ([], ["order"], None),
        (["payments"], ["nothing"], ["payments"]),
        ([], [".*s", "pay.*"], ["orders", "payments"]),
        (["order"], [], None),
    ],
)
def test_select(exact: list[str], patterns: list[str], chosen: list[str] | None) -> None:
    compiled = parse_patterns("--match", patterns)
    if chosen is None:
        with pytest.raises(NotFound):
            select(KNOWN, exact=exact, patterns=compiled)
    else:
        assert select(KNOWN, exact=exact, patterns=compiled) == chosen


def test_an_unknown_name_tells_what_was_meant() -> None:
    with pytest.raises(NotFound, match=r"^group ordres does not exist$") as caught:
        select(KNOWN, exact=["ordres"], noun="group")
    assert caught.value.hint == "did you mean orders or orders-v2?"


def test_several_unknown_names() -> None:
    with pytest.raises(NotFound, match=r"^topics a, b do not exist$"):
        select(KNOWN, exact=["b", "a", "orders"])


@pytest.mark.parametrize(
    ("missing", "message", "hint"),
    [
        (["ordres"], "group 'ordres' does not exist", "did you mean orders or orders-v2?"),
        (["z", "y"], "groups 'z', 'y' do not exist", "list them with `kctl group list`"),
        (list("abcdefg"), "groups 'a', 'b', 'c', 'd', 'e' and 2 more do not exist", None),
    ],
)
def test_what_is_not_there(missing: list[str], message: str, hint: str | None) -> None:
    error = not_there(missing, KNOWN, noun="group", show=repr)
    assert error.message == message
    assert hint in {None, error.hint}


def test_no_regular_expression() -> None:
    with pytest.raises(UsageError, match=r"--match '\[' is not a valid regular expression"):
        parse_patterns("--match", ["["])


@pytest.mark.parametrize(
    ("name", "found"), [("ORDERS", ["orders", "orders-v2"]), ("xyz", []), ("paymets", ["payments"]), ("", [])]
)
def test_closest(name: str, found: list[str]) -> None:
    assert closest(name, KNOWN) == found


def test_any_character_is_any() -> None:
    """A group id may have line ends, and `--match '.*'` means all groups."""
    assert select(["a\nb", "c"], patterns=parse_patterns("--match", [".*"]), noun="group") == ["a\nb", "c"]


def test_what_was_meant_is_told_in_one_line() -> None:
    assert did_you_mean("bilng", ["bil\n\x1bing"]) == "did you mean bil\\n\\x1bing?"


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("ord*", "it is a regular expression for the whole name: did you mean 'ord.*'?"),
        ("*", None),  # no regular expression at all: refused before
        ("a.b-*", "it is a regular expression for the whole name: did you mean 'a\\\\.b-.*'?"),
        ("ord.*x", None),
        ("ord", None),
    ],
)
def test_a_shells_pattern_that_finds_nothing(pattern: str, hint: str | None) -> None:
    if pattern == "*":
        with pytest.raises(UsageError) as refused:
            parse_patterns("--match", [pattern])
        assert "did you mean '.*'?" in (refused.value.hint or "")
        return
    with pytest.raises(NotFound) as caught:
        select(KNOWN, patterns=parse_patterns("--match", [pattern]))
    assert caught.value.hint == hint
