"""Check included playbooks: they exist, accept the parameters, and do not include themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kctl.base.suggestions import did_you_mean
from kctl.errors import InvalidFile, KctlError, Reason, Refused
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import MAX_INCLUDE_DEPTH, VERSION, Playbook, Problem, Step
from kctl.playbook.operations import Operations
from kctl.playbook.parameters import as_typed, plain
from kctl.playbook.read import NO_FORMAT, read_all
from kctl.playbook.shipped import PlaybookFile, find, text_of


class Included:
    """The included playbooks of one lint. Each file is read and linted once, however often it is included.

    lint: kctl.playbook.lint.lint.lint.
    """

    def __init__(self, definitions: Operations, lint: Callable[..., list[Problem]]) -> None:
        self._definitions = definitions
        self._lint = lint
        self._included: dict[str, tuple[Playbook | None, list[Problem]]] = {}

    def check(self, problems: Problems, playbook: Playbook, step: Step, trail: tuple[str, ...]) -> list[Problem]:
        """Report problems of the step. Return the problems of the playbook that it includes.

        trail: the including playbooks, outermost first.
        """
        name = step.arguments.get("playbook")
        if not isinstance(name, str) or is_expression(name):
            return []
        try:
            playbook_file = find(name, beside=playbook.source)
            key = _key(playbook_file.path)
            here = (*trail, _key(playbook.source))
            if key in here:
                raise Refused(
                    f"{playbook_file.file} includes itself",
                    hint="to repeat a step, use `loop`",
                    reason=Reason.IMPOSSIBLE,
                )
            if len(here) > MAX_INCLUDE_DEPTH:
                raise Refused(
                    f"includes are nested deeper than {MAX_INCLUDE_DEPTH} levels", reason=Reason.LIMIT_EXCEEDED
                )
            is_linted = key in self._included
            if not is_linted:
                self._included[key] = self._read_one(playbook_file)
        except KctlError as exc:
            problems.value(step.arguments, "playbook", exc.message, exc.hint)
            return []
        included, own_problems = self._included[key]
        if included is not None:
            _parameters(problems, step, included)
        if is_linted or included is None:
            return [] if is_linted else own_problems
        return [*own_problems, *self._lint(included, definitions=self._definitions, trail=here, cache=self)]

    def _read_one(self, playbook_file: PlaybookFile) -> tuple[Playbook | None, list[Problem]]:
        """Read a playbook. Other files, which may hold passwords, are rejected without details."""
        parsed = read_all(
            text_of(playbook_file), source=playbook_file.path, file=playbook_file.file, definitions=self._definitions
        )
        if any(problem.message == NO_FORMAT for problem in parsed[1]):
            raise Refused(
                f"{playbook_file.file} is not a playbook",
                hint=f"a playbook starts with playbook: {VERSION}",
                reason=Reason.WRONG_TYPE,
            )
        return parsed


def _key(path: Path | None) -> str:
    return str(path.resolve()) if path is not None else ""


def _parameters(problems: Problems, step: Step, included: Playbook) -> None:
    arguments: Any = step.arguments.get("parameters", {})
    if not isinstance(arguments, dict):
        return  # already reported, or an expression
    for name in arguments:
        if problems.full:
            return
        parameter = included.parameter(str(name))
        if parameter is None:
            names = [each.name for each in included.parameters]
            hint = did_you_mean(str(name), names) or (f"valid parameters: {', '.join(names)}" if names else None)
            problems.key(arguments, name, f"{included.name} has no parameter {name}", hint)
        elif not _has_expressions(arguments[name]):
            try:
                as_typed(parameter, plain(arguments[name]))
            except InvalidFile as exc:
                problems.value(arguments, name, exc.message, exc.hint)
    for parameter in included.parameters:
        if parameter.required and parameter.name not in arguments:
            message = f"{included.name} requires the parameter {parameter.name}"
            problems.key(step.body, step.kind, message, parameter.description or None)


def _has_expressions(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_expressions, value.values()))
    if isinstance(value, list):
        return any(map(_has_expressions, value))
    return is_expression(value)
