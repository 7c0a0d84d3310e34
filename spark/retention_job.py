"""The retention report as a Spark job: the rows of kctl.lag.retention, computed over columns.

The results equal those of retention.usage in plain Python; tests/integration/spark/test_columns.py compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from kctl.history.retention.usage import BROKER, PARTITION, ROWS, TOPIC
from kctl.lag.retention import at
from kctl.spark import columns, sources

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from kctl.history.retention.live_plan import RetentionPlan
    from kctl.protocol.target import Target

_LOG = ("topic", "partition", "leader", "log_start_offset", "log_end_offset", "oldest_timestamp_ms")
_CONFIG = ("cleanup_policy", "segment_bytes", "retention_bytes", "retention_ms")


@dataclass(frozen=True)
class RetentionReadings:
    """Rows read from the cluster, in the columns of the row types of kctl.history.retention.live_reads."""

    logs: DataFrame
    log_dirs: DataFrame
    configs: DataFrame


class RetentionJob:
    """Reports computed from one reading of the cluster. now_ms: ages are relative to this time."""

    def __init__(self, readings: RetentionReadings, *, now_ms: int) -> None:
        self._readings = RetentionReadings(
            logs=sources.once(readings.logs),
            log_dirs=sources.once(readings.log_dirs),
            configs=sources.once(readings.configs),
        )
        self._now_ms = now_ms

    def frame(self, by: str) -> DataFrame:
        """Return the report's rows: the columns of ROWS[by], with oldest_timestamp as a Spark timestamp.

        The rows are in no particular order.
        """
        result = self._with_times(by)
        timestamp = F.timestamp_millis("oldest_timestamp_ms").alias("oldest_timestamp")
        return result.select(*(timestamp if f == "oldest_timestamp" else F.col(f) for f in _names(by)))

    def rows(self, by: str) -> list[Any]:
        """Return the report's rows as ROWS[by], sorted."""
        names = ["oldest_timestamp_ms" if name == "oldest_timestamp" else name for name in _names(by)]
        time_index = names.index("oldest_timestamp_ms")
        result = [
            ROWS[by](*row[:time_index], at(row[time_index]), *row[time_index + 1 :])
            for row in self._with_times(by).select(*names).collect()
        ]
        keys = [name for name in ("broker", "log_dir", "topic", "partition") if name in names]
        return sorted(result, key=lambda row: tuple(getattr(row, key) for key in keys))

    def failures(self) -> list[str]:
        """Return one line for each reason why something could not be read."""
        readings = self._readings
        brokers = F.concat(F.lit("log dirs of broker "), F.col("broker").cast("string"))
        logs = F.concat(F.lit("partition "), "topic", F.lit("-"), F.col("partition").cast("string"))
        every = (
            _errors(readings.log_dirs, brokers)
            .union(_errors(readings.logs, logs))
            .union(_errors(readings.configs, F.concat(F.lit("configs of topic "), "topic")))
        )
        # One dead broker causes many failures: report each reason once, with the first object that failed.
        reasons = every.groupBy("error").agg(F.min("what").alias("what"), F.count(F.lit(1)).alias("times"))
        return [
            f"{what}{f' and {times - 1} more' if times > 1 else ''}: {error}"
            for error, what, times in sorted(reasons.collect())
        ]

    # --- frames, with oldest_timestamp_ms ---------------------------------------------------------------------

    def _with_times(self, by: str) -> DataFrame:
        if by == PARTITION:
            return self._partitions()
        if by == TOPIC:
            return self._topics()
        return self._places("broker") if by == BROKER else self._places("broker", "log_dir")

    def _copies(self) -> DataFrame:
        replicas = self._readings.log_dirs.where(F.col("topic").isNotNull())
        return replicas.select("topic", "partition", "broker", "log_dir", "size_bytes", "future")

    def _dirs(self) -> DataFrame:
        dirs = self._readings.log_dirs.where(F.col("topic").isNull() & F.col("log_dir").isNotNull())
        return dirs.select("broker", "log_dir", "total_bytes", "usable_bytes")

    def _configs(self) -> DataFrame:
        return self._readings.configs.select("topic", *_CONFIG)

    def _partitions(self) -> DataFrame:
        current = F.col("broker").isNotNull() & ~F.col("future")
        leading = current & (F.col("broker") == F.col("leader"))
        sizes = (
            self._readings.logs.select(*_LOG)
            .join(self._copies(), ["topic", "partition"], "left")
            .groupBy(*_LOG)
            .agg(
                F.count_if(current).alias("replica_count"),
                F.max(F.when(leading, F.col("size_bytes"))).alias("size_bytes"),
                F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("replicas_bytes"),
            )
        )
        return self._with_shares(sizes.join(self._configs(), "topic", "left"))

    def _with_shares(self, frame: DataFrame) -> DataFrame:
        """Add oldest_age_ms and both shares, from size_bytes, oldest_timestamp_ms and the configs."""
        age, policy = columns.age_ms(self._now_ms, F.col("oldest_timestamp_ms")), F.col("cleanup_policy")
        return frame.withColumns(
            {
                "oldest_age_ms": age,
                "retention_bytes_used": columns.used(F.col("size_bytes"), F.col("retention_bytes"), policy),
                "retention_ms_used": columns.used(age, F.col("retention_ms"), policy),
            }
        )

    def _topics(self) -> DataFrame:
        return self._partitions().groupBy("topic", *_CONFIG).agg(
            F.count(F.lit(1)).alias("partition_count"),
            F.sum("replica_count").alias("replica_count"),
            F.sum("size_bytes").alias("size_bytes"),
            F.sum("replicas_bytes").alias("replicas_bytes"),
            *_worst(),
        )  # fmt: skip

    def _places(self, *keys: str) -> DataFrame:
        """Return brokers or log dirs, each with the usage of its copies."""
        oldest = self._readings.logs.select("topic", "partition", "oldest_timestamp_ms")
        copies = self._with_shares(
            self._copies().join(oldest, ["topic", "partition"], "left").join(self._configs(), "topic", "left")
        )
        usage = copies.groupBy(*keys).agg(
            F.countDistinct("topic").alias("topic_count"),
            F.count_if(~F.col("future")).alias("replica_count"),
            F.sum("size_bytes").alias("size_bytes"),
            *_worst(),
        )
        used = columns.disk_used(F.col("total_bytes"), F.col("usable_bytes"))
        dirs = self._dirs().withColumn("disk_used", used)
        if "log_dir" not in keys:
            dirs = dirs.groupBy(*keys).agg(
                F.count(F.lit(1)).alias("log_dir_count"), F.max("disk_used").alias("disk_used")
            )
        empty = {name: F.coalesce(F.col(name), F.lit(0)) for name in ("topic_count", "replica_count", "size_bytes")}
        return dirs.join(usage, list(keys), "left").withColumns(empty)


