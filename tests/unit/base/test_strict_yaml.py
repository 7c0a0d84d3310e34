"""What the strict YAML reader takes, what it refuses, and that it says where."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.base import strict_yaml
from kctl.base.strict_yaml import YamlList, YamlMap, load
from kctl.errors import InvalidFile


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("~", None),
        ("null", None),
        ("a:", {"a": None}),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("'true'", "true"),
        ("10", 10),
        ("010", 10),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("9223372036854775807", 2**63 - 1),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("2024-01-01", "2024-01-01"),
        ("0b1", "0b1"),
        ("'7'", "7"),
        ('"\\u00e9"', "é"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
        ("[1, two, 3.0]", [1, "two", 3.0]),
        ("- 1\n- - 2\n  - 3\n", [1, [2, 3]]),
        ("{a: 1, 2: b}", {"a": 1, 2: "b"}),
        ("a: {b: [c, {d: e}]}", {"a": {"b": ["c", {"d": "e"}]}}),
        ("'<<': 1", {"<<": 1}),
        ("\ufeffa: 1", {"a": 1}),
        ("---\na: 1\n...\n", {"a": 1}),
    ],
)
def test_values(text: str, value: object) -> None:
    found = load(text, source="f")
    assert found == value
    assert type(found) is type(value) or isinstance(found, (YamlMap, YamlList))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: &x 1\nb: *x\n", 1, "anchor &x"),
        ("a: 1\nb: *x\n", 2, "alias *x"),
        ("*x : 1\n", 1, "alias *x"),
        ("a: 1\n# a comment\u2028b: 2\n", 2, "line separator"),
        ("a: 1\n# a comment\u2029b: 2\n", 2, "line separator"),
        ("a: 1\n# a comment\x85b: 2\n", 2, "next line"),
        ("a: 1\r\n# a comment\rb: 2\n", 2, "carriage return"),
        ("a: &x [b]\n", 1, "anchor &x"),
        ("a: &x {b: c}\n", 1, "anchor &x"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is there twice; first in line 1"),
        ("a:\n  b: 1\n  b: 1\n", 3, "'b' is there twice"),
        ("1: a\n01: b\n", 2, "1 is there twice"),
        ("<<: {a: 1}\n", 1, "merge"),
        ("a: !!python/object/apply:os.system [id]\n", 1, "tag"),
        ("a: !!str 1\n", 1, "tag"),
        ("a: !custom 1\n", 1, "tag"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: [1, 2\n", 2, "not YAML"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ("a: b: c\n", 1, "not YAML"),
        ("a: 1\nb: \x07\n", 2, "not YAML"),
        ("? [a]\n: 1\n", 1, "a key must be"),
        ("true: 1\n", 1, "a key must be"),
        ("~: 1\n", 1, "a key must be"),
        ("1.5: 1\n", 1, "a key must be"),
        ("a: .inf\n", 1, "finite"),
        ("a: -.INF\n", 1, "finite"),
        ("a: .nan\n", 1, "finite"),
        ("a: 1e999\n", 1, "too large"),
        ("a: 9223372036854775808\n", 1, "64 bits"),
        ("a:\n- " + "- " * 40 + "x\n", 2, "nested more than 32"),
        ("a: " + "[" * 40 + "]" * 40, 1, "nested more than 32"),
        ("a: " + "{b: " * 40 + "c" + "}" * 40, 1, "nested more than 32"),
    ],
)
def test_refused_with_the_line(text: str, line: int, says: str) -> None:
    with pytest.raises(InvalidFile, match=says.replace("*", r"\*")) as caught:
        load(text, source="some.yaml")
    assert re.match(rf"some\.yaml:{line}:[0-9]+: ", caught.value.message)


def test_not_utf8() -> None:
    with pytest.raises(InvalidFile, match=r"f:2:4: not UTF-8"):
        load(b"a: 1\nb: \xff\n", source="f")


def test_too_large_is_not_parsed() -> None:
    with pytest.raises(InvalidFile, match="larger than 100 bytes"):
        load("a" * 101, source="f", max_bytes=100)


def test_an_alias_bomb_costs_nothing() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    started = time.process_time()
    with pytest.raises(InvalidFile, match="anchor"):
        load(bomb, source="bomb")
    assert time.process_time() - started < 0.5


def test_too_many_values() -> None:
    with pytest.raises(InvalidFile, match="more than 100000 values"):
        load("[" + "1," * 100_001 + "]", source="f")


def test_brackets_without_end() -> None:
    with pytest.raises(InvalidFile):
        load("[" * 100_000, source="f")


def test_where() -> None:
    found = load("a: 1\nb:\n  - x\n  - c: 2\n", source="f")
    assert found.where("a") == "f:1:1"
    assert found.where("b") == "f:2:1"
    assert found["b"].where() == "f:3:3"
    assert found["b"].where(1) == "f:4:5"
    assert found["b"][1].where("c") == "f:4:5"
    assert found.where("absent") == "f:1:1"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("a: one X", (1, 8)),
        ("a: 'one X'", (1, 9)),
        ('a: "one X"', (1, 9)),
        ("a: |\n  one\n  X\n", (3, 3)),
        ("a: |2-\n    one\n    X\n", (3, 5)),
        ("a: |\n\n  one\n    X\n", (4, 5)),
        ("\ufeffa: é X", (1, 6)),
        ("a: 'o''X'", (1, 4)),  # escapes move characters: where the text begins is what can be told
        ('a: "\\u00e9X"', (1, 4)),
        ("a: >\n  one\n  X\n", (1, 4)),
        ("a: one\n  X\n", (1, 4)),
    ],
)
def test_a_character_within_a_text(text: str, at: tuple[int, int]) -> None:
    found = load(text, source="f")
    assert found.values_at["a"].at(found["a"], found["a"].index("X")) == at
    listed = load(text.replace("a:", "- ", 1) if "\n" not in text else "- 1", source="f")
    if "\n" not in text:
        assert listed.values_at[0].at(listed[0], listed[0].index("X")) == at


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\n  b: 2\n", "f:2:4"),
        ("a: 1\nbb: \x07\n", "f:2:5"),
        ("a:\n  bc: 1\n  bc: 1\n", "f:3:3"),
        ("a: [1, *x]\n", "f:1:8"),
    ],
)
def test_the_column_of_an_error(text: str, where: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        load(text, source="f")
    assert caught.value.message.startswith(f"{where}: ")


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: [1]\n")
    assert strict_yaml.load_file(path) == {"a": [1]}
    path.write_text("a: 1\na: 2\n")
    with pytest.raises(InvalidFile, match=f"{path}:2:1: "):
        strict_yaml.load_file(path)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_value_or_our_error(data: bytes) -> None:
    with suppress(InvalidFile):
        load(data, source="f")


_TEXT = st.text(st.characters(max_codepoint=0xD7FF))  # JSON escapes the rest as surrogates, which YAML has not
_KEYS = st.text(st.characters(max_codepoint=0xD7FF), max_size=100)  # YAML has simple keys of up to 1024 characters
_SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _TEXT


@given(st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner), max_leaves=20))
def test_reads_what_json_writes(value: object) -> None:
    import json

    assert load(json.dumps(value), source="f") == value
