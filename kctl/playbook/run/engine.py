"""Run a playbook: its steps, the on_failure steps, the final steps.

A resumed run starts at the first step again. A step that has ended according to the journal does not run again: its
recorded result is used. So the run resumes exactly where it stopped, in loops and includes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kctl.base.secrets import Redactor
from kctl.errors import ExitCode, KctlError, NotConfirmed, OperationFailed
from kctl.playbook.model import Playbook, Step
from kctl.playbook.operations import Where, step_can_change
from kctl.playbook.parameters import Values
from kctl.playbook.run import check as dry
from kctl.playbook.run.builtin_steps import NAMING, PURE, arguments_of, check_argv
from kctl.playbook.run.conditions import is_when_per_item, reason_of_when
from kctl.playbook.run.ended_steps import ended_items, is_whole
from kctl.playbook.run.frames import Frame, of_item
from kctl.playbook.run.includes import inner_frame, result_of
from kctl.playbook.run.repeats import repeatable
from kctl.playbook.run.report import Part, StepReport, cut, report_of
from kctl.playbook.run.run_environment import RunEnvironment, StepChoice
from kctl.playbook.run.run_journal import EndedStep, RunJournal
from kctl.playbook.run.run_settings import RunOutcome, RunSettings
from kctl.playbook.run.secret_values import derived_secret_names, names_with_secrets, values_with_secrets
from kctl.playbook.run.states import (
    Failure,
    StepResult,
    StepState,
    exit_code_of_run,
    failed_result,
    of_items,
    skipped_result,
)
from kctl.playbook.run.step_settings import items_of, settings_of
from kctl.playbook.run.step_task import StepTask, perform, show_plan

_INTERRUPTED = StepResult(StepState.UNKNOWN, message="interrupted; outcome unknown")
_HARMLESS = StepResult(StepState.UNKNOWN, message="interrupted; the step changes nothing")


class Engine:
    """The engine that runs one playbook."""

    def __init__(
        self, environment: RunEnvironment, journal: RunJournal, settings: RunSettings, *, secrets: Sequence[object] = ()
    ) -> None:
        """Prepare a run. secrets: values to hide in addition to the secret parameters."""
        self._environment = environment
        self._journal = journal
        self._settings = settings
        self._secrets: list[object] = []
        self._uncertain = False  # dry run: an earlier step would have changed something
        # A step without an end may have changed something, even if its repetition reports no change.
        self._changed = any(each.may_have_changed for each in journal.state.open.values())
        self._inner: dict[str, Failure] = {}  # of includes, by key
        self._interrupts: list[KeyboardInterrupt] = []
        self._awaiting_choice: StepReport | None = None  # the step that waits for the user's choice
        self._plan_shown: StepReport | None = None  # the step whose plan was shown for that choice
        self._hide(secrets)
        self.reports: list[StepReport] = []

    def run(self, playbook: Playbook, values: Values, where: Where) -> RunOutcome:
        """Run all steps that have not ended. Errors of steps are not raised but returned."""
        self._hide([values.values[name] for name in values.secrets])
        trail = (str(playbook.source.resolve()),) if playbook.source is not None else ("",)
        variables = {**values.values, "run_id": self._journal.run_id}
        frame = Frame(playbook, variables, where, self._settings.confirmed, trail=trail, secret=values.secrets)
        failure, interrupted = None, False
        try:
            failure = self._playbook(frame)
        except KeyboardInterrupt:
            interrupted = True
        code = int(ExitCode.INTERRUPTED) if interrupted else exit_code_of_run(failure)
        message = "interrupted" if interrupted else None if failure is None else f"{failure.step}: {failure.message}"
        try:
            self._journal.ended(code, message)
        except KctlError as exc:
            failure = failure or Failure(playbook.name, exc.message, int(exc.exit_code))
            code = code or int(exc.exit_code)
        return RunOutcome(code, failure, interrupted, self.reports)

    @property
    def redactor(self) -> Redactor:
        """Return a redactor for all secrets so far."""
        return self._journal.redactor

    def _hide(self, secrets: Sequence[object]) -> None:
        new = [each for each in secrets if each not in self._secrets]
        if new:
            self._secrets += new
            self._journal.redactor = Redactor(self._secrets)

    # --- parts

    def _playbook(self, frame: Frame) -> Failure | None:
        failure: Failure | None = None
        late: Failure | None = None
        interrupt: KeyboardInterrupt | None = None
        try:
            failure = self._part(frame, "steps")
            if failure is not None and not self._settings.check:
                frame.enter_handlers(failure)
                self._part(frame, "on_failure")
        except KeyboardInterrupt as exc:
            interrupt = exc
        try:
            frame.enter_handlers(failure)
            late = self._part(frame, "finally")
        except KeyboardInterrupt as exc:
            interrupt = exc
        if interrupt is not None:
            raise interrupt
        return failure or late

    def _part(self, frame: Frame, part: Part) -> Failure | None:
        """Run a part and return its first failure.

        A failure ends the part, except for the final steps: all of them run, even if one is interrupted, until a second
        interrupt. Raises the KeyboardInterrupt at the end.
        """
        steps = {"steps": frame.playbook.steps, "on_failure": frame.playbook.on_failure}.get(
            part, frame.playbook.finally_
        )
        first: Failure | None = None
        interrupt: KeyboardInterrupt | None = None
        for number, step in enumerate(steps, 1):
            report = report_of(step, part, prefix=frame.prefix, number=number, of=len(steps), depth=frame.depth - 1)
            self.reports.append(report)
            if interrupt is not None and (part != "finally" or len(self._interrupts) > 1):
                self._end(report, skipped_result("not reached: interrupted"))
                continue
            if first is not None and part != "finally":
                self._end(report, skipped_result(f"not reached: {first.step} failed"))
                continue
            try:
                failure = self._step(frame, part, step, report)
            except KeyboardInterrupt as exc:
                interrupt = exc
                self._report_interrupt(frame, exc)
            else:
                first = first or failure
        if interrupt is not None:
            raise interrupt
        return first

    def _report_interrupt(self, frame: Frame, interrupt: KeyboardInterrupt) -> None:
        """Report an interrupt once; it also passes through the including playbooks."""
        if any(each is interrupt for each in self._interrupts):
            return
        self._interrupts.append(interrupt)
        if len(self._interrupts) == 1 and frame.playbook.finally_:
            self._environment.observer.interrupted()

    def _end(self, report: StepReport, result: StepResult) -> None:
        report.take(result, self.redactor)
        self._environment.observer.ended(report)

    # --- one step

    def _step(self, frame: Frame, part: Part, step: Step, report: StepReport) -> Failure | None:
        """Run the step, or restore its result from the journal."""
        key, handler = report.step, part != "steps" or frame.in_handler
        done = self._journal.done(key)
        if done is not None and not self._must_repeat(step, key, done):
            return self._restore(frame, step, report, done)
        clock = self._environment.clock
        started = clock.now_s()
        report.started_at = clock.wall().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            result = self._result(frame, part, step, report, handler)
        except KeyboardInterrupt:
            report.duration_ms = round((clock.now_s() - started) * 1000)
            ended = _INTERRUPTED if self._can_change(step) else _HARMLESS
            self._end(
                report, skipped_result("interrupted before it started") if report is self._awaiting_choice else ended
            )
            raise
        result = self._store(step, key, result, handler)
        report.duration_ms = round((clock.now_s() - started) * 1000)
        return self._finish_step(frame, step, report, result)

    def _must_repeat(self, step: Step, key: str, done: EndedStep) -> bool:
        """Return True if an ended step must run again: its value is needed but not in the journal, and it changes
        nothing.
        """
        if (
            is_whole(self._journal, step, done, key)
            or done.fatal
            or (step.register is None and step.kind not in NAMING)
        ):
            return False
        return not self._can_change(step)

    def _restore(self, frame: Frame, step: Step, report: StepReport, done: EndedStep) -> Failure | None:
        report.before = True
        result = done.result
        if not is_whole(self._journal, step, done, report.step) and step.register is not None:
            frame.missing[step.register] = report.step
        items = ended_items(self._journal, report.step) if step.loop is not None else []
        if items:
            result = of_items([each.result for each in items])
        return self._finish_step(frame, step, report, result)

    def _finish_step(self, frame: Frame, step: Step, report: StepReport, result: StepResult) -> Failure | None:
        """Set the variables and the report of an ended step. Return its failure if it ends the part."""
        self._changed |= result.changed and not self._settings.check
        self._uncertain |= self._settings.check and dry.is_uncertain(result)
        if result.state is StepState.SKIPPED:
            frame.define_skipped(step, result)
        elif step.register is not None:
            frame.variables[step.register] = result.registered()
        if step.kind in NAMING and isinstance(result.value, Mapping):
            frame.variables.update(result.value)
        self._end(report, result)
        if not result.failed or step.on_error == "continue":
            return None
        inner = self._inner.pop(report.step, None)  # changes by its on_failure steps came after the failure
        changed = self._changed if inner is None else inner.changed
        code = result.exit_code or int(ExitCode.FAILED)
        return Failure(report.step, report.message or "", code, report.hint, changed)

    def _store(self, step: Step, key: str, result: StepResult, handler: bool) -> StepResult:
        """Write the end of the step to the journal. Return the result, failed if it cannot be written."""
        try:
            stored = result if step.loop is None or step.kind in PURE else replace(result, value=None)
            self._journal.step_ended(key, stored, fatal=result.failed and step.on_error == "fail", handler=handler)
        except KctlError as exc:
            return failed_result(exc, changed=result.changed, value=result.value)
        return result

    def _result(self, frame: Frame, part: Part, step: Step, report: StepReport, handler: bool) -> StepResult:
        """Run a step; errors are returned as results."""
        try:
            reason = self._reason_against(frame, part, step)
            if reason is not None:
                return skipped_result(reason)
            frame.check_missing(step)
            self._environment.observer.began(report)
            items = items_of(step, frame.variables)
            needs_choice = self._settings.ask and frame.depth == 1 and part == "steps"
            if needs_choice and self._choice(frame, step, report, items) is StepChoice.SKIP:
                return skipped_result("--step")
            if items is None:
                return self._perform(frame, step, report, report.step, frame.variables, handler)
            return self._loop(frame, step, report, items, handler)
        except KctlError as exc:
            return self._check_result(failed_result(exc))
        except Exception as exc:  # noqa: BLE001 - an unforeseen error fails the step; final steps must still run
            return failed_result(OperationFailed(f"unexpected {type(exc).__name__}: {exc}"))

    def _choice(self, frame: Frame, step: Step, report: StepReport, items: list[Any] | None) -> StepChoice:
        """Return the user's choice for a step, after showing its plan with --diff. Raises KctlError."""
        self._awaiting_choice = report
        if self._settings.diff and step.is_operation and items is None:
            self._hide_derived_secrets(frame, step, frame.variables)
            show_plan(self._ready(frame, step, report, frame.variables), self._environment)
            self._plan_shown = report
        choice = self._environment.person.choose(report)
        self._awaiting_choice = None
        if choice is StepChoice.STOP:
            raise NotConfirmed("not confirmed", hint="")
        return choice

    def _reason_against(self, frame: Frame, part: Part, step: Step) -> str | None:
        if frame.depth == 1 and part == "steps":
            reason = self._settings.selection.reason_against(frame.playbook, step)
            if reason is not None:
                return reason
        return None if is_when_per_item(step) else reason_of_when(step, frame.variables)

    def _loop(self, frame: Frame, step: Step, report: StepReport, items: list[Any], handler: bool) -> StepResult:
        """Run the step for each item. A failure ends the loop if the step can change something; a dry run continues."""
        report.items = len(items)
        results: list[StepResult] = []
        for index, item in enumerate(items):
            variables = of_item(frame.variables, item, index)
            result = self._item(frame, step, report, variables, handler)
            results.append(result)
            if result.failed and result.message:
                self._note(report, f"[{index}] {result.message}")
            if step.kind in NAMING and isinstance(result.value, Mapping):
                frame.variables.update(result.value)
            if result.failed and step.on_error == "fail" and not self._settings.check and self._can_change(step):
                break
        total = of_items(results)
        if step.kind == "set" and not total.failed:
            return StepResult(total.state, {k: v for each in results for k, v in (each.value or {}).items()}, 0)
        return total

    def _item(
        self, frame: Frame, step: Step, report: StepReport, variables: dict[str, Any], handler: bool
    ) -> StepResult:
        key = f"{report.step}[{variables['index']}]"
        done = None if step.kind in PURE else self._journal.done(key)
        if done is not None:
            self._journal.check_item(key, variables["item"])
            return done.result
        try:
            reason = reason_of_when(step, variables) if is_when_per_item(step) else None
            if reason is not None:
                result = skipped_result(reason)
            else:
                result = self._perform(frame, step, report, key, variables, handler, looped=True)
        except KctlError as exc:
            result = self._check_result(failed_result(exc))
        if step.kind not in PURE:
            fatal = result.failed and step.on_error == "fail"
            self._journal.step_ended(key, result, fatal=fatal, handler=handler)
        return result

    def _can_change(self, step: Step) -> bool:
        return step_can_change(step, self._environment.definitions)

    def _perform(
        self, frame: Frame, step: Step, report: StepReport, key: str, variables: Mapping[str, Any], handler: bool,
        *, looped: bool = False,
    ) -> StepResult:  # fmt: skip
        """Run the step, or one item of it, after writing its start to the journal. Raises KctlError."""
        named = self._hide_derived_secrets(frame, step, variables)
        task = self._ready(frame, step, report, variables)
        inner = None
        if step.kind == "include":
            inner = inner_frame(frame, key, task.arguments, task.settings, self._journal, self._environment, named)
            self._hide(inner.secrets)
        if step.kind not in PURE:
            self._journal.step_started(
                key, name=step.name, kind=step.kind, repeatable=repeatable(step, task.arguments),
                looks=step.is_operation and not self._can_change(step), handler=handler, arguments=task.arguments,
                item_digest=self._journal.digest_of(variables["item"]) if looped else None,
                included=None if inner is None else inner.entry,
            )  # fmt: skip
        if inner is not None:
            inner.frame.in_handler = handler
            first = len(self.reports)
            failure = self._playbook(inner.frame)
            if failure is not None:
                self._inner[report.step] = failure
            return result_of(failure, self.reports[first:])
        diff = self._settings.diff and report is not self._plan_shown
        return self._check_result(perform(task, self._environment, check=self._settings.check, diff=diff))

    def _ready(self, frame: Frame, step: Step, report: StepReport, variables: Mapping[str, Any]) -> StepTask:
        """Return the step with its arguments evaluated. Raises KctlError."""
        arguments = arguments_of(step, variables)
        if step.kind == "confirm":
            arguments = self.redactor.value(arguments)  # displayed
        check_argv(step, arguments, self.redactor)
        return StepTask(
            frame, step, arguments, variables, settings_of(step, variables),
            lambda line: self._note(report, line),
            lambda value: self._environment.observer.planned(report, self.redactor.value(value)),
        )  # fmt: skip

    def _hide_derived_secrets(self, frame: Frame, step: Step, variables: Mapping[str, Any]) -> frozenset[str]:
        """Hide values that the step derives from secrets. Return the names it gives to them."""
        if not frame.secret:
            return frozenset()
        secret = names_with_secrets(step, frame.secret)
        self._hide(values_with_secrets(step, variables, secret))
        named = derived_secret_names(step, secret)
        if step.kind == "set":
            frame.secret |= named
        return named

    def _check_result(self, result: StepResult) -> StepResult:
        return dry.as_check_result(result, uncertain=self._uncertain) if self._settings.check else result

    def _note(self, report: StepReport, text: str) -> None:
        for line in map(cut, self.redactor.text(text).split("\n")):  # before splitting: secrets may span lines
            report.note(line)
            self._environment.observer.noted(report, line)
