"""Run a step, and repeat it until it succeeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kctl.errors import ExitCode, NotHealthy, OperationFailed
from kctl.playbook.expressions.evaluation import condition
from kctl.playbook.model import Step
from kctl.playbook.operations import Operation, OperationResult, Where
from kctl.playbook.run import check as dry
from kctl.playbook.run.builtin_steps import arguments_of, run_builtin_step
from kctl.playbook.run.frames import Frame
from kctl.playbook.run.run_environment import RunEnvironment
from kctl.playbook.run.states import StepResult, StepState, failed_result
from kctl.playbook.run.step_settings import StepSettings, settings_of
from kctl.playbook.run.wait_reads import reads_before_wait

# Exit codes of operations that changed nothing.
_NOTHING_CHANGED = frozenset({ExitCode.USAGE, ExitCode.UNREACHABLE, ExitCode.REFUSED})
_MAX_CONDITION = 60  # characters of a condition in a message


@dataclass(frozen=True)
class StepTask:
    """A step, or one item of its loop, ready to run. note: called with each message. planned: called with a plan."""

    frame: Frame
    step: Step
    arguments: Mapping[str, Any]
    variables: Mapping[str, Any]
    settings: StepSettings
    note: Callable[[str], None]
    planned: Callable[[Any], None]

    def where(self) -> Where:
        """Return the target of an operation."""
        base = self.frame.where_of(self.settings.context)
        return replace(base, timeout=self.settings.timeout or base.timeout)


def perform(task: StepTask, environment: RunEnvironment, *, check: bool, diff: bool) -> StepResult:
    """Run the step, with up to `retries` repetitions. Raises KctlError."""
    attempts = 1 if check else task.settings.retries + 1
    for attempt in range(1, attempts + 1):
        result = replace(_once(task, environment, check=check, diff=diff and attempt == 1), attempts=attempt)
        if not result.failed:
            if task.step.until is None or _until_holds(task, result):
                return result
            result = _until_failed(task, result, check=check)
        if attempt == attempts or result.exit_code == ExitCode.USAGE or result.state is StepState.UNKNOWN:
            break
        environment.clock.sleep(task.settings.delay_s)
    return result


def _until_holds(task: StepTask, result: StepResult) -> bool:
    assert task.step.until is not None
    registers = {} if task.step.register is None else {task.step.register: result.registered()}
    return condition(task.step.until, {**task.variables, **registers})


def _until_failed(task: StepTask, result: StepResult, *, check: bool) -> StepResult:
    until = " ".join(str(task.step.until).split())
    if len(until) > _MAX_CONDITION:
        until = f'{task.step.name}: "{until[:_MAX_CONDITION]}…"'
    if check:
        return replace(result, state=StepState.UNKNOWN, message=f"{until} is not true yet; a run would wait")
    message = f"{until} is not true"
    return replace(result, state=StepState.FAILED, exit_code=int(ExitCode.UNHEALTHY), message=message)


def _once(task: StepTask, environment: RunEnvironment, *, check: bool, diff: bool) -> StepResult:
    if not task.step.is_operation:
        return run_builtin_step(
            task.frame.playbook, task.step, task.arguments, task.variables, task.settings, environment, check=check,
            note=task.note, refresh=lambda: _refresh_registers(task, environment),
        )  # fmt: skip
    operation = environment.definitions.find(task.step.kind)
    if check and not operation.changes and task.arguments.get("wait") is True:  # read once, as with `until`
        task = replace(task, arguments={**task.arguments, "wait": False})
    if task.step.dry_run:
        preview = _result(task, operation, _run(task, operation, environment, dry_run=True), dry_run=True)
        return preview if preview.failed else replace(preview, state=StepState.OK, changed=False)
    if check and dry.lacks_dry_run(operation, task.arguments):
        return StepResult(StepState.WOULD_CHANGE, message=dry.NO_DRY_RUN, changed=True)
    if diff and not check:
        show_plan(task, environment)
    dry_run = check and operation.dry_run
    outcome = _run(task, operation, environment, dry_run=dry_run)
    if diff and dry_run and outcome.value is not None:
        task.planned(outcome.value)
    return _result(task, operation, outcome, dry_run=dry_run)


def show_plan(task: StepTask, environment: RunEnvironment) -> None:
    """Show the result of the operation's dry run, if it has one."""
    operation = environment.definitions.find(task.step.kind)
    if operation.dry_run:
        plan = _run(task, operation, environment, dry_run=True)
        if plan.value is not None:
            task.planned(plan.value)


def _refresh_registers(task: StepTask, environment: RunEnvironment) -> dict[str, Any]:
    """Repeat the steps that read the registers of a wait's condition. Return the new registers."""
    registers = {}
    for step in reads_before_wait(task.frame.playbook, task.step, environment.definitions):
        name = str(step.register)
        if task.frame.variables[name]["status"] == StepState.SKIPPED.value:
            continue
        arguments, settings = arguments_of(step, task.frame.variables), settings_of(step, task.frame.variables)
        again = replace(task, step=step, arguments=arguments, settings=settings)
        registers[name] = _once(again, environment, check=False, diff=False).registered()
    return registers


def _run(task: StepTask, operation: Operation, environment: RunEnvironment, *, dry_run: bool) -> OperationResult:
    return environment.definitions.run(
        operation, task.arguments, task.where(), dry_run=dry_run, stdin=task.settings.stdin, note=task.note
    )


def _result(task: StepTask, operation: Operation, outcome: OperationResult, *, dry_run: bool) -> StepResult:
    code, value = outcome.exit_code, outcome.value
    changes = (
        operation.can_change(task.arguments)
        and code not in _NOTHING_CHANGED
        and (code == ExitCode.FAILED or outcome.changed is not False)  # a change cannot be ruled out
    )
    if code in task.step.accept or (dry_run and dry.is_met(outcome)):
        state = StepState.WOULD_CHANGE if dry_run else StepState.CHANGED
        return StepResult(state if changes else StepState.OK, value, code, changed=changes)
    error = outcome.error or _default_error(operation, code)
    return replace(failed_result(error, changed=changes, value=value), exit_code=code)


def _default_error(operation: Operation, code: int) -> OperationFailed | NotHealthy:
    if code == ExitCode.UNHEALTHY:
        return NotHealthy(f"{operation.name}: the check failed (exit code 1)")
    return OperationFailed(f"{operation.name} failed with exit code {code}")
