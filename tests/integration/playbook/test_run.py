"""A playbook on a real cluster, as an operator and a CI job run it: what is done, said, reported, and left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kctl_testing import SCRIPT, Kctl, Result, TestCluster, closed_port, eventually, within
from playbook_real import NOTHING, WHOLE, Book, book


@pytest.fixture
def real(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> Iterator[Book]:
    with book(kctl, cluster, tmp_path, "engine-run") as made:
        yield made


def _write(real: Book, text: str) -> Path:
    path = real.folder / "other.yaml"
    path.write_text(f"playbook: 1\nname: other\n{text}")
    return path


def _states(done: Result) -> dict[str, str]:
    return {each["step"]: each["state"] for each in json.loads(done.out)["steps"]}


def test_checked_then_run_then_run_again(real: Book) -> None:
    checked = real.run("--check", "--diff", "-o", "json")
    assert checked.code == 0, str(checked)
    assert _states(checked)["make"] == "would change"
    assert json.loads(checked.out)["run"] is None
    assert f"plan: topic {real.topic}, result would create" in checked.err
    assert (real.there(), real.told(), real.journals()) == (NOTHING, [], [])

    report = real.folder / "report.xml"
    first = real.run("--junit", str(report), "-o", "json")
    assert first.code == 0, str(first)
    assert _states(first) == {
        "make": "changed", "config": "changed", "more": "changed", "look": "ok", "named": "ok", "check": "ok",
        "in": "changed", "in/load": "changed", "in/tell": "changed", "last": "changed",
    }  # fmt: skip
    assert (real.there(), real.told()) == (WHOLE, ["told"])
    root = ET.fromstring(report.read_text())
    suite = root[0]
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    cases = suite.findall("testcase")
    assert {case.get("name", "").split(":")[0] for case in cases} == set(_states(first)) - {"in"}, "its steps tell it"
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(len(cases)), "0", "0")

    again = real.run("--limit", "make", "--limit", "config", "--limit", "more", "-o", "json")
    assert set(_states(again).values()) == {"ok", "skipped"}, str(again)
    assert json.loads(again.out)["status"] == "ok"
    assert (real.there(), real.told()) == (WHOLE, ["told"])
    assert real.kctl.json("playbook", "status")[0]["state"] == "complete"


def test_failed_then_mended_then_resumed(real: Book) -> None:
    """The check is not fulfilled: 1, the handlers and the final steps are done; `resume` does what is left."""
    report = real.folder / "report.xml"
    done = real.run("-p", "most=1", "--junit", str(report))
    assert done.code == 1, str(done)
    assert "real failed at check: retention is 3600000" in done.err
    assert "kctl playbook resume" in done.err
    assert (real.told(), real.there()) == (["failed check"], {**WHOLE, "records": 0})
    suite = ET.fromstring(report.read_text())[0]
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "retention is 3600000"
    assert suite.get("failures") == "1"
    real.kctl.ok("config", "set", f"topic/{real.topic}", "retention.ms=1", "--yes")
    resumed = real.resume("-o", "json")
    assert resumed.code == 0, str(resumed)
    assert _states(resumed)["make"] == "changed"
    assert {each["step"] for each in json.loads(resumed.out)["steps"] if each["before"]} == {"make", "config", "more"}
    assert (real.told(), real.there()) == (["failed check", "told"], {**WHOLE, "retention": "1"})
    assert real.resume().code == 4, "complete"


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("wait: 10m", signal.SIGINT),
        ("run: {argv: [sh, -c, 'trap \"\" TERM; sleep 600'], repeatable: true}", signal.SIGTERM),
        ("cluster.health: {wait: true, brokers: 99}\n  timeout: 10m", signal.SIGINT),
    ],
    ids=["wait", "program", "operation"],
)
def test_interrupted_then_resumed(real: Book, step: str, number: signal.Signals) -> None:
    """The final steps are done, once; the run is at that step, and goes on there."""
    path = _write(
        real,
        f"""\
steps:
- id: a
  run: [sh, -c, 'echo before >> told']
- id: long
  name: Long
  {step}
- id: c
  run: [sh, -c, 'echo behind >> told']
finally:
- id: z
  run: [sh, -c, 'echo last >> told']
