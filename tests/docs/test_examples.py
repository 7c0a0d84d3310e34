"""examples/: kctl reads every file, and the command lines in them are kctl's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer._click.exceptions import ClickException

from kctl.base.address import Address
from kctl.commands import app
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError
from kctl.model import Broker
from kctl.restart.hooks import ACTS, ZOOKEEPER_ACTS, read_hooks
from kctl.topics.spec import read_specs

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.is_file() and path.name != "README.md")
_COMMAND = re.compile(r"(?:^|[\s=:(`])(?:/\S+/bin/)?(kctl [a-z].*)")


def test_the_page_describes_every_file() -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert described == sorted(described, key=described.index)
    assert set(described) == {str(path.relative_to(EXAMPLES)) for path in FILES}


def test_the_playbooks_have_no_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "lint", str(EXAMPLES / "playbooks"), "-o", "json"]) == 0
    assert capsys.readouterr().out.strip() == "[]"


def test_the_topics_are_valid() -> None:
    assert [spec.name for spec in read_specs(EXAMPLES / "topics.yaml")] == [
        "orders",
        "orders.dead-letters",
        "customers",
    ]


def test_the_loads_make_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["capacity", "-f", str(EXAMPLES / "capacity.yaml"), "-o", "json"]) == 0
    assert '"broker_count"' in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((EXAMPLES / "hooks").iterdir()), ids=lambda path: path.name)
def test_the_hooks_have_a_command_for_every_act(path: Path) -> None:
    hooks = read_hooks(path)
    for act in ACTS:
        words = hooks.argv(act, Broker(id=7, host="kafka7.example", port=9092, rack=None))
        assert words[0] in {"ssh", "sudo"}
        assert any(word in {"kafka7.example", "kafka@7"} for word in words), words
        assert "{" not in "".join(words)
    if hooks.zookeeper is not None:
        for act in ZOOKEEPER_ACTS:
            assert "zk1.example" in hooks.zookeeper.argv(act, Address("zk1.example", 2181))


def scripts(value: Any, key: str = "") -> Iterator[str]:
    """Yield the shell scripts of a CI job: GitHub's `run`, GitLab's `script` and `before_script`."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from scripts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from scripts(inner, key)
    elif key in {"run", "script", "before_script"}:
        yield str(value)


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield each kctl command line of the examples and of their page, with the name of its file."""
    for path in [*FILES, ROOT / "docs" / "examples.md"]:
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "ci":
            text = "\n".join(scripts(yaml.safe_load(text))).replace("\\\n", " ")
        for line in text.splitlines():
            for match in _COMMAND.findall(line):
                yield path.name, re.split(r"`|\|\||&&|;|>", match)[0].strip()


def fault(line: str) -> str | None:
    """Return why kctl rejects a command line before it contacts anything; None if it does not."""
    first, *words = shlex.split(line)[1:]
    if first not in app.GROUPS:
        return f"no command {first}"
    command = app.load(first)
    if not words:  # prose that names a group
        return None
    while hasattr(command, "commands"):
        if not words or words[0] not in command.commands:
            return f"no command {words[:1]}"
        command = command.commands[words.pop(0)]
    try:
        command.make_context("kctl", words, obj=Invocation())
    except KctlError as exc:
        return exc.message
    except ClickException as exc:
        return str(exc.format_message())
    return None


def test_every_job_has_its_script() -> None:
    for path in (EXAMPLES / "ci").iterdir():
        lines = [line for name, line in command_lines() if name == path.name]
        assert any("topic apply" in line for line in lines), path
        assert any("playbook run" in line for line in lines), path
        assert any("context add" in line for line in lines), path


@pytest.mark.usefixtures("one_command_tree")
@pytest.mark.parametrize(("name", "line"), sorted(set(command_lines())))
def test_every_command_line_is_valid(name: str, line: str) -> None:
    assert fault(line) is None, name


@pytest.mark.usefixtures("one_command_tree")
def test_invalid_command_lines_are_noticed() -> None:
    assert fault("kctl topics list") == "no command topics"
    assert fault("kctl topic apply --no-such-option") is not None


def test_the_service_has_absolute_paths() -> None:
    text = (EXAMPLES / "systemd" / "kctl-snapshots.service").read_text(encoding="utf-8")
    assert re.findall(r"^\[(\w+)\]$", text, re.MULTILINE) == ["Unit", "Service", "Install"]
    assert re.search(r"^ExecStart=/\S+/kctl history snapshot ", text, re.MULTILINE)
