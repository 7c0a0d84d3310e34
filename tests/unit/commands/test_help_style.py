"""Rules for the help of all commands, as a person sees it at 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from command_tree import every_command
from kctl.commands import app
from kctl.commands.app import GROUPS, load
from kctl.commands.terminal.common_options import help_record

_WIDTH = 78  # of the help on a terminal with 80 columns
_INDENT = 6  # before, between and after the columns of a list


def _groups(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    yield path, group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _groups(f"{path} {name}", command)


def _all_groups() -> list[tuple[str, Any]]:
    loaded = [(name, load(name)) for name in GROUPS]
    return [each for name, group in loaded if hasattr(group, "commands") for each in _groups(name, group)]


@pytest.mark.parametrize(("path", "group"), _all_groups())
def test_a_command_list_is_not_cut_at_80_columns(path: str, group: Any) -> None:
    limit = _WIDTH - _INDENT - max(map(len, group.commands))
    cut = {
        name: text
        for name, command in group.commands.items()
        if len(text := command.get_short_help_str(1000)) > limit or text != command.get_short_help_str(limit)
    }
    assert cut == {}, f"{path}: at most {limit} characters"


def test_the_root_lists_each_command_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, (_, text) in GROUPS.items():
        assert f"  {name:<11}  {text}" in lines
        assert len(f"  {name:<11}  {text}") <= _WIDTH
    titles = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [*app.SECTIONS, "Options", "Global options"]


def test_a_command_refers_to_the_global_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["topic", "list", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.endswith("Global options (-o, --context, --bootstrap-server, --yes …): see kctl --help\n")
    assert "--confirm-cluster" not in text


def test_formats_of_its_own_stand_in_the_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["topic", "offsets", "--help"]) == 0
    assert "-o, --output FORMAT" in capsys.readouterr().out


def test_the_exit_codes_are_in_the_help_of_kctl(capsys: pytest.CaptureFixture[str]) -> None:
    from kctl.errors import ExitCode

    assert app.main(["--help"]) == 0
    codes = re.findall(r"^    (\d+) +\w", capsys.readouterr().out, re.MULTILINE)
    assert [int(code) for code in codes] == [int(code) for code in ExitCode]


def test_defaults_are_stated_in_one_form() -> None:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    for path, command in every_command():
        for param in command.params:
            record = help_record(param, context)
            if record is None:
                continue
            assert "[default" not in record[1], f"kctl {path} {param.opts[0]}"
            if param.param_type_name == "option" and isinstance(param.default, str) and param.default:
                assert "default:" in record[1], f"kctl {path} {param.opts[0]}"


def test_lines_are_not_broken_at_hyphens() -> None:
    """Options and commands can be copied from the help."""
    for path, command in every_command():
        context = typer.Context(command, info_name=path, parent=typer.Context(command, info_name="kctl"))
        text = command.get_help(context)
        assert not re.search(r"\w-$", text, re.MULTILINE), f"kctl {path}"
        assert "\N{NON-BREAKING HYPHEN}" not in text, f"kctl {path}"
