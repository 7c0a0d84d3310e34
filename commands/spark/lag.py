"""kctl spark lag: the same as `kctl history lag`, evaluated by Spark."""

from __future__ import annotations

import typer

from kctl.commands.history.lag import LagOptions, report_lag
from kctl.commands.spark.engine import Conf, Master, Memory, Spark, settings_of
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.option_sets import takes_options


@takes_options(LagOptions)
def lag(
    ctx: typer.Context, options: LagOptions, master: Master = "local", conf: Conf = None, driver_memory: Memory = "1g"
) -> None:
    """Compute consumer lag, its time, rates and dangers with Spark: now, over a time, or at any moment of a store.

    The cluster alone tells lag and what was lost. History (--store) tells how old unread messages are, rates, when
    the lag is gone, when unread messages are deleted, and a status: OK, WARN, STOP, STALL or REWIND, by the rules of
    Burrow. `kctl history lag` gives the same answer without Java. -o wide has offsets, rates and members too.

    Example: kctl spark lag --store ./snapshots --last 15m --worst 10 --fail-on ERR --fail-on 'loss<1h'
    """
    report_lag(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
