"""The lag of consumer groups as a Spark job: the rows of kctl.lag.rules, computed over columns.

The cluster is read once; the joined rows are kept while they are searched for failures, added up and written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kctl.groups.describe import Group
from kctl.lag.collect import LagReport
from kctl.lag.rules import GroupLag, LagRow, TopicLag
from kctl.model import TopicPartition
from kctl.spark import columns, sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession

    from kctl.context import Target
    from kctl.spark.planning import LagPlan

PARTITION, TOPIC, GROUP = "partition", "topic", "group"
ROWS: dict[str, type[Any]] = {PARTITION: LagRow, TOPIC: TopicLag, GROUP: GroupLag}
_TOPIC_FIELDS = tuple(field.name for field in fields(TopicLag))
_GROUP_FIELDS = tuple(field.name for field in fields(GroupLag))


class LagJob:
    """One reading of the cluster and what is made of it. failed: what could not be asked, with the reason."""

    def __init__(self, rows: DataFrame, failed: Mapping[str, str]) -> None:
        self._rows = sources.once(rows)
        self._failed = dict(failed)

    def frame(self, by: str) -> DataFrame:
        """The report's rows: the columns of LagRow, TopicLag or GroupLag, in no order."""
        partitions = self._rows.where(F.col("topic").isNotNull()).select(*LagRow._fields)
        if by == TOPIC:
            return added_up(partitions.groupBy("group", "state", "topic")).select(*_TOPIC_FIELDS)
        if by == GROUP:
            topics = F.countDistinct("topic").alias("topics")
            return added_up(partitions.groupBy("group", "state"), topics).select(*_GROUP_FIELDS)
        return partitions

    def rows(self, by: str) -> list[Any]:
        """`frame(by)` as LagRow, TopicLag or GroupLag, sorted as `kctl lag` sorts."""
        found = [ROWS[by](*row) for row in self.frame(by).collect()]
        return sorted(found, key=lambda row: tuple(getattr(row, key, 0) for key in ("group", "topic", "partition")))

    def report(self) -> LagReport:
        """What the rows do not say: groups without any, topics that are gone, what could not be read. Its `rows` are
        empty and `groups` holds only those without rows."""
        odd = self._rows.where(
            F.col("topic").isNull() | F.col("exists").isNull() | F.col("log_error").isNotNull()
        ).select("group", "state", "topic", "partition", "exists", "error", "log_error")
        silent: dict[str, Group] = {}
        deleted: set[TopicPartition] = set()
        unread: dict[TopicPartition, str] = {}
        reasons: dict[str, list[str]] = {}
        for group, state, topic, partition, exists, error, log_error in odd.collect():
            if error is not None:
                reasons.setdefault(error, []).append(group)
            elif topic is None:
                silent[group] = Group(group, state, "", None, -1)
            elif exists is None:
                deleted.add(TopicPartition(topic, partition))
            else:
                unread[TopicPartition(topic, partition)] = log_error
        failed = self._failed | {_some(sorted(names)): error for error, names in reasons.items()}
        return LagReport([], silent, sorted(deleted), dict(sorted(unread.items())), failed)


def lag_job(spark: SparkSession, target: Target, plan: LagPlan, *, timeout_s: float = 30.0) -> LagJob:
    """The job that reads what `plan` says of `target`; nothing runs before the first action."""
    commits = sources.load(spark, sources.COMMITS, target, plan.groups, timeout_s=timeout_s)
    logs = sources.load(spark, sources.LOGS, target, plan.partitions, timeout_s=timeout_s)
    return LagJob(with_lag(commits, logs), plan.failed)


def with_lag(commits: DataFrame, logs: DataFrame) -> DataFrame:
    """Commits beside their logs, with lag and lost; `exists` is null where there is no such log."""
    ends = logs.select(
        "topic",
        "partition",
        "log_start_offset",
        "log_end_offset",
        F.col("error").alias("log_error"),
        F.lit(True).alias("exists"),
    )
    committed, start, end = (F.col(f"{name}_offset") for name in ("committed", "log_start", "log_end"))
    return commits.join(ends, ["topic", "partition"], "left").withColumns(
        {"lag": columns.lag_of(committed, start, end), "lost": columns.lost_of(committed, start)}
    )


def added_up(grouped: GroupedData, *more: Any) -> DataFrame:
    """Sums as kctl.lag.rules has them: over what is known, null when nothing is."""
    committed, lag = F.col("committed_offset"), F.col("lag")
    return grouped.agg(
        *more,
        F.count(F.lit(1)).alias("partitions"),
        F.sum("lag").alias("lag"),
        F.max("lag").alias("max_lag"),
        F.sum("lost").alias("lost"),
        F.count_if(committed.isNull()).alias("not_committed"),
        F.count_if(committed.isNotNull() & lag.isNull()).alias("unknown"),
    )


def _some(groups: list[str], limit: int = 5) -> str:
    """One dead coordinator is the reason of many failures: name a few groups, and count the others."""
    if len(groups) == 1:
        return groups[0]
    more = f" and {len(groups) - limit} more" if len(groups) > limit else ""
    return f"groups {', '.join(groups[:limit])}{more}"
