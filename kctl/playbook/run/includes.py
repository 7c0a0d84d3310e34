"""Included playbooks: read when their step starts, or from the journal when a run is resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kctl.errors import Reason, Refused, UsageError
from kctl.playbook.load import examine_text, without_errors
from kctl.playbook.model import MAX_INCLUDE_DEPTH
from kctl.playbook.parameters import included
from kctl.playbook.run.frames import Frame
from kctl.playbook.run.report import StepReport
from kctl.playbook.run.run_environment import RunEnvironment
from kctl.playbook.run.run_journal import RunJournal
from kctl.playbook.run.states import Failure, StepResult, StepState
from kctl.playbook.run.step_settings import StepSettings
from kctl.playbook.shipped import find, text_of


@dataclass(frozen=True)
class IncludedRun:
    """An included playbook, ready to run. entry: its record in the journal. secrets: its secret values."""

    frame: Frame
    entry: dict[str, Any]
    secrets: Sequence[object] = field(repr=False)


def inner_frame(
    frame: Frame,
    key: str,
    arguments: Mapping[str, Any],
    settings: StepSettings,
    journal: RunJournal,
    environment: RunEnvironment,
    secret: frozenset[str],
) -> IncludedRun:
    """Prepare an included playbook. secret: parameters whose values derive from secrets.

    Raises NotFound, InvalidFile with all problems, UsageError for its parameters, Refused for recursive includes."""
    entry = journal.included(key) or _entry(frame, str(arguments["playbook"]))
    source = None if entry["source"] is None else Path(entry["source"])
    here = "" if source is None else str(source.resolve())
    if here in frame.trail:
        raise Refused(f"{entry['file']} includes itself", hint="to repeat a step, use `loop`", reason=Reason.IMPOSSIBLE)
    if frame.depth > MAX_INCLUDE_DEPTH:
        raise Refused(f"includes are nested deeper than {MAX_INCLUDE_DEPTH} levels", reason=Reason.LIMIT_EXCEEDED)
    file, problems = examine_text(entry["text"], source=source, file=entry["file"], definitions=environment.definitions)
    playbook = without_errors(file, problems, entry["file"])
    inputs = arguments.get("parameters") or {}
    if not isinstance(inputs, Mapping):
        raise UsageError("the parameters of an include must be a mapping", hint="e.g. parameters: {name: value}")
    redactor = journal.redactor
    hidden = frozenset(name for name, value in inputs.items() if redactor.value(value) != value)
    values = included(playbook, inputs, hidden | secret)
    inner = Frame(
        playbook, {**values.values, "run_id": journal.run_id}, frame.where_of(settings.context), frame.confirmed,
        prefix=f"{key}/", trail=(*frame.trail, here), secret=values.secrets,
    )  # fmt: skip
    return IncludedRun(inner, entry, [values.values[name] for name in values.secrets])


def _entry(frame: Frame, name: str) -> dict[str, Any]:
    file = find(name, beside=frame.playbook.source)
    text = text_of(file).decode("utf-8-sig", "surrogateescape")
    return {"file": file.file, "source": str(file.path.resolve()), "text": text}


def result_of(failure: Failure | None, reports: Sequence[StepReport]) -> StepResult:
    """Return the result of an include from the reports of its steps."""
    changed = any(each.changed for each in reports)
    if failure is not None:
        return StepResult(
            StepState.FAILED, None, failure.exit_code, f"{failure.step}: {failure.message}", failure.hint, changed
        )
    states = {each.state for each in reports}
    order = (StepState.UNKNOWN, StepState.WOULD_CHANGE, StepState.CHANGED)
    state = next((each for each in order if each in states), StepState.OK)
    return StepResult(state, None, 0, changed=changed)
