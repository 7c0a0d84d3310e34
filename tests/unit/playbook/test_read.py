"""Reading playbooks: the model that comes of them, and what is said of those that cannot be read."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.base.strict_yaml import MAX_DEPTH
from kctl.commands.terminal import output
from kctl.errors import InvalidFile, UsageError
from kctl.playbook.lint.problems import MAX_PROBLEMS, as_error
from kctl.playbook.load import examine_text
from kctl.playbook.model import Playbook, Position, Problem
from kctl.playbook.read import read, read_all
from kctl.playbook.read_steps import slug
from kctl.playbook.run.step_settings import items_of, settings_of

HEAD = "playbook: 1\nname: p\n"
WHOLE = """\
playbook: 1
name: grow-orders
description: >
  Make it
  larger.
parameters:
  topic: {type: string, description: Which one.}
  partitions: {type: integer, default: 6, minimum: 1, maximum: 100}
  mode: {choices: [fast, safe], default: safe}
  password: {secret: true}
steps:
  - name: The cluster is healthy
    cluster.health: {wait: true}
    timeout: 2m
    register: health
    until: health.value.healthy
    retries: 5
    delay: 500ms
  - name: Grow
    id: grow
    when: mode == 'fast'
    loop: [a, "{{ topic }}"]
    topic.alter:
      names: ["{{ item }}"]
      partitions: "{{ partitions }}"
    accept: [0, 1]
    on_error: continue
    context: prod
  - run: [echo, "{{ index }}"]
    stdin: "{{ password }}"
  - wait: 5
  - assert: partitions > 1
  - topic.list:
on_failure:
  - confirm: Go on?
finally:
  - set: {done: true}
