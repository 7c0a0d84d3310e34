"""Every console block in docs/ prints what stands there: in an empty HOME, without a cluster, on files made for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import incident_files
from kctl_testing import SCRIPT, Kctl
from transcripts import blocks, commands, run

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [d for d in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if blocks(d.read_text())]


def test_there_are_transcripts() -> None:
    assert ROOT / "docs" / "segments.md" in DOCUMENTS


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_print_what_stands_there(document: Path, tmp_path: Path) -> None:
    incident_files.make(tmp_path / "files")
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**Kctl(tmp_path).environment, "PATH": path}
    text = document.read_text()
    assert run(text, tmp_path / "files", environment) == text, f"run: python tests/support/transcripts.py {document}"


def test_commands_may_take_several_lines() -> None:
    assert commands("$ kctl a \\\n  b\nprinted\n$ kctl c\n") == ["kctl a \\\n  b", "kctl c"]


def test_other_output_is_noticed(tmp_path: Path) -> None:
    text = "```console\n$ echo one\none\n$ false\n$ echo $?\n1\n$ echo two >&2\ntwo\n```\n"
    environment = {"PATH": os.environ["PATH"]}
    assert run(text, tmp_path, environment) == text
    assert run(text.replace("two\n```", "three\n```"), tmp_path, environment) == text
    assert run("```console\nno command\n```\n", tmp_path, environment) == "```console\n```\n"
