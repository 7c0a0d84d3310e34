"""docs/playbooks.md: its reference is made from the program, its playbook is one, its lint is what lint prints."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kctl.commands import app
from kctl.playbook.load import examine_text
from kctl_testing import SCRIPT, Kctl, TestCluster
from playbook_page import KIND, playbooks, printed, settled
from playbook_reference import TARGET, page
from transcripts import blocks

TEXT = TARGET.read_text(encoding="utf-8")


def _block(mark: str, language: str) -> str:
    found = re.search(rf"{re.escape(mark)}\n```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, mark
    return found[1]


def test_the_reference_is_not_stale() -> None:
    assert page(TEXT) == TEXT, "run: python tests/support/playbook_reference.py"


def test_the_example_is_a_playbook() -> None:
    text = re.search(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert text is not None
    playbook, problems = examine_text(text[1], source=None, file="example.yaml")
    assert problems == []
    assert playbook is not None


def test_runs_print_what_the_page_says(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> None:
    assert set(playbooks(TEXT)) == {"add-topic.yaml", "grow.yaml"}
    assert len(blocks(TEXT, KIND)) == 3
    environment = {**kctl.environment, "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"}
    now = printed(TEXT, cluster.bootstrap, tmp_path, environment)
    assert settled(now) == settled(TEXT), "run: python tests/support/playbook_page.py HOST:PORT"


def test_lint_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(_block("<!-- lint: bad.yaml -->", "yaml"))
    monkeypatch.chdir(tmp_path)
    assert app.main(["playbook", "lint", "bad.yaml"]) == 2
    assert capsys.readouterr().out == _block("<!-- lint: output -->", "text")
