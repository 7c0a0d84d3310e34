"""A protected context is asked about by every command that changes its cluster."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import kctl
from command_tree import READING, every_command
from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import NotConfirmed, UsageError
from protected_cases import CLUSTER, ELSEWHERE, SECURE

COMMANDS = (Path(kctl.__file__).parent / "commands").resolve()
# Questions about files of this machine, kctl's own config, or those that a playbook has (its run has asked before).
WITHOUT_A_CLUSTER = {
    "terminal/out_file.py", "runtime.py", "segment/verify.py", "context/commands.py", "playbook/run.py",
}  # fmt: skip


def test_each_command_that_changes_something_has_a_case() -> None:
    changing = {path for path, _ in every_command()} - READING
    assert changing == set(CLUSTER) | set(SECURE) | set(ELSEWHERE)


def test_each_question_about_a_cluster_knows_which_one() -> None:
    """`inv.confirm` without a target never asks for a name."""
    asked, without = 0, set()
    for file in sorted(COMMANDS.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "confirm":
                asked += 1
                if file.name != "invocation.py" and not any(word.arg == "target" for word in call.keywords):
                    without.add(str(file.relative_to(COMMANDS)))
    assert asked > 20
    assert without == WITHOUT_A_CLUSTER


@pytest.mark.parametrize(
    ("protected", "given", "error"),
    [(True, None, NotConfirmed), (True, "other", UsageError), (True, "here", None), (False, None, None)],
)
def test_a_cluster_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protected: bool, given: str | None, error: type[Exception] | None
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps({"contexts": {"here": {"bootstrap_servers": ["h:1"], "protected": protected}}}))
    monkeypatch.setenv("KCTL_CONFIG", str(file))
    inv = Invocation(yes=True, confirm_cluster=given)
    if error is None:
        confirm_interruption(inv, "here", "stop it?")
        return
    with pytest.raises(error):
        confirm_interruption(inv, "here", "stop it?")
