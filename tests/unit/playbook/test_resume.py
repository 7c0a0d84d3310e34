"""A run is killed at every write of its journal, and goes on: nothing is lost, nothing is done twice that must not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.base import journal
from kctl.errors import Busy, ExitCode, InvalidFile, NotFound, NotHealthy, OperationFailed, Refused, UsageError
from kctl.playbook.builtin_step_table import BUILTIN_STEPS
from kctl.playbook.run import resume as library
from kctl.playbook.run import run_journal
from kctl.playbook.run.repeats import UNSAFE_REPEATS
from playbook_runs import Killed, World, messages, resume, run, states

INNER = """\
playbook: 1
name: inner
parameters: {topic: {}}
steps:
- id: make
  topic.create: {names: ["{{ topic }}"], if_not_exists: true}
- id: pay
  run: [pay]
finally:
- id: tidy
  run: {argv: [tidy], repeatable: true}
"""
# Every kind of step; what must not be done twice is done once in each.
EVERY_KIND = """\
playbook: 1
name: every-kind
parameters: {prefix: {default: k}}
steps:
- id: look
  topic.list: {}
  register: seen
- id: make
  topic.create: {names: ["{{ prefix }}-a"], if_not_exists: true}
  register: made
- id: loop
  loop: [b, c]
  topic.create: {names: ["{{ prefix }}-{{ item }}"], if_not_exists: true}
  register: looped
- id: name
  set: {first: "{{ made.value[0].topic }}"}
- id: say
  tell: "{{ first }}"
- id: load
  produce: {topic: "{{ first }}"}
  stdin: x
- id: read
  consume: {topics: ["{{ first }}"], group: g}
- id: shift
  group.reset_offsets: {groups: [g], shift_by: "-1", all_topics: true}
- id: kill
  cluster.kill: {name: dev, node: leader}
- id: pause
  cluster.pause: {name: dev, node: leader}
- id: program
  run: [send]
- id: again
  run: {argv: [probe], repeatable: true}
- id: short
  wait: 1s
- id: sure
  confirm: Sure?
- id: no
  when: false
  topic.list: {}
- id: in
  include: {playbook: inner.yaml, parameters: {topic: "{{ prefix }}-d"}}
- id: whole
  assert: seen.value == [1, 2] and made.value | length == 1 and looped.value | length == 2 and first == 'k-a'
finally:
- id: last
  topic.create: {names: ["{{ prefix }}-z"], if_not_exists: true}
- id: note
  run: [note]
"""
ONCE = ("produce", "consume", "group.reset_offsets", "cluster.kill", "cluster.pause", "send", "pay", "note")


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("os.fsync", lambda _fd: None)  # nothing here loses its memory, and there are thousands
    (tmp_path / "inner.yaml").write_text(INNER)
    return tmp_path


class Killer:
    """Kills at the n-th write of a journal: before it, or right after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes: list[str] = []
        self.at: tuple[int, str] | None = None
        append = journal.Journal.append

        def watched(held: journal.Journal, step: str, **fields: Any) -> None:
            if self.at == (len(self.writes), "before"):
                raise Killed
            append(held, step, **fields)
            self.writes.append(step)
            if self.at == (len(self.writes) - 1, "after"):
                raise Killed

        monkeypatch.setattr(journal.Journal, "append", watched)

    def arm(self, number: int, moment: str) -> None:
        self.writes.clear()
        self.at = (number, moment)

    def disarm(self) -> None:
        self.at = None


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    return Killer(monkeypatch)


def _world(**answers: Any) -> World:
    return World(answers={"topic.list": [1, 2], **answers})


def _fresh() -> None:
    for path in run_journal.runs():
        path.unlink()


def _every_kill(killer: Killer, begin: Callable[[World], Any], world: Callable[[], World]) -> Iterator[World]:
    """Worlds in which the run was killed, one for each write and moment. The first write is the run's own: before it
    run nowhere does not exist."""
    clean = world()
    begin(clean)
    writes = len(killer.writes)
    for number in range(writes):
        for moment in ("before", "after"):
            if (number, moment) == (0, "before"):
                continue
            _fresh()
            killer.arm(number, moment)
            killed = world()
            with pytest.raises(Killed):
                begin(killed)
            killer.disarm()
            killed.lines.append(f"killed {moment} write {number}, {killer.writes[-1:]}")
            yield killed


def test_the_playbook_has_every_kind_of_step() -> None:
    for kind in (*BUILTIN_STEPS, *UNSAFE_REPEATS):
        assert f"{kind}:" in EVERY_KIND, kind