"""


def _with(parameters: str) -> str:
    return f"{HEAD}parameters: {parameters}\nsteps: [lag: {{}}]"


def _read(text: str) -> Playbook:
    return read(text, source=None, file="p.yaml")


def _problems(text: str) -> list[str]:
    return [f"{p.line}:{p.column}: {p.message}" for p in read_all(text, source=None, file="p.yaml")[1]]


def test_a_whole_one() -> None:
    found = read(WHOLE, source=Path("p.yaml"), file="p.yaml")
    assert (found.name, found.description, found.source) == ("grow-orders", "Make it larger.", Path("p.yaml"))
    assert (found.text, found.digest) == (WHOLE, hashlib.sha256(WHOLE.encode()).hexdigest())
    topic, partitions, mode, password = found.parameters
    assert (topic.type, topic.required, topic.description, topic.where) == (
        "string", True, "Which one.", Position("p.yaml", 7, 3),
    )  # fmt: skip
    assert (partitions.default, partitions.required, partitions.minimum, partitions.maximum) == (6, False, 1, 100)
    assert (mode.choices, mode.default, password.secret, password.required) == (("fast", "safe"), "safe", True, True)
    health, grow, run, wait, assert_, list_ = found.steps
    assert (health.id, health.kind, health.arguments) == ("the-cluster-is-healthy", "cluster.health", {"wait": True})
    assert (health.timeout, health.register, health.until) == ("2m", "health", "health.value.healthy")
    assert (health.retries, health.delay_s, health.accept, health.on_error) == (5, 0.5, (0,), "fail")
    assert (grow.id, grow.when, grow.loop) == ("grow", "mode == 'fast'", ["a", "{{ topic }}"])
    assert grow.arguments == {"names": ["{{ item }}"], "partitions": "{{ partitions }}"}
    assert (grow.accept, grow.on_error, grow.context, grow.where) == (
        (0, 1),
        "continue",
        "prod",
        Position("p.yaml", 19, 5),
    )
    assert (run.id, run.name, run.kind, run.arguments) == ("run", "run", "run", {"argv": ["echo", "{{ index }}"]})
    assert (run.stdin, run.is_operation, grow.is_operation) == ("{{ password }}", False, True)
    assert (wait.arguments, assert_.arguments, list_.arguments) == ({"duration": 5}, {"that": "partitions > 1"}, {})
    assert found.on_failure[0].arguments == {"message": "Go on?"}
    assert found.finally_[0].arguments == {"done": True}
    assert [step.id for step in found.all_steps()][-2:] == ["confirm", "set"]


def test_settings_of_steps() -> None:
    text = HEAD + (
        "parameters: {n: {type: integer}, t: {type: duration}, xs: {type: list}}\n"
        'steps:\n- lag: {}\n  loop: "{{ xs }}"\n  register: r\n  until: r.exit_code == 0\n'
        '  retries: "{{ n }}"\n  delay: "{{ t }}"\n  timeout: "{{ t }}"\n  stdin: "x{{ n }}"\n  context: "{{ item }}"\n'
    )
    (step,) = _read(text).steps
    variables = {"n": 4, "t": "1m", "xs": ["a", "b"], "item": "a"}
    found = settings_of(step, variables)
    assert (found.retries, found.delay_s, found.timeout, found.timeout_s) == (4, 60.0, "1m", 60.0)
    assert (found.context, found.stdin) == ("a", b"x4")
    assert items_of(step, variables) == ["a", "b"]
    for wrong in ({"n": -1}, {"n": "4"}, {"n": True}, {"t": "soon"}):
        with pytest.raises(UsageError, match=r"retries of lag|not a duration"):
            settings_of(step, {**variables, **wrong})
    with pytest.raises(UsageError, match="the loop of lag is not a list"):
        items_of(step, {**variables, "xs": "ab"})


def test_defaults_of_steps() -> None:
    one, two = _read(f"{HEAD}steps:\n- lag: {{}}\n- id: b\n  lag: {{}}\n  until: true\n").steps
    assert (one.retries, one.delay_s, one.timeout, one.context, one.when, one.loop) == (0, 5.0, None, None, None, None)
    assert two.retries == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["1:1: a playbook must be a mapping"]),
        ("- a", ["1:1: a playbook must be a mapping"]),
        ("a: [", ["2:1: not YAML: did not find expected node content"]),
        ("a: &x 1\nb: *x", ["1:4: the anchor &x is not supported; write the value out"]),
        ("a: 1\na: 2", ["2:1: 'a' is there twice; first in line 1"]),
        ("{}", ["1:1: `playbook` with the format version is missing", "1:1: the playbook has no name",
               "1:1: the playbook has no steps"]),
        (HEAD + "steps: []", ["3:8: steps must be a list of steps"]),
        (HEAD + "steps: {a: 1}", ["3:8: steps must be a list of steps"]),
        ("playbook: 2\nname: p\nsteps: [lag: {}]", ["1:11: unknown format version 2"]),
        ("playbook: true\nname: p\nsteps: [lag: {}]", ["1:11: unknown format version True"]),
        ("playbook: 1\nname: A b\nsteps: [lag: {}]", ["2:7: 'A b' is not a valid name"]),
        ("playbook: 1\nname: ../x\nsteps: [lag: {}]", ["2:7: '../x' is not a valid name"]),
        (HEAD + "step: []\nsteps: [lag: {}]", ["3:1: a playbook has no key step"]),
        (HEAD + "description: [a]\nsteps: [lag: {}]", ["3:14: the description of a playbook must be a string"]),
        (_with("[a]"), ["3:13: parameters must be a mapping of names"]),
        (_with("{a: string}"), ["3:17: the parameter a must be a mapping"]),
        (_with("{A-b: {}}"), ["3:14: 'A-b' is not a valid name for a parameter"]),
        (_with("{item: {}}"), ["3:14: item is reserved: the item of the loop"]),
        (_with("{in: {}}"), ["3:14: in is a keyword of expressions"]),
        (_with("{a: {type: int}}"), ["3:24: the parameter a has the unknown type 'int'"]),
        (_with("{a: {defualt: 1}}"), ["3:18: the parameter a has no key defualt"]),
        (_with("{a: {default: 1}}"), ["3:27: a must be a string, not 1"]),
        (_with("{a: {type: integer, default: 0, minimum: 1}}"), ["3:42: a must be at least 1, not 0"]),
        (_with("{a: {type: string, minimum: 1}}"), ["3:32: the parameter a is not a number and cannot have a minimum"]),
        (_with("{a: {choices: [b], default: c}}"), ["3:41: a must be one of b, not 'c'"]),
        (_with("{a: {choices: [1]}}"), ["3:27: a must be a string, not 1"]),
        (_with("{a: {secret: yes}}"), ["3:26: secret of the parameter a must be true or false, not 'yes'"]),
        (_with("{a: {secret: true, default: abcde}}"), ["3:32: the secret a has a default"]),
        (_with("{a: {type: duration, default: soon}}"), ["3:43: a must be a duration, not 'soon'"]),
        (HEAD + "steps:\n- lag", ["4:3: a step must be a mapping"]),
        (HEAD + "steps:\n- name: a", ["4:3: the step has no operation"]),
        (HEAD + "steps:\n- {name: a, lag: {}, topic.list: {}}", ["4:22: the step has a second operation, topic.list"]),
        (HEAD + "steps:\n- {name: a, topc.list: {}}", ["4:13: unknown operation topc.list"]),
        (HEAD + "steps:\n- {name: a, wiat: 5s}", ["4:13: unknown step key wiat"]),
        (HEAD + "steps:\n- {name: a, 7: 5s, lag: {}}", ["4:13: unknown step key 7"]),
        (HEAD + "steps:\n- {lag: all}", ["4:9: the arguments of lag must be a mapping"]),
        (HEAD + "steps:\n- {set: 3}", ["4:9: the arguments of set must be a mapping"]),
        (HEAD + "steps:\n- {name: 7, lag: {}}", ["4:10: the name of a step must be a string"]),
        (HEAD + 'steps:\n- {name: "a\\nb", lag: {}}', ["4:10: the name of the step contains '\\n'"]),
        (HEAD + 'steps:\n- {name: "a\\u202eb", lag: {}}', ["4:10: the name of the step contains '\\u202e'"]),
        (HEAD + 'steps:\n- {name: "a {{ b }}", lag: {}}', ["4:10: the name of a step cannot contain expressions"]),
        (HEAD + "steps:\n- {id: A b, lag: {}}", ["4:8: 'A b' is not a valid id"]),
        (HEAD + "steps:\n- lag: {}\n- lag: {}", ["5:3: duplicate step id lag"]),
        (HEAD + "steps:\n- {name: A b, lag: {}}\nfinally:\n- {id: a-b, lag: {}}", ["6:4: duplicate step id a-b"]),
        (HEAD + "steps:\n- {lag: {}, when: 3}", ["4:19: when must be an expression"]),
        (HEAD + "steps:\n- {lag: {}, loop: abc}", ["4:19: loop must be a list, or an expression that returns one"]),
        (HEAD + "steps:\n- {lag: {}, register: A}", ["4:23: 'A' is not a valid name for a register"]),
        (HEAD + "steps:\n- {lag: {}, register: failure}",
         ["4:23: failure is reserved: the failed step: step, message, exit_code; null if no step failed"]),
        (HEAD + "steps:\n- {lag: {}, retries: -1}", ["4:22: retries must be 0 to 10,000, not -1"]),
        (HEAD + "steps:\n- {lag: {}, retries: 1000000}", ["4:22: retries must be 0 to 10,000, not 1000000"]),
        (HEAD + "steps:\n- {lag: {}, delay: soon}", ["4:20: 'soon' is not a duration"]),
        (HEAD + "steps:\n- {lag: {}, timeout: [1]}", ["4:22: timeout must be a duration"]),
        (HEAD + "steps:\n- {lag: {}, on_error: ignore}", ["4:23: on_error must be fail or continue, not 'ignore'"]),
        (HEAD + "steps:\n- {lag: {}, accept: [256]}", ["4:21: accept must be a list of exit codes"]),
        (HEAD + "steps:\n- {lag: {}, accept: []}", ["4:21: accept must be a list of exit codes"]),
        (HEAD + "steps:\n- {lag: {}, context: 3}", ["4:22: context must be a string, not 3"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read(text: str, said: list[str]) -> None:
    assert _problems(text) == said


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("topc.list: {}", "did you mean topic.list"),
        ("registr: x", "did you mean register"),
        ("asert: x", "did you mean assert"),
        ("when: x", "a step has one operation as its key"),
        ("produc: {}", "did you mean produce"),
    ],
)
def test_what_was_meant(key: str, hint: str) -> None:
    _, (problem, *_) = read_all(f"{HEAD}steps:\n- {key}\n", source=None, file="p")
    assert hint in (problem.hint or "")


def test_all_problems_at_once_in_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = "playbook: 1\nname: P\nparamters: {}\nsteps:\n- lag: {}\n  retries: x\n- topc.list: {}\n"
    with pytest.raises(InvalidFile) as caught:
        _read(text)
    error = caught.value
    rows = error.details["problems"]
    assert isinstance(rows, list)
    assert error.message.startswith("p.yaml has 4 problems: p.yaml:2:7: 'P' is not a valid name")
    assert [(row["line"], row["column"]) for row in rows] == [(2, 7), (3, 1), (6, 12), (7, 3)]
    assert rows[1]["hint"] == "did you mean parameters?"
    output.error(error, None)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: p.yaml has 4 problems"
    assert lines[2] == "  - p.yaml:3:1: a playbook has no key paramters (did you mean parameters?)"
    output.error(error, "json")
    assert json.loads(capsys.readouterr().err)["problems"][0]["message"] == "'P' is not a valid name"


def test_one_problem_is_the_error() -> None:
    error = as_error([Problem("f", 1, 2, "what", "do")], "f")
    assert (error.message, error.hint, int(error.exit_code)) == ("f:1:2: what", "do", 2)


def test_slugs() -> None:
    assert slug("The cluster's up & healthy!") == "the-cluster-s-up-healthy"
    assert slug("Übergröße") == "bergr-e"
    assert slug("***") == ""


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\n" + "".join(f"k{i}: [*a,*a]\n" for i in range(100)),
        HEAD + "steps:\n" + "- " * 100 + "lag: {}",
        HEAD + "steps: " + "[" * (MAX_DEPTH * 10),
        HEAD + "steps:\n- when: " + "(" * 3000 + "\n  lag: {}",
        HEAD + "steps:\n- when: " + "x" * 900_000 + "\n  lag: {}",
        HEAD + 'steps:\n- assert: "' + "{{" * 100_000 + '"\n',
        HEAD + "steps:\n- lag: {groups: [" + "a," * 99_000 + "], by: x}",
        HEAD + "steps:\n- lag: {" + "".join(f"a{i}: 1, " for i in range(45_000)) + "}",
        HEAD + "steps:\n- {" + "".join(f"a{i}: 1, " for i in range(45_000)) + "}",
        HEAD + "steps: [lag: {}]\nparameters: {" + "".join(f"a{i}: 1, " for i in range(45_000)) + "}",
        HEAD + "steps:\n" + "- lag: {}\n" * 5000,
        HEAD + "steps:\n" + "- bogus.operation: {}\n" * 20_000,
        "x" * (1 << 20) + "y",
        "\x00", "\ufffe", "playbook: !!python/object/apply:os.system [id]",
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_hostile_files_are_read_in_bounded_time(text: str) -> None:
    started = time.process_time()
    _, problems = examine_text(text, source=None, file="p")
    assert time.process_time() - started < 15
    assert problems
    assert len(problems) <= 2 * MAX_PROBLEMS


PIECES = (
    *("{{ x }}", "[]", "{}", "null", "true", "-1", "'{{'", "{a: 1}", "- lag: {}", "loop: 3", "register: x", "until: 3"),
    *("\n", "  ", "- ", ": ", "set: {a: [1]}", "include: {playbook: 3}", "run: {argv: 3}", "wait: {until: 3}", "7: 8"),
    *(
        "assert: {that: {a: 1}}",
        "topic.create: 3",
        "when: []",
        "config.set: {values: {a: null}}",
        "env: {A: [1]}",
        "\x00",
    ),
)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 30), st.sampled_from(PIECES)), max_size=6))
def test_a_playbook_with_pieces_of_others_in_it(edits: list[tuple[int, int, str]]) -> None:
    text = WHOLE
    for at, cut, piece in edits:
        text = text[:at] + piece + text[at + cut :]
    playbook, problems = examine_text(text, source=None, file="p")
    assert playbook is not None or problems
    assert all(each.line >= 1 and each.column >= 1 for each in problems)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    with suppress(InvalidFile):
        _read(text)
    with suppress(InvalidFile):
        _read(f"{HEAD}steps:\n- {text}\n")
