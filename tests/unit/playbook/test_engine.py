"""The rules of a run: what is done, what is not, in which state a step ends, and with which exit code the run."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import ConnectionRefused, KctlError, NotFound, NotHealthy, OperationFailed, TimedOut, UsageError
from kctl.playbook.operations import OperationResult, Where
from kctl.playbook.run.run_environment import StepChoice
from kctl.playbook.run.run_settings import RunSettings
from kctl.playbook.run.selection import selection
from playbook_runs import World, messages, playbook_from, run, states

HEAD = "playbook: 1\nname: p\n"
REFUSED = NotFound("unknown topic a")


def _steps(text: str) -> str:
    return f"{HEAD}steps:\n{text}"


def test_states_and_registers() -> None:
    world = World(topics={"there"})
    ending = run(_steps("""\
- id: new
  topic.create: {names: [new]}
  register: made
- id: again
  topic.create: {names: [there], if_not_exists: true}
  register: same
- id: look
  topic.list: {}
  register: seen
- id: values
  assert:
    that:
    - made.changed and made.status == 'changed' and made.value[0].result == 'created' and made.exit_code == 0
    - not same.changed and same.status == 'ok'
    - seen.value == [] and seen.error == none
- id: named
  set: {all: "{{ made.value + same.value }}", both: "{{ [1, 2] }}"}
- id: count
  assert: all | length == 2 and both == [1, 2]
"""), world)  # fmt: skip
    assert states(ending) == {
        "new": "changed", "again": "ok", "look": "ok", "values": "ok", "named": "ok", "count": "ok",
    }  # fmt: skip
    assert (ending.exit_code, ending.failure, ending.interrupted) == (0, None, False)
    assert world.lines[:4] == ["began new", "ended new changed", "began again", "ended again ok"]


@pytest.mark.parametrize(
    ("error", "before", "code"),
    [
        (NotHealthy("behind"), False, 1),
        (NotHealthy("behind"), True, 1),
        (UsageError("wrong"), False, 2),
        (UsageError("wrong"), True, 5),
        (ConnectionRefused("nobody"), False, 3),
        (ConnectionRefused("nobody"), True, 5),
        (REFUSED, False, 4),
        (REFUSED, True, 5),
        (OperationFailed("half"), False, 5),
        (OperationResult(1, None), False, 1),
        (OperationResult(7, None), False, 5),
    ],
)
def test_the_exit_code_is_that_of_the_failed_step(error: Any, before: bool, code: int) -> None:
    """What says that nothing was changed says so of the whole run."""
    first = "- topic.create: {names: [a]}\n" if before else "- topic.list: {}\n"
    world = World(answers={"lag": error})
    ending = run(_steps(f"{first}- id: fails\n  lag: {{}}\n- id: behind\n  wait: 1s\n"), world)
    assert ending.exit_code == code
    assert states(ending)["fails"] == "failed"
    assert messages(ending)["behind"] == "not reached: fails failed"
    assert world.slept == []
    assert ending.failure is not None
    if isinstance(error, KctlError):
        assert (ending.failure.message, ending.failure.step) == (error.message, "fails")


def test_a_check_that_is_not_fulfilled() -> None:
    ending = run(_steps("- id: a\n  assert: {that: [1 == 1, 1 == 2, 2 == 3], message: 'got {{ 1 + 1 }}'}\n"), World())
    assert (ending.exit_code, messages(ending)["a"]) == (1, "got 2")
    ending = run(_steps("- id: a\n  assert: [1 == 1, 1 == 2, 2 == 3]\n"), World())
    assert (ending.exit_code, messages(ending)["a"]) == (1, "not true: 1 == 2; 2 == 3")


def test_what_handlers_change_does_not_count() -> None:
    """The state "not reached" stays, when somebody is told about it."""
    text = "- id: a\n  {}\non_failure:\n- run: [tell]\nfinally:\n- topic.create: {{names: [z]}}\n"
    world = World(answers={"lag": ConnectionRefused("nobody")})
    assert run(_steps(text.format("lag: {}")), world).exit_code == 3
    assert (world.done("tell"), world.done("topic.create")) == (1, 1)
    world = World(answers={"lag": ConnectionRefused("nobody")})
    late = run(_steps("- topic.list: {}\nfinally:\n- topic.create: {names: [z]}\n- lag: {}\n"), world)
    assert late.exit_code == 5


def test_what_the_handlers_of_an_include_change_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text("playbook: 1\nname: inner\nsteps:\n- lag: {}\nfinally:\n- run: [tell]\n")
    world = World(answers={"lag": ConnectionRefused("nobody")})
    assert run(_steps("- include: inner.yaml\n"), world, source=tmp_path / "p.yaml").exit_code == 3
    assert world.done("tell") == 1


def test_an_accepted_code_is_no_failure() -> None:
    world = World(answers={"lag": OperationResult(1, [{"lag": 5}])})
    ending = run(_steps(
        "- id: a\n  lag: {}\n  accept: [0, 1]\n  register: r\n- assert: r.exit_code == 1 and r.status == 'ok'\n"
    ), world)  # fmt: skip
    assert ending.exit_code == 0
    world = World(answers={"topic.create": OperationResult(5, None)})
    ending = run(_steps("- id: a\n  topic.create: {names: [a]}\n  accept: [5]\n"), world)
    assert states(ending) == {"a": "changed"}, "what failed half-way may have changed something"


def test_when() -> None:
    world = World()
    ending = run(_steps("""\
