"""Interpret the results of a dry run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kctl.errors import ExitCode
from kctl.playbook.operations import Operation, OperationResult
from kctl.playbook.run.states import StepResult, StepState

NO_DRY_RUN = "this step has no dry run"


def lacks_dry_run(operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """Return True if the operation may change something and has no dry run, so a dry run skips it."""
    return not operation.dry_run and operation.can_change(arguments)


def is_met(outcome: OperationResult) -> bool:
    """Return True if a dry run succeeded although it exits with 1, as some do to report differences."""
    return outcome.exit_code == ExitCode.UNHEALTHY and outcome.changed is True


def as_check_result(result: StepResult, *, uncertain: bool) -> StepResult:
    """Return the result, as UNKNOWN if it failed but an earlier change might have prevented the failure.

    uncertain: an earlier step would have changed something.
    """
    if not result.failed or not uncertain or result.exit_code == ExitCode.UNREACHABLE:
        return result
    message = f"in the current state: {result.message}" if result.message else "fails in the current state"
    return replace(result, state=StepState.UNKNOWN, message=message, hint=None)


def is_uncertain(result: StepResult) -> bool:
    """Return True if later steps may run in a state that the dry run cannot see."""
    return result.state in {StepState.WOULD_CHANGE, StepState.UNKNOWN}
