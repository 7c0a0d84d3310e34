"""kctl lag: consumer lag of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.group.choice import MATCH, TYPE
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.views import MAX_LAG_HELP, incomplete_after_verdict, lag_table, remarks
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching
from kctl.lag.gate import By, check_lag, rows_by

if TYPE_CHECKING:
    from kctl.lag.collect import LagReport
    from kctl.protocol.client import ClusterClient

_FEW_PARTITIONS = 200  # covered by one Fetch to each leader


def command(
    ctx: typer.Context,
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…", help="Groups (default: all).")] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; repeatable.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state; repeatable.")] = None,
    members: Annotated[bool, typer.Option(help="Show the member that each partition is assigned to.")] = True,
    by: Annotated[By, typer.Option(help="Show one row per partition, topic or group.")] = By.PARTITION,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
    max_lag: Annotated[int | None, typer.Option(min=0, help=MAX_LAG_HELP)] = None,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """Show the consumer lag of groups, and messages that they lost.

    LAG: unread messages in the log. LOST: messages deleted before they were read. Both are empty if a partition has
    no committed offset. BEYOND END: the committed offset is beyond the end of the log, e.g. because the topic was
    recreated. NO MESSAGE: offsets in LAG that hold no message, such as transaction markers; --max-lag does not
    count them. The lag of a share group is reported by its coordinator.

    # Show the lag of one group by topic; exit 1 if a topic exceeds 1000
    kctl lag billing --by topic --max-lag 1000
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
        from kctl.lag.control_records import MAX_PARTITIONS

        names = choose(client, groups, patterns, type_, quiet=True) if groups or patterns else None
        return collect(
            client, names, topics=topics, members=members, states=states, share=True,
            control_records=MAX_PARTITIONS if max_lag is not None else _FEW_PARTITIONS,
        )  # fmt: skip

    with inv.connect() as client:
        hidden_lines = hidden(client, groups=not groups or bool(match), commits=not topics)
        if watching:
            watching.run(lambda: one_pass(client), lambda report: _shown(report, by, members=members), hidden_lines)
        report = one_pass(client)
        _check_topics(client, topics, report)
    rows = rows_by(report.rows, by)
    inv.emit(rows, lambda: [lag_table(rows, by, members=members)], row_type=by.row_type)
    for line in hidden_lines:
        output.warn(line)
    remarks(report)
    with incomplete_after_verdict(failures_of(report)):
        unchecked = check_lag(rows, by, max_lag, groups or ())
        if unchecked is not None:
            output.warn(unchecked)


def _check_topics(client: ClusterClient, topics: Sequence[str] | None, report: LagReport) -> None:
    """Raise NotFound if a selected topic has no commits and does not exist."""
    from kctl.cluster.topics import known_topics

    without_rows = set(topics or ()) - {row.topic for row in report.rows}
    if without_rows:
        known_topics(client, sorted(without_rows))


def _shown(report: LagReport, by: By, *, members: bool) -> PassOutput:
    from kctl.groups.overview import failures_of

    rows = rows_by(report.rows, by)
    return PassOutput(rows, [lag_table(rows, by, members=members)], failures_of(report), lambda: remarks(report))
