"""kctl spark retention: `kctl history retention`, evaluated by Spark."""

from __future__ import annotations

import typer

from kctl.commands.history.retention import RetentionOptions, report_retention
from kctl.commands.spark.engine import Conf, Master, Memory, Spark, settings_of
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.option_sets import takes_options


@takes_options(RetentionOptions)
def retention(
    ctx: typer.Context,
    options: RetentionOptions,
    master: Master = "local",
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Report disk usage, growth and retention of logs with Spark.

    With --store, --show selects one of these reports: growth, when each disk will be full and which topics fill it
    (usage); messages that groups will lose before then (losses); how evenly bytes are distributed (skew); how long
    a lagging group still sees tombstones of compacted topics (tombstones). With --log-dir, on a broker's host or on
    a copy: expired segments and what retains them (segments); pending compaction (cleaner). --what-if shows the
    effect of a different retention.

    `kctl history retention` gives the same result without Java. -o wide shows all columns. Usage can exceed 100%,
    because Kafka deletes only whole segments. Sizes are of segments, without indexes.

    # Exit 1 if a disk will be full within a week
    kctl spark retention --by log-dir --store ./snapshots --full-within 7d

    # Show the effect of keeping the logs-* topics for three days
    kctl spark retention --store ./snapshots --what-if retention.ms=3d --topic 'logs-*'
    """
    report_retention(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
