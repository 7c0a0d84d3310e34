"""kctl broker loggers: list log levels, and set them for a while or until the broker restarts."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete, ranges, split_failures
from kctl.errors import ExitCode, OperationFailed, Refused, UsageError

if TYPE_CHECKING:
    from kctl.brokers.loggers import Levels, LoggerChange
    from kctl.cluster.unchanged import ObjectFacts
    from kctl.protocol.client import ClusterClient

app = CommandGroup("List and set the log levels of brokers.")

Brokers = Annotated[list[int] | None, typer.Option("--broker", metavar="ID", help="Only this broker; repeatable.")]
_BAD = frozenset({ItemResult.FAILED, ItemResult.NOT_PUT_BACK})
_RETURN_S = 60.0  # for the way back, when a broker does not answer at once
_RETURN_POLL_S = 2.0
_LONGEST_S = 30 * 86_400.0  # somebody has to sit there; clocks and sleep() have limits of their own


@app.command("list")
def list_(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[LOGGER]…", help="All when none is named.")] = None,
    match: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Loggers whose whole name matches; repeatable.")
    ] = None,
    broker: Brokers = None,
    level: Annotated[list[str] | None, typer.Option(help="Only loggers at this level; repeatable.")] = None,
) -> None:
    """List the loggers of brokers with the levels that are in effect.

    A broker has a logger once it has used it. Brokers that have a logger at different levels have a row each.

    Example: kctl broker loggers list --match 'kafka[.]server[.].*' --broker 1
    """
    from kctl.base.name_patterns import parse_patterns, select
    from kctl.brokers.loggers import LEVELS, by_logger

    inv = invocation(ctx)
    patterns = parse_patterns("--match", match or ())
    chosen = {each.upper() for each in level or ()}
    if chosen - set(LEVELS):
        raise UsageError(f"{', '.join(sorted(chosen - set(LEVELS)))} is not a log level: {', '.join(LEVELS)}")
    with inv.connect() as client:
        levels, failures = _read(client, broker)
    rows = by_logger(levels)
    if rows:
        wanted = set(
            select(
                {row.logger for row in rows},
                exact=names or (),
                patterns=patterns,
                noun="logger",
                listed_by="broker loggers list",
            )
        )
        rows = [row for row in rows if row.logger in wanted and (not chosen or row.level in chosen)]
    columns = [Column("logger", name=True), Column("level"), Column("brokers", show=ranges)]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty="no loggers")])
    if failures:
        raise incomplete(failures)


@app.command("set")
def set_(
    ctx: typer.Context,
    levels: Annotated[list[str], typer.Argument(metavar="LOGGER=LEVEL…", show_default=False)],
    broker: Brokers = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Wait for so long, then put the levels back; so does Ctrl-C."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be set, change nothing.")] = False,
) -> None:
    """Set log levels on running brokers, and read them back.

    Levels are FATAL, ERROR, WARN, INFO, DEBUG and TRACE. A level lasts until it is set again or the broker restarts.
    With --for this command stays until time is up, and then puts back what it has set; what others have set meanwhile
    it leaves.

    Example: kctl broker loggers set kafka.request.logger=DEBUG --broker 1 --for 2s --yes
    """
    from kctl.base.units import parse_duration_ms
    from kctl.brokers.loggers import parse_levels, plan_levels, set_levels
    from kctl.cluster.unchanged import Basis

    inv = invocation(ctx)
    wanted = parse_levels(levels)
    for_s = None if for_ is None else parse_duration_ms(for_) / 1000
    if for_s is not None and for_s > _LONGEST_S:
        raise UsageError(
            f"--for {for_} is longer than 30 days", hint="without --for levels stay until the broker restarts"
        )
    with inv.connect() as client:
        current, failures = _read(client, broker)
        if failures:
            raise Refused(f"the levels of all brokers have to be known first: {failures[0]}")
        plan = plan_levels(current, wanted)
        todo = [row for row in plan if row.result is ItemResult.WOULD_SET]
        if dry_run or not todo:
            _show(inv, plan)
            return
        for row in todo:
            output.note(f"broker {row.broker}: {row.logger} {row.before} -> {row.after}")
        basis = Basis(_facts(todo, current), lambda: _facts(todo, _read(client, {row.broker for row in todo})[0]))
        inv.confirm(f"set {counted(len(todo), 'log level')}?", target=client.target, basis=basis)
        if for_s is None:
            _show(inv, set_levels(client, plan))
        else:
            _set_for(inv, client, plan, for_s)


def _facts(rows: Sequence[LoggerChange], levels: Mapping[int, Levels]) -> ObjectFacts:
    """Return the levels that the plan replaces."""
    return {
        f"logger {row.logger} of broker {row.broker}": {"level": levels[row.broker].get(row.logger)}
        for row in rows
        if row.broker in levels
    }


def _set_for(inv: Invocation, client: ClusterClient, plan: Sequence[LoggerChange], for_s: float) -> None:
    """Set, wait, put back. Whatever ends the wait, the way back is taken; a signal during it takes effect after it."""
    from kctl.brokers.loggers import set_levels
    from kctl.deploy.interrupts import deferred_interrupts

    interrupted = False
    problem: Exception | None = None
    done = _in_doubt(plan)
    with undone_when_terminated():
        try:
            with deferred_interrupts():
                done = set_levels(client, plan)
            _stay(done, for_s)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as exc:  # noqa: BLE001 - raised when the levels are back
            problem = exc
        try:
            with deferred_interrupts():
                done = _back(client, done)
        except KeyboardInterrupt:
            interrupted = True
    _show(inv, done)
    if problem is not None:
        raise problem
    if interrupted:
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _in_doubt(plan: Sequence[LoggerChange]) -> list[LoggerChange]:
    """What is known of the plan's rows when setting them ends without an answer: the way back looks at each."""
    import dataclasses

    error = "nobody told whether it was set"
    return [
        dataclasses.replace(row, result=ItemResult.FAILED, error=error) if row.result.planned else row for row in plan
    ]


