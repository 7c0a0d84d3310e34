"""What becomes of a step: its state, its result, and what others see of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kctl.errors import ExitCode, KctlError


class State(str, Enum):
    """WOULD_CHANGE: of a dry run. UNKNOWN: interrupted, or a dry run that cannot tell."""

    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    WOULD_CHANGE = "would change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Result:
    """exit_code: as commands have it; None when nothing was done. message: why it failed or was skipped. changed:
    whether it changed something, or may have; of a dry run, whether it would."""

    state: State
    value: Any = None
    exit_code: int | None = None
    message: str | None = None
    hint: str | None = None
    changed: bool = False
    attempts: int = 1

    @property
    def failed(self) -> bool:
        return self.state is State.FAILED

    def registered(self) -> dict[str, Any]:
        """What expressions see under a step's register."""
        return {
            "value": self.value,
            "exit_code": self.exit_code,
            "status": self.state.value,
            "error": self.message if self.failed else None,
            "changed": self.changed,
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """The step that failed, by its path, and how. changed: whether the run had changed something by then."""

    step: str
    message: str
    exit_code: int
    hint: str | None = None
    changed: bool = False

    def registered(self) -> dict[str, Any]:
        """What expressions see as `failure`."""
        return {"step": self.step, "message": self.message, "exit_code": self.exit_code}


def skipped_result(reason: str) -> Result:
    """Of a step that was not done."""
    return Result(State.SKIPPED, message=reason)


def failed_result(error: KctlError, *, changed: bool = False, value: Any = None) -> Result:
    """Of a step that an error ended."""
    return Result(State.FAILED, value, int(error.exit_code), error.message, error.hint, changed)


_ORDER = (State.FAILED, State.UNKNOWN, State.WOULD_CHANGE, State.CHANGED, State.OK)
_TOLD = 3  # failed items that are named; each is told when it fails


def of_items(results: Sequence[Result]) -> Result:
    """The result of a loop: the worst state of its items; value: theirs, in their order."""
    states = {each.state for each in results}
    state = next((each for each in _ORDER if each in states), State.SKIPPED if results else State.OK)
    wrong = [each for each in results if each.state is state and each.message]
    times = Counter(each.message or "" for each in wrong)
    said = [text if number == 1 else f"{text} ({number:,} times)" for text, number in times.items()]
    message = "; ".join(said[:_TOLD])
    if len(said) > _TOLD:
        message += f"; and {len(said) - _TOLD:,} more"
    codes = [each.exit_code for each in results if each.state is state and each.exit_code is not None]
    return Result(
        state,
        value=[each.value for each in results],
        exit_code=max(codes, default=0),
        message=message or None,
        hint=next((each.hint for each in wrong if each.hint), None),
        changed=any(each.changed for each in results),
        attempts=max((each.attempts for each in results), default=0),
    )


def as_entry(result: Result) -> dict[str, Any]:
    """A result as a journal has it."""
    return {
        "state": result.state.value,
        "value": result.value,
        "exit_code": result.exit_code,
        "message": result.message,
        "hint": result.hint,
        "changed": result.changed,
        "attempts": result.attempts,
    }


def from_entry(entry: Mapping[str, Any]) -> Result:
    """The result that an entry has. Raises ValueError, KeyError for what is none."""
    return Result(
        State(entry["state"]), entry["value"], entry["exit_code"], entry["message"], entry["hint"],
        bool(entry["changed"]), int(entry["attempts"]),
    )  # fmt: skip


def exit_code_of_run(failure: Failure | None) -> int:
    """0, or that of the failure: 1 for a check that is not fulfilled; what says that nothing was changed (2, 3, 4) only
    when that is so of all that was done before, else 5. What is done because of the failure does not count."""
    if failure is None:
        return int(ExitCode.OK)
    code = failure.exit_code
    told = {ExitCode.USAGE, ExitCode.UNREACHABLE, ExitCode.REFUSED}
    if code == ExitCode.UNHEALTHY or (code in told and not failure.changed):
        return code
    return int(ExitCode.FAILED)
