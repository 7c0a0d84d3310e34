"""`kctl playbook resume`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.playbook.before import (
    Place,
    ask_once,
    check_person,
    forget_parameters,
    place_of,
)
from kctl.commands.playbook.run import Ask, Diff, JUnit, Secret, carry, hidden
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.out_file import JUNIT_REPORT, ask_to_replace
from kctl.errors import Refused, UsageError

if TYPE_CHECKING:
    from kctl.playbook.model import Playbook
    from kctl.playbook.parameters import Values
    from kctl.playbook.run.run_journal import RunState


def resume(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="The newest one when not given.")] = None,
    redo: Annotated[
        list[str] | None, typer.Option("--redo", metavar="STEP", help="Do this step again, whatever became of it.")
    ] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", metavar="STEP", help="Take this step for done.")] = None,
    secret: Secret = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say where it would go on.")] = False,
    diff: Diff = False,
    step: Ask = False,
    junit: JUnit = None,
) -> None:
    """Go on with a run that crashed, failed or was interrupted, at the step where it was.

    The playbook is the one that was begun, whatever its file says now. A step that may have been done and does harm
    twice (produce, a program) is not done again unasked.

    Example: kctl playbook resume 20261122T101500.123Z-4711 --redo load-orders
    """
    from kctl.base import journal
    from kctl.playbook.run import run_journal
    from kctl.playbook.run.engine import Settings
    from kctl.playbook.run.resume import check_cluster, check_names, check_unsure, playbook_of, to_resume
    from kctl.playbook.run.selection import selection

    inv = invocation(ctx)
    ask_to_replace(inv, junit, "--junit", like=JUNIT_REPORT)
    check_person(ask=step)
    path = to_resume(run)
    with journal.resume(path) as held:
        state = run_journal.replay(held.entries, path.name)
        playbook = playbook_of(state)
        values = _values(state, playbook, secret or [])
        report_to = None if junit is None else junit.absolute()
        with hidden(values.redactor):
            check_names(state, playbook, [*(redo or ()), *(skip or ())])
            at = _where_it_is(state)
            state.take_up(redo or (), skip or ())
            check_unsure(state)
            place = _place(inv, state)
            if not check_cluster(state, place.cluster_id):
                output.warn(f"{place.name} does not answer: whether it is the run's cluster cannot be seen")
            if dry_run:
                output.note(f"{path.stem} of {playbook.name} would go on at {at}")
                return
            output.note(f"going on with {path.stem} of {playbook.name} at {at}")
            chosen = selection(playbook, state.header["from"], state.header["limit"])
            confirmed = ask_once(inv, playbook, values, place, chosen.first, chosen.only)
            _enter(state)
            run_journal.record_resume(held, redo or (), skip or ())
            settings = Settings(diff=diff, ask=step, selection=chosen, confirmed=confirmed)
            carry(inv, playbook, values, place, settings, held, state, report_to)


def _values(state: RunState, playbook: Playbook, secrets: list[str]) -> Values:
    """Those that the run began with; secrets are asked for again. Raises UsageError."""
    from kctl.playbook.parameters import ENVIRONMENT, collect

    header = state.header
    if header["hidden"]:
        raise Refused(
            f"the journal does not have {', '.join(header['hidden'])}: there was a secret in it",
            hint="run the playbook again, from the step where it was: --from STEP",
        )
    names = {ENVIRONMENT + name.upper() for name in header["secrets"]}
    environment = {name: value for name, value in os.environ.items() if name in names}
    values = collect(
        playbook, (), file=header["parameters"], secrets=secrets, environment=environment, warn=output.warn
    )
    forget_parameters()
    return values


def _where_it_is(state: RunState) -> str:
    """The step at which the run stands, for people."""
    from kctl.playbook.run.run_journal import without_items

    failed = [key for key, done in state.done.items() if done.fatal]
    found = [without_items(key) for key in [*state.open, *failed]]
    if found:
        return max(found, key=lambda key: key.count("/"))
    left = [each for each in state.header["steps"] if each not in state.done]
    return left[0] if left else "its end"


def _place(inv: Invocation, state: RunState) -> Place:
    """The run's cluster, unless the options name it otherwise."""
    where = state.header["where"]
    if inv.context is None and inv.bootstrap_server is None:
        inv = replace(
            inv, context=where["context"], bootstrap_server=where["bootstrap_server"],
            zookeeper=inv.zookeeper or where["zookeeper"], command_config=inv.command_config or where["command_config"],
            ignore_unknown=inv.ignore_unknown or where.get("ignore_unknown", False),
        )  # fmt: skip
    inv = replace(inv, timeout=inv.timeout or where["timeout"])
    return place_of(inv, state.header["cluster_id"] is not None)


def _enter(state: RunState) -> None:
    """Work where the run began: paths in its steps are taken from there. Raises UsageError."""
    folder = Path(state.header["folder"])
    try:
        os.chdir(folder)
    except OSError as exc:
        raise UsageError(f"the run began in {folder}, where nobody can work now: {exc.strerror}") from exc