def retention_job(
    spark: SparkSession, target: Target, plan: RetentionPlan, *, now_ms: int, timeout_s: float = 30.0
) -> RetentionJob:
    """Return the job that reads `target` as planned; nothing runs before the first action."""
    readings = RetentionReadings(
        logs=sources.load(spark, sources.LOGS, target, plan.partitions, timeout_s=timeout_s),
        log_dirs=sources.load(spark, sources.LOG_DIRS, target, plan.brokers, timeout_s=timeout_s),
        configs=sources.load(spark, sources.CONFIGS, target, plan.topics, timeout_s=timeout_s),
    )
    return RetentionJob(readings, now_ms=now_ms)


def _worst() -> list[Column]:
    """Return the largest shares and the oldest record of a group of rows."""
    return [
        F.max("retention_bytes_used").alias("retention_bytes_used"),
        F.max("retention_ms_used").alias("retention_ms_used"),
        F.max("oldest_age_ms").alias("oldest_age_ms"),
        F.min("oldest_timestamp_ms").alias("oldest_timestamp_ms"),
    ]


def _errors(frame: DataFrame, what: Column) -> DataFrame:
    return frame.where(F.col("error").isNotNull()).select(what.alias("what"), "error")


def _names(by: str) -> list[str]:
    return [field.name for field in fields(ROWS[by])]
