"""The report of a run, the source of text, JSON and JUnit XML."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from kctl.base.secrets import Redactor
from kctl.playbook.model import Step
from kctl.playbook.run.states import StepResult, StepState

Part = Literal["steps", "on_failure", "finally"]
MAX_VALUE_BYTES = 64 << 10
MAX_NOTES = 100
MAX_TEXT = 4000  # characters of a message, hint or note


@dataclass(slots=True)
class StepReport:
    """The report of one step.

    step: its path ("prepare/topics"). part: steps, on_failure or finally; `number` of `of` in that part. state: None
    while it runs. value: output of the operation; None with value_omitted if it is too large. items: of a loop. before:
    ran before the run was resumed. depth: of includes.
    """

    step: str
    name: str
    part: Part
    operation: str
    state: StepState | None
    changed: bool
    exit_code: int | None
    message: str | None
    hint: str | None
    attempts: int
    items: int | None
    started_at: str | None
    duration_ms: int
    value: Any
    value_omitted: bool
    notes: list[str]
    before: bool
    file: str
    line: int
    number: int
    of: int
    depth: int

    def note(self, line: str) -> None:
        """Add a line, up to MAX_NOTES."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(line)

    def take(self, result: StepResult, redactor: Redactor) -> None:
        """Set the result."""
        self.state, self.changed = result.state, result.changed
        self.exit_code, self.attempts = result.exit_code, result.attempts
        self.message = None if result.message is None else cut(redactor.text(result.message))
        self.hint = None if result.hint is None else cut(redactor.text(result.hint))
        self.value, self.value_omitted = _bounded(result.value, redactor)

    def hide(self, redactor: Redactor) -> None:
        """Hide values in earlier output that became secret later, in a parameter of an include."""
        self.message = None if self.message is None else redactor.text(self.message)
        self.hint = None if self.hint is None else redactor.text(self.hint)
        self.value = redactor.value(self.value)
        self.notes = [redactor.text(note) for note in self.notes]


def report_of(step: Step, part: Part, *, prefix: str, number: int, of: int, depth: int) -> StepReport:
    """Return the report of a step that has not started."""
    included = step.arguments.get("playbook") if step.kind == "include" else None
    return StepReport(
        step=prefix + step.id, name=step.name, part=part,
        operation=f"{step.kind} {included}" if included else step.kind,
        state=None, changed=False, exit_code=None, message=None, hint=None, attempts=0, items=None,
        started_at=None, duration_ms=0, value=None, value_omitted=False, notes=[], before=False,
        file=step.where.file, line=step.where.line, number=number, of=of, depth=depth,
    )  # fmt: skip


def cut(text: str) -> str:
    """Truncate a long text for display."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text):,} characters)"


def _bounded(value: Any, redactor: Redactor) -> tuple[Any, bool]:
    try:
        if len(json.dumps(value)) > MAX_VALUE_BYTES:
            return None, True
    except (TypeError, ValueError, RecursionError):
        return None, True
    return redactor.value(value), False


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of a run.

    status: "ok", "changed", "failed" or "interrupted", in a dry run also "would change". counts: steps by state. run:
    None for a dry run, which has no journal.
    """

    run: str | None
    playbook: str
    file: str
    digest: str
    target: str | None
    cluster_id: str | None
    check: bool
    status: str
    exit_code: int
    message: str | None
    started_at: str
    ended_at: str
    duration_ms: int
    parameters: dict[str, Any]
    counts: dict[str, int]
    steps: list[StepReport] = field(default_factory=list)


def counts_of(steps: list[StepReport]) -> dict[str, int]:
    """Return the number of steps by state. An include counts in addition to its steps."""
    return {state.value: sum(each.state is state for each in steps) for state in StepState}


def status_of(steps: list[StepReport], *, exit_code: int, interrupted: bool) -> str:
    """Return the status of the run."""
    if interrupted:
        return "interrupted"
    if exit_code:
        return "failed"
    states = {each.state for each in steps}
    for state in (StepState.CHANGED, StepState.WOULD_CHANGE, StepState.OK):
        if state in states:
            return str(state.value)
    return "ok"
