"""A dry run: what operations tell that they would do, and what cannot be told before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kctl.errors import ExitCode
from kctl.playbook.operations import Operation, Outcome
from kctl.playbook.run.states import Result, State

NO_DRY_RUN = "it cannot tell before what it does"


def lacks_dry_run(operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """Whether the operation changes something and has no dry run, so that a dry run leaves it out."""
    return not operation.dry_run and operation.can_change(arguments)


def is_met(outcome: Outcome) -> bool:
    """Whether the exit code of an operation's dry run is no failure: some exit with 1 when something differs."""
    return outcome.exit_code == ExitCode.UNHEALTHY and outcome.changed is True


def as_check_result(result: Result, *, uncertain: bool) -> Result:
    """A failure of a dry run is one only when nothing before it would have changed anything: what the step needs may be
    what an earlier one would have made. uncertain: something would have changed."""
    if not result.failed or not uncertain or result.exit_code == ExitCode.UNREACHABLE:
        return result
    said = f"as it is now: {result.message}" if result.message else "not as it is now"
    return replace(result, state=State.UNKNOWN, message=said, hint=None)


def is_uncertain(result: Result) -> bool:
    """Whether what comes after the step may find something else than a dry run does."""
    return result.state in {State.WOULD_CHANGE, State.UNKNOWN}
