"""Every command that can change something reports whether it did: playbooks read that, and nothing guesses it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from kctl.base.outcomes import Effect, ItemResult, any_changed
from kctl.commands.terminal import operations
from kctl.commands.terminal.invocation import Invocation
from kctl.groups.remove_members import RemovedMember

Place = tuple[str, str]  # a function: module and name
CHANGING = sorted(name for name in operations.names() if operations.find(name).changes)


class _Module:
    """The functions of a module of the commands, and where the names come from that it imports from other modules."""

    def __init__(self, name: str) -> None:
        self.name = name
        tree = ast.parse(Path(str(import_module(name).__file__)).read_text(encoding="utf-8"))
        self.functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
        self.imported: dict[str, Place] = {}
        self.modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kctl.commands"):
                for alias in node.names:
                    known = alias.asname or alias.name
                    self.imported[known] = (str(node.module), alias.name)
                    self.modules[known] = f"{node.module}.{alias.name}"

    def used(self, function: ast.FunctionDef) -> Iterator[Place]:
        """Functions of the commands that the function names."""
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in self.functions:
                yield self.name, node.id
            elif isinstance(node, ast.Name) and node.id in self.imported:
                yield self.imported[node.id]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.modules:
                yield self.modules[node.value.id], node.attr


_module = cache(_Module)


def _reached(name: str) -> Iterator[tuple[Place, ast.FunctionDef]]:
    """The function of a command, and all functions of the commands that it can reach."""
    _, command = operations._command(name)
    function = inspect.unwrap(command.callback)
    waiting, met = [(function.__module__, function.__name__)], set()
    while waiting:
        place = waiting.pop()
        if place in met or place[0].startswith("kctl.commands.terminal"):
            continue
        met.add(place)
        try:
            module = _module(place[0])
        except ModuleNotFoundError:  # a class or a value, not a module
            continue
        found = module.functions.get(place[1])
        if found is not None:
            yield place, found
            waiting.extend(module.used(found))


def _calls(function: ast.FunctionDef, method: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id in {"output", "capacity_tables"})
    ]


def _reports(call: ast.Call) -> bool:
    return any(keyword.arg == "changed" for keyword in call.keywords)


@pytest.mark.parametrize("name", CHANGING)
def test_a_command_that_can_change_something_reports_it(name: str) -> None:
    """Wherever it emits a result it says `changed=`, or calls report_change beside it."""
    reported, silent = False, []
    for place, function in _reached(name):
        emitted = _calls(function, "emit")
        explicit = bool(_calls(function, "report_change"))
        reported |= explicit or any(map(_reports, emitted))
        silent += [place for call in emitted if not explicit and not _reports(call)]
    assert reported, f"{name} never reports whether it changed something: emit(…, changed=…)"
    assert operations.find(name).changes_with or not silent, silent


def test_an_argument_without_which_nothing_changes_is_one_of_the_command() -> None:
    for name, argument in operations.CHANGES_WITH.items():
        operation = operations.find(name.replace(" ", ".").replace("-", "_"))
        assert operation.argument(argument) is not None
        assert operation.changes


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("capacity", {"from_cluster": True}, False),
        ("capacity", {"measure": False}, False),
        ("capacity", {"measure": "{{ measure }}"}, True),
        ("topic.reassign.plan", {}, False),
        ("topic.reassign.plan", {"out": "p.json"}, True),
        ("consume", {"topics": ["t"]}, False),
        ("consume", {"topics": ["t"], "group": "g"}, True),
        ("topic.create", {"names": ["a"]}, True),
        ("doctor", {}, False),
    ],
)
def test_what_is_known_before(operation: str, arguments: dict[str, object], expected: bool) -> None:
    assert operations.find(operation).can_change(arguments) is expected


def test_what_is_reported_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    inv = Invocation(output="json")
    assert inv.changed is None
    inv.emit([], [], changed=False)
    assert inv.changed is False
    inv.report_change(changed=True)
    inv.report_change(changed=False)
    assert inv.changed is True


@pytest.mark.parametrize("result", ItemResult)
def test_results_say_whether_something_changed(result: ItemResult) -> None:
    assert result.planned is (result.effect is Effect.PLANNED) is result.value.startswith("would ")
    assert result.changed is (result.effect is not Effect.NONE)
    assert f"{result}" == result.value == str(result)


def test_rows_change_something_when_one_does() -> None:
    row = RemovedMember("g", "m", None, "client", "host", 1, ItemResult.WOULD_REMOVE)
    assert any_changed([row])
    assert not any_changed([])


@pytest.mark.parametrize(
    "result",
    ["unchanged", "exists", "already there", "not there", "absent", "skipped", "failed", "left alone", "runs",
     "runs already", "did not run"],
)  # fmt: skip
def test_what_counts_as_no_change(result: str) -> None:
    assert [each for each in ItemResult if not each.changed and each == result]
