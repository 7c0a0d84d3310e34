"""Values of a playbook's parameters: where they come from, their types, and that secrets stay hidden."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.base.secrets import Redactor
from kctl.errors import InvalidFile, NotFound, UsageError
from kctl.playbook.model import Playbook
from kctl.playbook.parameters import collect, included, misspelled, read_values
from kctl.playbook.read import read

TEXT = """\
playbook: 1
name: p
parameters:
  topic: {description: The topic.}
  partitions: {type: integer, default: 6, minimum: 1, maximum: 10}
  share: {type: number, default: 0.5}
  force: {type: boolean, default: false}
  brokers: {type: list, default: [1, 2]}
  configs: {type: mapping, default: {a: b}}
  every: {type: duration, default: 10s}
  limit: {type: size, default: 1GiB}
  mode: {choices: [fast, safe], default: safe}
  rack: {default: null}
  password: {secret: true, default: null}
steps: [lag: {}]
"""
PLAYBOOK = read(TEXT, source=None, file="p")
DEFAULTS = {
    "topic": "t", "partitions": 6, "share": 0.5, "force": False, "brokers": [1, 2], "configs": {"a": "b"},
    "every": "10s", "limit": "1GiB", "mode": "safe", "rack": None, "password": None,
}  # fmt: skip


def _values(*given: str, playbook: Playbook = PLAYBOOK, **settings: Any) -> dict[str, Any]:
    settings.setdefault("environment", {})
    return dict(collect(playbook, ["topic=t", *given], **settings).values)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("topic2=", None),
        ("partitions=3", 3),
        ("share=2", 2),
        ("share=0.25", 0.25),
        ("force=true", True),
        ("force=False", False),
        ("brokers=1,2, b", ["1", "2", "b"]),
        ("brokers=", []),
        ('brokers=[1, "b"]', [1, "b"]),
        ('configs={"retention.ms": 1}', {"retention.ms": 1}),
        ("every=5m", "5m"),
        ("limit=10MB", "10MB"),
        ("mode=fast", "fast"),
        ("rack=a=b", "a=b"),
        ("rack=7", "7"),
        ("rack=--yes", "--yes"),
        ("rack=", ""),
    ],
)
def test_texts_become_values(given: str, value: Any) -> None:
    name = given.partition("=")[0]
    if name not in DEFAULTS:
        with pytest.raises(UsageError, match="topic2 is not a parameter: did you mean topic"):
            _values(given)
        return
    found = _values(given)
    assert found == {**DEFAULTS, name: value}
    assert type(found[name]) is type(value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["partitions=many"], "p: partitions must be an integer, not 'many'"),
        (["partitions=0"], "p: partitions must be at least 1, not 0"),
        (["partitions=11"], "p: partitions must be at most 10, not 11"),
        (["partitions=3.5"], "p: partitions must be an integer, not '3.5'"),
        (["partitions=" + "9" * 100], "partitions must be an integer"),
        (["partitions=1_0"], "not '1_0'"),
        (["partitions= 3"], "not ' 3'"),
        (["partitions=99999999999999999999"], "partitions must be an integer, not 99999999999999999999"),
        (["share=nan"], "p: share must be a number, not 'nan'"),
        (["share=1e999"], "share must be a number, not inf"),
        (["share=inf"], "share must be a number"),
        (["force=yes"], "p: force must be true or false, not 'yes'"),
        (["configs=a"], "p: configs must be a mapping, not 'a' (e.g. {\"a\": 1})"),
        (["configs=[1]"], "configs must be a mapping"),
        (["brokers=[1"], "brokers must be a list"),
        (["every=soon"], "p: every must be a duration, not 'soon' (e.g. 30s or 5m)"),
        (["limit=big"], "limit must be a size, not 'big' (e.g. 512, 64MB or 1GiB)"),
        (["mode=slow"], "p: mode must be one of fast, safe, not 'slow'"),
        (["mode=fsat"], "(did you mean fast?)"),
        (["partition=3"], "p: partition is not a parameter: did you mean partitions?"),
        (["x"], "p: -p takes NAME=VALUE"),
        (["=x"], "p: -p takes NAME=VALUE"),
        (["mode=fast", "mode=safe"], "p: mode is set twice"),
        (
            ["password=hunter22"],
            "password is a secret and must not be on the command line: use --secret password=@FILE",
        ),
    ],
)
def test_what_is_wrong(given: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        _values(*given)
    assert says in caught.value.message
    assert "hunter22" not in f"{caught.value.message}{caught.value.hint}{caught.value.details}"


def test_everything_wrong_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        collect(PLAYBOOK, ["partitions=x", "force=x", "nope=1"], environment={})
    assert caught.value.message.startswith("p: parameters: partitions must be")
    assert caught.value.message.endswith("; and 1 more")
    assert caught.value.details["problems"] == [
        "partitions must be an integer, not 'x'", "force must be true or false, not 'x'", "nope is not a parameter",
        "topic is missing: The topic.",
    ]  # fmt: skip


def test_what_comes_first() -> None:
    file = {"mode": "fast", "partitions": 2, "rack": "file", "brokers": [3]}
    environment = {"KCTL_PARAM_PARTITIONS": "3", "KCTL_PARAM_RACK": "env", "KCTL_PARAM_OTHER": "x", "RACK": "no"}
    found = _values("rack=line", file=file, environment=environment)
    assert (found["mode"], found["partitions"], found["rack"], found["brokers"]) == ("fast", 3, "line", [3])


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"KCTL_PARAM_PARTITONS": "3"}, "PARTITONS is not a parameter of p: did you mean KCTL_PARAM_PARTITIONS?"),
        ({"KCTL_PARAM_topic": "t"}, "topic is not a parameter of p: did you mean KCTL_PARAM_TOPIC?"),
        ({"KCTL_PARAM_PARTITONS": "3", "KCTL_PARAM_PARTITIONS": "3"}, None),
        ({"KCTL_PARAM_WAREHOUSE": "x", "KCTL_PARAM_": "", "PARTITONS": "3", "KCTL_PARAM_TOPIC": "t"}, None),
    ],
)
def test_misspelled_variables_are_told(environment: dict[str, str], says: str | None) -> None:
    """Those that are like no parameter may be another playbook's."""
    assert misspelled(PLAYBOOK, environment) == ([] if says is None else [f"KCTL_PARAM_{says}"])


