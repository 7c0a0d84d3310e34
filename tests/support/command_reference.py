"""docs/reference.md from the command tree. `python tests/support/command_reference.py` regenerates it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from kctl.commands.app import GROUPS, load
from kctl.commands.terminal.common_options import common_options, help_record
from kctl.commands.terminal.examples import split_examples, wrap_command

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference.md"

HEAD = """# Command reference

Generated from the program by `python tests/support/command_reference.py`; a test fails if the page is stale.
"""


def _option_rows(params: list[Any]) -> Iterator[str]:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    for param in params:
        record = help_record(param, context)
        if record:
            name, text = (part.replace("|", "\\|").strip() for part in record)
            yield f"| `{name}` | {text} |"


def _own(command: Any) -> list[Any]:
    common = {tuple(option.opts) for option in common_options()}
    return [p for p in command.params if tuple(p.opts) not in common]


def _command(path: str, command: Any) -> Iterator[str]:
    yield f"### {path}\n"
    text, examples = split_examples(command.help)
    yield text + "\n"
    blocks = ["\n".join((each.comment, *wrap_command(each.command, 110))) for each in examples]
    yield "```text\n" + "\n\n".join(blocks) + "\n```\n"
    arguments = " ".join(p.make_metavar(None) for p in command.params if p.param_type_name == "argument")
    yield f"Usage: `{path} [OPTIONS] {arguments}".rstrip() + "`\n"
    rows = list(_option_rows(_own(command)))
    if rows:
        yield from ("| option | meaning |", "| --- | --- |", *rows, "")


def _commands(path: str, group: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        inner = f"{path} {name}"
        yield from _commands(inner, command) if hasattr(command, "commands") else _command(inner, command)


def render() -> str:
    """Return the whole reference as Markdown."""
    lines = [HEAD, "## Global options\n", "Every command accepts these options, before or after its name.\n"]
    lines += ["| option | meaning |", "| --- | --- |", *_option_rows(list(common_options())), ""]
    for name, (_, text) in GROUPS.items():
        lines += [f"## kctl {name}\n"]
        group = load(name)
        if not hasattr(group, "commands"):
            lines += _command(f"kctl {name}", group)
            continue
        lines += [text, ""]
        lines += _commands(f"kctl {name}", group)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