""",
    )
    with real.kctl.running("playbook", "run", str(path), "--yes") as process:
        assert process.stderr is not None
        assert any("Long" in line for line in process.stderr)
        process.send_signal(number)
        _, err = process.communicate(timeout=within(30))
    assert process.returncode == 130, err
    assert real.told() == ["before", "last"]
    (row,) = real.kctl.json("playbook", "status")
    assert (row["state"], row["at"][0], row["steps_done"], row["steps"]) == ("interrupted", "long", 1, 3)
    again = real.resume("--skip", "long")
    assert again.code == 0, str(again)
    assert real.told() == ["before", "last", "behind", "last"]


def test_refused_and_not_reached(real: Book) -> None:
    """Nothing is changed: without a yes (4), and when nobody answers (3)."""
    refused = real.kctl("playbook", "run", str(real.file), "-p", f"topic={real.topic}")
    assert refused.code == 4
    assert "to confirm, use --yes" in refused.err
    assert f"make: {'topic.create'}" in refused.err, "what it would change"
    assert (real.there(), real.journals()) == (NOTHING, [])
    asked = real.kctl("playbook", "run", str(real.file), "-p", f"topic={real.topic}", "--step", "--yes")
    assert (asked.code, "requires a terminal" in asked.err) == (4, True)
    down = real.run("--bootstrap-server", f"127.0.0.1:{closed_port()}")
    assert down.code == 3, str(down)
    assert "refused the connection" in down.err
    assert real.there() == NOTHING
    assert real.told() == ["failed make"], "the handlers are done: somebody wants to know"
    other = real.resume("--dry-run", "--bootstrap-server", real.cluster.bootstrap)
    assert other.code == 0, "it was never seen which cluster that is"


def test_another_cluster_is_refused(real: Book) -> None:
    assert real.run("-p", "most=1").code == 1
    (path,) = real.journals()
    header, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps({**json.loads(header), "cluster_id": "another"}) + "\n" + rest)
    edited = real.resume()
    assert edited.code == 2
    assert "was edited" in edited.err
    path.write_text(re.sub(r', ?"check": ?"[0-9a-f]{16}"(?=})', "", path.read_text()))  # as kctl wrote them before
    other = real.resume()
    assert other.code == 4
    assert "the run is for cluster another, but this is cluster " in other.err
    assert real.told() == ["failed check"]


def test_the_shell_of_a_ci_job(real: Book) -> None:
    """No terminal, an empty environment, a pipe; the exit code is the run's."""
    servers = f"--bootstrap-server {real.cluster.bootstrap}"
    line = f"kctl playbook run {real.file} -p topic={real.topic} {servers} --yes --junit {real.folder}/j.xml"
    script = f"set -o pipefail; {line} -p most=1 2>&1 | cat; echo code=$?; {line} -o json | tail -n 1"
    kept = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}  # of a checkout
    bare = {**kept, "PATH": f"{SCRIPT.parent}{os.pathsep}/usr/bin:/bin", "HOME": str(real.kctl.home)}
    done = subprocess.run(
        ["bash", "-c", script], env=bare, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=within(60),
        check=False,
    )  # fmt: skip
    out = done.stdout.decode()
    assert "code=1" in out, out
    assert "real failed at check: retention is 3600000" in out
    assert "\x1b" not in out
    assert done.returncode == 0, done.stderr.decode()
    assert (real.there(), real.told()) == (WHOLE, ["failed check", "told"])
    assert ET.fromstring((real.folder / "j.xml").read_text())[0].get("failures") == "0"


SECRET = "hunter22-«x»"


def test_a_secret_is_nowhere(real: Book) -> None:
    """Not in what is said, with --debug too, nor in reports, the journal, or a program's arguments."""
    path = _write(real, """\
parameters: {password: {secret: true}}
steps:
- id: login
  run:
    argv: [sh, -c, 'tr "\\\\0" " " < /proc/$$/cmdline > seen; env > env; echo "$PW"; echo "no $PW" >&2']
    env: {PW: "{{ password }}"}
  register: login
- id: shown
  assert: {that: login.value.stdout == '', message: "got {{ login.value.stdout }}"}
  on_error: continue
- id: refused
  topic.describe: {names: ["{{ password }}"]}
finally:
- run: {argv: [sh, -c, 'echo "{{ login.exit_code }}" > last']}
""")  # fmt: skip
    (real.folder / "pw").write_text(SECRET)
    (real.folder / "pw").chmod(0o600)
    options = ("--secret", f"password=@{real.folder}/pw", "--junit", str(real.folder / "j.xml"), "--debug")
    done = real.run(*options, "-o", "json", file=path)
    assert done.code == 5, str(done)
    assert "***" in done.err
    (journal,) = real.journals()
    written = (real.folder / "j.xml").read_text() + journal.read_text() + done.out + done.err
    assert "hunter22" not in written
    assert SECRET not in (real.folder / "seen").read_text()
    assert f"PW={SECRET}" in (real.folder / "env").read_text()
    assert "KCTL_PARAM" not in (real.folder / "env").read_text()
    table = real.run(*options, file=path)
    assert "hunter22" not in table.out + table.err
    shown = real.kctl("playbook", "status", "-o", "json")
    assert "hunter22" not in shown.out
    missing = real.resume()
    assert (missing.code, "password is missing" in missing.err) == (2, True)


def test_programs_without_end(real: Book) -> None:
    """One that prints for ever, one that starts another and goes: ended in time, and what is kept has a bound."""
    path = _write(real, """\
steps:
- id: endless
  run: [sh, -c, "yes"]
  timeout: 1s
  on_error: continue
- id: much
  run: [sh, -c, "head -c 100000000 /dev/zero | tr '\\\\0' x"]
  register: much
- id: kept
  assert: much.value.truncated and much.value.stdout | length == 1048576
- id: left
  run: [sh, -c, "sleep 600 & echo $! > left"]
  timeout: 1s
""")  # fmt: skip
    done = real.run("-o", "json", file=path)
    assert done.code == 5, str(done)
    assert _states(done) == {"endless": "failed", "much": "changed", "kept": "ok", "left": "failed"}
    assert len(done.out) < 100_000
    pid = int((real.folder / "left").read_text())
    eventually(lambda: not Path(f"/proc/{pid}/cwd").exists(), what="what was left is killed")