- id: no
  when: 1 == 2
  topic.create: {names: [a]}
  register: made
- id: set-no
  when: false
  set: {x: 1}
- id: yes
  when: made.status == 'skipped' and made.value == none and x == none
  topic.create: {names: [b]}
- id: odd
  when: x
  topic.create: {names: [c]}
"""), world)  # fmt: skip
    assert states(ending) == {"no": "skipped", "set-no": "skipped", "yes": "changed", "odd": "failed"}
    assert messages(ending)["no"] == "when: 1 == 2"
    assert world.topics == {"b"}
    assert ending.exit_code == 5


def test_a_register_survives_a_later_step_that_is_skipped() -> None:
    """Two steps, of which one is done, may give the same name."""
    world = World()
    ending = run(_steps("""\
- when: true
  id: one
  topic.create: {names: [a]}
  register: made
- when: false
  id: other
  topic.list: {}
  register: made
- assert: made.value[0].topic == 'a'
"""), world)  # fmt: skip
    assert ending.exit_code == 0


def test_a_loop() -> None:
    world = World(topics={"b"})
    ending = run(_steps("""\
- id: loop
  loop: [a, b, c]
  when: item != 'c'
  topic.create: {names: ["{{ item }}"], partitions: "{{ index + 1 }}", if_not_exists: true}
  register: made
- assert: made.changed and made.value[0][0].result == 'created' and made.value[1][0].result == 'exists'
- id: second
  assert: made.value[2] == none and made.value | length == 3
- id: none
  loop: []
  topic.create: {names: ["{{ item }}"]}
- id: sum
  loop: [1, 2]
  set: {last: "{{ item }}"}
- id: third
  assert: last == 2
