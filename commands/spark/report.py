"""kctl spark report: the same as `kctl history report`; groups can be read by Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.history.engine import OwnProcesses
from kctl.commands.history.report import ReportOptions, report_store
from kctl.commands.spark.engine import Conf, Memory, Spark, settings_of
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.errors import UsageError


@takes_options(ReportOptions)
def report(
    ctx: typer.Context,
    options: ReportOptions,
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
    if master is None:
        if conf or driver_memory != "1g":
            raise UsageError("--conf and --driver-memory are Spark's: they need --master")
        report_store(invocation(ctx), options, OwnProcesses)
        return
    report_store(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