@pytest.mark.parametrize("answer", ["redo", "skip"])
def test_killed_at_every_write(killer: Killer, state_folder: Path, answer: str) -> None:
    def begin(world: World) -> None:
        run(EVERY_KIND, world, source=state_folder / "p.yaml", journaled=True)

    kills = refusals = 0
    for world in _every_kill(killer, begin, _world):
        kills += 1
        if killer.writes[-1] == "run ended":
            with pytest.raises(Refused, match="is complete"):
                resume(world)
            continue
        before = {name: world.done(name) for name in ONCE}
        try:
            ending = resume(world)
        except Refused as exc:
            refusals += 1
            assert {name: world.done(name) for name in ONCE} == before, "a refusal does nothing"
            steps: Any = exc.details["steps"]
            assert len(steps) == 1
            ending = resume(world, redo=steps) if answer == "redo" else resume(world, skip=steps)
        done = {name: world.done(name) for name in ONCE}
        once = dict.fromkeys(ONCE, 1)
        if done != once:  # only what was in doubt, and only by what was asked for
            (other,) = (name for name in ONCE if done[name] != 1)
            assert done[other] == (2 if answer == "redo" else 0), (other, done, world.lines)
        assert ending.exit_code == 0, (world.lines, messages(ending))
        assert set(states(ending).values()) <= {"ok", "changed", "skipped"}
        assert world.topics == {"k-a", "k-b", "k-c", "k-d", "k-z"}, "killed before it was done, it was done by resume"
        (path,) = run_journal.runs()
        assert run_journal.state_of(path).complete
        with pytest.raises(Refused, match="is complete"):
            library.run_to_resume(None)
    assert kills > 80
    assert refusals == 2 * len(ONCE), "between the two entries of each step that must not be done twice"


FAILING = """\
playbook: 1
name: failing
steps:
- id: make
  topic.create: {names: [a], if_not_exists: true}
- id: check
  lag: {}
- id: behind
  topic.create: {names: [b], if_not_exists: true}
on_failure:
- id: told
  run: {argv: [tell, "{{ failure.step }}"], repeatable: true}
finally:
- id: last
  topic.create: {names: [z], if_not_exists: true}
"""


def test_killed_at_every_write_of_a_run_that_fails(killer: Killer) -> None:
    """It goes on failing: the handlers are done, the final steps, and the exit code is the same. Then the cause is
    mended, and the next resume does what is left."""

    def begin(world: World) -> None:
        run(FAILING, world, journaled=True)

    for world in _every_kill(killer, begin, lambda: _world(lag=NotHealthy("behind"))):
        ended = "run ended" in killer.writes
        if not ended:
            ending = resume(world)
            assert (ending.exit_code, ending.failure and ending.failure.step) == (1, "check"), world.lines
            assert world.ran[-1] == ["tell", "check"]
            assert "z" in world.topics
            assert "b" not in world.topics
        world.answers["lag"] = 0
        world.ran.clear()
        ending = resume(world)
        assert (ending.exit_code, world.topics, world.ran) == (0, {"a", "b", "z"}, [])
        found = states(ending)
        assert found.pop("make") in {"ok", "changed"}, "killed between act and entry, it finds the topic"
        assert found == {"check": "ok", "behind": "changed", "last": "ok"}
        assert [each.before for each in ending.steps] == [True, False, False, False]


def test_a_resumed_run_is_killed_as_well(killer: Killer, state_folder: Path) -> None:
    """Twice killed, at the same write counted from the resume."""
    for number in range(1, 30):
        _fresh()
        world = _world()
        killer.arm(5, "after")
        with pytest.raises(Killed):
            run(EVERY_KIND, world, source=state_folder / "p.yaml", journaled=True)
        killer.arm(number, "after")
        try:
            resume(world)
        except Killed:
            killer.disarm()
            try:
                ending = resume(world)
            except Refused as exc:
                steps: Any = exc.details["steps"]
                ending = resume(world, redo=steps)
            assert ending.exit_code == 0
        killer.disarm()
        assert all(world.done(name) in {1, 2} for name in ONCE)
        assert sum(world.done(name) == 2 for name in ONCE) <= 1


