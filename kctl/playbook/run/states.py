"""The state and the result of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kctl.errors import ExitCode, KctlError


class StepState(str, Enum):
    """The state of a step. WOULD_CHANGE: dry run. UNKNOWN: interrupted, or a dry run cannot determine it."""

    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    WOULD_CHANGE = "would change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step.

    exit_code: as for commands; None if the step did not run. message: the reason for a failure or skip. changed: it
    changed something or may have; in a dry run: it would.
    """

    state: StepState
    value: Any = None
    exit_code: int | None = None
    message: str | None = None
    hint: str | None = None
    changed: bool = False
    attempts: int = 1

    @property
    def failed(self) -> bool:
        return self.state is StepState.FAILED

    def registered(self) -> dict[str, Any]:
        """Return the value of the step's register for expressions."""
        return {
            "value": self.value,
            "exit_code": self.exit_code,
            "status": self.state.value,
            "error": self.message if self.failed else None,
            "changed": self.changed,
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed step, by path. changed: the run had changed something before the failure."""

    step: str
    message: str
    exit_code: int
    hint: str | None = None
    changed: bool = False

    def registered(self) -> dict[str, Any]:
        """Return the value of `failure` for expressions."""
        return {"step": self.step, "message": self.message, "exit_code": self.exit_code}


def skipped_result(reason: str) -> StepResult:
    """Return the result of a step that did not run."""
    return StepResult(StepState.SKIPPED, message=reason)


def failed_result(error: KctlError, *, changed: bool = False, value: Any = None) -> StepResult:
    """Return the result of a step that ended with an error."""
    return StepResult(StepState.FAILED, value, int(error.exit_code), error.message, error.hint, changed)


_ORDER = (StepState.FAILED, StepState.UNKNOWN, StepState.WOULD_CHANGE, StepState.CHANGED, StepState.OK)
_MAX_LISTED = 3  # failed items in the message; each is also reported when it fails


def of_items(results: Sequence[StepResult]) -> StepResult:
    """Return the result of a loop: the worst state of its items, and the list of their values."""
    states = {each.state for each in results}
    state = next((each for each in _ORDER if each in states), StepState.SKIPPED if results else StepState.OK)
    worst_results = [each for each in results if each.state is state and each.message]
    times = Counter(each.message or "" for each in worst_results)
    texts = [text if number == 1 else f"{text} ({number:,} times)" for text, number in times.items()]
    message = "; ".join(texts[:_MAX_LISTED])
    if len(texts) > _MAX_LISTED:
        message += f"; and {len(texts) - _MAX_LISTED:,} more"
    codes = [each.exit_code for each in results if each.state is state and each.exit_code is not None]
    return StepResult(
        state,
        value=[each.value for each in results],
        exit_code=max(codes, default=0),
        message=message or None,
        hint=next((each.hint for each in worst_results if each.hint), None),
        changed=any(each.changed for each in results),
        attempts=max((each.attempts for each in results), default=0),
    )


def as_entry(result: StepResult) -> dict[str, Any]:
    """Return the fields of a journal entry for a result."""
    return {
        "state": result.state.value,
        "value": result.value,
        "exit_code": result.exit_code,
        "message": result.message,
        "hint": result.hint,
        "changed": result.changed,
        "attempts": result.attempts,
    }


def from_entry(entry: Mapping[str, Any]) -> StepResult:
    """Return the result in a journal entry. Raises ValueError, KeyError if it is invalid."""
    return StepResult(
        StepState(entry["state"]), entry["value"], entry["exit_code"], entry["message"], entry["hint"],
        bool(entry["changed"]), int(entry["attempts"]),
    )  # fmt: skip


def exit_code_of_run(failure: Failure | None) -> int:
    """Return the exit code of the run: 0, or that of the failure.

    1 is a failed check. 2, 3 and 4 state that nothing was changed; if earlier steps changed something, it is 5. Changes
    by on_failure steps do not count.
    """
    if failure is None:
        return int(ExitCode.OK)
    code = failure.exit_code
    unchanged = {ExitCode.USAGE, ExitCode.UNREACHABLE, ExitCode.REFUSED}
    if code == ExitCode.UNHEALTHY or (code in unchanged and not failure.changed):
        return code
    return int(ExitCode.FAILED)
