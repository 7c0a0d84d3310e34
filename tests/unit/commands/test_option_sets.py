"""Options that are declared as the fields of a dataclass."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from kctl.commands.terminal.option_sets import takes_options


@dataclass(frozen=True)
class _Options:
    text: Annotated[str, typer.Option(help="A text.")]
    items: Annotated[list[str] | None, typer.Option("--item", help="Repeatable.")] = None
    flag: Annotated[bool, typer.Option("--flag")] = False


@takes_options(_Options)
def _command(ctx: typer.Context, name: Annotated[str, typer.Argument()], options: _Options, more: int = 1) -> None:
    """Do nothing."""
    typer.echo(json.dumps([ctx.info_name is not None, name, asdict(options), more]))


@pytest.mark.parametrize(
    ("args", "name", "options", "more"),
    [
        (["a", "--text", "x"], "a", {"text": "x", "items": None, "flag": False}, 1),
        (["--text", "x", "a", "--more", "2", "--flag"], "a", {"text": "x", "items": None, "flag": True}, 2),
        (["--item", "1", "--text", "", "--item", "2", "a"], "a", {"text": "", "items": ["1", "2"], "flag": False}, 1),
    ],
)
def test_beside_an_argument_and_an_option(args: list[str], name: str, options: dict[str, object], more: int) -> None:
    app = typer.Typer()
    app.command()(_command)
    result = CliRunner().invoke(app, args)
    assert (result.exit_code, json.loads(result.stdout)) == (0, [True, name, options, more])


def test_a_field_without_a_default_is_required() -> None:
    app = typer.Typer()
    app.command()(_command)
    assert CliRunner().invoke(app, ["a"]).exit_code == 2