"""), world)  # fmt: skip
    assert ending.exit_code == 0, messages(ending)
    assert [arguments["partitions"] for _, arguments, _ in world.calls] == [1, 2]
    assert (ending.steps[0].items, states(ending)["none"]) == (3, "ok")


def test_a_loop_that_fails() -> None:
    """A step that changes something stops at once, so that no more is broken; a check looks at all."""
    world = World(answers={"topic.create": lambda arguments: REFUSED if arguments["names"] == ["b"] else []})
    ending = run(_steps('- id: l\n  loop: [a, b, c]\n  topic.create: {names: ["{{ item }}"]}\n'), world)
    assert (len(world.calls), ending.exit_code, messages(ending)["l"]) == (2, 4, "unknown topic a")
    world.calls.clear()
    ending = run(_steps(
        '- id: l\n  loop: [a, b, c]\n  on_error: continue\n  topic.create: {names: ["{{ item }}"]}\n'
    ), world)  # fmt: skip
    assert (len(world.calls), ending.exit_code, states(ending)["l"]) == (3, 0, "failed")
    ending = run(_steps("- id: l\n  loop: [1, 2, 3]\n  assert: {that: item == 2, message: 'bad {{ item }}'}\n"), world)
    assert messages(ending)["l"] == "bad 1; bad 3"
    ending = run(_steps("- id: l\n  loop: '{{ range(100) }}'\n  assert: {that: item < 50}\n"), World())
    assert messages(ending)["l"] == "not true: item < 50 (50 times)"
    assert (len(ending.steps[0].notes), ending.steps[0].notes[0]) == (50, "[50] not true: item < 50"), "which it was"
    ending = run(
        _steps("- id: l\n  loop: '{{ range(9) }}'\n  assert: {that: item < 0, message: 'bad {{ item }}'}\n"), World()
    )
    assert messages(ending)["l"] == "bad 0; bad 1; bad 2; and 6 more"


def test_on_error_continue() -> None:
    world = World(answers={"lag": NotHealthy("behind")})
    ending = run(_steps(
        "- id: a\n  lag: {}\n  on_error: continue\n  register: r\n"
            "- assert: r.error == 'behind' and r.status == 'failed'\n"
    ), world)  # fmt: skip
    assert (ending.exit_code, states(ending)["a"]) == (0, "failed")


def test_retries_and_until() -> None:
    world = World(answers={"lag": [OperationResult(0, 3), OperationResult(0, 1), OperationResult(0, 0)]})
    text = "- id: a\n  lag: {}\n  register: r\n  until: r.value == 0\n  retries: 5\n  delay: 2s\n"
    ending = run(_steps(text), world)
    assert (states(ending), world.slept, ending.steps[0].attempts) == ({"a": "ok"}, [2, 2], 3)

    world = World(answers={"lag": OperationResult(0, 3)})
    ending = run(_steps(text), world)
    assert (messages(ending)["a"], ending.exit_code) == ("r.value == 0 is not true", 1)
    assert (world.slept, ending.steps[0].attempts) == ([2] * 5, 6)

    world = World(answers={"lag": [OperationFailed("x"), OperationFailed("x"), OperationResult(0, 3)]})
    ending = run(_steps("- id: a\n  lag: {}\n  retries: 2\n"), world)
    assert (states(ending), world.slept) == ({"a": "ok"}, [5, 5])

    world = World(answers={"lag": UsageError("never")})
    ending = run(_steps("- id: a\n  lag: {}\n  retries: 2\n"), world)
    assert (ending.exit_code, world.slept) == (2, []), "what is wrong stays wrong"


def test_the_settings_of_an_operation() -> None:
    world = World()
    base = Where(context="dev", bootstrap_server="h:1", confirm_cluster="dev", timeout="9s")
    text = _steps("""\
- produce: {topic: a}
  stdin: "{{ 'x' }}y"
  timeout: 2m
- topic.list: {}
- topic.list: {}
  id: b
  context: other
- topic.list: {}
  id: c
  context: safe
""")
    run(text, world, where=base, settings=RunSettings(confirmed={"safe": "safe"}))
    assert world.stdins[0] == b"xy"
    assert [each.timeout for each in world.wheres] == ["2m", "9s", "9s", "9s"]
    assert world.wheres[1] == base
    assert world.wheres[2] == Where(context="other", timeout="9s")
    assert world.wheres[3] == Where(context="safe", timeout="9s", confirm_cluster="safe")


HANDLED = """\
- id: works
  topic.create: {names: [a]}
  register: made
- id: fails
  lag: {}
  register: late
on_failure:
- id: told
  assert: failure.step == 'fails' and failure.message == 'behind' and failure.exit_code == 1 and late.status == 'failed'
- id: more
  topic.list: {}
finally:
- id: last
  assert: {that: made.status != none and failure == none, message: 'after {{ failure.step }}'}
- id: very-last
  topic.create: {names: [z]}
