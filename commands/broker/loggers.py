"""kctl broker loggers: list log levels, and set them for a limited time or until the broker restarts."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete, ranges, split_failures
from kctl.errors import ExitCode, OperationFailed, Reason, Refused, UsageError

if TYPE_CHECKING:
    from kctl.brokers.loggers import Levels, LoggerChange
    from kctl.cluster.unchanged import ObjectFacts
    from kctl.protocol.client import ClusterClient

app = CommandGroup("List and set the log levels of brokers.")

BrokerOption = Annotated[list[int] | None, typer.Option("--broker", metavar="ID", help="Only this broker; repeatable.")]
_FAILURES = frozenset({ItemResult.FAILED, ItemResult.NOT_PUT_BACK})
_RESTORE_S = 60.0  # to restore levels when a broker does not respond at first
_RESTORE_POLL_S = 2.0
_MAX_S = 30 * 86_400.0  # the command has to keep running; clocks and sleep() have limits


@app.command("list")
def list_(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[LOGGER]…", help="Logger names (default: all).")] = None,
    match: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Only loggers whose whole name matches; repeatable.")
    ] = None,
    broker: BrokerOption = None,
    level: Annotated[list[str] | None, typer.Option(help="Only loggers at this level; repeatable.")] = None,
) -> None:
    """List the loggers of brokers and their effective levels.

    A broker lists a logger only after its code has used the logger. If brokers have different levels for a logger,
    the logger has one row per level.

    # List the loggers of one package on broker 1
    kctl broker loggers list --match 'kafka[.]server[.].*' --broker 1
    """
    from kctl.base.name_patterns import parse_patterns, select
    from kctl.brokers.loggers import LEVELS, by_logger

    inv = invocation(ctx)
    patterns = parse_patterns("--match", match or ())
    level_filter = {each.upper() for each in level or ()}
    if level_filter - set(LEVELS):
        raise UsageError(f"{', '.join(sorted(level_filter - set(LEVELS)))} is not a log level; use {', '.join(LEVELS)}")
    with inv.connect() as client:
        levels, failures = _read(client, broker)
    rows = by_logger(levels)
    if rows:
        selected = set(
            select(
                {row.logger for row in rows},
                exact=names or (),
                patterns=patterns,
                noun="logger",
                listed_by="broker loggers list",
            )
        )
        rows = [row for row in rows if row.logger in selected and (not level_filter or row.level in level_filter)]
    columns = [Column("logger", name=True), Column("level"), Column("brokers", show=ranges)]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty="no loggers")])
    if failures:
        raise incomplete(failures)


@app.command("set")
def set_(
    ctx: typer.Context,
    levels: Annotated[list[str], typer.Argument(metavar="LOGGER=LEVEL…", help="Levels to set.", show_default=False)],
    broker: BrokerOption = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="Restore the previous levels after this time, e.g. 10m, or on Ctrl-C (default: keep the new levels).",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be set, without setting it.")] = False,
) -> None:
    """Set log levels on running brokers, and read them back to verify.

    Levels are FATAL, ERROR, WARN, INFO, DEBUG and TRACE. A level lasts until it is set again or the broker restarts.
    With --for, the command keeps running until the time is up and then restores the previous levels, except levels that
    others changed in the meantime.

    # Log the requests of broker 1 for 10 seconds
    kctl broker loggers set kafka.request.logger=DEBUG --broker 1 --for 10s --yes
    """
    from kctl.base.units import parse_duration_ms
    from kctl.brokers.loggers import parse_levels, plan_levels, set_levels
    from kctl.cluster.unchanged import Basis

    inv = invocation(ctx)
    levels_by_logger = parse_levels(levels)
    for_s = None if for_ is None else parse_duration_ms(for_) / 1000
    if for_s is not None and for_s > _MAX_S:
        raise UsageError(
            f"--for {for_} is longer than 30 days", hint="omit --for to keep the levels until the broker restarts"
        )
    with inv.connect() as client:
        current, failures = _read(client, broker)
        if failures:
            raise Refused(
                f"the current levels of all brokers must be readable first: {failures[0]}", reason=Reason.UNREADABLE
            )
        plan = plan_levels(current, levels_by_logger)
        to_set = [row for row in plan if row.result is ItemResult.WOULD_SET]
        if dry_run or not to_set:
            _show(inv, plan)
            return
        for row in to_set:
            output.note(f"broker {row.broker}: {row.logger} {row.before} -> {row.after}")
        basis = Basis(_facts(to_set, current), lambda: _facts(to_set, _read(client, {row.broker for row in to_set})[0]))
        inv.confirm(f"set {counted(len(to_set), 'log level')}?", target=client.target, basis=basis)
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
    """Set the levels, wait, and restore them, however the wait ends.

    A signal during the restore is handled afterwards.
    """
    from kctl.brokers.loggers import set_levels
    from kctl.deploy.interrupts import deferred_interrupts

    interrupted = False
    failure: Exception | None = None
    rows = _unknown_outcome(plan)
    with interrupt_when_terminated():
        try:
            with deferred_interrupts():
                rows = set_levels(client, plan)
            _wait(rows, for_s)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as exc:  # noqa: BLE001 - raised after the levels are restored
            failure = exc
        try:
            with deferred_interrupts():
                rows = _restore(client, rows)
        except KeyboardInterrupt:
            interrupted = True
    _show(inv, rows)
    if failure is not None:
        raise failure
    if interrupted:
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _unknown_outcome(plan: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Return the planned rows as failed: if brokers do not respond to the change, the restore checks each level."""
    import dataclasses

    error = "it is unknown whether the level was set"
    return [
        dataclasses.replace(row, result=ItemResult.FAILED, error=error) if row.result.planned else row for row in plan
    ]


