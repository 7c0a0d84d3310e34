"""Conditions on JSON values, keys, values and headers."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from kctl.errors import OperationFailed, UsageError
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume.json_path import parse_condition
from kctl.records.consume.select import RecordFilter, parse_header
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.decoding import record_decoder

ORDER = {
    "id": 17, "paid": True, "total": 12.5, "note": None, "user": {"name": "Åsa", "e-mail": "a@b"},
    "tags": ["new", "x\"y"], "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 3}], "a.b": 1, "": 2, "$": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("id == 17", True),
        ("id==17.0", True),
        ("id == 18", False),
        ('id == "17"', False),
        ("$.id == 17", True),
        (".id == 17", True),
        ("id != 18", True),
        ("id != 17", False),
        ("missing != 17", False),  # no such member
        ("missing == null", False),
        ("note == null", True),
        ("note", True),  # the member exists
        ("missing", False),
        ("paid == true", True),
        ("paid == 1", False),
        ("id == true", False),
        ("paid > 0", False),
        ("total >= 12.5", True),
        ("total > 12.5", False),
        ("total < 1e2", True),
        ("id <= 16", False),
        ('user.name == "Åsa"', True),
        ('user.name == "\\u00c5sa"', True),
        ('user.name > "A"', True),
        ('user.name =~ "^Å.a$"', True),
        ('id =~ "1"', False),  # not a string
        ('user.e-mail =~ "@"', True),
        ('user["e-mail"] == "a@b"', True),
        ('$["user"]["name"] =~ "s"', True),
        ('tags[0] == "new"', True),
        ('tags[-1] == "x\\"y"', True),
        ('tags[2] == "new"', False),
        ('tags["0"] == "new"', False),
        ("user[0]", False),
        ('tags[*] == "new"', True),
        ("items[*].n == 3", True),
        ("items[*].n > 3", False),
        ('items[*][*] == "b"', True),
        ('["a.b"] == 1', True),
        ('."a.b" == 1', True),
        ('[""] == 2', True),
        ('["$"] == 3', True),
        ('tags == ["new", "x\\"y"]', True),
        ('user == {"e-mail": "a@b", "name": "Åsa"}', True),
        ("$", True),
        (". ", True),
        (". == 17", False),
        ("$ != 17", True),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    assert parse_condition(condition)(ORDER) is holds


@pytest.mark.parametrize("value", [None, 3, "text", [], [1], float("inf")])
def test_a_path_into_a_value_that_is_not_an_object(value: Any) -> None:
    assert not parse_condition("a.b[0]")(value)


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("", "no path"),
        ("== 1", "no path"),
        ("a ==", "is not a JSON value"),
        ("a == b", "is not a JSON value"),
        ("a == 'b'", "double quotes"),
        ("a == NaN", "is not a JSON value"),
        ("a b", "'b' is not an operator"),
        ("a..b", "is not an operator"),
        ("a[", "is not an operator"),
        ("a[1.5]", "is not an operator"),
        ("a[99999999999]", "is not an operator"),
        ("a = 1", "is not an operator"),
        ("a =~ 1", "regular expression"),
        ('a =~ "("', "regular expression"),
        ("a < true", "a number or a string"),
        ("a < null", "a number or a string"),
        ("a == 1 and b == 2", "is not a JSON value"),
        ("a" * 1001, "longer than"),
        ("a == " + "[" * 900, "is not a JSON value"),
    ],
)
def test_invalid_conditions(condition: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)):
        parse_condition(condition)


TP = TopicPartition("t", 0)
CHUNK = Chunk(
    TP,
    range(10, 14),
    [1, 2, 3, 4],
    [b"alice", None, b"bob", b"\xff"],
    [b'{"n":1}', b"not json", None, b'{"n":2}'],
    {0: ((b"h", b"x"),), 3: ((b"h", None), (b"i", b"y"))},
)


@pytest.mark.parametrize(
    ("selection", "offsets"),
    [
        (RecordFilter(), [10, 11, 12, 13]),
        (RecordFilter(key=re.compile(b"li|bo")), [10, 12]),
        (RecordFilter(key=re.compile(b"")), [10, 12, 13]),  # null matches nothing
        (RecordFilter(value=re.compile(b"n")), [10, 11, 13]),
        (RecordFilter(key=re.compile(b"\xff")), [13]),
        (RecordFilter(headers=(parse_header("h"),)), [10, 13]),
        (RecordFilter(headers=(parse_header("h="),)), [10]),
        (RecordFilter(headers=(parse_header("h=^x$"),)), [10]),
        (RecordFilter(headers=(parse_header("h"), parse_header("i=y"))), [13]),
        (RecordFilter(json=(parse_condition("n > 1"),)), [13]),
        (RecordFilter(json=(parse_condition("n"), parse_condition("n < 2"))), [10]),
        (RecordFilter(key=re.compile(b"bob"), json=(parse_condition("n"),)), []),
    ],
)
def test_selection(selection: RecordFilter, offsets: list[int]) -> None:
    selected = selection.matching(CHUNK)
    assert list(selected.offsets) == offsets
    assert [record.offset for record in selected.records()] == offsets
    if 13 in offsets:
        assert list(selected.records())[-1].headers == (("h", None), ("i", b"y"))


def test_conditions_match_decoded_values() -> None:
    chunk = Chunk(TP, [0, 1], [0, 0], [None, None], [(7).to_bytes(4, "big"), b"xx"], {})
    decode = record_decoder(None, "int", DecoderSettings())
    assert decode
    chunk = chunk._replace(decoded=[decode(record) for record in chunk.records()])
    assert list(RecordFilter(value=re.compile(b"^7$")).matching(chunk).offsets) == [0]
    assert list(RecordFilter(value=re.compile(b"x")).matching(chunk).offsets) == [1], (
        "undecoded values are matched as bytes"
    )
    assert list(RecordFilter(json=(parse_condition("$ == 7"),)).matching(chunk).offsets) == [0]


def test_parts_keep_their_headers() -> None:
    part = CHUNK.part(2, 4)
    assert (part.size, dict(part.headers)) == (2, {1: ((b"h", None), (b"i", b"y"))})
    assert CHUNK.size_bytes == len(b"alicebob\xff") + len(b'{"n":1}not json{"n":2}')


def test_a_header_without_a_name() -> None:
    with pytest.raises(UsageError, match="no name"):
        parse_header("=x")


@pytest.mark.parametrize(
    "selection",
    [
        RecordFilter(value=re.compile(b"(a+)+b")),
        RecordFilter(headers=(parse_header("h=(a+)+b"),)),
        RecordFilter(json=(parse_condition('$ =~ "(a+)+b"'),)),
    ],
)
def test_an_extremely_slow_pattern_is_stopped(selection: RecordFilter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.records.consume.select._SEARCH_S", 0.2)
    before = signal.getsignal(signal.SIGVTALRM)
    chunk = Chunk(TP, [7, 8], [0, 0], [None, None], [b"b", b'"' + b"a" * 60 + b'"'], {1: ((b"h", b"a" * 60),)})
    with pytest.raises(OperationFailed, match=r"more than 0.2 s for offsets 7 to 8 of t-0"):
        selection.matching(chunk)
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
