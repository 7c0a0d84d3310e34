"""Read a snapshot store for the retention reports.

Two inputs are large: the sizes of replicas over the span, and the last readings of groups. Both are read here or by
Spark's tasks (kctl.spark.store_reads), which reduce them to one row per replica or reading for the retention rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.errors import NotFound
from kctl.history.evaluate import reading_batches
from kctl.history.evaluate.group_ranges import GroupRange, group_ranges
from kctl.history.evaluate.processes import each_share
from kctl.history.evaluate.reading_batches import ReadingsQuery
from kctl.history.retention import replica_growth
from kctl.history.retention.deletion import Deletion, Limits, Log, deletion, loss_eta_ms
from kctl.history.retention.disk_loss import ConsumingGroup
from kctl.history.retention.outlook import Outlook
from kctl.history.retention.replica_growth import SizesQuery
from kctl.history.retention.volumes import Disks, Partition
from kctl.history.snapshots import read_progress, schema
from kctl.history.snapshots.disk_moment import DiskMoment, disk_moment, ends_near
from kctl.history.snapshots.read import stored_bytes
from kctl.history.snapshots.remote import as_given, parse_location, text_of
from kctl.history.snapshots.store import Damaged, Store, open_store
from kctl.history.snapshots.whole import check_files
from kctl.lag.log_config import LogConfig
from kctl.lag.rates import LogEnd, time_lag
from kctl.lag.selection import EVERY, Names

if TYPE_CHECKING:
    from kctl.history.evaluate.column_arrays import Watch

_BYTES_PER_PROCESS = 8 << 20  # Parquet bytes that a process reads in about the time that it takes to start
READERS = (
    "group", "topic", "partition", "committed_offset", "log_start_offset", "log_end_offset", "lag", "time_lag_ms",
    "time_lag_least_ms", "consumed_per_s", "produced_per_s", "catch_up_ms", "error",
)  # fmt: skip


@dataclass
class StoreReads:
    """The reads for one report, over the passes with from_ms ≤ at_ms < to_ms of a store.

    watch: gets all sizes as they are read, in this process. at_once: number of processes that read.
    errors: read failures so far.
    """

    store: Store
    from_ms: int
    to_ms: int
    watch: Watch | None = None
    at_once: int = 1
    _damaged: dict[str, None] = field(default_factory=dict)

    @property
    def errors(self) -> list[str]:
        """Return a line for each read failure."""
        return as_given(self._damaged, self.store.root)

    def outlook(self) -> tuple[Outlook, DiskMoment]:
        """Return the state of the disks. Raises NotFound if the store has no pass in the span."""
        moment = disk_moment(self.store, self.from_ms, self.to_ms, damaged=self._report)
        if moment is None:
            raise NotFound(
                f"{self.store.root} has no snapshot of that time", hint="collect snapshots with `kctl history snapshot`"
            )
        query = SizesQuery(text_of(self.store.root), self.from_ms, moment.at_ms + 1)
        read_progress.begin("evaluating replicas", len(moment.logs), "partitions")
        replicas, errors = replica_growth.replicas_of(self._sizes(query))
        self._damaged.update(dict.fromkeys(errors))
        check_files(self.store, (schema.LOGS, schema.CONFIGS), self.from_ms, moment.at_ms + 1, damaged=self._report)
        volumes = replica_growth.volumes(self.store, query, damaged=self._report)
        self._damaged.update(dict.fromkeys(moment.failures))
        disks = Disks(replicas, volumes, moment.logs, moment.configs)
        return Outlook(disks, moment.log_dirs, now_ms=moment.at_ms), moment

    def readers(self, outlook: Outlook, *, chosen: Names = EVERY) -> list[ConsumingGroup]:
        """Return each group's last reading of each partition of the selected topics."""
        replicas: dict[Partition, int] = {}
        for each in outlook.disks.current():
            if not each.future:
                replicas[each.topic, each.partition] = replicas.get((each.topic, each.partition), 0) + 1
        query = ReadingsQuery(text_of(self.store.root), outlook.now_ms, outlook.now_ms + 1, last_only=True)
        read_progress.begin("evaluating groups", None, "partitions")
        oldest = {(log.topic, log.partition): log.oldest_timestamp_ms for log in outlook.disks.logs}
        result = []
        for row in self._readings(query):
            if row["error"] is not None:
                self._damaged[row["error"]] = None
            elif row["topic"] in chosen:
                partition = (row["topic"], row["partition"])
                lag_ms = _time_lag(row, oldest.get(partition), outlook.now_ms)
                result.append(_reader(row, lag_ms, outlook, replicas.get(partition, 0)))
        return result

    def ends_near(self, moments_ms: Iterable[int], until_ms: int) -> dict[Partition, list[LogEnd]]:
        """Return the log ends at about these times, in order of time."""
        result: dict[Partition, list[LogEnd]] = {}
        for moment_ms in sorted(set(moments_ms)):
            for partition, ends in ends_near(self.store, moment_ms, until_ms, damaged=self._report).items():
                result.setdefault(partition, []).extend(ends)
        return {partition: sorted(set(ends)) for partition, ends in result.items()}

    def _report(self, damaged: Damaged) -> None:
        self._damaged[str(damaged)] = None

    def _sizes(self, query: SizesQuery) -> Iterable[Sequence[Any]]:
        """Return the rows of replica_growth.ARROW, in any order."""
        if self.watch is not None:
            return replica_growth.rows_of(replica_growth.read(query, watch=self.watch))
        ranges = replica_growth.topic_ranges(
            self.store, query.from_ms, query.to_ms, self._parts(schema.REPLICAS, query), damaged=self._report
        )
        return [row for rows in each_share(partial(_size_rows, query), ranges) for row in rows]

    def _readings(self, query: ReadingsQuery) -> Iterator[dict[str, Any]]:
        """Return the columns READERS of each reading, in any order."""
        ranges = group_ranges(
            self.store, query.from_ms, query.to_ms, self._parts(schema.COMMITS, query), damaged=self._report
        )
        for rows in each_share(partial(_reading_rows, query), ranges):
            yield from rows

    def _parts(self, table: str, span: SizesQuery | ReadingsQuery) -> int:
        """Return the number of parts into which a read is worth splitting."""
        if self.at_once == 1:
            return 1
        read_from_ms = getattr(span, "read_from_ms", span.from_ms)
        size = stored_bytes(self.store, table, read_from_ms, span.to_ms)
        return max(1, min(self.at_once, size // _BYTES_PER_PROCESS))


def _size_rows(query: SizesQuery, topics: GroupRange) -> list[Sequence[Any]]:
    return list(replica_growth.rows_of(replica_growth.read(query, topics)))


def _reading_rows(query: ReadingsQuery, groups: GroupRange) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in reading_batches.read(query, groups):
        rows += batch.select(list(READERS)).to_pylist()
        read_progress.advance(batch.num_rows)
    return rows


def reads_of(store: str, from_ms: int, to_ms: int, *, at_once: int = 1) -> StoreReads:
    """Return the reads of a store. Raises the errors of open_store."""
    return StoreReads(open_store(parse_location(store)), from_ms, to_ms, at_once=at_once)


def _time_lag(row: dict[str, Any], oldest_ms: int | None, now_ms: int) -> int | None:
    """Return the age of the next unread message.

    If the message is older than all observations, its age is interpolated between the log's first record and now. It
    is at least the observed age.
    """
    if row["time_lag_ms"] is not None or not row["lag"] or oldest_ms is None or oldest_ms > now_ms:
        observed_ms: int | None = row["time_lag_ms"]
        return observed_ms
    start, end = row["log_start_offset"], row["log_end_offset"]
    result = time_lag([LogEnd(oldest_ms, start), LogEnd(now_ms, end)], max(row["committed_offset"], start)).ms
    return None if result is None else max(result, row["time_lag_least_ms"] or 0)


def _reader(row: dict[str, Any], time_lag_ms: int | None, outlook: Outlook, replicas: int) -> ConsumingGroup:
    config = outlook.disks.configs.get(row["topic"], LogConfig(row["topic"]))
    rate = outlook.rates.get((row["topic"], row["partition"]))
    size = None if rate is None else rate.leader_bytes
    log = Log(row["log_start_offset"], row["log_end_offset"], size, row["produced_per_s"])
    limits = Limits(config.cleanup_policy, config.retention_ms, config.retention_bytes)
    result: Deletion = deletion(row["committed_offset"], time_lag_ms, log, limits)
    keeps_up = row["catch_up_ms"] == 0
    return ConsumingGroup(
        group=row["group"],
        topic=row["topic"],
        partition=row["partition"],
        lag=row["lag"],
        consumed_per_s=row["consumed_per_s"],
        produced_per_s=row["produced_per_s"],
        loss_eta_ms=loss_eta_ms(result, row["consumed_per_s"], row["produced_per_s"], keeps_up=keeps_up),
        replicas=replicas,
        committed_offset=row["committed_offset"],
        time_lag_ms=time_lag_ms,
        by_time_ms=result.by_time_ms,
        keeps_up=keeps_up,
        log=log,
    )
