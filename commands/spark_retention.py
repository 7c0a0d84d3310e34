"""kctl spark retention: what logs take on the disks, computed by PySpark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any

import typer

from kctl.commands.invocation import invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.spark_run import (
    REQUEST_TIMEOUT_S,
    Conf,
    Master,
    Memory,
    Overwrite,
    Parquet,
    TopicNames,
    running,
    settings_of,
    show_bytes_limit,
    show_duration,
    show_size,
    topic_names,
)
from kctl.commands.views import incomplete


class RetentionBy(str, Enum):
    """What a row is."""

    TOPIC = "topic"
    PARTITION = "partition"
    BROKER = "broker"
    LOG_DIR = "log-dir"


def retention(
    ctx: typer.Context,
    topic: TopicNames = None,
    by: Annotated[RetentionBy, typer.Option(help="What a row is.")] = RetentionBy.TOPIC,
    parquet: Parquet = None,
    overwrite: Overwrite = False,
    master: Master = "local",
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Compute what logs take on the disks, and how much of their retention limits they have used.

    Shares go over 100 %: Kafka deletes whole segments, by their newest record. Sizes are of segments, without
    their indexes.

    Example: kctl spark retention --by log-dir
    """
    inv = invocation(ctx)
    topics = topic_names(topic)
    settings = settings_of(master, conf, driver_memory)
    with running(inv, settings, parquet, overwrite=overwrite) as run:
        from kctl.spark.planning import plan_retention

        with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
            plan = plan_retention(client, topics=topics, parallelism=settings.parallelism)
            target = client.target
        spark = run.driver.session()
        from kctl.spark.retention_job import retention_job

        now_ms = time.time_ns() // 1_000_000
        with run.watched("reading logs"):
            job = retention_job(spark, target, plan, now_ms=now_ms, timeout_s=REQUEST_TIMEOUT_S)
            failures = job.failures()
            rows = job.rows(by.value)
            run.write(job.frame(by.value))
        run.emit(inv, rows, lambda: [_retention_table(rows, by)])
    if failures:
        raise incomplete(failures)


# --- tables -------------------------------------------------------------------------------------------------------


def _retention_table(rows: Sequence[Any], by: RetentionBy) -> Table:
    columns = {
        RetentionBy.TOPIC: [Column("topic"), _number("partitions"), *_sizes("size_bytes"), _limit(), *_shares()],
        RetentionBy.PARTITION: [
            Column("topic"), _number("partition"), _number("leader"), _number("replicas"),
            *_sizes("size_bytes"), _limit(), *_shares(),
        ],
        RetentionBy.BROKER: [
            _number("broker"), _number("log_dirs"), _number("topics"), _number("replicas"),
            *_sizes("size_bytes", replicas=False), _share("disk_used", "DISK"), *_shares(),
        ],
        RetentionBy.LOG_DIR: [
            _number("broker"), Column("log_dir"), _number("replicas"),
            *_sizes("size_bytes", replicas=False),
            Column("usable_bytes", "FREE", show=show_size, align="right"), _share("disk_used", "DISK"), *_shares(),
        ],
    }[by]  # fmt: skip
    return Table(columns, jsonable(rows), empty="nothing there")


def _number(key: str) -> Column:
    return Column(key, align="right")


def _sizes(key: str, *, replicas: bool = True) -> list[Column]:
    size = Column(key, "SIZE", show=show_size, align="right")
    return [size, Column("replicas_bytes", "ALL REPLICAS", show=show_size, align="right")] if replicas else [size]


def _limit() -> Column:
    return Column("retention_bytes", "RETENTION BYTES", show=show_bytes_limit, align="right")


def _shares() -> list[Column]:
    return [
        _share("retention_bytes_used", "BYTES USED"),
        Column("oldest_age_ms", "OLDEST", show=show_duration, align="right"),
        _share("retention_ms_used", "TIME USED"),
    ]


def _share(key: str, header: str) -> Column:
    return Column(
        key,
        header,
        show=_percent,
        align="right",
        style=lambda row: "yellow" if (row[key] or 0) >= 0.9 else None,
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"