def _stay(done: Sequence[LoggerChange], for_s: float) -> None:
    """Tell what was not set, and wait while anything is."""
    for row in done:
        if row.result is ItemResult.FAILED:
            output.warn(f"broker {row.broker}: {row.logger} was not set: {row.error}")
    if not any(row.result is ItemResult.SET for row in done):
        return
    until = datetime.now(timezone.utc) + timedelta(seconds=for_s)
    output.note(f"set until {until:%Y-%m-%d %H:%M:%S} UTC; Ctrl-C puts the levels back at once")
    time.sleep(for_s)


def _back(client: ClusterClient, done: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Put back, again for a minute where a broker does not answer."""
    import dataclasses

    from kctl.base.deadline import Deadline
    from kctl.brokers.loggers import put_back

    deadline = Deadline(_RETURN_S)
    while True:
        rows = put_back(client, done)
        if deadline.expired or not any(row.result is ItemResult.NOT_PUT_BACK for row in rows):
            return rows
        done = [
            dataclasses.replace(row, result=ItemResult.SET) if row.result is ItemResult.NOT_PUT_BACK else row
            for row in rows
        ]
        time.sleep(_RETURN_POLL_S)


def _show(inv: Invocation, rows: Sequence[LoggerChange]) -> None:
    """The rows; raises OperationFailed for what has failed, with the way to put it right."""
    columns = [
        Column("broker", align="right"),
        Column("logger", name=True),
        Column("before"),
        Column("after"),
        Column("result", style=_style),
        Column("error"),
    ]
    shown = columns if any(row.error for row in rows) else columns[:-1]
    inv.emit(rows, lambda: [Table(shown, jsonable(rows))], changed=any_changed(rows))
    bad = [row for row in rows if row.result in _BAD]
    if not bad:
        return
    first = bad[0]
    hint = None
    if first.result is ItemResult.NOT_PUT_BACK:
        hint = (
            f"kctl broker loggers set {first.logger}={first.before} --broker {first.broker}; "
            "a broker that restarts has the levels of its own configuration"
        )
    raise OperationFailed(
        f"{len(bad)} of {counted(len(rows), 'log level')} {first.result}: broker {first.broker}, {first.logger}: "
        f"{first.error}",
        hint=hint,
    )


def _style(row: Mapping[str, Any]) -> str | None:
    return "red" if row["result"] in _BAD else None


def _read(client: ClusterClient, brokers: Collection[int] | None) -> tuple[dict[int, Levels], list[str]]:
    """The levels of the brokers named, else of all, and why those of some could not be read.

    Raises NotFound, and the first failure when nothing could be read.
    """
    from kctl.brokers.loggers import fetch_loggers
    from kctl.brokers.overview import check_known

    known = client.metadata(()).brokers
    check_known(brokers or (), known)
    return split_failures(fetch_loggers(client, brokers or known))
