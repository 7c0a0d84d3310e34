"""kctl playbook lint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands import output
from kctl.commands.invocation import invocation
from kctl.errors import ExitCode
from kctl.text import counted, printable

if TYPE_CHECKING:
    from kctl.playbook.model import Problem

_WORD = re.compile(r"[\w.-]+")
_WIDEST = 160  # characters of a line that is shown


def lint(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="PLAYBOOK…", help="Files, or names of shipped ones.")],
) -> None:
    """Check playbooks: everything that is wrong, where, and what was probably meant. Exits 2 when something is.

    Nothing is contacted. The places are FILE:LINE:COLUMN, which editors and CI systems turn into links.

    Example: kctl playbook lint topic-audit
    """
    from kctl.playbook.problems import told

    inv = invocation(ctx)
    found = [problem for name in dict.fromkeys(names) for problem in _problems(name)]
    found = list(dict.fromkeys(found))  # two may include the same third
    if inv.output in output.FOR_PEOPLE:
        for problem in found:
            _show(problem)
    else:
        inv.emit([told(problem) for problem in found], [])
    files = counted(len(set(names)), "playbook")
    output.note(f"{files}: {counted(len(found), 'problem') if found else 'nothing is wrong'}")
    if found:
        raise typer.Exit(int(ExitCode.USAGE))


def _problems(name: str) -> Sequence[Problem]:
    from kctl.playbook.load import examine
    from kctl.playbook.shipped import find

    return examine(find(name))[1]


def _show(problem: Problem) -> None:
    """The place and the problem, the line with a mark below the word, and what was meant."""
    output.write_line(printable(f"{problem.position}: {problem.message}"))
    line = None if problem.message.startswith("the secret ") else _line(problem)  # which may have it
    if line is not None and problem.column <= len(line) + 1:
        lead = line[: problem.column - 1]
        if len(lead) < _WIDEST:
            word = _WORD.match(line, problem.column - 1)
            mark = "^" * max(1, len(word.group()) if word else 1)
            output.write_line(f"    {printable(line[:_WIDEST])}")
            output.write_line(f"    {' ' * len(printable(lead))}{mark}"[: _WIDEST + 4])
    if problem.hint:
        output.write_line(printable(f"    {problem.hint}"))


def _line(problem: Problem) -> str | None:
    """The line of the file; None when it cannot be read any more."""
    from kctl.playbook.shipped import folder

    for path in (Path(problem.file), folder() / problem.file):
        try:
            if path.is_file():
                return path.read_text(encoding="utf-8-sig", errors="replace").split("\n")[problem.line - 1].rstrip("\r")
        except (OSError, IndexError):
            continue
    return None