def test_a_program_that_failed_may_have_done_something() -> None:
    world = World(programs={"send": (1, b"", b"")})
    text = "playbook: 1\nname: p\nsteps:\n- id: s\n  run: [send]\n- id: b\n  topic.create: {names: [b]}\n"
    assert run(text, world, journaled=True).exit_code == 5
    world.programs.clear()
    with pytest.raises(Refused, match=r"outcome unknown: s \(run\) started at .* and may have run") as caught:
        resume(world)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert caught.value.hint == "check whether it ran, then use --redo s to run it again or --skip s to skip it"
    ending = resume(world, skip=["s"])
    assert (states(ending), world.done("send")) == ({"s": "skipped", "b": "changed"}, 1)


def test_what_was_refused_is_simply_done_again() -> None:
    world = World(answers={"produce": NotFound("no topic")})
    text = "playbook: 1\nname: p\nsteps:\n- id: s\n  produce: {topic: t}\n"
    assert run(text, world, journaled=True).exit_code == 4
    world.answers["produce"] = {"acknowledged": 1}
    assert resume(world).exit_code == 0


def test_ctrl_c_is_gone_on_from() -> None:
    world = World(answers={"topic.create": KeyboardInterrupt()})
    assert run(FAILING, world, journaled=True).exit_code == 130
    assert world.calls[-1][0] == "topic.create"
    ((row,), _) = library.overviews()
    assert (row.state, row.at, row.exit_code, row.steps_done, row.steps) == ("interrupted", ["make", "last"], 130, 0, 3)
    world.answers.clear()
    ending = resume(world)
    assert states(ending) == {"make": "changed", "check": "ok", "behind": "changed", "last": "changed"}


def test_a_step_that_was_done_is_done_again_when_it_is_named() -> None:
    world = World(answers={"lag": NotHealthy("behind")})
    run(FAILING, world, journaled=True)
    with pytest.raises(UsageError, match="the run has no step mak") as caught:
        resume(world, redo=["mak"])
    assert caught.value.hint == "did you mean make?"
    world.answers.clear()
    resume(world, redo=["make"])
    assert world.done("topic.create") == 2 + 3, "make and last; make again, behind, last"


def test_what_a_check_is_about_is_looked_at_again() -> None:
    """Whoever mended it needs not name the steps that looked; what changed something, or waited, is not done again."""
    text = """\
playbook: 1
name: p
steps:
- id: before
  lag: {}
  register: first
- id: make
  topic.create: {names: [a], if_not_exists: true}
- id: look
  topic.list: {}
  register: seen
- id: a-while
  wait: 1m
- id: named
  set: {count: "{{ seen.value | length }}"}
- id: grow
  when: count > 2
  topic.create: {names: [b]}
- id: check
  assert: [count > 1, 'first.value == []']
"""
    world = World(answers={"topic.list": [1], "lag": []})
    assert run(text, world, journaled=True).exit_code == 1
    world.answers["topic.list"] = [1, 2, 3]
    ending = resume(world)
    assert (ending.exit_code, world.topics, world.slept) == (0, {"a", "b"}, [60])
    assert (world.done("lag"), world.done("topic.list"), world.done("topic.create")) == (1, 2, 2)
    assert [each.step for each in ending.steps if each.before] == ["before", "make", "a-while"]


def test_what_somebody_skipped_stays_skipped() -> None:
    world = World(programs={"send": (1, b"", b"")}, answers={"lag": NotHealthy("behind")})
    text = "playbook: 1\nname: p\nsteps:\n- id: s\n  run: [send]\n- id: t\n  topic.list: {}\n- lag: {}\n"
    run(text, world, journaled=True)
    assert resume(world, skip=["s", "t"]).exit_code == 1
    world.answers.clear()
    assert resume(world).exit_code == 0
    assert (world.done("send"), world.done("topic.list")) == (1, 0)


def test_secrets_are_in_no_journal_and_asked_for_again() -> None:
    text = """\
playbook: 1
name: p
parameters: {pw: {secret: true}}
steps:
- id: login
  run: {argv: [login], env: {PW: "{{ pw }}"}, repeatable: true}
  register: r
- id: named
  set: {header: "Bearer {{ pw }}"}
- id: look
  topic.list: {}
  register: seen
- id: check
  lag: {groups: ["{{ header }}", "{{ seen.value }}"]}
- id: late
  assert: r.exit_code == 0
"""
    world = World(
        programs={"login": (0, b"token of hunter22", b"hunter22")},
        answers={"lag": OperationFailed("hunter22 is wrong"), "topic.list": "about hunter22"},
    )
    run(text, world, secrets={"pw": "hunter22"}, journaled=True)
    (path,) = run_journal.runs()
    assert "hunter22" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="pw is missing"):
        resume(world)
    world.answers["lag"] = 0
    ending = resume(world, secrets={"pw": "hunter22"})
    assert world.calls[-1][1] == {"groups": ["Bearer hunter22", "about hunter22"]}, "read again, as it changes nothing"
    assert states(ending)["late"] == "failed"
    assert "the journal lacks the full value of r" in (messages(ending)["late"] or "")
    ending = resume(world, secrets={"pw": "hunter22"}, redo=["login"])
    assert ending.exit_code == 0
    assert "hunter22" not in path.read_text()


