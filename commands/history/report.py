"""kctl history report: groups, log dirs and topics over a time span, as tables and as one HTML page."""

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
from kctl.commands.history.engine import OwnProcesses, ReportEngine
from kctl.commands.history.lag_view import require_match, skipped_share_groups
from kctl.commands.history.options import From, GroupGlobs, Store, To, TopicGlobs, span_of
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.out_file import HTML_REPORT, ask_to_replace, write_whole
from kctl.commands.terminal.views import incomplete
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.history.lag.plan import LagRequest
    from kctl.history.report.build import ReadGroups
    from kctl.history.report.model import Report


@dataclass(frozen=True)
class ReportOptions:
    """Options of `kctl history report` and `kctl spark report`."""

    store: Store
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the HTML report to this file.")] = None
    last: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Report on the last DURATION (default: 24h).")
    ] = None
    from_: From = None
    to: To = None
    group: GroupGlobs = None
    match: Annotated[list[str] | None, MATCH] = None
    topic: TopicGlobs = None
    window: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of recent snapshots that determine a status.")
    ] = 10
    allowed_lag: Annotated[int, typer.Option(min=0, help="Lag up to this many messages counts as caught up.")] = 0
    worst: Annotated[int, typer.Option(min=1, help="Maximum rows per terminal table; the page has more.")] = 20


@takes_options(ReportOptions)
def report(ctx: typer.Context, options: ReportOptions) -> None:
    """Report on a cluster over time, as tables or an HTML page.

    Problems come first. The HTML page is one file that needs no network: charts, a status timeline for each group,
    upcoming message losses and full disks, and tables to sort and filter. Values match `kctl history lag` and `kctl
    history retention`. -o wide adds columns; -o json has everything that the page shows.

    # Write an HTML report on the last day
    kctl history report --store ./snapshots --last 24h --html report.html
    """
    report_store(invocation(ctx), options, OwnProcesses)


def report_store(inv: Invocation, options: ReportOptions, engine: Callable[[], ReportEngine]) -> None:
    """Run `kctl history report` or `kctl spark report`. engine: called once the options are validated."""
    html = options.html
    if inv.output == "csv":
        raise UsageError(
            "a report has several tables and cannot be written as CSV",
            hint="use `kctl history lag -o csv` or `kctl history retention -o csv`",
        )
    from_ms, to_ms = _span(options)
    ask_to_replace(inv, html, "--html", like=HTML_REPORT)
    runner = engine()
    request = _report_request(options, runner.tasks)
    with runner.running(inv) as run, run.watched("reading snapshots"):
        document = _report(options.store, from_ms, to_ms, request, run.groups())
    if (
        not document.lacking
        and not document.overview.group_count
        and not (request.groups.everything and document.topics)
    ):
        require_match(request.groups, request.topics)
    if html is not None:
        from kctl.history.report.html_page import html_page

        write_whole(html, html_page(document))
    _show(inv, document, options.worst)
    if html is not None:
        output.note(f"written to {html}")
    if document.lacking:
        raise incomplete(document.lacking)


def _show(inv: Invocation, document: Report, worst: int) -> None:
    from kctl.commands.history.report_tables import report_tables

    inv.emit(document, lambda: report_tables(document, worst, wide=inv.output == "wide"))


def _report(store: Path, from_ms: int, to_ms: int, request: LagRequest, read_groups: ReadGroups) -> Report:
    from kctl.history.evaluate.windows import NotSorted
    from kctl.history.lag.plan import plan_span
    from kctl.history.report.build import report_of
    from kctl.history.snapshots.rows import BadRows

    try:
        plan = plan_span(store, from_ms, to_ms, request)
        now = datetime.now(timezone.utc)
        document = report_of(plan, made_at=now, until_ms=to_ms, read_groups=read_groups)
    except (BadRows, NotSorted) as exc:
        raise OperationFailed(f"{store}: {exc}", hint="check whether files were copied into the store by hand") from exc
    skipped = skipped_share_groups(plan.share, alarming=not request.groups.everything)
    return dataclasses.replace(document, lacking=[*document.lacking, *skipped])


def _span(options: ReportOptions) -> tuple[int, int]:
    """Return (from_ms, to_ms) for the snapshots with from_ms ≤ at_ms < to_ms."""
    last = options.last
    if last is not None and options.from_ is not None:
        raise UsageError("--last and --from do not go together", hint="choose one of them")
    if options.to is not None and options.from_ is None:
        raise UsageError("--to needs --from", hint="set --from TIME")
    if last is None and options.from_ is None:
        last = "24h"
    return span_of(time.time_ns() // 1_000_000, last=last, from_=options.from_, to=options.to)


def _report_request(options: ReportOptions, tasks: int) -> LagRequest:
    from kctl.history.lag.plan import LagRequest
    from kctl.lag.selection import names_of

    return LagRequest(
        groups=names_of(options.group, options.match),
        topics=names_of(options.topic),
        observations=options.window,
        allowed_lag=options.allowed_lag,
        tasks=tasks,
    )
