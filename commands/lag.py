"""kctl lag: how far consumer groups are behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands import output
from kctl.commands.invocation import invocation
from kctl.commands.views import By, judge, lag_table, remarks, row_type, rows_of, told_if_incomplete
from kctl.commands.watching import INTERVAL, WATCH, Shown, Watching

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
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """Show how many messages consumer groups have not read yet, and how many they lost.

    LAG is what is in the log and not read; LOST was deleted before it was read. A partition without a commit has
    neither.

    Example: kctl lag billing --by topic --max-lag 1000
    """
    from kctl.commands.group_choice import hidden
    from kctl.groups.overview import failures_of, known_states
    from kctl.topics.names import check_name

    inv = invocation(ctx)
    states = known_states(state)
    watching = Watching(inv, interval) if watch else None
    topics = [check_name(name) for name in topic] if topic else None

    def one_pass(client: ClusterClient) -> LagReport:
        from kctl.lag.collect import collect

        return collect(client, groups or None, topics=topics, members=members, states=states)

    with inv.connect() as client:
        unseen = hidden(client, groups=not groups, commits=not topics)
        if watching:
            watching.run(lambda: one_pass(client), lambda report: _shown(report, by, members=members), unseen)
        report = one_pass(client)
        _check_topics(client, topics, report)
    rows = rows_of(report, by)
    inv.emit(rows, lambda: [lag_table(rows, by, members=members)], row_type=row_type(by))
    for line in unseen:
        output.warn(line)
    remarks(report)
    with told_if_incomplete(failures_of(report)):
        judge(rows, by, max_lag)


def _check_topics(client: ClusterClient, topics: Sequence[str] | None, report: LagReport) -> None:
    """Raise NotFound for a topic asked for that no group has committed and that does not exist."""
    from kctl.topics.describe import known_topics

    without_rows = set(topics or ()) - {row.topic for row in report.rows}
    if without_rows:
        known_topics(client, sorted(without_rows))


def _shown(report: LagReport, by: By, *, members: bool) -> Shown:
    from kctl.groups.overview import failures_of

    rows = rows_of(report, by)
    return Shown(rows, [lag_table(rows, by, members=members)], failures_of(report), lambda: remarks(report))