def test_no_digest_of_a_secret() -> None:
    """A weak one could be guessed by it. The other items are known again."""
    text = """\
playbook: 1
name: p
parameters: {pw: {secret: true}}
steps:
- id: each
  loop: ["{{ pw }}", "{{ pw | upper }}"]
  lag: {groups: ["{{ item }}"]}
- id: each-public
  loop: [public]
  lag: {groups: ["{{ item }}"]}
- id: check
  topic.list: {}
"""
    world = World(answers={"topic.list": NotHealthy("behind")})
    run(text, world, secrets={"pw": "hunter22"}, journaled=True)
    (path,) = run_journal.runs()
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    began = [each for each in entries if each["step"] == "step began" and each["key"].startswith("each")]
    assert [each["item_digest"] is None for each in began] == [True, True, False]
    world.answers["topic.list"] = 0
    assert resume(world, secrets={"pw": "hunter22"}).exit_code == 0


def test_values_that_are_too_large_are_not_kept() -> None:
    world = World(answers={"topic.list": ["x" * 1000] * 1000, "lag": NotHealthy("behind")})
    text = "playbook: 1\nname: p\nsteps:\n- id: a\n  topic.list: {}\n  register: r\n"
    text += "- lag: {}\n  when: r.value | length > 5\n"
    run(text, world, journaled=True)
    (path,) = run_journal.runs()
    assert path.stat().st_size < 10_000
    world.answers["lag"] = 0
    assert resume(world).exit_code == 0
    assert world.done("topic.list") == 2


def test_a_loop_whose_items_are_others_is_not_mixed_up(killer: Killer) -> None:
    text = """\
playbook: 1
name: p
steps:
- id: look
  topic.list: {}
  register: r
- id: l
  loop: "{{ r.value }}"
  topic.create: {names: ["{{ item }}"], if_not_exists: true}
"""
    world = World(answers={"topic.list": ["a", "b"]})
    killer.arm(6, "after")
    with pytest.raises(Killed):
        run(text, world, journaled=True)
    killer.disarm()
    world.answers["topic.list"] = ["c", "b"]
    ending = resume(world, redo=["look"])
    assert messages(ending)["l"] == "the loop item at l[0] has changed"


def test_included_playbooks_are_those_that_began(killer: Killer, state_folder: Path) -> None:
    text = "playbook: 1\nname: p\nsteps:\n- id: in\n  include: {playbook: inner.yaml, parameters: {topic: t}}\n"
    world = World()
    killer.arm(2, "after")
    with pytest.raises(Killed):
        run(text, world, source=state_folder / "p.yaml", journaled=True)
    killer.disarm()
    (state_folder / "inner.yaml").write_text("playbook: 1\nname: inner\nparameters: {topic: {}}\nsteps:\n"
                                             "- topic.delete: {names: ['{{ topic }}']}\n")  # fmt: skip
    resume(world)
    assert (world.done("topic.create"), world.done("topic.delete")) == (1, 0)


# --- journals ---------------------------------------------------------------------------------------------------------


def test_a_full_disk_ends_the_run_and_not_its_final_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    append, writes = journal.Journal.append, []

    def full(held: journal.Journal, step: str, **fields: Any) -> None:
        writes.append(step)
        if len(writes) > 3:
            raise OperationFailed("cannot write the journal: No space left on device")
        append(held, step, **fields)

    monkeypatch.setattr(journal.Journal, "append", full)
    world = World()
    ending = run(FAILING, world, journaled=True)
    assert (ending.exit_code, states(ending)) == (
        5, {"make": "changed", "check": "failed", "behind": "skipped", "told": "changed", "last": "changed"},
    )  # fmt: skip
    assert world.done("lag") == 0
    assert len(writes) == 4


