"""Doing a step: once, and again until it is as it shall be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kctl.errors import ExitCode, NotHealthy, OperationFailed
from kctl.playbook.expressions.evaluation import condition
from kctl.playbook.model import Step
from kctl.playbook.operations import Operation, Outcome, Where
from kctl.playbook.run import check as dry
from kctl.playbook.run.builtin_steps import arguments_of, own_act
from kctl.playbook.run.changes import can_change, changed
from kctl.playbook.run.frames import Frame
from kctl.playbook.run.run_environment import Outside
from kctl.playbook.run.states import Result, State, failed
from kctl.playbook.run.step_settings import StepSettings, settings_of
from kctl.playbook.run.wait_reads import looked_at

# What did nothing: refused, not reached, not understood.
_UNDONE = frozenset({ExitCode.USAGE, ExitCode.UNREACHABLE, ExitCode.REFUSED})
_CONDITION = 60  # characters of a condition that a message has


@dataclass(frozen=True)
class Act:
    """One step, or one item of its loop, ready to be done. note: what it says; planned: what its dry run told."""

    frame: Frame
    step: Step
    arguments: Mapping[str, Any]
    variables: Mapping[str, Any]
    settings: StepSettings
    note: Callable[[str], None]
    planned: Callable[[Any], None]

    def where(self) -> Where:
        """The cluster and the limits of an operation."""
        base = self.frame.where_of(self.settings.context)
        return replace(base, timeout=self.settings.timeout or base.timeout)


def perform(act: Act, outside: Outside, *, check: bool, diff: bool) -> Result:
    """Do it, up to `retries` times more. Raises KctlError."""
    attempts = 1 if check else act.settings.retries + 1
    for attempt in range(1, attempts + 1):
        result = replace(_once(act, outside, check=check, diff=diff and attempt == 1), attempts=attempt)
        if not result.failed:
            if act.step.until is None or _holds(act, result):
                return result
            result = _not_yet(act, result, check=check)
        if attempt == attempts or result.exit_code == ExitCode.USAGE or result.state is State.UNKNOWN:
            break
        outside.clock.sleep(act.settings.delay_s)
    return result


def _holds(act: Act, result: Result) -> bool:
    assert act.step.until is not None
    seen = {} if act.step.register is None else {act.step.register: result.registered()}
    return condition(act.step.until, {**act.variables, **seen})


def _not_yet(act: Act, result: Result, *, check: bool) -> Result:
    until = " ".join(str(act.step.until).split())
    if len(until) > _CONDITION:  # the step's name says it better than a page of it
        until = f"{act.step.name}: «{until[:_CONDITION]}…»"
    if check:
        return replace(result, state=State.UNKNOWN, message=f"{until} is not true now; a run waits for it")
    said = f"{until} is still not true"
    return replace(result, state=State.FAILED, exit_code=int(ExitCode.UNHEALTHY), message=said)


def _once(act: Act, outside: Outside, *, check: bool, diff: bool) -> Result:
    if not act.step.is_operation:
        return own_act(
            act.frame.playbook, act.step, act.arguments, act.variables, act.settings, outside, check=check,
            note=act.note, look=lambda: _look_again(act, outside),
        )  # fmt: skip
    operation = outside.known.find(act.step.kind)
    if check and not operation.changes and act.arguments.get("wait") is True:  # as with `until`: it is looked at once
        act = replace(act, arguments={**act.arguments, "wait": False})
    if act.step.dry_run:
        told = _result(act, operation, _run(act, operation, outside, dry_run=True), dry_run=True)
        return told if told.failed else replace(told, state=State.OK, changed=False)
    if check and dry.untold(operation, act.arguments):
        return Result(State.WOULD_CHANGE, message=dry.NO_DRY_RUN, changed=True)
    if diff and not check:
        show_plan(act, outside)
    dry_run = check and operation.dry_run
    outcome = _run(act, operation, outside, dry_run=dry_run)
    if diff and dry_run and outcome.value is not None:
        act.planned(outcome.value)
    return _result(act, operation, outcome, dry_run=dry_run)


def show_plan(act: Act, outside: Outside) -> None:
    """Tell what the operation's own dry run says, when it has one."""
    operation = outside.known.find(act.step.kind)
    if operation.dry_run:
        plan = _run(act, operation, outside, dry_run=True)
        if plan.value is not None:
            act.planned(plan.value)


def _look_again(act: Act, outside: Outside) -> dict[str, Any]:
    """What the steps find now that gave what a wait asks for."""
    seen = {}
    for step in looked_at(act.frame.playbook, act.step, outside.known):
        name = str(step.register)
        if act.frame.variables[name]["status"] == State.SKIPPED.value:
            continue
        arguments, settings = arguments_of(step, act.frame.variables), settings_of(step, act.frame.variables)
        again = replace(act, step=step, arguments=arguments, settings=settings)
        seen[name] = _once(again, outside, check=False, diff=False).registered()
    return seen


def _run(act: Act, operation: Operation, outside: Outside, *, dry_run: bool) -> Outcome:
    return outside.known.run(
        operation, act.arguments, act.where(), dry_run=dry_run, stdin=act.settings.stdin, note=act.note
    )


def _result(act: Act, operation: Operation, outcome: Outcome, *, dry_run: bool) -> Result:
    code, value = outcome.exit_code, outcome.value
    changes = code not in _UNDONE and (
        (can_change(operation, act.arguments) and code == ExitCode.FAILED)
        or changed(operation.name, value, act.arguments)
    )
    if code in act.step.accept or (dry_run and dry.fulfilled(operation, value, act.arguments, code)):
        made = State.WOULD_CHANGE if dry_run else State.CHANGED
        return Result(made if changes else State.OK, value, code, changed=changes)
    error = outcome.error or _without_error(operation, code)
    return replace(failed(error, changed=changes, value=value), exit_code=code)


def _without_error(operation: Operation, code: int) -> OperationFailed | NotHealthy:
    if code == ExitCode.UNHEALTHY:
        return NotHealthy(f"{operation.name}: what it checked is not as it should be (exit code 1)")
    return OperationFailed(f"{operation.name} ended with exit code {code}")
