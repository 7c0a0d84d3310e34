"""What strangers, or mistakes, put into playbooks, and what steps print: bounded, and harmless on a terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kctl.commands import app
from kctl.errors import OperationFailed
from kctl.playbook.run.builtin_steps import MAX_LINES
from kctl.playbook.run.report import MAX_NOTES, MAX_TEXT
from kctl_testing import within
from playbook_runs import World, messages, run, states

HEAD = "playbook: 1\nname: h\n"
ESCAPES = "\\e[2J\\e]0;title\\a\\u202e"  # as YAML writes them


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("KCTL_CONTEXT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        b"#" * (10 << 20),
        f"{HEAD}steps: {'[' * 5000}".encode(),
        f"{HEAD}a: &a [x, x]\n".encode() + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(50)),
        f"{HEAD}steps:\n- assert: \"(''.__class__.__mro__[1].__subclasses__() | length) > 0\"\n".encode(),
        f"{HEAD}steps:\n- assert: \"'a' * 10 ** 9 == ''\"\n".encode() + b"- lag: {groups: ['{{ x.__init__ }}']}\n",
        f"{HEAD}steps:\n- set: {{a: '{{{{ range(10 ** 9) }}}}'}}\n".encode(),
    ],
    ids=["10 MB", "deep", "aliases", "dunder", "multiplied", "range"],
)
def test_a_hostile_playbook_is_not_run(folder: Path, capsys: pytest.CaptureFixture[str], text: bytes) -> None:
    (folder / "h.yaml").write_bytes(text)
    started = time.monotonic()
    assert app.main(["playbook", "run", "h.yaml", "--yes"]) in {1, 2}
    assert time.monotonic() - started < within(10)
    assert len(capsys.readouterr().err) < 20_000


def test_includes_of_includes_are_looked_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight levels of sixty each would be 168,000,000,000,000 steps."""
    for level in range(8):
        steps = "".join(f"- {{id: s{number}, include: f{level + 1}.yaml}}\n" for number in range(60))
        (folder / f"f{level}.yaml").write_text(f"{HEAD}steps:\n{steps}")
    (folder / "f8.yaml").write_text(f"{HEAD}steps:\n- run: [touch, a]\n")
    started = time.process_time()
    assert app.main(["playbook", "lint", "f0.yaml"]) == 0
    assert app.main(["playbook", "show", "f0.yaml"]) == 0
    assert app.main(["playbook", "run", "f0.yaml"]) == 4, "nobody said yes"
    assert "60 of 60 steps can change something" in capsys.readouterr().err
    assert time.process_time() - started < 10


def test_escape_sequences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a message: on stderr, in the table and in JUnit XML. A name cannot have them."""
    step = f'- id: a\n  assert: {{that: 1 == 2, message: "{ESCAPES}"}}\n'
    (folder / "h.yaml").write_text(f"{HEAD}steps:\n{step}")
    assert app.main(["playbook", "run", "h.yaml", "--junit", "j.xml", "-o", "wide"]) == 1
    shown = capsys.readouterr()
    body = (folder / "j.xml").read_text()
    for text in (shown.out, shown.err, body):
        assert "title" in text
        assert not set(text) & set("\x07\x1b\u202e")
    ET.fromstring(body)
    assert app.main(["playbook", "status", "-o", "wide"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    (folder / "h.yaml").write_text(f'{HEAD}steps:\n{step}  name: "{ESCAPES}"\n')
    assert app.main(["playbook", "run", "h.yaml"]) == 2
    assert "write the name on one line" in capsys.readouterr().err


def test_what_a_program_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences and bytes that are no text; its value is what it printed."""
    (folder / "h.yaml").write_text(
        f"{HEAD}steps:\n- id: a\n  run: [printf, '\\033[2J\\377\\000x']\n"
        "- id: b\n  run: [sh, -c, 'printf \"\\033[2Jno\" >&2; exit 7']\n"
    )
    assert app.main(["playbook", "run", "h.yaml", "--yes", "--junit", "j.xml", "-o", "json"]) == 5
    shown = capsys.readouterr()
    assert "\x1b" not in shown.err + shown.out
    values = {each["step"]: each["value"] for each in json.loads(shown.out)["steps"]}
    assert values["a"]["stdout"] == "\x1b[2J\ufffd\x00x"
    ET.fromstring((folder / "j.xml").read_text())


