"""kctl spark trends: the same as `kctl history trends`; missing roll-ups can be made by Spark."""

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
        typer.Option(metavar="URL", help="Make missing roll-ups with Spark: local[N], spark://HOST:PORT, …"),
    ] = None,
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Show how lag, topics or disks changed over weeks and months, from roll-ups that are kept beside the snapshots.

    Each hour of snapshots that has ended is rolled up once, and each day; roll-ups stay when snapshots expire. A table
    has a line for each group's topic, topic or log dir; the other formats have a row for each period.

    Example: kctl spark trends --store ./snapshots --of groups --every day --last 30d
    """
    if master is None:
        if conf:
            raise UsageError("--conf is for Spark: it needs --master")
        report_trends(invocation(ctx), options, OwnProcesses)
        return
    report_trends(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
