"""kctl history report: groups, log dirs and topics over a span of time, as tables and as one HTML page."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.group.choice import MATCH
from kctl.commands.history.engine import Engine, OwnProcesses
from kctl.commands.history.lag_view import require_match, share_groups_left_out
from kctl.commands.history.options import From, GroupGlobs, Store, To, TopicGlobs, span_of
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.out_file import HTML_REPORT, ask_to_replace, write_whole
from kctl.commands.terminal.views import incomplete
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.history.lag.plan import Wanted
    from kctl.history.report.build import ReadGroups
    from kctl.history.report.model import Report


@dataclass(frozen=True)
class ReportOptions:
    """The options of `kctl history report`, which `kctl spark report` has as well."""

    store: Store
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the HTML report to this file.")] = None
    last: Annotated[str | None, typer.Option(metavar="DURATION", help="The last so long.  [default: 24h]")] = None
    from_: From = None
    to: To = None
    group: GroupGlobs = None
    match: Annotated[list[str] | None, MATCH] = None
    topic: TopicGlobs = None
    window: Annotated[int, typer.Option(min=2, max=1000, help="Readings that a status is made of.")] = 10
    allowed_lag: Annotated[int, typer.Option(min=0, help="As many messages behind is not behind.")] = 0
    worst: Annotated[int, typer.Option(min=1, help="Rows of each table here; the page has more.")] = 20


@takes_options(ReportOptions)
def report(ctx: typer.Context, options: ReportOptions) -> None:
    """Report on groups, log dirs and topics over time, from a store: here as tables, and as a page for browsers.

    What needs somebody comes first. The page is one file that needs no network: charts, a timeline of each group's
    status, what will be lost and what will be full and when, tables to sort and filter. The figures are those of `kctl
    history lag` and `kctl history retention`; -o wide has more of them, -o json all that the page shows.

    Example: kctl history report --store ./snapshots --last 24h --html report.html
    """
    report_store(invocation(ctx), options, OwnProcesses)


def report_store(inv: Invocation, options: ReportOptions, engine: Callable[[], Engine]) -> None:
    """Carry out `kctl history report` or `kctl spark report`. engine: called when options have been checked."""
    html = options.html
    if inv.output == "csv":
        raise UsageError(
            "a report is no one table",
            hint="`kctl history lag -o csv` and `kctl history retention -o csv` have its rows",
        )
    from_ms, to_ms = _span(options)
    ask_to_replace(inv, html, "--html", like=HTML_REPORT)
    chosen = engine()
    wanted = _wanted(options, chosen.tasks)
    with chosen.running(inv) as run, run.watched("reading snapshots"):
        found = _report(options.store, from_ms, to_ms, wanted, run.groups())
    if not found.lacking and not found.overview.group_count and not (wanted.groups.everything and found.topics):
        require_match(wanted.groups, wanted.topics)
    if html is not None:
        from kctl.history.report.html_page import html_page

        write_whole(html, html_page(found))
    _show(inv, found, options.worst)
    if html is not None:
        output.note(f"written to {html}")
    if found.lacking:
        raise incomplete(found.lacking)


def _show(inv: Invocation, found: Report, worst: int) -> None:
    from kctl.commands.history.report_tables import report_tables

    inv.emit(found, lambda: report_tables(found, worst, wide=inv.output == "wide"))


def _report(store: Path, from_ms: int, to_ms: int, wanted: Wanted, read_groups: ReadGroups) -> Report:
    from kctl.history.evaluate.windows import NotSorted
    from kctl.history.lag.plan import plan_span
    from kctl.history.report.build import report_of
    from kctl.history.snapshots.rows import BadRows

    try:
        plan = plan_span(store, from_ms, to_ms, wanted)
        now = datetime.now(timezone.utc)
        found = report_of(plan, made_at=now, until_ms=to_ms, read_groups=read_groups)
    except (BadRows, NotSorted) as exc:
        raise OperationFailed(f"{store}: {exc}", hint="were files of the store put there by hand?") from exc
    left_out = share_groups_left_out(plan.share, alarming=not wanted.groups.everything)
    return dataclasses.replace(found, lacking=[*found.lacking, *left_out])


def _span(options: ReportOptions) -> tuple[int, int]:
    """from_ms and to_ms, of the passes with from_ms ≤ at_ms < to_ms."""
    last = options.last
    if last is not None and options.from_ is not None:
        raise UsageError("--last and --from do not go together", hint="choose one of them")
    if options.to is not None and options.from_ is None:
        raise UsageError("--to needs --from")
    if last is None and options.from_ is None:
        last = "24h"
    return span_of(time.time_ns() // 1_000_000, last=last, from_=options.from_, to=options.to)


def _wanted(options: ReportOptions, tasks: int) -> Wanted:
    from kctl.history.lag.plan import Wanted
    from kctl.lag.selection import names_of

    return Wanted(
        groups=names_of(options.group, options.match),
        topics=names_of(options.topic),
        observations=options.window,
        allowed_lag=options.allowed_lag,
        tasks=tasks,
    )
