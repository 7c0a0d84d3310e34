"""kctl spark retention: the same as `kctl history retention`, evaluated by Spark."""

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
    """Compute what logs take on the disks, and how much of their retention limits they have used.

    With --store also how logs grow, when each disk is full and which topics fill it (usage), which groups lose messages
    by then (losses), how evenly bytes lie (skew), for how long a group that is behind still sees deletions of compacted
    topics (tombstones), and what another retention would free (--what-if). With --log-dir, on a broker's machine or
    of a copy: which segments are expired and what keeps them (segments), what compaction has before it (cleaner).

    `kctl history retention` gives the same answer without Java. -o wide has all columns. Shares go over 100 %:
    Kafka deletes whole segments, by their newest record. Sizes are of segments, without their indexes.

    Example: kctl spark retention --by log-dir --store ./snapshots --full-within 7d

    Example: kctl spark retention --store ./snapshots --what-if retention.ms=3d --topic 'logs-*'
    """
    report_retention(invocation(ctx), options, lambda: Spark(settings_of(master, conf, driver_memory)))