"""


def test_handlers() -> None:
    world = World(answers={"lag": NotHealthy("behind")})
    ending = run(_steps(HANDLED), world)
    assert states(ending) == {
        "works": "changed", "fails": "failed", "told": "ok", "more": "ok", "last": "failed", "very-last": "changed",
    }  # fmt: skip
    assert (ending.exit_code, messages(ending)["last"]) == (1, "after fails")
    ending = run(_steps(HANDLED), World())
    assert states(ending) == {"works": "changed", "fails": "ok", "last": "ok", "very-last": "changed"}
    assert ending.exit_code == 0


def test_what_a_step_would_have_left_is_there_at_the_end() -> None:
    ending = run(_steps(
        "- lag: {}\n- topic.list: {}\n  register: r\n- set: {x: 1}\n"
        "finally:\n- assert: r.status == 'skipped' and r.value == none and x == none\n"
    ), World(answers={"lag": NotHealthy("behind")}))  # fmt: skip
    assert states(ending)["assert"] == "ok", messages(ending)


def test_tell_says_its_line() -> None:
    ending = run(
        _steps("- set: {x: 3}\n- tell: >-\n    {{ x }} of\n    three\n- loop: [1, 2]\n  id: b\n  tell: n{{ item }}\n"),
        World(),
    )
    assert (states(ending)["tell"], messages(ending)["tell"], messages(ending)["b"]) == ("ok", "3 of three", "n1; n2")


def test_a_run_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    text = _steps("- tell: '{{ run_id }}'\n")
    assert messages(run(text, World()))["tell"] == "dry-run"
    name = messages(run(text, World(), journaled=True))["tell"]
    assert (tmp_path / "kctl" / "playbooks" / f"{name}.jsonl").is_file()


def test_a_step_may_be_a_plan_that_another_one_judges() -> None:
    text = _steps(
        "- {id: plan, topic.create: {names: [a]}, dry_run: true, register: plan}\n"
        "- {id: sure, confirm: 'make {{ plan.value | length }}?'}\n- {id: make, topic.create: {names: [a]}}\n"
    )
    world = World()
    ending = run(text, world)
    assert states(ending) == {"plan": "ok", "sure": "ok", "make": "changed"}
    assert [(name, dry) for name, _, dry in world.calls] == [("topic.create", True), ("topic.create", False)]
    assert world.asked == ["make 1?"]
    assert states(run(text, World(yes=False))) == {"plan": "ok", "sure": "failed", "make": "skipped"}


def test_a_long_condition_is_told_by_the_name_of_its_step() -> None:
    until = " and ".join(["r.value == 0"] * 9)
    ending = run(
        _steps(f"- name: It is none\n  lag: {{}}\n  register: r\n  until: {until}\n"),
        World(answers={"lag": OperationResult(0, 3)}),
    )
    said = str(messages(ending)["it-is-none"])
    assert said.startswith('It is none: "r.value == 0 and r.value == 0 and')
    assert said.endswith('…" is not true')


def test_all_checks_are_looked_at_before_one_fails_the_run() -> None:
    check = "- {{id: {0}, assert: {{that: {1}, message: not {0}}}, on_error: continue, register: {0}}}\n"
    ending = run(_steps(
        check.format("a", "1 == 2") + check.format("b", "1 == 1")
        + "- {id: all, assert: {that: a.status == 'ok' and b.status == 'ok', message: '{{ a.error }}'}}\n"
    ), World())  # fmt: skip
    assert states(ending) == {"a": "failed", "b": "ok", "all": "failed"}
    assert (ending.exit_code, messages(ending)["all"]) == (1, "not a")


@pytest.mark.parametrize("where", ["lag", "topic.create", "wait", "program"])
def test_ctrl_c(where: str) -> None:
    """The step is unknown, the next ones are not reached, the final ones are done: once."""
    world = World(answers={where: KeyboardInterrupt()}, programs={"sleep": KeyboardInterrupt()})
    step = {
        "lag": "lag: {}",
        "topic.create": "topic.create: {names: [a]}",
        "wait": "wait: 1s",
        "program": "run: [sleep]",
    }
    if where == "wait":
        world.slept = _Interrupting()
    ending = run(_steps(
        f"- id: a\n  {step[where]}\n- id: b\n  topic.list: {{}}\non_failure:\n- id: c\n  topic.list: {{}}\n"
        "finally:\n- id: d\n  config.get: {resource: topic/a}\n"
    ), world)  # fmt: skip
    assert states(ending) == {"a": "unknown", "b": "skipped", "d": "ok"}
    sure = "the step changes nothing" if where in {"lag", "wait"} else "outcome unknown"
    assert messages(ending)["a"] == f"interrupted; {sure}"
    assert (ending.exit_code, ending.interrupted, world.done("config.get")) == (130, True, 1)
    assert "interrupted" in world.lines


class _Interrupting(list):  # type: ignore[type-arg]
    """Ctrl-C during a sleep."""

    def append(self, _seconds: Any) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_in_the_final_steps() -> None:
    world = World(answers={"lag": KeyboardInterrupt()})
    ending = run(_steps("- topic.list: {}\nfinally:\n- id: a\n  lag: {}\n- id: b\n  topic.list: {}\n"), world)
    assert states(ending) == {"topic-list": "ok", "a": "unknown", "b": "ok"}, "the others are done"
    assert ending.exit_code == 130
    world = World(answers={"lag": lambda _: KeyboardInterrupt()})
    ending = run(_steps("- lag: {}\nfinally:\n- id: a\n  lag: {}\n- id: b\n  topic.list: {}\n"), world)
    assert states(ending) == {"lag": "unknown", "a": "unknown", "b": "skipped"}, "once more stops them"
    assert ending.exit_code == 130


def test_what_nobody_foresaw_fails_a_step() -> None:
    world = World(answers={"lag": ZeroDivisionError("x")})
    ending = run(_steps("- id: a\n  lag: {}\nfinally:\n- id: z\n  topic.list: {}\n"), world)
    assert (ending.exit_code, states(ending)) == (5, {"a": "failed", "z": "ok"})
    assert messages(ending)["a"] == "unexpected ZeroDivisionError: x"


# --- own steps --------------------------------------------------------------------------------------------------------


def test_wait() -> None:
    world = World()
    assert run(_steps("- wait: 5m\n"), world).exit_code == 0
    assert world.slept == [300]


LOOK = """\
- id: look
  lag: {}
  accept: [0, 1]
  register: seen
