"""What holds for every command: an example, the formats, and --dry-run where something is changed."""

from __future__ import annotations

import re

from command_tree import READING, every_command, examples_of
from kctl.commands.terminal.invocation import KctlCommand
from kctl.commands.terminal.operations import WITHOUT_DRY_RUN
from kctl.commands.terminal.output import FORMATS


def test_every_command_has_an_example_with_a_comment() -> None:
    for path, command in every_command():
        examples = examples_of(command)
        assert examples, path
        for comment, line in examples:
            assert re.match(r"# [A-Z].*[^.]$", comment), path
            assert len(comment) <= 76, path
            assert f"kctl {path}" in line, path


def test_every_command_takes_every_format() -> None:
    assert FORMATS == ("table", "wide", "json", "yaml", "csv")
    for path, command in every_command():
        assert isinstance(command, KctlCommand), path  # which refuses what is no format before it does anything
        assert any("--output" in param.opts for param in command.params), path


def test_what_changes_something_has_a_dry_run() -> None:
    without = {
        path for path, command in every_command() if not any("--dry-run" in param.opts for param in command.params)
    }
    assert without == READING | set(WITHOUT_DRY_RUN)
