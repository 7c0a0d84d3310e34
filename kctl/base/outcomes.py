"""The outcome of a change: of each item, and of all items together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Protocol

from kctl.base.text import counted, some_of
from kctl.errors import KctlError, Refused

_REASONS = 3


class Effect(Enum):
    """NONE: the item is as it was. PLANNED: a dry run or a plan would change the item. DONE: the item has changed."""

    NONE = "none"
    PLANNED = "planned"
    DONE = "done"


class ItemResult(str, Enum):
    """The result of one item of a change, such as a topic or an offset. The text is the value of `result` in JSON."""

    effect: Effect

    WOULD_ABORT = "would abort", Effect.PLANNED
    WOULD_ADD = "would add", Effect.PLANNED
    WOULD_ALTER = "would alter", Effect.PLANNED
    WOULD_APPEND = "would append", Effect.PLANNED
    WOULD_BE_FORGOTTEN = "would be forgotten", Effect.PLANNED
    WOULD_BE_KILLED = "would be killed", Effect.PLANNED
    WOULD_BE_REMOVED = "would be removed", Effect.PLANNED
    WOULD_CLONE = "would clone", Effect.PLANNED
    WOULD_CORDON = "would cordon", Effect.PLANNED
    WOULD_CREATE = "would create", Effect.PLANNED
    WOULD_DELETE = "would delete", Effect.PLANNED
    WOULD_ELECT = "would elect", Effect.PLANNED
    WOULD_REMOVE = "would remove", Effect.PLANNED
    WOULD_REPLACE = "would replace", Effect.PLANNED
    WOULD_RESET = "would reset", Effect.PLANNED
    WOULD_RESTART = "would restart", Effect.PLANNED
    WOULD_RESUME = "would resume", Effect.PLANNED
    WOULD_SET = "would set", Effect.PLANNED
    WOULD_START = "would start", Effect.PLANNED
    WOULD_STOP = "would stop", Effect.PLANNED
    WOULD_SUBTRACT = "would subtract", Effect.PLANNED
    WOULD_UNCORDON = "would uncordon", Effect.PLANNED
    WOULD_UNSET = "would unset", Effect.PLANNED
    WOULD_WRITE = "would write", Effect.PLANNED

    ABORTED = "aborted", Effect.DONE
    ADDED = "added", Effect.DONE
    ALTERED = "altered", Effect.DONE
    APPENDED = "appended", Effect.DONE
    CHANGED_BY_OTHERS = "changed by others", Effect.DONE
    CLONED = "cloned", Effect.DONE
    CORDONED = "cordoned", Effect.DONE
    CREATED = "created", Effect.DONE
    DELETED = "deleted", Effect.DONE
    ELECTED = "elected", Effect.DONE
    FORGOTTEN = "forgotten", Effect.DONE
    JOINED_AGAIN = "joined again", Effect.DONE
    KILLED = "killed", Effect.DONE
    MARKED = "marked", Effect.DONE  # a topic whose deletion was accepted and is not finished
    NOT_PUT_BACK = "not put back", Effect.DONE  # a log level that was changed and could not be restored
    PUT_BACK = "put back", Effect.DONE
    REMOVED = "removed", Effect.DONE
    REPLACED = "replaced", Effect.DONE
    RESET = "reset", Effect.DONE
    RESTARTED = "restarted", Effect.DONE
    RESUMED = "resumed", Effect.DONE
    SET = "set", Effect.DONE
    STARTED = "started", Effect.DONE
    STOPPED = "stopped", Effect.DONE
    SUBTRACTED = "subtracted", Effect.DONE
    UNCORDONED = "uncordoned", Effect.DONE
    UNSET = "unset", Effect.DONE
    WRITTEN = "written", Effect.DONE

    ABSENT = "absent", Effect.NONE
    ALREADY_RUNNING = "runs already", Effect.NONE
    ALREADY_STOPPED = "did not run", Effect.NONE
    ALREADY_THERE = "already there", Effect.NONE
    EXISTS = "exists", Effect.NONE
    FAILED = "failed", Effect.NONE
    LEFT_ALONE = "left alone", Effect.NONE
    NOT_THERE = "not there", Effect.NONE
    RUNS = "runs", Effect.NONE
    SKIPPED = "skipped", Effect.NONE
    UNCHANGED = "unchanged", Effect.NONE

    def __new__(cls, text: str, effect: Effect) -> ItemResult:
        member = str.__new__(cls, text)
        member._value_ = text
        member.effect = effect
        return member

    def __str__(self) -> str:
        return str(self.value)

    @property
    def changed(self) -> bool:
        """Return True if the item has changed or, in a dry run, would change."""
        return self.effect is not Effect.NONE

    @property
    def done(self) -> ItemResult:
        """Return the result after a planned change was carried out, e.g. ADDED for WOULD_ADD."""
        return _DONE[self]

    @property
    def planned(self) -> bool:
        """Return True if the change is still to be made."""
        return self.effect is Effect.PLANNED


_DONE = {
    ItemResult.WOULD_ADD: ItemResult.ADDED,
    ItemResult.WOULD_APPEND: ItemResult.APPENDED,
    ItemResult.WOULD_CORDON: ItemResult.CORDONED,
    ItemResult.WOULD_REMOVE: ItemResult.REMOVED,
    ItemResult.WOULD_REPLACE: ItemResult.REPLACED,
    ItemResult.WOULD_SET: ItemResult.SET,
    ItemResult.WOULD_SUBTRACT: ItemResult.SUBTRACTED,
    ItemResult.WOULD_UNCORDON: ItemResult.UNCORDONED,
    ItemResult.WOULD_UNSET: ItemResult.UNSET,
}


class _HasResult(Protocol):
    @property
    def result(self) -> ItemResult: ...


def any_changed(rows: Iterable[_HasResult]) -> bool:
    """Return True if one of the rows has changed or, in a dry run, would change."""
    return any(row.result.changed for row in rows)


def raise_refusal(errors: Collection[KctlError], *, requested: int) -> None:
    """Raise the first error if all requested changes were refused, so that nothing was changed (exit code 4).

    errors: one for each change that was not made. If one failed otherwise, or its outcome is unknown, the caller
    reports all of them row by row.
    """
    if errors and len(errors) == requested and all(isinstance(error, Refused) for error in errors):
        raise next(iter(errors))


def reasons(errors: Mapping[str, str | None]) -> str:
    """Summarize errors in one line, grouped by reason, with a few names for each. errors: by name."""
    names: dict[str, list[str]] = {}
    for name, error in errors.items():
        names.setdefault(error or "failed", []).append(name)
    lines = [f"{some_of(of_reason)}: {reason}" for reason, of_reason in list(names.items())[:_REASONS]]
    other_count = sum(len(of_reason) for of_reason in list(names.values())[_REASONS:])
    return "; ".join([*lines, *([f"and {counted(other_count, 'other')} (-o json has all)"] if other_count else [])])
