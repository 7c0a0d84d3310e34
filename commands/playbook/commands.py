"""`kctl playbook`: list, show, check and run playbooks. Each larger command has its own module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, formats_are, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.playbook.overview import PlaybookDetails

_DETAILS = re.compile(r"\. (?=[A-Z`])|: |, e\.g\. ")  # end the main part of a description

app = CommandGroup()
app.command_of("lint", "kctl.commands.playbook.lint")
app.command_of("run", "kctl.commands.playbook.run")
app.command_of("resume", "kctl.commands.playbook.resume")
app.command_of("status", "kctl.commands.playbook.status")


@app.command("list")
def list_(
    ctx: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Folder with playbooks (default: shipped playbooks).")
    ] = None,
) -> None:
    """List playbooks and whether they change anything.

    # List the shipped playbooks
    kctl playbook list
    """
    from kctl.playbook.lint.problems import errors_of
    from kctl.playbook.load import examine
    from kctl.playbook.overview import summary_of
    from kctl.playbook.shipped import in_folder, shipped

    rows = []
    for playbook_file in shipped() if folder is None else in_folder(folder):
        playbook, problems = examine(playbook_file)
        rows.append(summary_of(playbook_file, playbook, len(errors_of(problems))))
    columns = [
        Column("name", "PLAYBOOK", name=True),
        Column("changes"),
        Column("steps", align="right", wide=True),
        Column("problems", align="right", wide=True, style=lambda row: "red" if row["problems"] else None),
        Column("parameters", wide=True),
        Column("summary", "DESCRIPTION", words=True),
        Column("file", wide=True),
    ]
    lines = [{**row, "summary": _summary(row)} for row in jsonable(rows)]
    invocation(ctx).emit(rows, lambda: [Table(columns, lines, empty="no playbooks")])


def _summary(row: Mapping[str, Any]) -> str:
    """Return the problems, or the first sentence of the description, without its details and examples."""
    if row["problems"]:
        return f"{counted(row['problems'], 'problem')}; run `kctl playbook lint`"
    return _DETAILS.split(" ".join(row["description"].split()), maxsplit=1)[0].rstrip(".")


@app.command()
def show(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PLAYBOOK", help="Name of a shipped playbook, or a file.")],
) -> None:
    """Show parameters and steps; mark the steps that change something.

    # Show a shipped playbook
    kctl playbook show topic-audit
    """
    from kctl.playbook.load import load_playbook
    from kctl.playbook.overview import details_of
    from kctl.playbook.shipped import find

    playbook_file = find(name)
    result = details_of(playbook_file, load_playbook(name))
    invocation(ctx).emit(result, lambda: _tables(result), lambda: result.steps)


def _tables(details: PlaybookDetails) -> list[Table]:
    parameters = [
        Column("name", "PARAMETER", name=True),
        Column("type"),
        Column("default_text", "DEFAULT"),
        Column("description"),
    ]
    steps = [
        Column("step", name=True),
        Column("operation"),
        Column("changes"),
        Column("when"),
        Column("line", align="right", wide=True),
        Column("register", wide=True),
        Column("name", "DOES"),
    ]
    rows = [{**jsonable(each), "default_text": _default(each)} for each in details.parameters]
    tables = [Table(parameters, rows, title=f"{details.name}: {details.description}".rstrip(": "))]
    for part, title in (("steps", None), ("on_failure", "on failure"), ("finally", "finally (always)")):
        part_steps = [each for each in details.steps if each.part == part]
        if part_steps or part == "steps":
            first = None if rows or part != "steps" else tables.pop().title
            tables.append(Table(steps, jsonable(part_steps), title=title or first))
    return tables


def _default(parameter: object) -> str | None:
    """Format a parameter's default for display."""
    import json

    row = jsonable(parameter)
    if row["secret"]:
        return "secret"
    if row["required"]:
        return "required"
    return row["default"] if isinstance(row["default"], (str, type(None))) else json.dumps(row["default"])


@app.command("schema")
@formats_are("json, or yaml.")
def schema_(ctx: typer.Context) -> None:
    """Print the JSON Schema of playbooks, for editors.

    To use it, add this line to a playbook: # yaml-language-server: $schema=playbook.schema.json

    # Save the schema for an editor
    kctl playbook schema > playbook.schema.json
    """
    from kctl.playbook import schema

    inv = invocation(ctx)
    if inv.output not in {None, "json", "yaml"}:
        raise UsageError(f"-o {inv.output} is not a format of kctl playbook schema", hint="use -o json or -o yaml")
    if inv.output == "yaml":
        inv.emit(schema.schema(), [])
    else:
        output.write_text(schema.text().rstrip("\n"))
