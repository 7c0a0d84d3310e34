"""kctl playbook lint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.text import counted, printable
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.errors import ExitCode, KctlError

if TYPE_CHECKING:
    from kctl.playbook.model import Problem
    from kctl.playbook.shipped import PlaybookFile

_WORD = re.compile(r"[\w.-]+")
_MAX_LINE = 160  # characters displayed of a line


def lint(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="PLAYBOOK…", help="Files, folders, or shipped playbooks.")],
) -> None:
    """Check playbooks and report every problem with its position.

    Exits 2 if there are errors, 0 if there are only warnings. Does not connect to a cluster. Positions are
    FILE:LINE:COLUMN, which editors and CI systems turn into links.

    # Check a shipped playbook
    kctl playbook lint topic-audit
    """
    from kctl.playbook.lint.problems import errors_of, problem_row
    from kctl.playbook.load import examine
    from kctl.playbook.shipped import find_all

    inv = invocation(ctx)
    playbooks = list(dict.fromkeys(playbook for name in names for playbook in find_all(name)))
    problems = [problem for playbook in playbooks for problem in examine(playbook)[1]]
    problems = list(dict.fromkeys(problems))  # several playbooks may include the same one
    if inv.output in output.FOR_PEOPLE:
        lines = _Lines(playbooks)
        for problem in problems:
            _show(problem, lines)
    else:
        inv.emit([problem_row(problem) for problem in problems], [])
    files = counted(len(playbooks), "playbook")
    errors = errors_of(problems)
    counts = [counted(len(errors), "problem")] if errors else []
    counts += [counted(len(problems) - len(errors), "warning")] if len(problems) > len(errors) else []
    output.note(f"{files}: {', '.join(counts) or 'no problems'}")
    if errors:
        raise typer.Exit(int(ExitCode.USAGE))


class _Lines:
    """The lines of the named playbooks. Lines of included files are not displayed: they may be any file."""

    def __init__(self, playbooks: Sequence[PlaybookFile]) -> None:
        self._paths = {each.file: each.path for each in playbooks}
        self._texts: dict[str, list[str]] = {}

    def of(self, problem: Problem) -> str | None:
        """Return the line of a problem; None if it is in another file or unreadable."""
        from kctl.base.input_file import read_input
        from kctl.playbook.read import MAX_BYTES

        path = self._paths.get(problem.file)
        if path is None or problem.message.startswith("the secret "):  # the line may contain it
            return None
        if problem.file not in self._texts:
            try:
                text = read_input(path, max_bytes=MAX_BYTES)[0].decode("utf-8-sig", "replace")
            except KctlError:
                text = ""
            self._texts[problem.file] = text.split("\n")
        lines = self._texts[problem.file]
        return lines[problem.line - 1].rstrip("\r") if problem.line <= len(lines) else None


def _show(problem: Problem, lines: _Lines) -> None:
    """Print the position and the message, the line with a marker below the word, and the hint."""
    severity = "warning: " if problem.warning else ""
    output.write_line(printable(f"{problem.position}: {severity}{problem.message}"))
    line = lines.of(problem)
    if line is not None and problem.column <= len(line) + 1:
        lead = line[: problem.column - 1]
        if len(lead) < _MAX_LINE:
            word = _WORD.match(line, problem.column - 1)
            mark = "^" * max(1, len(word.group()) if word else 1)
            output.write_line(f"    {printable(line[:_MAX_LINE])}")
            output.write_line(f"    {' ' * len(printable(lead))}{mark}"[: _MAX_LINE + 4])
    if problem.hint:
        output.write_line(printable(f"    {problem.hint}"))
