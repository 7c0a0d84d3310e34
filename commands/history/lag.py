"""kctl history lag: consumer lag now, over a time span, or at a point in time, from snapshots and the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.group.choice import MATCH
from kctl.commands.history.engine import OwnProcesses, ParquetFolder, ReportEngine
from kctl.commands.history.lag_view import require_match, skipped_share_groups
from kctl.commands.history.options import (
    REQUEST_TIMEOUT_S,
    From,
    GroupGlobs,
    Overwrite,
    Parquet,
    StoreIfAny,
    To,
    TopicGlobs,
    span_of,
)
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.views import (
    MAX_LAG_HELP,
    beyond_end,
    incomplete_after_verdict,
)
from kctl.errors import UsageError
from kctl.lag.gate import By, check_limit, require_known, row_name

if TYPE_CHECKING:
    from kctl.history.lag.limits import Limit
    from kctl.history.lag.plan import LagPlan, LagRequest
    from kctl.lag.selection import Names

_MIN_WINDOW = 2
_MAX_OBSERVE_S = 600.0


@dataclass(frozen=True)
class LagOptions:
    """Options of `kctl history lag` and `kctl spark lag`."""

    group: GroupGlobs = None
    match: Annotated[list[str] | None, MATCH] = None
    topic: TopicGlobs = None
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state; repeatable.")] = None
    by: Annotated[By, typer.Option(help="Aggregation level of the rows.")] = By.PARTITION
    store: StoreIfAny = None
    now: Annotated[bool, typer.Option("--now", help="Read the cluster (default); --store adds history.")] = False
    observe: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Read the cluster twice, this long apart, to get rates without a store."),
    ] = None
    last: Annotated[str | None, typer.Option(metavar="DURATION", help="Use the snapshots of the last DURATION.")] = None
    from_: From = None
    to: To = None
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Show the lag as of this time, UTC if no zone is given.")
    ] = None
    window: Annotated[
        int, typer.Option(min=_MIN_WINDOW, max=1000, help="Number of recent snapshots that determine a status.")
    ] = 10
    lookback: Annotated[
        str, typer.Option(metavar="DURATION", help="How far back to read snapshots for time lags and last commits.")
    ] = "1h"
    offsets_log: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Log dir or copied partition folder of __consumer_offsets, to get commit times; repeatable.",
        ),
    ] = None
    commit_times: Annotated[
        bool,
        typer.Option(
            "--commit-times", help="Read commit times from the cluster's __consumer_offsets; needs READ on it."
        ),
    ] = False
    allowed_lag: Annotated[int, typer.Option(min=0, help="Lag up to this many messages counts as caught up.")] = 0
    stale_after: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Ignore a group with no members and no commits for this long."),
    ] = "24h"
    abandoned_after: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Ignore a topic that the group's members have not read for this long."),
    ] = "10m"
    worst: Annotated[int | None, typer.Option(min=1, help="Show only this many rows, worst first.")] = None
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="Exit 1 if a row reaches a limit: WARN, ERR, 'lag>N', 'time-lag>5m', 'loss<1h' (a loss within 1h); "
            "repeatable.",
        ),
    ] = None
    max_lag: Annotated[int | None, typer.Option(min=0, help=MAX_LAG_HELP)] = None
    explain: Annotated[bool, typer.Option("--explain", help="Explain how the values of each row were computed.")] = (
        False
    )
    parquet: Parquet = None
    overwrite: Overwrite = False


@takes_options(LagOptions)
def lag(ctx: typer.Context, options: LagOptions) -> None:
    """Report consumer lag, rates and losses, now or over time.

    Without a store, shows lag, messages already lost, the age of unread messages, and when retention.ms deletes them.
    A store (--store) adds rates, when the group catches up, when it will lose messages, and a status by Burrow's
    rules: OK, WARN, STOP, STALL or REWIND. `kctl lag` is faster, but shows only lag and losses. -o wide adds offsets,
    rates and members.

    # Show the ten worst rows; exit 1 on an error or a loss within the hour
    kctl history lag --store ./snapshots --last 15m --worst 10 --fail-on ERR --fail-on 'loss<1h'
    """
    report_lag(invocation(ctx), options, OwnProcesses)


def report_lag(inv: Invocation, options: LagOptions, engine: Callable[[], ReportEngine]) -> None:
    """Run `kctl history lag` or `kctl spark lag`. engine: called once the other options are validated."""
    from kctl.history.lag.limits import parse_limits
    from kctl.lag.selection import names_of

    groups, topics = names_of(options.group, options.match), names_of(options.topic)
    when = _when(options)
    limits = parse_limits(options.fail_on or (), options.by)
    if options.explain and options.by is not By.PARTITION:
        raise UsageError("--explain works with --by partition only", hint="remove --by")
    runner = engine()
    observe_s = _observe_s(options, when)
    if options.commit_times and options.offsets_log:
        raise UsageError("--commit-times and --offsets-log do not go together", hint="choose one of them")
    _check_values(options)
    parquet = ParquetFolder(options.parquet, options.overwrite)
    with runner.running(inv, parquet, cluster=when.live or options.commit_times) as run:
        plan = _plan(inv, when, _lag_request(options, groups, topics, runner.tasks), observe_s)
        with run.watched("reading snapshots" if when.store else "reading offsets"):
            rows, errors = run.lag(plan)
        selected = _worst(rows, options.worst)
        rules = plan.query.rules if options.explain else None
        run.emit(inv, _result(selected, rules), lambda: _tables(selected, options.by, rules, wide=inv.output == "wide"))
    _remarks(plan, rows, limits, selected)
    gate = bool(limits) or options.max_lag is not None
    incomplete_reasons = [
        *plan.lacking(errors),
        *skipped_share_groups(plan.share, alarming=gate or not groups.everything),
    ]
    with incomplete_after_verdict(incomplete_reasons):
        _judge(rows, options, limits)
        if not rows and not plan.silent and not (gate and groups.exact):
            require_match(groups, topics)
        if gate:
            unchecked = require_known(rows, options.by, [name for name in groups.exact if name not in plan.share])
            if unchecked is not None:
                output.warn(unchecked)


# --- options --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _When:
    """The time that a report covers.

    live: read the cluster. Otherwise the stored snapshots with from_ms ≤ at_ms < to_ms, or as of at_ms.
    """

    store: Path | None
    live: bool = False
    from_ms: int = 0
    to_ms: int = 0
    at_ms: int | None = None


def _when(options: LagOptions) -> _When:
    from kctl.base.timestamps import parse_timestamp

    store, last, from_, at = options.store, options.last, options.from_, options.at
    modes = [
        name for name, value in (("--now", options.now), ("--last", last), ("--from", from_), ("--at", at)) if value
    ]
    if len(modes) > 1:
        raise UsageError(f"{' and '.join(modes)} do not go together", hint="choose one of them")
    if options.to is not None and from_ is None:
        raise UsageError("--to needs --from", hint="set --from, or use --at TIME for a point in time")
    if not modes or options.now:
        return _When(store, live=True)
    if store is None:
        raise UsageError(
            f"{modes[0]} needs --store DIR with snapshots of that time",
            hint="collect snapshots with `kctl history snapshot --store DIR`",
        )
    now_ms = _now_ms()
    if at is not None:
        return _When(store, at_ms=parse_timestamp(at, now_ms=now_ms))
    from_ms, to_ms = span_of(now_ms, last=last, from_=from_, to=options.to)
    return _When(store, from_ms=from_ms, to_ms=to_ms)


def _observe_s(options: LagOptions, when: _When) -> float:
    from kctl.base.units import parse_duration_ms

    if options.observe is None:
        return 0.0
    observe_s = parse_duration_ms(options.observe) / 1000
    if not (when.live and 0 < observe_s <= _MAX_OBSERVE_S):
        raise UsageError("--observe needs the live cluster and is at most 10m", hint="use --store DIR for more history")
    return observe_s


def _check_values(options: LagOptions) -> None:
    """Raise UsageError for a value that `_lag_request` cannot parse.

    Does not import kctl.history, which is imported while Spark starts.
    """
    from kctl.base.units import parse_duration_ms
    from kctl.groups.overview import known_states

    known_states(options.state)
    for text in (options.lookback, options.stale_after, options.abandoned_after):
        parse_duration_ms(text)


def _lag_request(options: LagOptions, groups: Names, topics: Names, tasks: int) -> LagRequest:
    from kctl.base.units import parse_duration_ms
    from kctl.groups.overview import known_states
    from kctl.history.lag.plan import LagRequest
    from kctl.history.lag.status import StandingRules

    states = known_states(options.state)
    return LagRequest(
        groups=groups,
        topics=topics,
        states=None if states is None else frozenset(states),
        by=options.by.value,
        observations=options.window,
        allowed_lag=options.allowed_lag,
        lookback_ms=parse_duration_ms(options.lookback),
        tasks=tasks,
        standing=StandingRules(parse_duration_ms(options.stale_after), parse_duration_ms(options.abandoned_after)),
        offsets_logs=tuple(str(path.absolute()) for path in options.offsets_log or ()),
        commit_times=options.commit_times,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _plan(inv: Invocation, when: _When, request: LagRequest, observe_s: float) -> LagPlan:
    from kctl.history.lag.plan import plan_live

    if not when.live and not request.commit_times:
        return _stored_plan(when, request)
    with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
        if when.live:
            plan = plan_live(client, when.store, request, now_ms=_now_ms, observe_s=observe_s)
        else:
            plan = _stored_plan(when, request)
        if not request.commit_times:
            return plan
        from kctl.history.commits.live_commit_times import with_commit_times

        return with_commit_times(client, plan)


def _stored_plan(when: _When, request: LagRequest) -> LagPlan:
    from kctl.history.lag.plan import plan_moment, plan_span

    assert when.store is not None
    if when.at_ms is not None:
        return plan_moment(when.store, when.at_ms, request)
    return plan_span(when.store, when.from_ms, when.to_ms, request)


# --- results --------------------------------------------------------------------------------------------------------


def _worst(rows: list[Any], count: int | None) -> list[Any]:
    from kctl.history.lag.totals import worst

    return rows if count is None else worst(rows, count)


def _result(rows: list[Any], rules: Any) -> list[Any]:
    """Return the rows for formats other than tables, with explanations if `rules` is set."""
    if rules is None:
        return rows
    from kctl.commands.terminal.output import jsonable
    from kctl.history.lag.explain import explain

    return [jsonable(row) | {"explain": [line._asdict() for line in explain(row, rules)]} for row in rows]


def _tables(rows: list[Any], by: By, rules: Any, *, wide: bool) -> list[output.Table]:
    from kctl.commands.history.lag_view import explanations, lag_tables

    tables = lag_tables(rows, by, wide=wide)
    return tables if rules is None else [*tables, *explanations(rows, rules)]


def _remarks(plan: LagPlan, rows: list[Any], limits: Sequence[Limit], selected: list[Any]) -> None:
    from kctl.history.lag.explain import HELD
    from kctl.history.lag.limits import unknown

    for text in plan.notes:
        output.note(text)
    blocked = [row for row in rows if row.held_by_transaction]
    if blocked:
        more = f", and {len(blocked) - 1} more" if len(blocked) > 1 else ""
        output.note(f"{row_name(blocked[0])}{more}: an open transaction blocks all unread messages; {HELD}")
    if plan.silent and len(plan.silent) <= 10:
        output.note(f"no commits and no members: {', '.join(plan.silent)}")
    elif plan.silent:
        output.note(f"{len(plan.silent)} groups have no commits and no members")
    for text in beyond_end(rows):
        output.warn(text)
    if len(selected) < len(rows):
        output.note(f"showing {len(selected)} of {len(rows)} rows")
    count = unknown(rows, limits)
    if count:
        output.warn(f"{count} rows could not be checked against every limit: values are unknown")


def _judge(rows: list[Any], options: LagOptions, limits: Sequence[Limit]) -> None:
    from kctl.history.lag.gate import check_limits

    check_limit(rows, options.by, options.max_lag)
    check_limits(rows, options.by, limits, output.warn)
