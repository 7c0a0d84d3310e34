"""kctl spark lag: `kctl history lag`, evaluated by Spark."""

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
    """Report consumer lag, rates and losses with Spark.

    Without a store, shows lag, messages already lost, the age of unread messages, and when retention.ms deletes them.
    A store (--store) adds rates, when the group catches up, when it will lose messages, and a status by Burrow's
    rules: OK, WARN, STOP, STALL or REWIND. `kctl history lag` gives the same result without Java. -o wide adds offsets,
    rates and members.

    # Show the ten worst rows; exit 1 on an error or a loss within the hour
    kctl spark lag --store ./snapshots --last 15m --worst 10 --fail-on ERR --fail-on 'loss<1h'
    """
    report_lag(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
