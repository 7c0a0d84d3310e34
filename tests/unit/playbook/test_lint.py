"""What lint finds in playbooks that can be read, where, and what it says was meant."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kctl.errors import InvalidFile, NotFound
from kctl.playbook.load import examine, examine_text, load_playbook, without_errors
from kctl.playbook.model import MAX_INCLUDE_DEPTH
from kctl.playbook.shipped import find, in_folder, shipped

NOTHING_CHANGES = (
    "the condition cannot change during the wait | "
    "use the register of an earlier read-only operation: register: health, until: health.value.healthy"
)
HEAD = "playbook: 1\nname: p\n"


def _problems(text: str) -> list[str]:
    _, problems = examine_text(text, source=None, file="p.yaml")
    return [f"{p.line}:{p.column}: {p.message} | {p.hint or ''}" for p in problems]


@pytest.mark.parametrize("found", list(shipped()), ids=lambda found: found.path.stem)
def test_the_shipped_ones_are_fine(found: object) -> None:
    playbook, problems = examine(found)  # type: ignore[arg-type]
    assert problems == []
    assert playbook is not None
    assert playbook.name == found.path.stem  # type: ignore[attr-defined]
    assert playbook.description
    assert all(each.description for each in playbook.parameters)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        # operations and their arguments
        ("- topic.create: {names: [a], partitons: 3}",
         ["4:30: topic.create has no argument partitons | did you mean partitions?"]),
        ("- topic.create: {partitions: 3}", ["4:3: topic.create needs names | Names of the topics."]),
        ("- topic.create:", ["4:3: topic.create needs names | Names of the topics."]),
        ("- topic.create: {names: [a], partitions: many}", ["4:42: partitions must be an integer, not 'many' | "]),
        ("- topic.create: {names: [a], partitions: '3'}", ["4:42: partitions must be an integer, not '3' | "]),
        ("- topic.create: {names: [a], partitions: 0}", ["4:42: partitions: 0 is not in the range 1<=x<=100000 | "]),
        ("- topic.create: {names: [a], partitions: [1]}", ["4:42: partitions must be one value, not a list | "]),
        ("- topic.create: {names: {a: 1}}", ["4:25: names cannot be a mapping | e.g. names: [NAME]"]),
        ("- topic.create: {names: [a, [b]]}", ["4:29: names must be a string, not a list | e.g. names: [NAME]"]),
        ("- topic.create: {names: [a], if_not_exists: 'yes'}",
         ["4:45: if_not_exists must be true or false, not 'yes' | "]),
        ("- topic.create: {names: [a], config: {retention.ms: [1]}}",
         [("4:53: config must be a string, not a list | "
          "e.g. config: {name: value}, or a list of strings like KEY=VALUE")]),
        ("- lag: {by: topc}", ["4:13: by: 'topc' is not one of 'partition', 'topic', 'group' | did you mean topic?"]),
        ("- lag: {watch: true}", ["4:9: lag has no argument watch | to repeat a step, use until, retries and delay"]),
        ("- lag: {timeout: 5s}",
         ["4:9: lag has no argument timeout | set it as a key of the step, next to the operation"]),
        ("- topic.delete: {names: [a], dry_run: true}",
         [("4:30: topic.delete has no argument dry_run | "
          "use `kctl playbook run --check`, or the key dry_run of the step")]),
        ("- topic.delete: {names: [a], yes: true}",
         ["4:30: topic.delete has no argument yes | a run confirms its steps itself"]),
        ("- runtime.list: {x: 1}", ["4:18: runtime.list has no argument x | it has no arguments"]),
        # steps of playbooks' own
        ("- wait: {}", ["4:3: wait needs one of duration, until | "]),
        ("- wait: {duration: 5s, until: true}", ["4:3: wait accepts only one of duration, until | "]),
        ("- wait: {until: 1 == 2}",
         [f"4:17: {NOTHING_CHANGES}"]),
        ("- topic.create: {names: [a]}\n  register: r\n- wait: {until: r.changed}",
         [f"6:17: {NOTHING_CHANGES}"]),
        ("- wait: {duration: 5s, every: 1s}", ["4:24: every requires wait with until | "]),
        ("- wait: {untl: 'true'}",
         ["4:3: wait needs one of duration, until | ", "4:10: wait has no key untl | did you mean until?"]),
        ("- wait: soon", ["4:9: 'soon' is not a duration | e.g. 500ms, 30s, 5m, 2h or 7d"]),
        ("- wait: {duration: true}", ["4:20: duration must be a duration | e.g. 500ms, 30s or 5m"]),
        ("- assert: {message: m}", ["4:3: assert needs that | A condition, or a list of them."]),
        ("- assert: [true, 3]", ["4:18: that must be an expression | e.g. health.exit_code == 0"]),
        ("- assert: '{{ 1 }} == 1'", ["4:12: expressions are written without braces here | remove the braces"]),
        ("- assert: '{{ true }}'", ["4:12: expressions are written without braces here | write true"]),
        ("- confirm: {}", ["4:3: confirm needs message | The question."]),
        ("- run: ls -l", ["4:8: argv must be a list | [ls, -l]: there is no shell to split it"]),
        ("- run: []", ["4:8: argv is empty | "]),
        ("- run: [ls, {a: 1}]", ["4:13: items of argv must be strings, not {'a': 1} | put it in quotes"]),
        ("- run: {argv: [ls], parse: xml}", ["4:28: parse must be one of text, json, not 'xml' | "]),
        ("- run: {argv: [ls], env: [A]}", ["4:26: env must be a mapping | e.g. env: {name: value}"]),
        ("- run: {argv: [ls], repeatable: '{{ true }}'}", ["4:33: repeatable cannot contain expressions | "]),
        ("- run: {argv: [ls], shell: true}",
         ["4:21: run has no key shell | valid keys: argv, env, cwd, repeatable, parse"]),
        ("- include: nowhere", ["4:12: playbook nowhere does not exist | run `kctl playbook list` to see"]),
        ("- set: {}", ["4:3: set defines no variables | e.g. set: {name: value}"]),
        ("- set: {A: 1}\n- set: {item: 1}\n  id: b",
         ["4:9: 'A' is not a valid name for a variable | use at most 64 lowercase letters, digits and _",
          "4:9: A is not used | remove it, or use it in a later step",
          "5:9: item is not used | remove it, or use it in a later step",
          "5:9: item is reserved: the item of the loop | rename the variable"]),
        # keys that do nothing there
        ("- assert: 'true'\n  retries: 3", ["5:3: assert does not support retries | it applies to operations and run"]),
        ("- wait: 5s\n  context: prod", ["5:3: wait does not support context | it applies to operations and include"]),
        ("- run: [ls]\n  context: prod", ["5:3: run does not support context | it applies to operations and include"]),
        ("- lag: {}\n  delay: 5s", ["5:3: delay has no effect | it requires until or retries"]),
        ("- lag: {}\n  until: 'true'",
         ["5:3: until needs the result of the step | set register: result, then use until: result.value…"]),
        # names
        ("- lag: {groups: '{{ groups }}'}",
         ["4:21: groups is not defined | no parameter or earlier step defines it"]),
        ("- lag: {}\n  when: item == 1", ["5:9: item is not defined | it exists only in a step with `loop`"]),
        ("- lag: {}\n  when: failure.step == 'a'",
         ["5:9: failure is not defined | it exists only in on_failure and finally"]),
        ("- lag: {}\n  when: later.value\n- {id: b, lag: {}, register: later}\n- assert: later.changed",
         ["5:9: later is not defined | a later step defines it"]),
        ("- lag: {}\n  register: lags\n- assert: lgs.value == 1",
         ["5:13: lags is not used | remove it, or use it in a later step",
          "6:11: lgs is not defined | did you mean lags?"]),
        ("- lag: {}\n  register: lags\n- assert: lags.vale == 1 and lags.rows == 1",
         ["6:16: lags has no vale | did you mean value?",
          "6:35: lags has no rows | the output of the operation is in lags.value"]),
        ("- lag: {}\n  register: r\n  until: r.valu == 1", ["6:12: r has no valu | did you mean value?"]),
        ("- set: {a: 1}\n- lag: {}\n  register: a\n  until: a.exit_code == 0", []),
        ("- run: [ls]\n  loop: [1]\n  register: r\n- assert: r.results is defined", []),
        ("- {id: a, assert: 1 == 2, on_error: continue, register: r}\n- assert: r.status == 'ok'", []),
        ("- tell: '{{ run_id }}'", []),
        ("- set: {run_id: 1}\n- tell: '{{ run_id }}'",
         ["4:9: run_id is reserved: the id of the run, unchanged when the run is resumed | rename the variable"]),
        ("- topic.create: {names: [a]}\n  dry_run: true", []),
        ("- lag: {}\n  dry_run: true", ["5:3: lag has no dry run | remove dry_run"]),
        ("- topic.create: {names: [a]}\n  dry_run: '{{ 1 }}'",
         ["5:12: dry_run must be true or false | write it without quotes or expressions"]),
        ("- wait: 1s\n  register: r", ["5:3: wait does not support register | it applies to operations, run and assert",
         "5:13: r is not used | remove it, or use it in a later step"]),
        ("- lag: {}\n  loop: 'x {{ [1] }}'",
         ["5:9: loop must be a list, not a string | convert a mapping with `| items`"]),
        ("- lag: {groups: ['{{ x | frist }}']}", ["4:26: unknown filter frist | did you mean first"]),
        ("- lag: {groups: 'a {{ b'}", ["4:20: {{ without }} | to write it literally: {{ '{{' }}"]),
        ("- lag: {groups: '{% if a %}'}",
         ["4:18: {%: statements are not supported | to write it literally: {{ '{%' }}"]),
        ("- config.set: {resource: topic/a, values: {'{{ k }}': 1}}",
         ["4:44: expressions in keys are not evaluated | use the expression as a value"]),
        ("- produce: {topic: a}\n  stdin: |\n    one\n    two {{ b }}",
         ["7:12: b is not defined | no parameter or earlier step defines it"]),
    ],
)  # fmt: skip
def test_found(steps: str, said: list[str]) -> None:
    found = _problems(f"{HEAD}steps:\n{steps}\n")
    assert len(found) == len(said), found
    for line, expected in zip(found, said, strict=True):
        assert line.startswith(expected)


@pytest.mark.parametrize(
    "steps",
    [
        "- topic.create: {names: orders, partitions: 3, config: {retention.ms: 5}}",
        "- topic.create: {names: [orders], config: ['a=b', 'c=d']}",
        "- lag.check: {by: group, members: false}",
        "- cluster.health: {max_disk_percent: 80}",
        "- cluster.health: {max_disk_percent: 80.5}",
        "- lag:",
        "- lag: {}\n  register: r\n- wait: {until: r.exit_code == 0, every: 1s, timeout: 1m}",
        "- run: {argv: ['{{ 1 }}', 2], env: {A: 'b'}, cwd: /, parse: json, repeatable: true}",
        "- run: {argv: '{{ [1] }}'}",
        "- assert: {that: ['1 == 1', true], message: 'm {{ 1 }}'}",
        "- lag: {groups: ['{{ item }}', '{{ index }}']}\n  loop: [a]\n  when: item == 'a'",
        "- topic.list: {}\n  register: t\n- lag: {groups: '{{ t.value | map(attribute=\"name\") }}'}\n  accept: 1",
        "- include: topic-audit",
        "- include: {playbook: consumer-lag-gate, parameters: {groups: [a]}}",
    ],
)
def test_nothing_is_wrong_with(steps: str) -> None:
    assert _problems(f"{HEAD}steps:\n{steps}\n") == []


def test_failure_is_there_in_handlers() -> None:
    on_failure = "on_failure:\n- confirm: '{{ failure.step }} {{ failure.mesage }}'\n"
    handlers = on_failure + "finally:\n- wait: 1s\n  when: failure == none\n"
    assert _problems(f"{HEAD}steps: [lag: {{}}]\n{handlers}") == [
        "5:43: failure has no mesage | did you mean message?"
    ]  # fmt: skip


def test_parameters_that_nothing_uses() -> None:
    text = f"{HEAD}parameters: {{a: {{}}, b: {{}}}}\nsteps:\n- lag: {{groups: '{{{{ a }}}}'}}\n"
    assert _problems(text) == ["3:21: parameter b is not used | use {{ b }} or remove it"]


def test_a_step_that_cannot_be_read_brings_no_other_problems() -> None:
    """Its register is there for others, and what it may use is not called unused."""
    text = (
        f"{HEAD}parameters: {{a: {{}}}}\nsteps:\n- topic.lst: {{match: '{{{{ a }}}}'}}\n  register: topics\n"
        "- assert: topics.value | length > 0\n"
    )
    assert [line.partition(" | ")[0] for line in _problems(text)] == ["5:3: unknown operation topic.lst"]


def test_a_parameter_keeps_its_name() -> None:
    text = f"{HEAD}parameters: {{a: {{}}}}\nsteps:\n- lag: {{}}\n  register: a\n- set: {{a: '{{{{ a }}}}'}}\n"
    assert _problems(text) == [
        "6:13: a is already a parameter | choose another name", "7:9: a is already a parameter | choose another name",
    ]  # fmt: skip


TYPED = """\
playbook: 1
name: p
parameters:
  word: {}
  count: {type: integer}
  share: {type: number}
  force: {type: boolean}
  names: {type: list}
  map: {type: mapping}
  every: {type: duration}
  rack: {type: integer, default: null}