- id: w
  wait: {until: "seen.value == []", every: 2s, timeout: 5s}
- assert: "seen.value == [] and seen.status == 'ok'"
"""


def test_wait_looks_again_at_what_it_waits_for() -> None:
    """Also when it cannot be seen for a moment."""
    found = [OperationResult(1, [1]), OperationResult(1, [1]), ConnectionRefused("nobody"), OperationResult(0, [])]
    world = World(answers={"lag": found})
    assert run(_steps(LOOK), world).exit_code == 0
    assert (world.done("lag"), world.slept) == (4, [2, 2, 1])
    world = World(answers={"lag": [OperationResult(1, [1]), ConnectionRefused("nobody answers")]})
    ending = run(_steps(LOOK), world)
    assert (ending.exit_code, world.slept) == (5, [2, 2, 1])
    assert messages(ending)["w"] == "seen.value == [] is not true after 5s"
    assert ending.failure is not None
    assert ending.failure.hint == "nobody answers"


def test_a_dry_run_does_not_wait() -> None:
    world = World(answers={"lag": OperationResult(1, [1])})
    ending = run(_steps(LOOK), world, settings=RunSettings(check=True))
    assert (world.slept, states(ending)["w"]) == ([], "unknown")
    assert messages(ending)["w"] == "seen.value == [] is not true yet; a run would wait"


def test_a_dry_run_looks_once_at_what_an_operation_would_wait_for() -> None:
    world = World(answers={"cluster.health": NotHealthy("broker 3 down")})
    ending = run(_steps("- cluster.health: {wait: true}\n"), world, settings=RunSettings(check=True))
    assert (ending.exit_code, world.calls) == (1, [("cluster.health", {"wait": False}, False)])
    run(_steps("- cluster.health: {wait: true}\n"), world)
    assert world.calls[-1] == ("cluster.health", {"wait": True}, False)


def test_confirm() -> None:
    world = World()
    assert run(_steps("- confirm: 'Really {{ 1 + 1 }}?'\n"), world).exit_code == 0
    assert world.asked == ["Really 2?"]
    assert run(_steps("- confirm: Really?\n"), World(yes=False)).exit_code == 4


def test_run() -> None:
    world = World(programs={"date": (0, b'{"a": [1]}', b"one\n\ntwo\n")})
    ending = run(_steps("""\
- id: r
  run: {argv: [date, -u, "{{ 5 }}"], env: {A: "{{ 'b' }}"}, parse: json}
  stdin: in
  timeout: 3s
  register: r
