"""Collect the problems of a playbook with their positions, to report all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.base.suggestions import did_you_mean
from kctl.base.text import counted
from kctl.errors import InvalidFile
from kctl.playbook.model import Position, Problem

_INLINE = 3  # in the message; kctl.commands.terminal.output prints the others on separate lines
MAX_PROBLEMS = 200  # of one file


class Problems:
    """The problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: list[Problem] = []

    @property
    def full(self) -> bool:
        """Return True if the limit of problems is reached."""
        return len(self.rows) >= MAX_PROBLEMS

    def at(self, line: int, column: int, message: str, hint: str | None = None, *, warning: bool = False) -> None:
        """Add a problem, unless the same one exists at this position."""
        problem = Problem(self.file, line, column, message, hint, warning)
        if not self.full and problem not in self.rows:
            self.rows.append(problem)

    def key(self, mapping: Any, key: object, message: str, hint: str | None = None, *, warning: bool = False) -> None:
        """Add a problem at a key, or at the start of the mapping if the key does not exist."""
        place = mapping.keys_at.get(key, mapping.place) if isinstance(mapping, YamlMap) else None
        self.at(place.line if place else 1, place.column if place else 1, message, hint, warning=warning)

    def value(
        self, holder: Any, key: Any, message: str, hint: str | None = None, offset: int | None = None, *,
        warning: bool = False,
    ) -> None:  # fmt: skip
        """Add a problem at the value of a key or item. offset: of the character in the value's text."""
        if not isinstance(holder, (YamlMap, YamlList)):
            self.at(1, 1, message, hint, warning=warning)
            return
        try:
            place = holder.values_at[key]
        except (KeyError, IndexError):
            place = holder.place
        text = holder[key] if isinstance(holder, YamlList) or key in holder else None
        line, column = place.line, place.column
        if isinstance(text, str) and offset is not None:
            line, column = place.at(text, offset)
        self.at(line, column, message, hint, warning=warning)

    def unknown_keys(self, mapping: YamlMap, valid_keys: Iterable[str], what: str) -> None:
        """Add a problem for each unknown key."""
        names = list(valid_keys)
        for key in mapping:
            if self.full:
                return
            if key not in names:
                hint = did_you_mean(str(key), names) or f"valid keys: {', '.join(names)}"
                self.key(mapping, key, f"{what} has no key {key}", hint)


def position(mapping: Any, key: object = None) -> Position:
    """Return the position of a key, or of the mapping itself."""
    if not isinstance(mapping, YamlMap):
        return Position("", 1, 1)
    place = mapping.keys_at.get(key, mapping.place)
    return Position(mapping.source, place.line, place.column)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort problems by file, line and column."""
    return sorted(problems, key=lambda each: (each.file, each.line, each.column, each.message))


def problem_row(problem: Problem) -> dict[str, Any]:
    """Return a problem as a row of the JSON output."""
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "hint": problem.hint,
        "severity": "warning" if problem.warning else "error",
    }


def errors_of(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems that prevent a run."""
    return [each for each in problems if not each.warning]


def as_error(problems: Sequence[Problem], file: str) -> InvalidFile:
    """Return an error for all problems: the message holds the first few, details["problems"] all of them."""
    rows: list[Mapping[str, Any]] = [
        {"subject": str(each.position), "reason": _line(each), **problem_row(each)} for each in problems
    ]
    if len(problems) == 1:
        only = problems[0]
        return InvalidFile(f"{only.position}: {only.message}", hint=only.hint, details={"problems": rows})
    lines = [f"{row['subject']}: {row['reason']}" for row in rows]
    inline = "; ".join(lines[:_INLINE])
    if len(lines) > _INLINE:
        inline += f"; and {len(lines) - _INLINE:,} more"
    return InvalidFile(f"{file} has {counted(len(problems), 'problem')}: {inline}", details={"problems": rows})


def _line(problem: Problem) -> str:
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message
