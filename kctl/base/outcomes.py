"""What came of a change of several things."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kctl.base.text import counted, some_of
from kctl.errors import KctlError, Refused

_REASONS = 3


def raise_refusal(errors: Collection[KctlError], *, asked: int) -> None:
    """Raise the first error when each of the things asked for was refused: nothing was changed (exit code 4).

    errors: one for each thing that was not done. One that failed otherwise, or whose outcome is unknown, leaves all of
    them to be told row by row.
    """
    if errors and len(errors) == asked and all(isinstance(error, Refused) for error in errors):
        raise next(iter(errors))


def reasons(errors: Mapping[str, str | None]) -> str:
    """Why things failed, in one line: those with the same reason together, and a few of each. errors: by name."""
    names: dict[str, list[str]] = {}
    for name, error in errors.items():
        names.setdefault(error or "failed", []).append(name)
    lines = [f"{some_of(of_reason)}: {reason}" for reason, of_reason in list(names.items())[:_REASONS]]
    left = sum(len(of_reason) for of_reason in list(names.values())[_REASONS:])
    return "; ".join([*lines, *([f"and {counted(left, 'other')} (-o json has all)"] if left else [])])
