"""kctl spark trends: `kctl history trends`, with missing rollups optionally created by Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.history.engine import OwnProcesses
from kctl.commands.history.trends import TrendsOptions, report_trends
from kctl.commands.spark.engine import Conf, Memory, Spark, settings_of
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.errors import UsageError


@takes_options(TrendsOptions)
def trends(
    ctx: typer.Context,
    options: TrendsOptions,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Create missing roll-ups with Spark: local[N], spark://HOST:PORT, … (default: no Spark).",
        ),
    ] = None,
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Show trends of lag, topics or disks over weeks and months.

    Each hour and each day is rolled up once it has ended. Roll-ups are kept when snapshots expire. A table has one row
    per group and topic, per topic, or per log dir; other formats have one row per period.

    # Show the daily lag of groups over 30 days
    kctl spark trends --store ./snapshots --of groups --every day --last 30d
    """
    if master is None:
        if conf:
            raise UsageError("--conf needs --master", hint="set --master local")
        report_trends(invocation(ctx), options, OwnProcesses)
        return
    report_trends(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
