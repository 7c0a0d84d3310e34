"""Describe a playbook: its parameters, its steps, and which steps change something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.errors import KctlError
from kctl.playbook.model import MAX_INCLUDE_DEPTH, Playbook, Step
from kctl.playbook.operations import Operations, operations, step_can_change
from kctl.playbook.shipped import PlaybookFile, find, text_of


@dataclass(frozen=True, slots=True)
class PlaybookSummary:
    """A row of the list.

    changes: whether a step changes something; None: the playbook is unreadable. problems: number of problems that lint
    reports.
    """

    name: str
    description: str
    parameters: list[str]
    steps: int
    changes: bool | None
    problems: int
    shipped: bool
    file: str


@dataclass(frozen=True, slots=True)
class ParameterDetails:
    name: str
    type: str
    required: bool
    default: Any
    secret: bool
    description: str
    choices: list[Any]
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True)
class StepDetails:
    """A step.

    step: its id. part: "steps", "on_failure" or "finally". operation: or the kind of a built-in step; for an include
    with the name of the included playbook. changes: it may change something. dry_run: it supports dry runs.
    """

    step: str
    name: str
    part: str
    operation: str
    changes: bool
    dry_run: bool
    when: str | bool | None
    loop: bool
    register: str | None
    on_error: str
    line: int


@dataclass(frozen=True, slots=True)
class PlaybookDetails:
    name: str
    description: str
    file: str
    shipped: bool
    digest: str
    changes: bool
    parameters: list[ParameterDetails]
    steps: list[StepDetails]


def summary_of(
    playbook_file: PlaybookFile, playbook: Playbook | None, problems: int, definitions: Operations | None = None
) -> PlaybookSummary:
    """Return a row for a playbook. playbook: None if it is unreadable."""
    if playbook is None:
        return PlaybookSummary(
            playbook_file.path.stem, "", [], 0, None, problems, playbook_file.shipped, playbook_file.file
        )
    return PlaybookSummary(
        name=playbook.name,
        description=playbook.description,
        parameters=[each.name for each in playbook.parameters],
        steps=len(playbook.all_steps()),
        changes=any(each.changes for each in _steps(playbook, definitions or operations())),
        problems=problems,
        shipped=playbook_file.shipped,
        file=playbook_file.file,
    )


def details_of(
    playbook_file: PlaybookFile, playbook: Playbook, definitions: Operations | None = None
) -> PlaybookDetails:
    """Return all details of a playbook."""
    steps = list(_steps(playbook, definitions or operations()))
    return PlaybookDetails(
        name=playbook.name,
        description=playbook.description,
        file=playbook_file.file,
        shipped=playbook_file.shipped,
        digest=playbook.digest,
        changes=any(each.changes for each in steps),
        parameters=[
            ParameterDetails(
                each.name, each.type, each.required, each.default, each.secret, each.description, list(each.choices),
                each.minimum, each.maximum,
            )
            for each in playbook.parameters
        ],
        steps=steps,
    )  # fmt: skip


def _steps(playbook: Playbook, definitions: Operations) -> Iterator[StepDetails]:
    effects = _Effects(definitions)
    parts = (("steps", playbook.steps), ("on_failure", playbook.on_failure), ("finally", playbook.finally_))
    for part, steps in parts:
        for step in steps:
            changes, dry_run = effects.of(playbook, step)
            name = step.arguments.get("playbook") if step.kind == "include" else None
            yield StepDetails(
                step=step.id,
                name=step.name,
                part=part,
                operation=f"{step.kind} {name}" if name else step.kind,
                changes=changes,
                dry_run=dry_run,
                when=step.when,
                loop=step.loop is not None,
                register=step.register,
                on_error=step.on_error,
                line=step.where.line,
            )


class _Effects:
    """The effects of steps: changes, and support for dry runs.

    A playbook that is included several times is read once per depth.
    """

    def __init__(self, definitions: Operations) -> None:
        self._definitions = definitions
        self._effects_of: dict[tuple[Path, int], tuple[bool, bool]] = {}

    def of(self, playbook: Playbook, step: Step, depth: int = 0) -> tuple[bool, bool]:
        """Return (changes, supports dry runs) of a step. An unreadable included playbook may change anything."""
        if step.kind != "include":
            changes = step_can_change(step, self._definitions)
            return changes, not changes or (step.is_operation and self._definitions.find(step.kind).dry_run)
        try:
            playbook_file = find(str(step.arguments.get("playbook")), beside=playbook.source)
            key = (playbook_file.path.resolve(), depth)
            if key not in self._effects_of:
                self._effects_of[key] = self._of_all(playbook_file, depth + 1)
        except KctlError:
            return True, False
        return self._effects_of[key]

    def _of_all(self, playbook_file: PlaybookFile, depth: int) -> tuple[bool, bool]:
        from kctl.playbook.read import read

        if depth > MAX_INCLUDE_DEPTH:
            return True, False
        included = read(
            text_of(playbook_file), source=playbook_file.path, file=playbook_file.file, definitions=self._definitions
        )
        effects = [self.of(included, each, depth) for each in included.all_steps()]
        return any(changes for changes, _ in effects), all(dry_run for _, dry_run in effects)