steps:
- wait: 1s
"""


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("lag: {}\n  when: names", ["15:9: when must be true or false, not a list"]),
        ("lag: {}\n  when: force and not force", []),
        ("lag: {}\n  when: rack", []),  # it may be anything: its default is null
        ("assert: [count]", ["14:12: that must be true or false, not an integer"]),
        ("assert: \"'false'\"", ["14:11: that must be true or false, not a string"]),
        ("lag: {}\n  loop: '{{ word }}'", ["15:9: loop must be a list, not a string"]),
        ("lag: {}\n  loop: '{{ map }}'", ["15:9: loop must be a list, not a mapping"]),
        ("lag: {}\n  loop: '{{ map | items }}'", []),
        ("lag: {}\n  retries: '{{ word }}'", ["15:12: retries must be an integer, not a string"]),
        ("lag: {}\n  retries: '{{ count * 2 }}'\n  delay: '{{ every }}'\n  timeout: '{{ count }}s'", []),
        ("lag: {}\n  retries: 1\n  delay: '{{ force }}'", ["16:10: delay must be a duration, not true or false"]),
        ("topic.create: {names: '{{ names }}', partitions: '{{ word }}'}",
         ["14:52: partitions must be an integer, not a string"]),
        ("topic.create: {names: '{{ word }}', partitions: '{{ count }}0'}",
         ["14:51: partitions must be an integer, not a string"]),
        ("topic.create: {names: ['{{ names }}']}", ["14:26: names must be a string, not a list"]),
        ("topic.create: {names: '{{ map }}'}", ["14:25: names must be a string, not a mapping"]),
        ("topic.create: {names: a, config: '{{ map }}', if_not_exists: '{{ count > 1 }}'}", []),
        ("topic.create: {names: a, config: {a: '{{ names }}'}}", ["14:40: config must be a string, not a list"]),
        ("topic.create: {names: a, if_not_exists: '{{ count }}'}",
         ["14:43: if_not_exists must be true or false, not an integer"]),
        ("topic.create: {names: a, partitions: '{{ share }}', replication_factor: '{{ names | length }}'}", []),
        ("topic.create: {names: a, partitions: '{{ names | join }}'}",
         ["14:40: partitions must be an integer, not a string"]),
        ("topic.create: {names: a, partitions: '{{ rack }}'}", []),
        ("lag: {}\n  register: r\n- assert: r.exit_code", ["16:11: that must be true or false, not an integer"]),
        ("lag: {}\n  register: r\n- assert: r.changed", []),
        ("lag: {}\n  register: r\n  until: r.value", []),
        ("lag: {}\n  register: r\n  until: r.status", ["16:10: until must be true or false, not a string"]),
    ],
)  # fmt: skip
def test_kinds_of_values_that_cannot_fit(step: str, said: list[str]) -> None:
    found = [line for line in _problems(f"{TYPED}- {step}\n") if "is not used" not in line]
    assert [line.partition(" | ")[0] for line in found] == said


SECRET = f"{HEAD}parameters: {{pw: {{secret: true}}}}\nsteps:\n"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            "- run: [psql, '-p{{ pw }}']",
            ["5:15: the secret pw on a command line is visible to other users | pass it with env: {PW: …} or stdin"],
        ),
        (
            "- set: {x: 'a{{ pw }}'}\n- run: ['{{ x }}']",
            ["6:9: the secret x on a command line is visible to other users | pass it with env: {X: …} or stdin"],
        ),
        ("- run: {argv: [psql], env: {PGPASSWORD: '{{ pw }}'}}", []),
        ("- run: [psql]\n  stdin: '{{ pw }}'", []),
    ],
)
def test_secrets_do_not_go_into_a_command_line(steps: str, said: list[str]) -> None:
    found = _problems(SECRET + steps)
    assert [line.partition(", which")[0] for line in found] == said


# --- includes ---------------------------------------------------------------------------------------------------------


def _write(path: Path, name: str, *, parameters: str = "{}", steps: str = "- lag: {}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"playbook: 1\nname: {name}\nparameters: {parameters}\nsteps:\n{steps}\n")
    return path


def _examined(path: Path) -> list[str]:
    return [f"{Path(p.file).name}:{p.line}:{p.column}: {p.message}" for p in examine(find(str(path)))[1]]


def test_an_included_one_is_looked_at_as_well(tmp_path: Path) -> None:
    inner = "- lag: {groups: '{{ a }}', by: '{{ b }}', topic: ['{{ c }}'], grups: 1}"
    _write(tmp_path / "sub/inner.yaml", "inner", parameters="{a: {type: list}, b: {}, c: {default: x}}", steps=inner)
    steps = "- include: {playbook: sub/inner.yaml, parameters: {a: 3, d: 1}}\n- id: two\n  include: sub/inner.yaml"
    assert _examined(_write(tmp_path / "outer.yaml", "outer", steps=steps)) == [
        "outer.yaml:5:3: inner requires the parameter b",
        "outer.yaml:5:55: a must be a list, not 3",
        "outer.yaml:5:58: inner has no parameter d",
        "outer.yaml:7:3: inner requires the parameter a",
        "outer.yaml:7:3: inner requires the parameter b",
        "inner.yaml:5:63: lag has no argument grups",
    ]


def test_a_playbook_does_not_include_itself(tmp_path: Path) -> None:
    _write(tmp_path / "b.yaml", "b", steps="- include: ./a.yaml")
    assert _examined(_write(tmp_path / "a.yaml", "a", steps="- include: b.yaml")) == [
        f"b.yaml:5:12: {tmp_path}/a.yaml includes itself"
    ]
    own = _write(tmp_path / "own.yaml", "own", steps="- include: own")
    assert _examined(own) == [f"own.yaml:5:12: {tmp_path}/own.yaml includes itself"]


def test_includes_are_not_nested_without_end(tmp_path: Path) -> None:
    for number in range(MAX_INCLUDE_DEPTH + 2):
        _write(tmp_path / f"p{number}.yaml", f"p{number}", steps=f"- include: p{number + 1}.yaml")
    _write(tmp_path / f"p{MAX_INCLUDE_DEPTH + 2}.yaml", "last")
    assert [line.partition(": ")[2] for line in _examined(tmp_path / "p0.yaml")] == [
        "includes are nested deeper than 8 levels"
    ]


def test_a_file_that_is_included_often_is_read_once(tmp_path: Path) -> None:
    """Ten includes of ten of ten … would be a hundred million."""
    for number in range(MAX_INCLUDE_DEPTH):
        steps = "\n".join(f"- {{id: s{i}, include: p{number + 1}.yaml}}" for i in range(10))
        _write(tmp_path / f"p{number}.yaml", f"p{number}", steps=steps)
    _write(tmp_path / f"p{MAX_INCLUDE_DEPTH}.yaml", "last")
    started = time.process_time()
    assert _examined(tmp_path / "p0.yaml") == []
    assert time.process_time() - started < 5


# --- finding ----------------------------------------------------------------------------------------------------------


def test_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "topic-audit.yaml", "own")
    _write(tmp_path / "mine.yml", "mine")
    assert find("topic-audit").shipped, "a file here does not take a shipped one's place"
    assert not find("./topic-audit.yaml").shipped
    assert not find("topic-audit.yaml").shipped
    assert (find("mine").file, find("mine").shipped) == ("mine.yml", False)
    assert load_playbook("mine").name == "mine"
    assert [found.file for found in in_folder(tmp_path)] == [f"{tmp_path}/mine.yml", f"{tmp_path}/topic-audit.yaml"]


@pytest.mark.parametrize(
    ("name", "says", "hint"),
    [
        ("topic-adit", "playbook topic-adit", "did you mean topic-audit?"),
        ("nowhere/x.yaml", "file nowhere/x.yaml does not exist", "kctl playbook list"),
        ("..", "file .. does not exist", "kctl playbook list"),
        ("", "playbook  does not exist", "kctl playbook list"),
    ],
)
def test_what_is_not_there(name: str, says: str, hint: str) -> None:
    with pytest.raises(NotFound, match=says.replace(".", r"\.")) as caught:
        find(name)
    assert hint in (caught.value.hint or "")


def test_loading_refuses_with_all_problems(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.yaml", "a", steps="- lag: {b: 1, c: 2}")
    with pytest.raises(InvalidFile, match="2 problems") as caught:
        load_playbook(str(path))
    assert len(caught.value.details["problems"]) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["a" * 5000, "a" * 5000 + ".yaml", "a\0b", "a\0b.yaml", "/dev/null/x.yaml", "/dev/zero"]
)
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(NotFound):
        find(name)
    assert _problems(f"{HEAD}steps:\n- include: {name!r}\n".replace("\\x00", "b"))


def test_what_cannot_be_read_is_told_as_a_problem(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b"#" * (2 << 20))
    (found,) = in_folder(tmp_path)
    playbook, (problem,) = examine(found)
    assert playbook is None
    assert "has more than 1,048,576 bytes" in problem.message


VALUES = [
    ("- topic.create: {names: [a], config: {retention.ms: 3d}}",
     "4:53: retention.ms must be a whole number, not '3d' | that is retention.ms=259200000"),
    ("- topic.create: {names: [a], config: [retention.ms=3d]}",
     "4:39: retention.ms must be a whole number, not '3d' | that is retention.ms=259200000"),
    ("- topic.create: {names: [a], config: {retention.ms: '{{ 3 }}d'}}", None),
    ("- topic.create: {names: [a], config: {retention.ms: 259200000, cleanup.policy: 'compact, delete'}}", None),
    ("- topic.create: {names: [a], config: {preallocate: true, min.cleanable.dirty.ratio: 0.5}}", None),
    ("- topic.create: {names: [a], config: {preallocate: 'yes'}}",
     "4:52: preallocate must be true or false, not 'yes' | "),
    ("- topic.create: {names: [a], config: {retention.ms: 1.5}}",
     "4:53: retention.ms must be a whole number, not '1.5' | "),
    ("- topic.create: {names: [a], config: {of.a.fork: 3d}}", None),
    ("- topic.create: {names: [a], config: {retention.ms: '@file'}}", None),
    ("- topic.alter: {names: [a], config: {segment.bytes: 1GiB}}",
     "4:53: segment.bytes must be a whole number, not '1GiB' | that is segment.bytes=1073741824"),
    ("- config.set: {resource: topic/a, values: {retention.ms: 3d}}",
     "4:58: retention.ms must be a whole number, not '3d' | that is retention.ms=259200000"),
    ("- config.set: {resource: 'topic/{{ 1 }}', values: {retention.ms: 3d}}",
     "4:66: retention.ms must be a whole number, not '3d' | that is retention.ms=259200000"),
    ("- config.set: {resource: '{{ 1 }}', values: {retention.ms: 3d}}", None),
    ("- config.set: {resource: brokers, values: [log.retention.ms=3d]}",
     "4:44: log.retention.ms must be a whole number, not '3d' | that is log.retention.ms=259200000"),
    ("- config.set: {resource: broker/1, values: {log.cleaner.threads: two}}",
     "4:66: log.cleaner.threads must be a whole number, not 'two' | "),
    ("- cluster.create: {name: x, layout: single, config: {num.io.threads: 0}}",
     "4:70: num.io.threads: '0' is not at least 1 | the default is 8"),
    ("- cluster.create: {name: x, layout: single, config: {num.io.thread: 8}}",
     "4:69: a broker of Kafka 3.9.2 has no setting 'num.io.thread' | did you mean num.io.threads"),
    ("- quota.set: {user: a, quotas: {producer_byte_rate: 10MB}}", None),
    ("- quota.set: {user: a, quotas: {producer_byte_rate: fast}}", "4:53: "),
]  # fmt: skip
DOUBTS = [
    ("- topic.create: {names: [a], config: {cleanup.policy: compacted}}",
     "cleanup.policy must be a list of compact, delete, not 'compacted'"),
    ("- topic.alter: {names: [a], config: {retention.ms: -2}}", "retention.ms must be at least -1, not '-2'"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "said"), VALUES)
def test_values_that_the_command_would_refuse(step: str, said: str | None) -> None:
    found = _problems(f"playbook: 1\nname: p\nsteps:\n{step}\n")
    assert len(found) == (said is not None), found
    assert said is None or found[0].startswith(said)


@pytest.mark.parametrize(("step", "said"), DOUBTS)
def test_values_that_only_brokers_refuse_are_warned_of(step: str, said: str) -> None:
    _, (problem,) = examine_text(f"playbook: 1\nname: p\nsteps:\n{step}\n", source=None, file="p.yaml")
    assert (problem.message, problem.warning) == (said, True)


def test_a_file_of_topics_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "playbook: 1\nname: p\nsteps:\n- topic.apply: {file: t.yaml}\n"
    assert _problems(text) == [], "a step before may make it"
    Path("t.yaml").write_text("topics:\n- name: a\n  configs: {retention.ms: 3d}\n")
    _, (problem,) = examine_text(text, source=None, file="p.yaml")
    assert problem.warning
    assert problem.message == "t.yaml:3:13: retention.ms must be a whole number, not '3d'"


@pytest.mark.parametrize(
    "step", ["- lag: {}\n  register: rows", "- set: {a: 1}", "- run: [ls]\n  register: r\n  loop: [1]"]
)
def test_what_nothing_uses_is_a_warning(step: str) -> None:
    playbook, (problem,) = examine_text(f"playbook: 1\nname: p\nsteps:\n{step}\n", source=None, file="p.yaml")
    assert problem.warning
    assert without_errors(playbook, [problem], "p.yaml") is playbook
