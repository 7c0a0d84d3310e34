"""kctl lag: how far consumer groups are behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands import output
from kctl.commands.invocation import Invocation, invocation
from kctl.commands.views import By, judge, lag_table, remarks, rows_of, told_if_incomplete
from kctl.errors import ExitCode, KctlError, UsageError

if TYPE_CHECKING:
    from kctl.client import ClusterClient
    from kctl.lag.collect import LagReport


def command(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP]…", help="All groups when none is named.")
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; repeatable.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state; repeatable.")] = None,
    members: Annotated[bool, typer.Option(help="Tell which member each partition is assigned to.")] = True,
    by: Annotated[By, typer.Option(help="What a row adds up.")] = By.PARTITION,
    max_lag: Annotated[int | None, typer.Option(min=0, help="Exit 1 when the lag of any row is more.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat until Ctrl-C; with -o json a line for each pass.")
    ] = False,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Time between passes of --watch.")] = "5s",
) -> None:
    """Show how many messages consumer groups have not read yet, and how many they lost.

    LAG is what is in the log and not read; LOST was deleted before it was read. A partition without a commit has
    neither.

    Example: kctl lag billing --by topic --max-lag 1000
    """
    from kctl.groups.overview import failures_of, known_states
    from kctl.topics.names import check_name
    from kctl.units import parse_duration_ms

    inv = invocation(ctx)
    states = known_states(state)
    pause_s = parse_duration_ms(interval) / 1000
    if pause_s < 0.1:
        raise UsageError("--interval is at least 100ms")
    if watch and inv.output not in {None, "table", "json"}:
        raise UsageError("--watch shows a table or writes -o json")

    topics = [check_name(name) for name in topic] if topic else None

    def one_pass(client: ClusterClient) -> LagReport:
        from kctl.lag.collect import collect

        return collect(client, groups or None, topics=topics, members=members, states=states)

    with inv.connect() as client:
        if watch:
            _watch(inv, lambda: one_pass(client), by, pause_s=pause_s, members=members)
        report = one_pass(client)
        _check_topics(client, topics, report)
    rows = rows_of(report, by)
    inv.emit(rows, lambda: [lag_table(rows, by, members=members)])
    remarks(report)
    with told_if_incomplete(failures_of(report)):
        judge(rows, by, max_lag)


def _check_topics(client: ClusterClient, topics: Sequence[str] | None, report: LagReport) -> None:
    """Raise NotFound for a topic asked for that no group has committed and that does not exist."""
    from kctl.topics.describe import known_topics

    without_rows = set(topics or ()) - {row.topic for row in report.rows}
    if without_rows:
        known_topics(client, sorted(without_rows))


def _watch(inv: Invocation, one_pass: Callable[[], LagReport], by: By, *, pause_s: float, members: bool) -> None:
    """Pass after pass until Ctrl-C, which ends it with 130. A failed pass is told, and the next one tried."""
    try:
        while True:
            _show_pass(inv, one_pass, by, members=members)
            time.sleep(pause_s)
    except KeyboardInterrupt:
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


def _show_pass(inv: Invocation, one_pass: Callable[[], LagReport], by: By, *, members: bool) -> None:
    import sys
    from datetime import datetime, timezone

    from kctl.errors import NotFound

    now = datetime.now(timezone.utc)
    try:
        report = one_pass()
    except NotFound:
        raise
    except KctlError as exc:
        output.warn(f"{now:%H:%M:%S} {exc.message}")
        return
    rows = rows_of(report, by)
    if inv.output == "json":
        from kctl.groups.overview import failures_of

        output.write_json_line({"time": now, "rows": rows, "failures": failures_of(report)})
    else:
        if sys.stdout.isatty():
            sys.stdout.write("\x1b[H\x1b[2J\x1b[3J")
        output.heading(f"{now:%Y-%m-%d %H:%M:%S} UTC, Ctrl-C ends")
        inv.emit(rows, lambda: [lag_table(rows, by, members=members)])
        remarks(report)
    sys.stdout.flush()
