"""Expressions of playbooks: what they give, where they go wrong, and that nothing but values can be reached."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.playbook.expressions.evaluation import condition, evaluate, render
from kctl.playbook.expressions.filters import FILTERS, FUNCTIONS
from kctl.playbook.expressions.limits import MAX_CHARACTERS, MAX_TEXT, MAX_WORK, ExpressionError
from kctl.playbook.expressions.syntax import expressions_in, parse, parse_text
from kctl.playbook.expressions.value_tests import TESTS

BROKERS = [{"id": 2, "rack": "b", "disk": {"percent": 91.5}}, {"id": 1, "rack": "a", "disk": {"percent": 40}}]
VARIABLES: dict[str, Any] = {
    "n": 3, "name": "orders", "xs": [3, 1, 2], "nothing": None, "yes": True, "brokers": BROKERS,
    "health": {"value": {"healthy": True, "problems": []}, "exit_code": 0},
    "config": {"retention.ms": "86400000", "items": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("n", 3),
        ("n + 1", 4),
        ("7 // 2 * 2 + 7 % 2", 7),
        ("2 ** 10", 1024),
        ("-n", -3),
        ("1.5 + n", 4.5),
        ("name ~ '-' ~ n ~ yes", "orders-3true"),
        ("'a' + 'b'", "ab"),
        ("xs + [4]", [3, 1, 2, 4]),
        ("health.value.healthy", True),
        ("health['value']['healthy']", True),
        ("config['retention.ms'] | int", 86_400_000),
        ("config.items", 1),  # a key, not a method
        ("xs[0] + xs[-1]", 5),
        ("xs[1:]", [1, 2]),
        ("name[:3]", "ord"),
        ("n > 2 and n < 4", True),
        ("1 < n < 3", False),
        ("n == 3 or boom", True),  # the rest is not looked at
        ("n in xs", True),
        ("'der' in name", True),
        ("'a' not in {'a': 1}", False),
        ("1 == true", False),
        ("'many' if n > 2 else 'few'", "many"),
        ("{'a': [n, {'b': none}]}", {"a": [3, {"b": None}]}),
        ("(n, name)", [3, "orders"]),
        ("missing is defined", False),
        ("health.value.missing is defined", False),
        ("missing.deeper is undefined", True),
        ("missing | default('x')", "x"),
        ("nothing | default('x')", None),
        ("nothing | default('x', true)", "x"),
        ("xs | sort | join(',')", "1,2,3"),
        ("xs | sort(reverse=true) | first", 3),
        ("brokers | sort(attribute='id') | map(attribute='rack') | join", "ab"),
        ("brokers | selectattr('disk.percent', 'gt', 90) | map(attribute='id') | list", [2]),
        ("brokers | rejectattr('rack', 'in', ['a']) | length", 1),
        ("brokers | map(attribute='nic', default=0) | sum", 0),
        ("brokers | sum(attribute='disk.percent')", 131.5),
        ("brokers | max(attribute='disk.percent')", BROKERS[0]),
        ("xs | select('odd') | list", [3, 1]),
        ("['a', 'b'] | map('upper') | list", ["A", "B"]),
        ("[1, [2, [3]]] | flatten", [1, 2, 3]),
        ("[1, 1, 2, true] | unique", [1, 2, True]),
        ("[1, 2, 3] | difference([2]) | intersect([3, 1])", [1, 3]),
        ("{'b': 1, 'a': 2} | items | map(attribute='key') | list", ["b", "a"]),
        ("config | keys | length + config | values | length", 4),
        ("'3.7' | float | round", 4),
        ("3.14159 | round(2)", 3.14),
        ("'x' | int(7)", 7),
        ("-3 | abs", 3),  # as in Jinja
        ("2 - 3 | abs", -1),
        ("' a b ' | trim | split", ["a", "b"]),
        ("'a\\nb' | lines", ["a", "b"]),
        ("'a-b' | replace('-', '.') | upper", "A.B"),
        ("'{\"a\": [1]}' | fromjson", {"a": [1]}),
        ("{'a': 'ü'} | tojson", '{"a": "ü"}'),
        ("'5m' | duration_ms", 300_000),
        ("'1GiB' | size_bytes", 2**30),
        ("12345678 | human_size", "12.3 MB"),
        ("'90m' | duration_ms | human_duration", "1h 30m"),
        ("range(3)", [0, 1, 2]),
        ("range(3, 0, -1) | list", [3, 2, 1]),
        ("name is startswith('ord') and name is not endswith('x')", True),
        ("xs is contains(3) and '' is empty", True),
        ("[] | first | default(none)", None),
        ("([] | last | default({'a': 1})).a", 1),
        ("n is divisibleby 3", ExpressionError),
    ],
)
def test_values(source: str, value: Any) -> None:
    if value is ExpressionError:
        with pytest.raises(ExpressionError):
            evaluate(source, VARIABLES)
        return
    found = evaluate(source, VARIABLES)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "offset", "says", "hint"),
    [
        ("name.upper()", 10, "methods cannot be called: .upper()", "| upper"),
        ("upper(name)", 5, "unknown function upper", "| upper"),
        ("len(xs)", 3, "unknown function len", ""),
        ("xs | lenght", 5, "unknown filter lenght", "did you mean length?"),
        ("n is defned", 2, "unknown test defned", "did you mean defined"),
        ("xs | join(1, 2, 3)", 5, "the filter join: too many positional arguments", ""),
        ("xs | sort(revers=true)", 5, "unexpected keyword", ""),
        ("n +", 2, "unexpected 'the end'", ""),
        ("n n", 2, "unexpected", ""),
        ("n == 'a' &&", 9, "unexpected char", ""),
        ("", 0, "the expression is empty", ""),
        ("{{ n }}", 0, "without braces", "write n"),
        ("n ~ '\\ud800'", 4, "unpaired surrogate", ""),
    ],
)
def test_parse_errors_say_where_and_what_was_meant(source: str, offset: int, says: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("source", "says", "hint"),
    [
        ("nme", "nme is not defined", "did you mean name?"),
        ("n + health.valu", "key 'valu' does not exist", "did you mean value?"),
        ("xs[7]", "item 7 does not exist: the length is 3", ""),
        ("n > '2'", "a number and a string cannot be compared", "| int"),
        ("name + n", "cannot add a string and a number", "`~`"),
        ("not name", "a string is not true or false", ""),
        ("xs and yes", "a list is not true or false", "length"),
        ("1 / 0", "division by 0", ""),
        ("nothing.x", "null has no 'x'", ""),
        ("nothing ~ 'a'", "it is null", ""),
        ("'x' if n > 5", "has no `else`", ""),
        ("['a', 1] | sort", "can be sorted", ""),
        ("[] | first", "it is empty", ""),
        ("'x' | int", "is not an integer", ""),
        ("xs | map('nope')", "unknown filter nope", ""),
        ("'soon' | duration_ms", "not a duration", ""),
        ("-1 | human_size", "non-negative", "| int"),
        ("'5' | human_duration", "non-negative", "| int"),
        ("'{' | fromjson", "invalid JSON", ""),
        ("{1: 2}", "a number is not a string", ""),
    ],
)
def test_errors_say_what_was_meant(source: str, says: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(source, VARIABLES)
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "source",
    [
        "''.__class__", "n.__class__.__mro__", "xs.append(1)", "health.update({})", "self", "loop", "cycler()",
        "lipsum()", "namespace()", "dict(a=1)", "name['__class__']", "[].__class__.__base__.__subclasses__()",
        "name | attr('__class__')", "name.format(1)", "'{0.__class__}' | format(1)", "'%s' % name", "caller()",
        "range.__globals__", "joiner()", "config.__init__.__globals__", "g", "request", "xs.__iter__",
        "name | xmlattr", "xs | map(attribute='__class__') | list", "health | items | map(attribute='key.__class__')",
        "().__class__", "(1).real", "x | e", "(n)(1)", "n(*xs)", "range(*xs)", "n if yes else n()",
        # What Jinja's templates know besides their variables, and its own filters.
        "self._TemplateReference__context", "caller", "varargs", "joiner", "range", "xs[0].real", "name['format']",
        "xs['append']", "config.get", "config.keys()", "(xs | first)(1)", "'{}'['format']", "name | center(9)",
        "name | indent(9)", "xs | batch(2)", "xs | slice(2)", "name | wordwrap(1)", "xs | random", "xs | pprint",
        # The rules by which a tree is rewritten are filters, whose names cannot be written.
        "xs | map('(name)')", "xs | select('(truth)')", "xs | map('map', 'map', 'map')", "'n' | (name)",
        # Arguments of which Python code is made.
        "xs | sort(reverse=true, reverse=false)", "xs | sort(class=1)", "range(lambda=1)", "xs | sort(**config)",
        "xs | join(value=1)", "xs[1:2, 3]", "xs[:, 1]", "{**config}", "lambda: 1", "__import__('os')", "n == 3 #",
    ],
)  # fmt: skip
def test_nothing_of_python_can_be_reached(source: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(source, VARIABLES)


@pytest.mark.parametrize("name", ["self", "loop", "result", "range", "caller", "context", "environment", "l_0_result"])
def test_variables_may_have_names_that_jinja_uses(name: str) -> None:
    assert evaluate(f"{name} ~ range(2)[1] ~ {name}", {name: "x"}) == "x1x"


@pytest.mark.parametrize(
    "source",
    [
        "[missing]", "[missing] | length", "[missing][0] is defined", "{'a': missing} | length", "(missing, 1) | first",
        "(missing if yes else 1) is defined", "not missing", "missing and yes", "yes and missing", "-missing",
        "missing in xs", "xs is contains(missing)", "missing == missing", "1 < 2 < missing", "missing ~ 'a'",
        "missing[1:]", "xs[missing:]", "xs[missing]", "xs | join(missing)", "missing | length", "range(missing)",
        "missing.deeper | join", "xs | default(missing)", "[[]] | map('first')", "{missing: 1}",
    ],
)  # fmt: skip
def test_what_is_missing_is_an_error_wherever_it_is_used(source: str) -> None:
    with pytest.raises(ExpressionError, match=r"missing is not defined|it is empty"):
        evaluate(source, VARIABLES)


@pytest.mark.parametrize(
    "source",
    [
        "'a' * 10 ** 9", "[0] * 10 ** 9", "2 ** 64", "9 ** 9 ** 9", "10.0 ** 64 ** 64", "10 ** -1", "2 ** 0.5",
        "9223372036854775807 + 1", "9" * 4000, "range(10 ** 9)", "range(100000)", "1e308 * 10", "'nan' | float",
        "(" * 500 + "1" + ")" * 500, "[" * 300 + "]" * 300, "not " * 1000 + "true", "-" * 1000 + "1",
        "a." * 300 + "a", " + ".join(["1"] * 600), "x" * (MAX_CHARACTERS + 1), "'" + "x" * (1 << 20) + "'",
        "|".join(["xs", *["list"] * 600]),
        "range(10000) | map('string') | map('replace', '', 'x') | list",
        # Constants are not computed while they are compiled; infinity is no name that Python code has.
        "10 ** 9 * 'x'", "[[]] * 10", "name * n", "2 ** 63", "-(2 ** 62) * 4", "1e999", "-1e999", "1e308 // 1e-308",
        "[1e308, 1e308] | sum", "0.0 / 0.0", "5 % 0.0", "'%1000000000d' % 1", "['infinity'] | map('float')",
        # Python's compiler takes 200 brackets in brackets.
        "n" + "[0]" * 400, "n" + "|list" * 400, " + ".join(["1"] * 240), "1" + " if yes else 1" * 150,
        "[" * 61 + "]" * 61, "not " * 61 + "yes", "1_" * 2000 + "1", "'\\" * 1300,
    ],
)  # fmt: skip
def test_what_would_take_all_memory_or_time_is_refused_at_once(source: str) -> None:
    started = time.process_time()
    with pytest.raises(ExpressionError):
        evaluate(source, VARIABLES)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "source",
    [
        "big ~ big",
        "big | replace('a', big)",
        "[big, big] | join",
        "range(2000) | map('string') | join(big[:1000])",
        "range(10000) | unique | difference(range(10000)) | length + many | sort | length + many | sort | length",
    ],
)
def test_values_are_bounded(source: str) -> None:
    variables = {"big": "a" * (MAX_TEXT - 10), "many": list(range(300_000))}
    started = time.process_time()
    with pytest.raises(ExpressionError):
        evaluate(source, variables)
    assert time.process_time() - started < 3
    assert MAX_WORK < 10_000_000


@pytest.mark.parametrize(
    "source",
    [
        "[" * 59 + "1" + "]" * 59, "not " * 58 + "yes", "- " * 58 + "1", "n" + " | abs" * 58, "+".join(["1"] * 59),
        " and ".join(["yes"] * 58), "1 " + "if yes else 1 " * 57, "~".join(["n"] * 490), "<".join(["n"] * 240),
        "{'a':" * 29 + "1" + "}" * 29, "xs" + "[:]" * 58,
    ],
)  # fmt: skip
def test_what_may_be_nested_can_be_compiled(source: str) -> None:
    assert evaluate(source, VARIABLES) is not None


def test_a_list_that_holds_itself_many_times_is_not_written_out() -> None:
    doubled: list[Any] = ["x"] * 10
    for _ in range(30):
        doubled = [doubled, doubled]
    with pytest.raises(ExpressionError, match="more than 1,000,000 values"):
        evaluate("doubled", {"doubled": doubled})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{{ n }}", 3),
        ("{{n}}", 3),
        (" {{ n }}", " 3"),
        ("{{ xs }}", [3, 1, 2]),
        ("{{ nothing }}", None),
        ("{{ yes }}!", "true!"),
        ("{{ name }}-{{ n }}", "orders-3"),
        ("is {{ xs }}", "is [3, 1, 2]"),
        ("{{ {'a': {'b': n}} }}", {"a": {"b": 3}}),
        ("{{ '}}' }} {{ \"{{\" }}", "}} {{"),
        ("{{ 'it\\'s }}' }}", "it's }}"),
        ("{a: {b: 1}}", "{a: {b: 1}}"),
        ("{{ '{%' }} {{ '{#' }}", "{% {#"),
        ("{", "{"),
        ("}} {x", "}} {x"),
        ({"a": ["{{ n }}", 1, None], "{{ n }}": "b"}, {"a": [3, 1, None], "{{ n }}": "b"}),
    ],
)
def test_texts(text: Any, value: Any) -> None:
    assert render(text, VARIABLES) == value


@pytest.mark.parametrize(
    ("text", "offset", "says"),
    [
        ("a {{ n", 2, "{{ without }}"),
        ("{{ 'a }}", 0, "{{ without }}"),
        ("{% if n %}", 0, "statements are not"),
        ("a {# x #}", 2, "comments are not"),
        ("a {{ }}", 5, "the expression is empty"),
        ("ab {{ n + nme }}", 10, "nme is not defined"),
        ("{{ n }} {{ xs | srt }}", 16, "unknown filter srt"),
        ("a {{ nothing }}", 0, "nothing is null"),
    ],
)
def test_texts_that_are_wrong(text: str, offset: int, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        render(text, VARIABLES)
    assert says in caught.value.message
    if "nme" not in text:  # a value's error is told within its expression
        assert caught.value.offset == offset


def test_a_text_grows_to_its_limit_only() -> None:
    with pytest.raises(ExpressionError, match="longer than 1 MiB"):
        render("{{ x }}" * 300, {"x": "a" * 10_000})


@pytest.mark.parametrize(
    ("source", "value"), [("n == 3", True), (True, True), (False, False), ("xs | length > 5", False)]
)
def test_conditions(source: str | bool, value: bool) -> None:
    assert condition(source, VARIABLES) is value


@pytest.mark.parametrize("source", ["name", "'false'", "n", "xs", "nothing", "''"])
def test_conditions_are_not_guessed(source: str) -> None:
    with pytest.raises(ExpressionError, match="not true or false"):
        condition(source, {**VARIABLES})


def test_names_and_members() -> None:
    found = parse("a.b.c + (d | default(e)) ~ range(f)[g] ~ 'h' ~ {'i': j}")
    assert [used.name for used in found.names] == ["a", "d", "e", "f", "g", "j"]
    assert [(m.name, m.member, m.offset) for m in found.members] == [("a", "b", 2)]
    assert [found.source[used.offset] for used in found.names] == ["a", "d", "e", "f", "g", "j"]
    assert [each.offset for each in expressions_in("x {{  a }} {{ b }}")] == [6, 14]


def test_each_filter_and_test_says_what_it_does() -> None:
    for table in (FILTERS, TESTS, FUNCTIONS):
        for name, function in table.items():
            assert function.summary.endswith("."), name


@given(st.text(alphabet="nxs.|()[]{}'\"+-*/%~ 0123456789,:=<>!_aeiou\\\n", max_size=60))
def test_any_text_gives_a_value_or_our_error(source: str) -> None:
    with suppress(ExpressionError):
        evaluate(source, VARIABLES)
    with suppress(ExpressionError):
        render(source, VARIABLES)


@given(st.text(max_size=40))
def test_a_text_without_braces_is_itself(text: str) -> None:
    if "{" not in text:
        assert render(text, {}) == text
        assert parse_text(text) == ((text,) if text else ())