def test_a_terminal_that_is_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be told anything: the steps are done all the same, the final ones too."""

    class Gone(io.StringIO):
        gone = False

        def write(self, text: str) -> int:
            self.gone |= text.startswith("[1/")  # while the run goes on
            if self.gone:
                raise OSError(errno.EIO, "Input/output error")
            return len(text)

    (folder / "h.yaml").write_text(
        f"{HEAD}steps:\n- id: a\n  run: [touch, a]\n- id: b\n  run: ['false']\nfinally:\n- id: z\n  run: [touch, z]\n"
    )
    monkeypatch.setattr("sys.stderr", Gone())
    with suppress(OSError):  # what is said in the end has nowhere to go
        app.main(["playbook", "run", "h.yaml", "--yes"])
    monkeypatch.undo()
    assert (folder / "a").exists()
    assert (folder / "z").exists()


def test_nobody_reads_the_report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`| true`: the exit code is the run's."""
    (folder / "h.yaml").write_text(f"{HEAD}steps:\n- assert: 1 == 2\n")
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w", closefd=False) as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert app.main(["playbook", "run", "h.yaml", "-o", "json"]) == 1


def test_a_report_that_cannot_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not hide what became of the run."""
    (folder / "h.yaml").write_text(f"{HEAD}steps:\n- assert: {{that: 1 == 2, message: this}}\n")

    def full(*_: object) -> None:
        raise OperationFailed("No space left on device")

    monkeypatch.setattr("kctl.commands.playbook.run.write_whole", full)
    assert app.main(["playbook", "run", "h.yaml", "--junit", "j.xml"]) == 1
    assert "failed at assert: this" in capsys.readouterr().err
    (folder / "h.yaml").write_text(f"{HEAD}steps:\n- assert: 1 == 1\n")
    assert app.main(["playbook", "run", "h.yaml", "--junit", "j.xml"]) == 5
    assert "No space left on device" in capsys.readouterr().err


def test_a_journal_that_cannot_begin(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "h.yaml").write_text(f"{HEAD}steps:\n- run: [touch, a]\n")
    (folder / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    assert app.main(["playbook", "run", "h.yaml", "--yes"]) == 4
    assert "set XDG_STATE_HOME" in capsys.readouterr().err
    assert not (folder / "a").exists()


def test_texts_for_people_are_cut() -> None:
    printed = b"y\n" * 100_000 + b"z" * 700_000
    world = World(said={"lag": ["x" * 1_000_000] * 1000}, programs={"p": (1, b"", printed)})
    ending = run(
        f"{HEAD}steps:\n- id: a\n  lag: {{}}\n- id: b\n  run: [p]\n  on_error: continue\n"
        "- id: c\n  assert: {that: 1 == 2, message: \"{{ range(9999) | join }}\"}\n", world,
    )  # fmt: skip
    assert states(ending) == {"a": "ok", "b": "failed", "c": "failed"}
    a, b, c = ending.steps
    assert (len(a.notes), len(a.notes[0])) == (MAX_NOTES, MAX_TEXT + len("… (1,000,000 characters)"))
    assert len(b.notes) == MAX_LINES + 1
    assert b.notes[0] == f"… {100_001 - MAX_LINES:,} earlier lines"
    assert len(messages(ending)["b"] or "") < 600
    assert c.message is not None
    assert c.message.endswith("characters)")


def test_values_that_grow_in_a_loop() -> None:
    """Doubled with each item: refused when it is too large, long before memory is."""
    started = time.process_time()
    for begin, grown in (("'xxxxxxxxxx'", "{{ x ~ x }}"), ("[1, 2]", "{{ x + x }}"), ("[1, 2]", "{{ [x, x] }}")):
        text = f"""\
steps:
- set: {{x: "{{{{ {begin} }}}}"}}
- id: grow
  loop: "{{{{ range(40) }}}}"
  set: {{x: "{grown}"}}
- assert: x is defined
"""
        ending = run(HEAD + text, World())
        assert states(ending)["grow"] == "failed"
        assert " than " in (messages(ending)["grow"] or "")
    assert time.process_time() - started < 20
