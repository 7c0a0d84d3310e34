"""Run `kctl validate`: plan → show → confirm → inject faults and measure → clean up → report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.validate.tables import (
    matrix_tables,
    plan_lines,
    plan_tables,
    plan_warnings,
    print_verdicts,
    question,
    result_tables,
)
from kctl.errors import KctlError, NotHealthy

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.target import Target
    from kctl.validate.fault_injection import FaultInjection
    from kctl.validate.matrix import Matrix
    from kctl.validate.plan import ValidationOptions, ValidationPlan
    from kctl.validate.run import ScenarioResult, ValidationRun

_LINES_EVERY_S = 15.0


class _Progress:
    """A reporter of progress, on the progress bar if there is one."""

    def __init__(self) -> None:
        self.bar: output.Progress | None = None
        self._prefix, self._done, self._total = "", 0, 1

    def begin(self, scenario: str, number: int, total: int) -> None:
        self._prefix, self._done, self._total = f"{scenario}: ", number - 1, total
        self.line("starting")

    def line(self, text: str) -> None:
        if self.bar is not None:
            self.bar.update(f"{self._prefix}{text}", self._done, self._total)

    def done(self, result: ScenarioResult) -> None:
        seconds = result.duration_ms / 1000
        output.note(f"{result.scenario}: {'passed' if result.verdict.ok else 'failed'} ({seconds:.0f} s)")


@dataclass
class _Prepared:
    """A confirmed validation and what it needs."""

    target: Target
    client: ClusterClient
    injection: FaultInjection
    plan: ValidationPlan
    options: ValidationOptions
    report: Path | None
    progress: _Progress

    def begin(self) -> ValidationRun:
        """Start the run. Raises Busy, OperationFailed."""
        from kctl.validate.run import begin

        return begin(self.target, self.client, self.injection, self.plan, self.options, self.progress.line)


def run_scenarios(
    inv: Invocation, names: Sequence[str] | None, options: ValidationOptions, hooks: Path | None, report: Path | None,
    *, dry_run: bool,
) -> None:  # fmt: skip
    """Run scenarios. names: None for all. Raises NotHealthy for violations, and the error that ended the run early."""
    from kctl.validate.plan import WAIT_S
    from kctl.validate.report.report import csv_rows, result_value, run_value
    from kctl.validate.report.sentences import unmeasured_line

    options = replace(options, wait_s=inv.timeout_s(WAIT_S))
    results: list[ScenarioResult] = []
    failed: KctlError | None = None
    with _prepared(inv, names, options, hooks, report, dry_run=dry_run) as prepared:
        if prepared is None:
            return
        run = prepared.begin()
        try:
            with _running(prepared, run) as progress:
                for number, row in enumerate(prepared.plan.possible, 1):
                    progress.begin(row.scenario, number, len(prepared.plan.possible))
                    results.append(run.scenario(row))
                    progress.done(results[-1])
        except KctlError as exc:  # results so far are still shown
            failed = exc
    value = run_value(
        prepared.plan, run.run_id, str(run.folder), results, failed=None if failed is None else failed.message
    )
    documents = [result_value(result) for result in results]
    unwritten = _show(inv, prepared, value, results, lambda: result_tables(documents), lambda: csv_rows(documents))
    _raise(failed, unwritten)
    for budget in value["unmeasured"]:
        output.warn(unmeasured_line(budget))
    violated = [result.scenario for result in results if not result.verdict.ok]
    if violated:
        raise NotHealthy(f"{', '.join(violated)}: violations found", hint=f"see the evidence in {run.folder}")
    if value["unmeasured"]:
        raise NotHealthy("not every budget was measured", hint="run a scenario whose fault the budget applies to")


def run_matrix(inv: Invocation, hooks: Path | None, report: Path | None, *, dry_run: bool) -> None:
    """Run the matrix. Raises NotHealthy if a setup broke its promise, or if the fault had no effect."""
    from kctl.validate.matrix import SCENARIO
    from kctl.validate.matrix import run_matrix as carry_out
    from kctl.validate.plan import WAIT_S, ValidationOptions
    from kctl.validate.report.report import matrix_value

    matrix: Matrix | None = None
    failed: KctlError | None = None
    with _prepared(
        inv, [SCENARIO], ValidationOptions(wait_s=inv.timeout_s(WAIT_S)), hooks, report, dry_run=dry_run
    ) as prepared:
        if prepared is None:
            return
        run = prepared.begin()
        try:
            with _running(prepared, run):
                matrix = carry_out(run, prepared.plan.possible[0])
        except KctlError as exc:
            if matrix is None:
                raise
            failed = exc  # the results are still shown
    value = matrix_value(
        prepared.plan, run.run_id, str(run.folder), matrix, failed=None if failed is None else failed.message
    )
    unwritten = _show(
        inv, prepared, value, matrix.results, lambda: matrix_tables(matrix), lambda: matrix.rows, matrix.rows
    )
    for doubt in matrix.doubts:
        output.warn(doubt)
    _raise(failed, unwritten)
    if not matrix.ok:
        raise NotHealthy("a setup did not behave as promised", hint=f"see the evidence in {run.folder}")


@contextmanager
def _prepared(
    inv: Invocation, names: Sequence[str] | None, options: ValidationOptions, hooks: Path | None, report: Path | None,
    *, dry_run: bool,
) -> Iterator[_Prepared | None]:  # fmt: skip
    """Plan, show and confirm, after cleaning up an earlier killed run. Yield None for a dry run.

    Errors raised here mean that nothing was changed.
    """
    from kctl.cluster.controller import read_controller
    from kctl.validate import leftovers
    from kctl.validate.fault_injection import find_fault_injection
    from kctl.validate.plan import make_plan
    from kctl.validate.report.report_folder import check_folder
    from kctl.validate.scenarios import find, scenarios_for

    if report is not None:
        check_folder(report)
    target = inv.target()
    with inv.connect() as client:
        state = client.metadata(())
        cluster_id = state.cluster_id or ""
        leftovers.refuse_while_active(cluster_id)
        if leftovers.unfinished(cluster_id) and not dry_run:
            _clean_earlier(inv, target, client, cluster_id, hooks, options.wait_s)
            state = client.metadata(())
        injection = find_fault_injection(state.brokers, hooks, target)
        selected = scenarios_for(injection) if names is None else [find(name) for name in names]
        with output.progress("reading the cluster"):
            plan = make_plan(client, injection, selected, options, controller=read_controller(client).controller_id)
        for line in plan_warnings(plan):
            output.warn(line)
        if dry_run:
            inv.emit(plan, lambda: plan_tables(plan), lambda: plan.scenarios, changed=True)
            output.note("nothing was changed (--dry-run)")
            yield None
            return
        for line in plan_lines(plan):
            output.note(line)
        inv.confirm(question(plan), target=client.target)
        yield _Prepared(target, client, injection, plan, options, report, _Progress())


def _clean_earlier(
    inv: Invocation, target: Target, client: ClusterClient, cluster_id: str, hooks: Path | None, start_s: float
) -> None:  # fmt: skip
    """Clean up after an earlier run that was killed.

    Asks only in a protected context, as it only starts brokers and deletes test topics.
    """
    from kctl.validate.cleanup import clean_earlier
    from kctl.validate.fault_injection import recovery_control

    inv.confirm_protected(f"Clean up what an earlier validation of {target.name} left?", target=client.target)
    injection = recovery_control(client.metadata(()).brokers, cluster_id, hooks, target)
    with interrupt_when_terminated(), output.progress("cleaning up", lines_every_s=_LINES_EVERY_S) as bar:
        for remains in clean_earlier(injection, target, cluster_id, progress=bar.update, start_s=start_s):
            parts = ", ".join([*remains.topics, *(f"{'broker ' * node.isdigit()}{node}" for node in remains.nodes)])
            output.note(f"cleaned up after an earlier validation: {parts}; its evidence is in {remains.evidence}")


@contextmanager
def _running(prepared: _Prepared, run: ValidationRun) -> Iterator[_Progress]:
    """Treat signals like Ctrl-C: clean up, and print where the evidence is."""
    with interrupt_when_terminated(), output.progress("validating", lines_every_s=_LINES_EVERY_S) as bar:
        prepared.progress.bar = bar
        try:
            with run:
                yield prepared.progress
        except KeyboardInterrupt:
            output.note(f"the evidence so far is in {run.folder}")
            raise
        finally:
            if run.not_led is not None:
                output.warn(
                    f"some partitions of other topics have not moved back to their leaders: {run.not_led} "
                    "(run `kctl leader elect --preferred`)"
                )


def _show(
    inv: Invocation,
    prepared: _Prepared,
    value: dict[str, Any],
    results: Sequence[ScenarioResult],
    tables: Callable[[], Sequence[output.Table]],
    rows: Callable[[], Sequence[Any]],
    matrix: Sequence[Any] = (),
) -> KctlError | None:
    """Print the results, then write the report. Return the error if the report cannot be written. rows: for CSV."""
    inv.emit(value, tables, rows, changed=True)
    print_verdicts(inv, results, matrix=bool(matrix))
    output.note(f"the evidence is in {value['evidence']}")
    if prepared.report is None:
        return None
    from kctl.validate.report.report_folder import write_report

    try:
        write_report(prepared.report, value, results, matrix)
    except KctlError as exc:
        return exc
    output.note(f"the report is in {prepared.report}")
    return None


def _raise(failed: KctlError | None, unwritten: KctlError | None) -> None:
    """Raise the error that ended the run, or else that of the report."""
    if failed is not None and unwritten is not None:
        output.warn(unwritten.message)
    error = failed or unwritten
    if error is not None:
        raise error
