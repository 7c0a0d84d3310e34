"""`kctl playbook resume`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.playbook.before import (
    RunTarget,
    ask_once,
    forget_parameters,
    require_terminal,
    resolve_run_target,
)
from kctl.commands.playbook.run import Ask, Diff, JUnit, Secret, carry_out, hidden
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.out_file import JUNIT_REPORT, ask_to_replace
from kctl.errors import Reason, Refused, UsageError

if TYPE_CHECKING:
    from kctl.playbook.model import Playbook
    from kctl.playbook.parameters import Values
    from kctl.playbook.run.run_journal import RecordedRun


def resume(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Run id (default: newest unfinished run).")] = None,
    redo: Annotated[
        list[str] | None, typer.Option("--redo", metavar="STEP", help="Run a step again; repeatable.")
    ] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", metavar="STEP", help="Skip a step; repeatable.")] = None,
    secret: Secret = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print where the run would resume.")] = False,
    diff: Diff = False,
    step: Ask = False,
    junit: JUnit = None,
) -> None:
    """Resume a run that crashed, failed or was interrupted.

    The run uses the playbook as it was at the start. Steps that may have run already and are not safe to repeat
    (produce, a program) require --redo or --skip.

    # Resume a run, and repeat the step load-orders
    kctl playbook resume 20261122T101500.123Z-4711 --redo load-orders
    """
    from kctl.base import journal
    from kctl.playbook.run import run_journal
    from kctl.playbook.run.resume import check_cluster, check_names, check_unsure, playbook_of, run_to_resume
    from kctl.playbook.run.run_settings import RunSettings
    from kctl.playbook.run.selection import selection

    inv = invocation(ctx)
    ask_to_replace(inv, junit, "--junit", like=JUNIT_REPORT)
    require_terminal(ask=step)
    path = run_to_resume(run)
    with journal.resume(path) as file:
        state = run_journal.replay(file.entries, path.name)
        playbook = playbook_of(state)
        values = _values(state, playbook, secret or [])
        report_to = None if junit is None else junit.absolute()
        with hidden(values.redactor):
            check_names(state, playbook, [*(redo or ()), *(skip or ())])
            at = _resume_point(state)
            state.prepare_resume(redo or (), skip or ())
            check_unsure(state)
            run_target = _recorded_target(inv, state)
            if not check_cluster(state, run_target.cluster_id):
                output.warn(f"{run_target.name} is unreachable: cannot check that it is the run's cluster")
            if dry_run:
                output.note(f"{path.stem} of {playbook.name} would resume at {at}")
                return
            output.note(f"resuming {path.stem} of {playbook.name} at {at}")
            selected = selection(playbook, state.header["from"], state.header["limit"])
            confirmed = ask_once(inv, playbook, values, run_target, selected.first, selected.only)
            _enter_folder(state)
            run_journal.record_resume(file, redo or (), skip or ())
            settings = RunSettings(diff=diff, ask=step, selection=selected, confirmed=confirmed)
            carry_out(inv, playbook, values, run_target, settings, file, state, report_to)


def _values(state: RecordedRun, playbook: Playbook, secrets: list[str]) -> Values:
    """Return the values from the journal; the user must provide secrets again. Raises UsageError, Refused."""
    from kctl.playbook.parameters import ENVIRONMENT, collect

    header = state.header
    if header["hidden"]:
        raise Refused(
            f"the journal does not store {', '.join(header['hidden'])}, which contained a secret",
            hint="start a new run at the unfinished step: `kctl playbook run … --from STEP`",
            reason=Reason.UNSAFE,
        )
    names = {ENVIRONMENT + name.upper() for name in header["secrets"]}
    environment = {name: value for name, value in os.environ.items() if name in names}
    values = collect(
        playbook, (), file=header["parameters"], secrets=secrets, environment=environment, warn=output.warn
    )
    forget_parameters()
    return values


def _resume_point(state: RecordedRun) -> str:
    """Return the step at which the run resumes, for display."""
    from kctl.playbook.run.run_journal import without_items

    failed = [key for key, outcome in state.done.items() if outcome.fatal]
    step_ids = [without_items(key) for key in [*state.open, *failed]]
    if step_ids:
        return max(step_ids, key=lambda key: key.count("/"))
    remaining = [each for each in state.header["steps"] if each not in state.done]
    return remaining[0] if remaining else "its end"


def _recorded_target(inv: Invocation, state: RecordedRun) -> RunTarget:
    """Return the run's cluster, at the address that the options choose, if any."""
    where = state.header["where"]
    if inv.context is None and inv.bootstrap_server is None:
        inv = replace(
            inv, context=where["context"], bootstrap_server=where["bootstrap_server"],
            zookeeper=inv.zookeeper or where["zookeeper"], command_config=inv.command_config or where["command_config"],
            ignore_unknown=inv.ignore_unknown or where.get("ignore_unknown", False),
        )  # fmt: skip
    inv = replace(inv, timeout=inv.timeout or where["timeout"])
    return resolve_run_target(inv, state.header["cluster_id"] is not None)


def _enter_folder(state: RecordedRun) -> None:
    """Change to the folder in which the run started, for relative paths in steps. Raises UsageError."""
    folder = Path(state.header["folder"])
    try:
        os.chdir(folder)
    except OSError as exc:
        raise UsageError(f"cannot change to {folder}, where the run started: {exc.strerror}") from exc