def _wait(rows: Sequence[LoggerChange], for_s: float) -> None:
    """Report levels that were not set. Wait if any level was set."""
    for row in rows:
        if row.result is ItemResult.FAILED:
            output.warn(f"broker {row.broker}: {row.logger} was not set: {row.error}")
    if not any(row.result is ItemResult.SET for row in rows):
        return
    until = datetime.now(timezone.utc) + timedelta(seconds=for_s)
    output.note(f"set until {until:%Y-%m-%d %H:%M:%S} UTC; press Ctrl-C to restore the levels now")
    time.sleep(for_s)


def _restore(client: ClusterClient, rows: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Restore the levels; retry for a minute if a broker does not respond."""
    import dataclasses

    from kctl.base.deadline import Deadline
    from kctl.brokers.loggers import restore_levels

    deadline = Deadline(_RESTORE_S)
    while True:
        restored = restore_levels(client, rows)
        if deadline.expired or not any(row.result is ItemResult.NOT_PUT_BACK for row in restored):
            return restored
        rows = [
            dataclasses.replace(row, result=ItemResult.SET) if row.result is ItemResult.NOT_PUT_BACK else row
            for row in restored
        ]
        time.sleep(_RESTORE_POLL_S)


def _show(inv: Invocation, rows: Sequence[LoggerChange]) -> None:
    """Emit the rows. Raises OperationFailed if any row failed, with a hint on how to fix it."""
    columns = [
        Column("broker", align="right"),
        Column("logger", name=True),
        Column("before"),
        Column("after"),
        Column("result", style=_style),
        Column("error"),
    ]
    visible = columns if any(row.error for row in rows) else columns[:-1]
    inv.emit(rows, lambda: [Table(visible, jsonable(rows))], changed=any_changed(rows))
    failures = [row for row in rows if row.result in _FAILURES]
    if not failures:
        return
    first = failures[0]
    hint = None
    if first.result is ItemResult.NOT_PUT_BACK:
        hint = (
            f"run `kctl broker loggers set {first.logger}={first.before} --broker {first.broker}`; "
            "a restart of the broker also resets the level"
        )
    raise OperationFailed(
        f"{len(failures)} of {counted(len(rows), 'log level')} {first.result}: broker {first.broker}, {first.logger}: "
        f"{first.error}",
        hint=hint,
    )


def _style(row: Mapping[str, Any]) -> str | None:
    return "red" if row["result"] in _FAILURES else None


def _read(client: ClusterClient, brokers: Collection[int] | None) -> tuple[dict[int, Levels], list[str]]:
    """Return the levels of the selected brokers (default: all), and why some are unreadable.

    Raises NotFound, and the first failure if no broker is readable.
    """
    from kctl.brokers.loggers import fetch_loggers
    from kctl.brokers.overview import check_known

    registered = client.metadata(()).brokers
    check_known(brokers or (), registered)
    return split_failures(fetch_loggers(client, brokers or registered))