def test_a_file_has_values_of_their_types() -> None:
    assert _values(file={"partitions": 3, "force": True})["force"] is True
    for wrong, says in (({"partitions": True}, "an integer"),
                        ({"topic": 3}, "must be a string, not 3 (put it in quotes)"),
                        ({"x": 1}, "x is not a parameter"), ({"topic": None}, "topic must be a string")):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            collect(PLAYBOOK, file=wrong, environment={"KCTL_PARAM_TOPIC": "t"} if "topic" not in wrong else {})
        assert says in caught.value.message


def test_values_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("topic: orders\nbrokers: [1, {a: b}]\n")
    assert read_values(PLAYBOOK, path) == {"topic": "orders", "brokers": [1, {"a": "b"}]}
    path.write_text('{"topic": "orders", "force": true}')
    assert _values(file=read_values(PLAYBOOK, path))["force"] is True
    path.write_text("topic: orders\npassword: hunter22\n")
    path.chmod(0o640)
    warnings: list[str] = []
    assert read_values(PLAYBOOK, path, warn=warnings.append)["password"] == "hunter22"
    assert "for password (mode 0640)" in warnings[0]
    path.chmod(0o646)
    with pytest.raises(UsageError, match=r"for password is world-writable"):
        read_values(PLAYBOOK, path)
    path.chmod(0o600)
    assert read_values(PLAYBOOK, path)["password"] == "hunter22"
    for text, says in (("- a", "must be a mapping"), ("a: &x 1", "anchor"), ("a: 1\na: 2", ":2:1: 'a' is there twice")):
        path.write_text(text)
        with pytest.raises(InvalidFile, match=says):
            read_values(PLAYBOOK, path)
    with pytest.raises(NotFound):
        read_values(PLAYBOOK, tmp_path / "none")


def test_secrets_come_from_files_and_the_environment(tmp_path: Path) -> None:
    secret = tmp_path / "s"
    secret.write_text("hunter22\n")
    secret.chmod(0o600)
    found = collect(PLAYBOOK, ["topic=t"], secrets=[f"password=@{secret}"], environment={})
    assert found.values["password"] == "hunter22"
    assert "password" not in found.public
    assert "hunter22" not in repr(found)
    assert found.redactor.text("x hunter22 y") == "x *** y"
    found = collect(PLAYBOOK, ["topic=t"], environment={"KCTL_PARAM_PASSWORD": "hunter33"})
    assert found.values["password"] == "hunter33"
    secret.chmod(0o444)  # as Kubernetes and Docker mount it
    warnings: list[str] = []
    found = collect(PLAYBOOK, ["topic=t"], secrets=[f"password=@{secret}"], environment={}, warn=warnings.append)
    assert found.values["password"] == "hunter22"
    assert "for password (mode 0444)" in warnings[0]
    secret.chmod(0o646)
    for text, says in ((f"password=@{secret}", "is world-writable"), ("password=@/none", "cannot read /none"),
                        ("password=hunter22", "--secret takes password=@FILE"),
                        ("mode=@/none", "mode is not a secret"), ("pasword=@/none", "cannot read")):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            collect(PLAYBOOK, ["topic=t"], secrets=[text], environment={})
        assert says in str(caught.value.details["problems"] or caught.value.message), text
        assert "hunter22" not in f"{caught.value.message}{caught.value.details}"


