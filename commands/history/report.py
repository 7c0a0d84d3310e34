"""kctl spark report: groups, log dirs and topics over a span of time, as tables and as one HTML page. No Java."""

from __future__ import annotations

import dataclasses
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.group.choice import MATCH
from kctl.commands.history.lag_view import require_match, share_groups_left_out
from kctl.commands.spark.run import Conf, From, GroupGlobs, Memory, Store, To, TopicGlobs, running, settings_of, span_of
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.out_file import HTML_REPORT, ask_to_replace, write_whole
from kctl.commands.terminal.views import incomplete
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.history.lag.plan import Wanted
    from kctl.history.report.build import ReadGroups
    from kctl.history.report.model import Report
    from kctl.spark.settings import SparkSettings


def report(
    ctx: typer.Context,
    store: Store,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the HTML report to this file.")] = None,
    last: Annotated[str | None, typer.Option(metavar="DURATION", help="The last so long.  [default: 24h]")] = None,
    from_: From = None,
    to: To = None,
    group: GroupGlobs = None,
    match: Annotated[list[str] | None, MATCH] = None,
    topic: TopicGlobs = None,
    window: Annotated[int, typer.Option(min=2, max=1000, help="Readings that a status is made of.")] = 10,
    allowed_lag: Annotated[int, typer.Option(min=0, help="As many messages behind is not behind.")] = 0,
    worst: Annotated[int, typer.Option(min=1, help="Rows of each table here; the page has more.")] = 20,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Let Spark read the groups: local[N], spark://HOST:PORT, …; else kctl does."),
    ] = None,
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Report on groups, log dirs and topics over time, from a store: here as tables, and as a page for browsers.

    What needs somebody comes first. The page is one file that needs no network: charts, a timeline of each group's
    status, what will be lost and what will be full and when, tables to sort and filter. The figures are those of `kctl
    spark lag` and `kctl spark retention`; -o wide has more of them, -o json all that the page shows. Without --master
    no Java is needed.

    Example: kctl spark report --store ./snapshots --last 24h --html report.html
    """
    from kctl.spark.settings import need_packages

    inv = invocation(ctx)
    if inv.output == "csv":
        raise UsageError(
            "a report is no one table", hint="`kctl spark lag -o csv` and `kctl spark retention -o csv` have its rows"
        )
    from_ms, to_ms = _span(last, from_, to)
    ask_to_replace(inv, html, "--html", like=HTML_REPORT)
    need_packages()
    if master is None and (conf or driver_memory != "1g"):
        raise UsageError("--conf and --driver-memory are Spark's: they need --master")
    wanted = _wanted(group, match, topic, window, allowed_lag)
    if master is None:
        with output.progress("reading snapshots"):
            found = _report(store, from_ms, to_ms, wanted)
    else:
        found = _by_spark(inv, store, from_ms, to_ms, wanted, settings_of(master, conf, driver_memory))
    if not found.lacking and not found.overview.group_count and not (wanted.groups.everything and found.topics):
        require_match(wanted.groups, wanted.topics)
    if html is not None:
        from kctl.history.report.html_page import html_page

        write_whole(html, html_page(found))
    _show(inv, found, worst)
    if html is not None:
        output.note(f"written to {html}")
    if found.lacking:
        raise incomplete(found.lacking)


def _show(inv: Invocation, found: Report, worst: int) -> None:
    from kctl.commands.history.report_tables import report_tables

    inv.emit(found, lambda: report_tables(found, worst, wide=inv.output == "wide"))


def _by_spark(
    inv: Invocation, store: Path, from_ms: int, to_ms: int, wanted: Wanted, settings: SparkSettings
) -> Report:
    from kctl.spark.report_source import read_by_spark

    wanted = dataclasses.replace(wanted, tasks=settings.parallelism)
    with running(inv, settings, None, overwrite=False, cluster=False) as run:
        spark = run.driver.session()
        with run.watched("reading snapshots"):
            return _report(store, from_ms, to_ms, wanted, read_by_spark(spark))


def _report(store: Path, from_ms: int, to_ms: int, wanted: Wanted, read_groups: ReadGroups | None = None) -> Report:
    from kctl.history.evaluate.windows import NotSorted
    from kctl.history.lag.plan import plan_span
    from kctl.history.report.build import read_here, report_of
    from kctl.history.snapshots.rows import BadRows

    try:
        plan = plan_span(store, from_ms, to_ms, wanted)
        now = datetime.now(timezone.utc)
        found = report_of(plan, made_at=now, until_ms=to_ms, read_groups=read_groups or read_here)
    except (BadRows, NotSorted) as exc:
        raise OperationFailed(f"{store}: {exc}", hint="were files of the store put there by hand?") from exc
    left_out = share_groups_left_out(plan.share, alarming=not wanted.groups.everything)
    return dataclasses.replace(found, lacking=[*found.lacking, *left_out])


def _span(last: str | None, from_: str | None, to: str | None) -> tuple[int, int]:
    """from_ms and to_ms, of the passes with from_ms ≤ at_ms < to_ms."""
    if last is not None and from_ is not None:
        raise UsageError("--last and --from do not go together", hint="choose one of them")
    if to is not None and from_ is None:
        raise UsageError("--to needs --from")
    if last is None and from_ is None:
        last = "24h"
    return span_of(time.time_ns() // 1_000_000, last=last, from_=from_, to=to)


def _wanted(
    group: list[str] | None, match: list[str] | None, topic: list[str] | None, window: int, allowed_lag: int
) -> Wanted:
    from kctl.history.lag.plan import Wanted
    from kctl.lag.selection import names_of

    return Wanted(groups=names_of(group, match), topics=names_of(topic), observations=window, allowed_lag=allowed_lag)
