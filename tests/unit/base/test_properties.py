"""Java's .properties: tables of text and meaning. The expectations are java.util.Properties' own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.base.properties import decode_properties, load_properties, parse_properties, property_line, property_sections
from kctl.errors import InvalidFile

READ = {
    "equals": ("a=b", {"a": "b"}),
    "colon": ("a:b", {"a": "b"}),
    "space": ("a b c", {"a": "b c"}),
    "spaces around": ("  a  =  b  ", {"a": "b  "}),
    "no value": ("a", {"a": ""}),
    "comments and empty lines": ("# x\n! y\n\n a=1", {"a": "1"}),
    "a hash is no comment later": ("a=1 # no", {"a": "1 # no"}),
    "continued": ("a=1,\\\n   2,\\\n  3", {"a": "1,2,3"}),
    "two backslashes do not continue": ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    "continued at the end": ("a=1\\", {"a": "1"}),
    "a comment does not continue": ("# a \\\nb=1", {"b": "1"}),
    "escapes": (r"a=\t\n\\\u00e9\q", {"a": "\t\n\\éq"}),
    "escaped separators in a key": (r"a\ b\=c=d", {"a b=c": "d"}),
    "surrogates": (r"a=\ud83d\ude00", {"a": "😀"}),
    "carriage returns": ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
}


@pytest.mark.parametrize("name", READ)
def test_read(name: str) -> None:
    text, expected = READ[name]
    assert parse_properties(text, source="f") == expected


@pytest.mark.parametrize(
    ("text", "says"), [("a=1\n\na=2", "line 3: a is set twice"), (r"a=\u12", r"line 1: \\u needs four")]
)
def test_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        parse_properties(text, source="f")


@pytest.mark.parametrize(
    ("data", "text"),
    [("a=é".encode(), "a=é"), ("a=é".encode("iso-8859-1"), "a=é"), (b"a=\xff\n", "a=ÿ\n"), (b"", "")],
    ids=["UTF-8", "ISO 8859-1", "a byte", "nothing"],
)
def test_decoded(data: bytes, text: str) -> None:
    """java.util.Properties.load reads bytes as ISO 8859-1."""
    assert decode_properties(data, source="f") == text


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"\xef\xbb\xbfa=1", "f begins with a byte order mark"), ("a=1".encode("utf-16"), "f is not text")],
)
def test_not_decoded(data: bytes, says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        decode_properties(data, source="f")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_written_reads_back(key: str, value: str) -> None:
    assert parse_properties(property_line(key, value), source="f") == {key: value}


def test_sections() -> None:
    text = property_sections("Head\nmore", [("One", [("a", "1")]), ("Empty", []), ("Two\nlines", [("b", "2")])])
    assert text == "# Head\n# more\n\n# One\na=1\n\n# Two\n# lines\nb=2\n"


FORMS = json.loads((Path(__file__).parents[2] / "data" / "properties_forms.json").read_text())


def _as_java(values: dict[str, str]) -> list[str]:
    return [text for key in sorted(values, key=lambda key: key.encode("utf-16-be")) for text in (key, values[key])]


def test_as_java_reads_it() -> None:
    """Each form of tests/data/properties_forms.json (tests/support/client_config_forms.py)."""
    assert len(FORMS) >= 300
    wrong = []
    for form in FORMS:
        data = form["bytes"].encode("latin-1")
        try:
            found: list[str] | None = _as_java(load_properties(data, source="f"))
        except InvalidFile:
            found = None
        if found != form["java"]:
            wrong.append((form["bytes"][:80], form["java"], found))
    assert wrong == []