def test_a_secret_that_is_too_short_to_hide() -> None:
    with pytest.raises(UsageError, match="password is a secret and must have at least 4 characters") as caught:
        collect(PLAYBOOK, ["topic=t"], environment={"KCTL_PARAM_PASSWORD": "abc"})
    assert "abc" not in caught.value.message


def test_values_of_an_included_one() -> None:
    found = included(PLAYBOOK, {"topic": "hunter22", "partitions": 3}, frozenset({"topic"}))
    assert (found.values["topic"], found.values["partitions"], found.values["mode"]) == ("hunter22", 3, "safe")
    assert found.secrets == {"topic", "password"}
    with pytest.raises(UsageError, match="topic is missing"):
        included(PLAYBOOK, {}, frozenset())


# --- redaction --------------------------------------------------------------------------------------------------------

SECRET = 'pa"ss/wö\nrd'


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        json.dumps({"a": SECRET}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        repr([SECRET]),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"user:{SECRET}\n".encode()).decode(),
        base64.b64encode(f"u:{SECRET}".encode()).decode(),
        base64.b64encode(f"us:{SECRET} and more".encode()).decode(),
        f"https://u:{quote(SECRET, safe='')}@host",
        f"https://host/?q={quote_plus(SECRET)}&{quote(SECRET)}",
        ascii(SECRET),
        json.dumps({"body": json.dumps({"a": SECRET})}),
        repr(SECRET.encode()),
        f"error: {SECRET} is not a user",
    ],
)
def test_no_form_of_a_secret_is_shown(shown: str) -> None:
    hidden = Redactor([SECRET]).text(shown)
    assert "***" in hidden
    for part in (SECRET, "pa\\", 'pa"ss', "w\\u00f6", "wö"):
        assert part not in hidden


def test_values_are_hidden_deeply() -> None:
    redactor = Redactor(["hunter22", ["token-1", {"k": 123456}]])
    value = {"hunter22": ["a hunter22 b", {"x": ("token-1", 123456, 1234567, True, None, 1.5)}]}
    assert redactor.value(value) == {"***": ["a *** b", {"x": ["***", "***", 1234567, True, None, 1.5]}]}
    assert redactor.text("hunter2") == "hunter2"


LONG = "hunter2-and-more, as long as tokens are: " + "0123456789abcdef" * 5


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        (f"{LONG[:40]!r} is not a number", "'***' is not a number"),
        (f"«{LONG[:50]}…» is no topic", "«***…» is no topic"),
        (f"{LONG[:20]}", "***"),
        (f"{LONG[:20]} and {LONG[:30]!r}", f"{LONG[:20]} and '***'"),
        (f"{LONG[:11]}", LONG[:11]),
        (f"x{LONG[5:60]}", f"x{LONG[5:60]}"),
    ],
)
def test_a_secret_that_is_cut_off(shown: str, hidden: str) -> None:
    """In what is said. A value that is the beginning of a secret address is none: a host, say."""
    assert Redactor([LONG]).text(shown) == hidden
    assert Redactor([LONG]).value([shown]) == [shown]
    assert Redactor([LONG, LONG[:20]]).text(f"{LONG[:40]!r}") == "'***'", "also when its beginning is one by itself"


@pytest.mark.parametrize("text", [LONG, f"user:{LONG}", f"us:{LONG} and more"])
@pytest.mark.parametrize("width", [64, 76])
def test_base64_is_broken_into_lines(text: str, width: int) -> None:
    coded = base64.b64encode(text.encode()).decode()
    shown = "\r\n".join(coded[at : at + width] for at in range(0, len(coded), width))
    hidden = Redactor([LONG]).value(f"a\n{shown}\nb")
    assert re.fullmatch(r"a\n.{0,8}\*\*\*.{0,16}\nb", hidden), hidden
    assert Redactor([LONG]).text("a\nb") == "a\nb"
    assert re.fullmatch(r"a .{0,8}\*\*\*.{0,16} b", Redactor([LONG]).text(" ".join(f"a {shown} b".split())))


@pytest.mark.parametrize("shown", ["x1y2" * 50_000, "x1y2x1y2x1y2'" * 20_000, "x1y2x1y2x1y2x1 " * 20_000])
def test_hiding_takes_no_longer_than_the_text_is(shown: str) -> None:
    redactor, started = Redactor(["x1y2" * 10_000]), time.process_time()
    redactor.text(shown)
    assert time.process_time() - started < 5


def test_a_secret_within_a_secret() -> None:
    assert Redactor(["abcd", "xxabcdxx"]).text("xxabcdxx abcd") == "*** ***"
    assert Redactor([]).text("abcd") == "abcd"
    assert Redactor(["", "a", None]).text("a b") == "a b"


@given(st.text(min_size=4, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_secret_is_never_in_what_is_shown(secret: str, before: str, after: str) -> None:
    shown = Redactor([secret]).text(before + secret + after)
    if "*" not in secret:
        assert secret not in shown
