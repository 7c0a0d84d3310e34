"""kctl lag: how far consumer groups are behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.group.choice import MATCH, TYPE
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.views import MAX_LAG_HELP, incomplete_after_verdict, lag_table, remarks
from kctl.commands.terminal.watching import INTERVAL, WATCH, Shown, Watching
from kctl.lag.gate import By, check_lag, rows_by

if TYPE_CHECKING:
    from kctl.lag.collect import LagReport
    from kctl.protocol.client import ClusterClient

_FEW_PARTITIONS = 200  # what one Fetch to each leader asks about


def command(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP]…", help="All groups when none is named.")
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; repeatable.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state; repeatable.")] = None,
    members: Annotated[bool, typer.Option(help="Tell which member each partition is assigned to.")] = True,
    by: Annotated[By, typer.Option(help="What a row adds up.")] = By.PARTITION,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
    max_lag: Annotated[int | None, typer.Option(min=0, help=MAX_LAG_HELP)] = None,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """Show how many messages groups have not read yet, and how many they lost.

    LAG is what is in the log and not read; LOST was deleted before it was read. A partition without a commit has
    neither. BEYOND END: the committed offset is beyond the end of the log, for example because the topic was recreated.
    NO MESSAGE: offsets in LAG that hold no message, such as transaction markers; --max-lag does not count them. The lag
    of a share group is reported by its coordinator.

    Example: kctl lag billing --by topic --max-lag 1000
    """
    from kctl.cluster.topic_names import check_name
    from kctl.commands.group.choice import choose, hidden
    from kctl.groups.overview import failures_of, known_states

    inv = invocation(ctx)
    states = known_states(state)
    watching = Watching(inv, interval) if watch else None
    topics = [check_name(name) for name in topic] if topic else None
    patterns = match or ([".*"] if type_ and not groups else None)

    def one_pass(client: ClusterClient) -> LagReport:
        from kctl.lag.collect import collect
        from kctl.lag.control_records import MOST_PARTITIONS

        names = choose(client, groups, patterns, type_, quiet=True) if groups or patterns else None
        return collect(
            client, names, topics=topics, members=members, states=states, share=True,
            control_records=MOST_PARTITIONS if max_lag is not None else _FEW_PARTITIONS,
        )  # fmt: skip

    with inv.connect() as client:
        unseen = hidden(client, groups=not groups or bool(match), commits=not topics)
        if watching:
            watching.run(lambda: one_pass(client), lambda report: _shown(report, by, members=members), unseen)
        report = one_pass(client)
        _check_topics(client, topics, report)
    rows = rows_by(report.rows, by)
    inv.emit(rows, lambda: [lag_table(rows, by, members=members)], row_type=by.row_type)
    for line in unseen:
        output.warn(line)
    remarks(report)
    with incomplete_after_verdict(failures_of(report)):
        unchecked = check_lag(rows, by, max_lag, groups or ())
        if unchecked is not None:
            output.warn(unchecked)


def _check_topics(client: ClusterClient, topics: Sequence[str] | None, report: LagReport) -> None:
    """Raise NotFound for a topic asked for that no group has committed and that does not exist."""
    from kctl.cluster.topics import known_topics

    without_rows = set(topics or ()) - {row.topic for row in report.rows}
    if without_rows:
        known_topics(client, sorted(without_rows))


def _shown(report: LagReport, by: By, *, members: bool) -> Shown:
    from kctl.groups.overview import failures_of

    rows = rows_by(report.rows, by)
    return Shown(rows, [lag_table(rows, by, members=members)], failures_of(report), lambda: remarks(report))
