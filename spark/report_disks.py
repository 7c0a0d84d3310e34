"""Log dirs and topics of a report: kctl.lag.outlook, with sizes over time, from a store.

`replicas` is read once; everything else is of the newest passes, and small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kctl.lag.growth import GrownReplica, Growth
from kctl.lag.log_config import LogConfig
from kctl.lag.outlook import BrokerOutlook, Outlook
from kctl.lag.retention import LogDirSize, PartitionLog
from kctl.lag.volumes import Disks
from kctl.report.model import LogDirReport, TopicReport
from kctl.snapshots import schema
from kctl.snapshots.read import read_sorted, read_table
from kctl.snapshots.store import Damaged, Store
from kctl.spark.growth_columns import by_key, growths
from kctl.spark.lag_rows import CONFIGS_BACK_MS
from kctl.spark.report_series import Times
from kctl.spark.report_sizes import SizeWatch
from kctl.spark.size_source import REPLICAS, SizesAsked, volumes

_LOGS = ("at_ms", "topic", "partition", "leader", "log_start_offset", "log_end_offset", "oldest_timestamp_ms")
_DIRS = ("at_ms", "broker", "log_dir", "total_bytes", "usable_bytes", "error")


class DiskReports(NamedTuple):
    """Log dirs that are full first at the top; the largest topics at the top."""

    brokers: list[BrokerOutlook]
    log_dirs: list[LogDirReport]
    topics: list[TopicReport]


def disk_reports(store: Store, asked: SizesAsked, times: Times, since_ms: int, damaged: list[Damaged]) -> DiskReports:
    """since_ms: the newest complete pass; older ones tell nothing of now. Raises KctlError, BadRows."""
    sizes = SizeWatch(times)
    copies = read_sorted(store, schema.REPLICAS, asked.from_ms, asked.to_ms, damaged=damaged.append)
    replicas = [_replica(*each) for each in by_key(growths(sizes.watch(copies), REPLICAS), REPLICAS.names)]
    newest = _Newest(store, since_ms, asked.to_ms, damaged)
    dirs = newest.rows(schema.LOG_DIRS, _DIRS, ("broker", "log_dir"))
    configs = newest.rows(schema.CONFIGS, ("at_ms", *LogConfig._fields), ("topic",), CONFIGS_BACK_MS)
    outlook = Outlook(
        Disks(
            replicas,
            volumes(store, asked, damaged=damaged.append),
            [
                PartitionLog(*(row[name] for name in _LOGS[1:]))
                for row in newest.rows(schema.LOGS, _LOGS, ("topic", "partition"))
            ],
            {row["topic"]: LogConfig(*(row[name] for name in LogConfig._fields)) for row in configs},
        ),
        [LogDirSize(*(row[name] for name in _DIRS[1:5])) for row in dirs],
        now_ms=int(times.passes[-1]),
    )
    errors = {(row["broker"], row["log_dir"]): row["error"] for row in dirs}
    log_dirs = [
        LogDirReport(row, errors.get((row.broker, row.log_dir)), sizes.log_dir(row.broker, row.log_dir))
        for row in outlook.by_log_dir()
    ]
    topics = [TopicReport(row, sizes.topic(row.topic)) for row in outlook.by_topic()]
    topics.sort(key=lambda each: (-each.now.replicas_bytes, each.now.topic))
    return DiskReports(outlook.by_broker(), sorted(log_dirs, key=_first_full), topics)


def _replica(key: tuple[Any, ...], growth: Growth) -> GrownReplica:
    topic, partition, broker, log_dir, future, offset_lag = key
    return GrownReplica(topic, partition, broker, log_dir, future, offset_lag, growth)


def _first_full(row: LogDirReport) -> tuple[float, float, int, str]:
    eta = float("inf") if row.now.full_ms is None else float(row.now.full_ms)
    return (eta, -(row.now.disk_used or 0.0), row.now.broker, row.now.log_dir)


class _Newest(NamedTuple):
    """The newest rows of a store's tables."""

    store: Store
    from_ms: int
    to_ms: int
    damaged: list[Damaged]

    def rows(
        self, table: str, columns: tuple[str, ...], key: tuple[str, ...], back_ms: int = 0
    ) -> list[Mapping[str, Any]]:
        """Of each key, in the order of keys; looked for that much further back."""
        found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for row in self._all(table, columns, back_ms):
            name = tuple(row[column] for column in key)
            if name not in found or found[name]["at_ms"] <= row["at_ms"]:
                found[name] = row
        return [found[name] for name in sorted(found)]

    def _all(self, table: str, columns: tuple[str, ...], back_ms: int) -> Iterator[Mapping[str, Any]]:
        from_ms = max(self.from_ms - back_ms, 0)
        for batch in read_table(self.store, table, from_ms, self.to_ms, damaged=self.damaged.append, columns=columns):
            yield from batch.to_pylist()