def test_runs_are_listed() -> None:
    world = World(answers={"lag": NotHealthy("behind")})
    with pytest.raises(NotFound, match="no playbook has been run on this machine"):
        library.run_to_resume(None)
    run(FAILING, world, journaled=True)
    ((row,), _) = library.overviews()
    assert (row.playbook, row.state, row.target, row.cluster_id) == ("failing", "failed", "dev", "c1")
    assert (row.steps_done, row.steps, row.at, row.exit_code) == (1, 3, ["check"], 1)
    assert row.message == "check: behind"
    (path,) = run_journal.runs()
    assert library.run_to_resume(path.stem) == library.run_to_resume(None) == path
    for name in ("nowhere", "../x", ""):
        with pytest.raises(NotFound, match="does not exist"):
            run_journal.path_of(name)
    with journal.resume(path):
        assert [each.state for each in library.overviews()[0]] == ["running"]
        with pytest.raises(Busy):
            resume(world)


def test_another_cluster_is_refused() -> None:
    run(FAILING, World(), journaled=True)
    (path,) = run_journal.runs()
    state = run_journal.state_of(path)
    assert library.check_cluster(state, "c1")
    assert not library.check_cluster(state, None), "it cannot be told"
    with pytest.raises(Refused, match="the run is for cluster c1, but this is cluster c2"):
        library.check_cluster(state, "c2")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{"step": "begin"}],
        [{"step": "run began", "at": "x", "format": 2}],
        [{"step": "run began", "at": "x", "format": 1}, {"step": "step ended", "at": "x"}],
        [{"step": "run began", "at": "x", "format": 1}, {"step": "what", "at": "x"}],
        [{"step": "run began", "at": "x", "format": 1}, {"step": "step ended", "at": "x", "key": "a", "state": "odd"}],
    ],
)
def test_what_is_no_journal(lines: list[dict[str, Any]]) -> None:
    path = run_journal.folder() / "x.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InvalidFile, match=r"x\.jsonl is not a playbook journal"):
        run_journal.state_of(path)
    listed, failed = library.overviews()
    assert not listed
    assert len(failed) == bool(lines), "one that a crash left empty is nothing to speak of"
    if lines:
        with pytest.raises(InvalidFile, match=r"x\.jsonl is not a playbook journal") as caught:
            library.run_to_resume(None)
        assert "or name a run" in (caught.value.hint or "")


def _in_the_future() -> None:
    """The clock was years ahead while the runs were made that are there, and was set right since."""
    for number, path in enumerate(run_journal.runs()):
        path.rename(path.with_name(f"20990101T00000{number}.000Z-1.jsonl"))


def _killed(killer: Killer, text: str = FAILING) -> Path:
    before = set(run_journal.runs())
    killer.arm(2, "after")
    with pytest.raises(Killed):
        run(text, World(), journaled=True)
    killer.disarm()
    (path,) = set(run_journal.runs()) - before
    return path


def test_a_clock_that_was_set_back(killer: Killer) -> None:
    assert run(FAILING, World(), journaled=True).exit_code == 0
    _in_the_future()
    path = _killed(killer)
    assert library.run_to_resume(None) == path
    assert [each.state for each in library.overviews()[0]] == ["stopped", "complete"]
    assert resume(World()).exit_code == 0
    with pytest.raises(Refused, match="is complete"):
        library.run_to_resume(None)


def test_a_run_that_was_killed_comes_before_one_that_is_complete(killer: Killer) -> None:
    path = _killed(killer)
    assert run(FAILING, World(), journaled=True).exit_code == 0
    assert library.run_to_resume(None) == path


def test_a_run_that_failed_and_was_run_again_is_not_gone_on_with_unnamed() -> None:
    run(FAILING, World(answers={"lag": NotHealthy("behind")}), journaled=True)
    (failed,) = run_journal.runs()
    other = "playbook: 1\nname: other\nsteps:\n- id: s\n  topic.create: {names: [b]}\n"
    assert run(other, World(), journaled=True).exit_code == 0
    assert library.run_to_resume(None) == failed, "another playbook does not take its place"
    assert run(FAILING, World(), journaled=True).exit_code == 0
    with pytest.raises(Refused, match=f"is complete, and the earlier run {failed.stem} failed"):
        library.run_to_resume(None)
    assert library.run_to_resume(failed.stem) == failed


def test_the_last_line_may_be_torn(killer: Killer) -> None:
    world = World()
    killer.arm(2, "after")
    with pytest.raises(Killed):
        run(FAILING, world, journaled=True)
    killer.disarm()
    (path,) = run_journal.runs()
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    for cut in range(1, len(last) + 1, 7):
        path.write_bytes(whole[:-cut])
        assert library.overviews()[0][0].state == "stopped"
    assert resume(world).exit_code == 0