- assert: r.value.json.a == [1] and r.value.stderr == 'one\\n\\ntwo\\n' and r.exit_code == 0 and r.changed
"""), world)  # fmt: skip
    assert ending.exit_code == 0, messages(ending)
    assert (world.ran, world.limits, world.stdins) == ([["date", "-u", "5"]], [3.0], [b"in"])
    assert world.environments == [{"PATH": "/bin", "A": "b"}]
    assert ending.steps[0].notes == ["one", "two"]


@pytest.mark.parametrize(
    ("answer", "said", "code"),
    [
        ((3, b"", b"bad\nworse\n"), "date: exit code 3: worse", 5),
        ((-9, b"", b""), "date: signal 9", 5),
        ((0, b"{", b""), "the output is not valid JSON", 5),
        (TimedOut("date did not end within 3 s"), "date did not end within 3 s", 5),
        (NotFound("cannot run date: date is not there"), "cannot run date: date is not there", 4),
    ],
)
def test_a_program_that_fails(answer: Any, said: str, code: int) -> None:
    world = World(programs={"date": answer})
    ending = run(_steps("- id: r\n  run: {argv: [date], parse: json}\n"), world)
    assert (messages(ending)["r"], ending.exit_code) == (said, code)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('argv: "{{ 5 }}"', "argv must be a non-empty list of strings"),
        ('argv: ["{{ [1] }}"]', "an argument of a program must be a string, not [1]"),
        ("argv: [a], cwd: nowhere-at-all", "folder"),
        ('argv: [a], env: "{{ [1] }}"', "env must be a mapping of names to strings"),
        ("argv: [a], env: {'A=B': c}", "env must be a mapping of names to strings"),
    ],
)
def test_a_program_that_cannot_be_run(step: str, said: str, tmp_path: Path) -> None:
    world = World()
    ending = run(_steps(f"- id: r\n  run: {{{step}}}\n"), world, source=tmp_path / "p.yaml")
    assert (messages(ending)["r"] or "").startswith(said)
    assert (ending.exit_code, world.ran) == (2, [])


def test_no_secret_gets_into_a_command_line() -> None:
    """Lint sees what is written; this is what an earlier step told."""
    text = "parameters: {pw: {secret: true}}\nsteps:\n- id: a\n  run: {argv: [login], env: {PW: '{{ pw }}'}}\n"
    text += "  register: r\n- id: b\n  run: [curl, '-u{{ r.value.stdout }}']\n"
    world = World(programs={"login": (0, b"x hunter22", b"")})
    ending = run(HEAD + text, world, secrets={"pw": "hunter22"})
    assert messages(ending)["b"] == "argv[1] contains a secret; other users can see command lines"
    assert world.done("curl") == 0
    text = text.replace("'-u{{ r.value.stdout }}'", "hunter22, '{{ r.exit_code }}'")
    assert run(HEAD + text, World(), secrets={"pw": "hunter22"}).exit_code == 0, "what is written is no secret"


def test_programs_do_not_see_other_parameters() -> None:
    from kctl.playbook.run.run_environment import without_parameters

    assert without_parameters({"A": "b", "KCTL_PARAM_PW": "secret", "KCTL_CONTEXT": "dev"}) == {
        "A": "b", "KCTL_CONTEXT": "dev",
    }  # fmt: skip


INNER = """\
playbook: 1
name: inner
parameters:
  topic: {}
  pw: {secret: true, default: null}
steps:
- id: make
  topic.create: {names: ["{{ topic }}"]}
- id: check
  lag: {}
- id: secret
  run: {argv: [login], env: {PW: "{{ pw }}"}}
  when: pw != none
on_failure:
- id: told
  topic.list: {}
finally:
- id: last
  config.get: {resource: "topic/{{ topic }}"}
"""


def test_include(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    text = _steps("""\
- id: in
  include: {playbook: inner.yaml, parameters: {topic: "{{ item }}"}}
  loop: [a, b]
  context: other
- id: behind
  topic.list: {}
