"""kctl spark report: `kctl history report`, with groups optionally read by Spark."""

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
        typer.Option(
            metavar="URL", help="Read the groups with Spark: local[N], spark://HOST:PORT, … (default: no Spark)."
        ),
    ] = None,
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Report on a cluster over time, as tables or an HTML page.

    Problems come first. The HTML page is one file that needs no network: charts, a status timeline for each group,
    upcoming message losses and full disks, and tables to sort and filter. Values match `kctl spark lag` and `kctl
    spark retention`. -o wide adds columns; -o json has everything that the page shows. Without --master, no Java is
    needed.

    # Write an HTML report on the last day
    kctl spark report --store ./snapshots --last 24h --html report.html
    """
    if master is None:
        if conf or driver_memory != "1g":
            raise UsageError("--conf and --driver-memory need --master", hint="set --master local")
        report_store(invocation(ctx), options, OwnProcesses)
        return
    report_store(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
