"""The examples in the help of a command: a comment line, then a command line that a shell reads."""

from __future__ import annotations

import re
import shlex

import pytest

from command_tree import every_command, examples_of
from kctl.commands import app
from kctl.commands.terminal.examples import Example, split_examples, wrap_command

DOCSTRING = """Show lag.

    More text; # is no comment within a paragraph.

    # Show all groups
    kctl lag

    # Show one group
    kctl lag billing --by topic
    --max-lag 1000
    """


def test_examples_are_paragraphs_that_begin_with_a_comment() -> None:
    description, examples = split_examples(DOCSTRING)
    assert description == "Show lag.\n\nMore text; # is no comment within a paragraph."
    assert examples == [
        Example("# Show all groups", "kctl lag"),
        Example("# Show one group", "kctl lag billing --by topic --max-lag 1000"),
    ]
    assert split_examples(None) == ("", [])


def test_a_wrapped_command_keeps_an_option_with_its_value() -> None:
    assert list(wrap_command("kctl x a --long-option value --flag 'two words' last", 29)) == [
        "kctl x a \\",
        "  --long-option value \\",
        "  --flag 'two words' last",
    ]


@pytest.mark.parametrize("width", [40, 76, 110])
def test_a_wrapped_command_means_the_same(width: int) -> None:
    for path, command in every_command():
        for example in examples_of(command):
            wrapped = " ".join(line.removesuffix("\\") for line in wrap_command(example.command, width))
            assert shlex.split(wrapped) == shlex.split(example.command), path


def test_help_shows_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["context", "add", "--help"]) == 0
    text = capsys.readouterr().out
    assert "\nExamples:\n  # Add a protected cluster with TLS and a SCRAM login\n  kctl context add prod " in text
    assert "  kctl context add prod --bootstrap-server kafka1:9093 \\\n    --security-protocol SASL_SSL" in text


@pytest.mark.parametrize("path", ["capacity", "history retention", "topic offsets", "segment dump"])
def test_help_does_not_break_lines_at_hyphens(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert app.main([*path.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert re.findall(r"\S*\w-$", text, re.MULTILINE) == []
    assert "\u2011" not in text