""")
    world = World()
    ending = run(text, world, source=tmp_path / "p.yaml")
    assert states(ending) == {
        "in": "changed", "in[0]/make": "changed", "in[0]/check": "ok", "in[0]/secret": "skipped", "in[0]/last": "ok",
        "in[1]/make": "changed", "in[1]/check": "ok", "in[1]/secret": "skipped", "in[1]/last": "ok", "behind": "ok",
    }  # fmt: skip
    assert {each.context for each in world.wheres[:-1]} == {"other"}
    assert [each.depth for each in ending.steps[:2]] == [0, 1]

    world = World(answers={"lag": NotHealthy("behind")})
    ending = run(text, world, source=tmp_path / "p.yaml")
    assert states(ending) == {
        "in": "failed", "in[0]/make": "changed", "in[0]/check": "failed", "in[0]/secret": "skipped",
        "in[0]/told": "ok", "in[0]/last": "ok", "behind": "skipped",
    }  # fmt: skip
    assert (ending.exit_code, messages(ending)["in"]) == (1, "in[0]/check: behind")


def test_ctrl_c_within_an_include(tmp_path: Path) -> None:
    """The final steps of both playbooks are done."""
    (tmp_path / "inner.yaml").write_text(INNER)
    world = World(answers={"lag": KeyboardInterrupt()})
    text = _steps(
        "- id: in\n  include: {playbook: inner.yaml, parameters: {topic: a}}\nfinally:\n- id: z\n  topic.list: {}\n"
    )
    ending = run(text, world, source=tmp_path / "p.yaml")
    assert states(ending) == {
        "in": "unknown", "in/make": "changed", "in/check": "unknown", "in/secret": "skipped", "in/last": "ok",
        "z": "ok",
    }  # fmt: skip
    assert (ending.exit_code, messages(ending)["in"]) == (130, "interrupted; outcome unknown")


def test_an_include_that_changed_meanwhile(tmp_path: Path) -> None:
    """Lint looks before the run; the step looks again."""
    inner = tmp_path / "inner.yaml"
    inner.write_text(INNER)
    text = _steps("- include: {playbook: inner.yaml, parameters: {topic: a}}\n  id: in\n")
    playbook_from(text, tmp_path / "p.yaml")

    def rewritten(_arguments: Any) -> Any:
        inner.write_text("playbook: 1\nname: inner\nsteps: [topic.lst: {}]\n")
        return []

    world = World(answers={"topic.list": rewritten})
    ending = run(_steps("- topic.list: {}\n" + text.partition("steps:\n")[2]), world, source=tmp_path / "p.yaml")
    assert ending.exit_code == 2
    assert "unknown operation topic.lst" in (messages(ending)["in"] or "")


# --- which steps ------------------------------------------------------------------------------------------------------

THREE = "- id: a\n  topic.list: {}\n  register: r\n- id: b\n  topic.list: {}\n- id: c\n  assert: r.status != 'x'\n"


def test_from_and_limit() -> None:
    text = _steps(THREE + "finally:\n- id: z\n  topic.list: {}\n")
    playbook = playbook_from(text)
    ending = run(text, World(), settings=RunSettings(selection=selection(playbook, "b", ())))
    assert states(ending) == {"a": "skipped", "b": "ok", "c": "ok", "z": "ok"}
    assert messages(ending)["a"] == "before --from b"
    ending = run(text, World(), settings=RunSettings(selection=selection(playbook, None, ("b", "a"))))
    assert states(ending) == {"a": "ok", "b": "ok", "c": "skipped", "z": "ok"}
    with pytest.raises(UsageError, match="p has no step bb"):
        selection(playbook, "bb", ())
    with pytest.raises(UsageError, match="p has no step z"):
        selection(playbook, None, ("z",))


def test_asked_before_each_step() -> None:
    world = World(choices=[StepChoice.DO, StepChoice.SKIP, StepChoice.STOP])
    ending = run(_steps(THREE + "finally:\n- id: z\n  topic.list: {}\n"), world, settings=RunSettings(ask=True))
    assert states(ending) == {"a": "ok", "b": "skipped", "c": "failed", "z": "ok"}
    assert (world.asked, ending.exit_code) == (["a", "b", "c"], 4)


def test_asked_with_the_plan_in_sight() -> None:
    world = World(choices=[StepChoice.DO, StepChoice.SKIP])
    steps = "- id: a\n  topic.create: {names: [a]}\n- id: b\n  topic.create: {names: [b]}\n"
    ending = run(_steps(steps), world, settings=RunSettings(ask=True, diff=True))
    assert states(ending) == {"a": "changed", "b": "skipped"}
    planned = "planned {0} [{{'topic': '{0}', 'result': 'would create'}}]"
    assert world.lines == [
        "began a", planned.format("a"), "asked a", "ended a changed", "began b", planned.format("b"), "asked b",
        "ended b skipped",
    ]  # fmt: skip


def test_interrupted_where_it_asks() -> None:
    """Nothing of the step began."""
    world = World(choices=[KeyboardInterrupt()])
    ending = run(_steps(THREE), world, settings=RunSettings(ask=True))
    assert (ending.interrupted, states(ending)["a"]) == (True, "skipped")
    assert messages(ending)["a"] == "interrupted before it started"


def test_diff_shows_the_plan_before_it_acts() -> None:
    world = World()
    run(
        _steps("- id: a\n  topic.create: {names: [a]}\n- id: b\n  topic.list: {}\n"),
        world,
        settings=RunSettings(diff=True),
    )
    assert [(name, dry_run) for name, _, dry_run in world.calls] == [
        ("topic.create", True), ("topic.create", False), ("topic.list", False),
    ]  # fmt: skip
    assert world.lines[1] == "planned a [{'topic': 'a', 'result': 'would create'}]"


# --- secrets ----------------------------------------------------------------------------------------------------------

SECRET = f"""\
{HEAD}parameters:
  pw: {{secret: true}}
  words: {{type: list, secret: true, default: null}}
