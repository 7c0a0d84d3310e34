"""What one value is, however often it is met: expressions that hold a text or list many times stay bounded."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kctl.base.suggestions import closest
from kctl.playbook.expressions import limits
from kctl.playbook.expressions.evaluation import evaluate, render
from kctl.playbook.expressions.json_text import value_of_json
from kctl.playbook.expressions.limits import MAX_TEXT, ExpressionError
from kctl.playbook.expressions.syntax import parse_text
from kctl.playbook.model import Parameter, Position
from kctl.playbook.parameters import from_text

BIG = "a" * (MAX_TEXT - 10)
DEEP = "[" * 900 + "]" * 900
HOSTILE = {
    "big": BIG, "deep": DEEP, "digits": "9" * 1_000_000, "commas": "," * 1_000_000, "many": list(range(100_000)),
    "nested": [["a" * 1000] * 100] * 100,
}  # fmt: skip


def often(value: str) -> str:
    """An expression for a list that has a value 10,000 times."""
    return f"(range(10000) | map(attribute='x', default={value}))"


@pytest.mark.parametrize(
    "source",
    [
        f"{often('big')} | tojson",
        f"{often('big')} | string",
        f"{often('big')} | map('reverse') | list",
        f"{often('[big[:500000], big[:500000]]')} | map('join') | list",
        f"{often('big[:1000]')} | map('replace', 'a', big[:1000]) | list",
        f"{often('[big[:1000000]]')} | map('tojson') | list",
        f"({often('big')} + {often('(big[:1048565] ~ 1)')} + {often('big')}) | sort",
        f"{often('big')}",
        "deep | fromjson",
        "'[' ~ digits ~ ']' | fromjson",
        "digits | int",
        f"{often('big')} | map('upper') | first",
        f"{often('commas')} | map('split', ',') | length",
        "commas | split(',')",
        "big[:500000] | replace('a', 'aaa')",
        "many | map('string') | join(big[:1000])",
        "range(10000) | join(big)",
        "'[1e999]' | fromjson",
    ],
)
def test_nothing_is_made_as_often_as_it_is_named(source: str) -> None:
    started = time.process_time()
    with pytest.raises(ExpressionError):
        evaluate(source, HOSTILE)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "source",
    [
        f"{often(often('1'))} | tojson",
        f"{often(often('1'))} | unique",
        f"{often(often('1'))} == {often(often('2 - 1'))}",
        f"{often(often('[1]'))} in [{often(often('[1.0]'))}]",
        f"big | map(attribute='{'a.' * 50}a', default=1)",
        f"{often('nested')} | map('flatten') | length",
        f"range(10000) | map(attribute='{'a.' * 1500}', default=1)",
    ],
)
def test_work_is_counted_at_each_depth(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WORK", 120_000)
    with pytest.raises(ExpressionError, match=r"takes too long|the result has more than"):
        evaluate(source, {**HOSTILE, "big": [{}] * 10_000})


def test_the_expressions_of_a_step_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CPU_SECONDS", 0.3)
    started = time.process_time()
    with pytest.raises(ExpressionError, match="takes too long"):
        render(["{{ many | sort | length }}"] * 1000, HOSTILE)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "source",
    ["part in text", "text is contains(end)", "text | split(end)", "text | replace(part, '')"],
)
def test_searches_take_no_longer_than_the_text_is(source: str) -> None:
    texts = {"text": "a" * 500_000, "part": "a" * 250_000 + "b", "end": "b" + "a" * 250_000}
    started = time.process_time()
    assert evaluate(f"({source}) != 2", texts)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[true] == [1]", False),
        ("{'a': [true]} == {'a': [1]}", False),
        ("{'a': [1.0, 'x']} == {'a': [1, 'x']}", True),
        ("[[1], [2]] == [[1], [2], []]", False),
        ("[true] in [[1], [2]]", False),
        ("[none] in [[none]]", True),
        ("{'a': 1} != {'b': 1}", True),
        ("true in {'a': 1}", False),
    ],
)
def test_values_are_the_same_as_in_json(source: str, value: bool) -> None:
    assert evaluate(source, {}) is value


def test_what_is_missing_costs_nothing_until_somebody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("kctl.playbook.expressions.values.did_you_mean", lambda name, _: asked.append(name))
    row = {f"name{n}": n for n in range(100)}
    assert evaluate("rows | map(attribute='x', default=7) | sum", {"rows": [row] * 1000}) == 7000
    assert asked == []
    with pytest.raises(ExpressionError, match="key 'x' does not exist"):
        evaluate("rows[0].x", {"rows": [row]})
    assert asked == ["x"]


def test_texts_of_braces_are_read_in_one_pass() -> None:
    text = "{ " * 300_000
    started = time.process_time()
    assert parse_text(text) == (text,)
    assert time.process_time() - started < 3


def test_a_text_has_so_many_expressions_and_no_more() -> None:
    with pytest.raises(ExpressionError, match="the string has more than 1,000 expressions"):
        parse_text("a{{ n }}" * 2000)


def test_all_texts_of_a_step_have_a_limit_together() -> None:
    with pytest.raises(ExpressionError, match="more than 33,554,432 characters"):
        render({"items": ["x{{ big }}"] * 100}, {"big": BIG[:-100]})


def test_names_beyond_all_names_are_not_compared() -> None:
    long: list[Any] = ["ab" * 50_000, "ba" * 50_000]
    started = time.process_time()
    assert closest(long[0], long) == closest("orders", long) == []
    assert closest("ordesr", [*long, "orders"]) == ["orders"]
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "text", ["NaN", '"\\ud800"', "[Infinity]", '{"a": -1e999}', "[" * 5000, "[" * 101 + "]" * 101, "", "{"]
)
def test_json_that_cannot_be_written_down_again(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        value_of_json(text)


def test_json_is_its_value() -> None:
    assert value_of_json('{"a": [1, 1.5, "x", null, true]}') == {"a": [1, 1.5, "x", None, True]}
    mapping = Parameter("m", "mapping", None, False, False, "", (), None, None, Position("f", 1, 1))
    assert from_text(mapping, '{"a": NaN}') == '{"a": NaN}', "text, which no mapping is"