steps:
- id: login
  run: {{argv: [login], env: {{PW: "{{{{ pw }}}}"}}, parse: json}}
  stdin: "{{{{ words | join(' ') }}}}"
  register: r
- id: again
  assert: r.value.json.given == pw
- id: fails
  lag: {{groups: ["{{{{ pw }}}}"]}}
"""


def test_secrets_are_in_no_report() -> None:
    world = World(
        programs={"login": (0, b'{"given": "hunter22"}', b"hello hunter22\n")},
        answers={"lag": OperationFailed("no hunter22 here", hint="try aHVudGVyMjI=")},
        said={"lag": ["looking for hunter22"]},
    )
    ending = run(SECRET, world, secrets={"pw": "hunter22", "words": '["correct","horse"]'})
    assert states(ending) == {"login": "changed", "again": "ok", "fails": "failed"}, "steps see them as they are"
    assert world.environments[0]["PW"] == "hunter22"
    shown = f"{ending.steps}{world.lines}"
    assert "hunter22" not in shown
    assert "aHVudGVyMjI=" not in shown
    assert ending.steps[0].notes == ["hello ***"]
    assert messages(ending)["fails"] == "no *** here"


def test_what_a_program_says_over_lines() -> None:
    """`base64` breaks what it prints."""
    token = "hunter22" * 12
    coded = b64encode(token.encode())
    world = World(programs={"login": (0, b"", coded[:76] + b"\n" + coded[76:] + b"\nend\n")})
    ending = run(SECRET, world, secrets={"pw": token, "words": '["correct"]'})
    assert ending.steps[0].notes == ["***", "end"]


def test_a_question_has_no_secret_in_it() -> None:
    world = World()
    run(f"{HEAD}parameters: {{pw: {{secret: true}}}}\nsteps:\n- confirm: 'Use {{{{ pw }}}}, {{{{ pw | upper }}}}?'\n",
        world, secrets={"pw": "hunter22"})  # fmt: skip
    assert world.asked == ["Use ***, ***?"]


MADE = f"""\
{HEAD}parameters: {{pw: {{secret: true}}}}
steps:
- id: name
  set: {{up: "{{{{ pw | upper }}}}", long: "{{{{ pw | length > 4 }}}}"}}
- id: more
  set: {{both: "{{{{ up }}}}-{{{{ up | reverse }}}}"}}
- id: told
  tell: >-
    it is {{{{ both }}}}, {{{{ pw | replace('hunter', 'seeker') }}}}
    and {{{{ up | lower | replace('h', 'p') }}}}: {{{{ long }}}}
- id: each
  loop: ["{{{{ pw | replace('2', '3') }}}}"]
  run: {{argv: [login], env: {{PW: "{{{{ item | replace('h', 'b') }}}}"}}}}
"""


def test_what_is_made_of_a_secret_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    world = World(programs={"login": (0, b"welcome bunter33", b"")})
    ending = run(MADE, world, secrets={"pw": "hunter22"}, journaled=True)
    assert set(states(ending).values()) <= {"ok", "changed"}
    assert world.environments[0]["PW"] == "bunter33"
    assert messages(ending)["told"] == "it is ***, *** and ***: true"
    journals = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert '"kind": "run"' in journals or '"kind":"run"' in journals
    shown = f"{ending.steps}{world.lines}{journals}"
    assert not [text for text in ("HUNTER22", "22RETNUH", "seeker22", "bunter", "hunter2", "hunter3") if text in shown]


INCLUDED = (
    "playbook: 1\nname: in\nparameters: {word: {}}\nsteps:\n- set: {w: '{{ word | upper }}'}\n- tell: '{{ w }}!'\n"
)


def test_what_an_include_is_given_of_a_secret_is_one(tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(INCLUDED)
    steps = "steps:\n- id: in\n  include: {playbook: in.yaml, parameters: {word: \"{{ pw | replace('h', 'b') }}\"}}\n"
    text = f"{HEAD}parameters: {{pw: {{secret: true}}}}\n{steps}"
    ending = run(text, World(), secrets={"pw": "hunter22"}, source=tmp_path / "out.yaml")
    assert ending.exit_code == 0, messages(ending)
    assert [each.message for each in ending.steps[1:]] == [None, "***!"]
    assert "unter" not in f"{ending.steps}".lower()
