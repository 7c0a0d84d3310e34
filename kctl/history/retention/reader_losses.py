"""The losses that lagging groups face, over a cluster: when disks are full, and on compacted topics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kctl.history.retention.disk_loss import ConsumingGroup, losses
from kctl.history.retention.outlook import Outlook
from kctl.history.retention.tombstones import tombstones_until_ms
from kctl.history.retention.volumes import Partition, Place
from kctl.lag.log_config import LogConfig

# --- rows; field names are the JSON keys and never change -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiskLoss:
    """The messages that a group faces losing when a log dir is full.

    partition_count: partitions on which it lags then. unread: messages in the log dir that it has not read by then;
    sole: those without another replica; deleted: messages that retention has deleted unread by then.
    loss_ms: the time until the first loss.
    """

    broker: int
    log_dir: str
    full_ms: int
    full_at: datetime | None
    group: str
    partition_count: int
    unread: int
    sole: int
    deleted: int
    loss_ms: int | None


@dataclass(frozen=True, slots=True)
class TombstoneRow:
    """A partition of a compacted topic on which a group lags.

    sure_ms: how long the group is sure to see each unread tombstone (kctl.history.retention.tombstones); 0: some may
    already be removed.
    """

    group: str
    topic: str
    partition: int
    lag: int | None
    time_lag_ms: int | None
    delete_retention_ms: int | None
    min_compaction_lag_ms: int | None
    sure_ms: int


def disk_losses(outlook: Outlook, readers: Sequence[ConsumingGroup]) -> list[DiskLoss]:
    """Return the losses of each group for each log dir that will be full.

    The log dir that is full first comes first; within it, the group that loses the most.
    """
    by_partition: dict[Partition, list[ConsumingGroup]] = {}
    for reader in readers:
        by_partition.setdefault((reader.topic, reader.partition), []).append(reader)
    here: dict[Place, list[ConsumingGroup]] = {}
    for each in outlook.disks.current():
        if not each.future:
            partition_readers = by_partition.get((each.topic, each.partition), ())
            here.setdefault((each.broker, each.log_dir), []).extend(partition_readers)
    rows = []
    for row in sorted(outlook.by_log_dir(), key=lambda row: (row.full_ms or 0, row.broker, row.log_dir)):
        if row.full_ms is None:
            continue
        for loss in losses(here.get((row.broker, row.log_dir), ()), row.full_ms):
            figures = (loss.group, loss.partition_count, loss.unread, loss.sole, loss.deleted, loss.loss_eta_ms)
            rows.append(DiskLoss(row.broker, row.log_dir, row.full_ms, row.full_at, *figures))
    return rows


def tombstones(readers: Iterable[ConsumingGroup], configs: Mapping[str, LogConfig]) -> list[TombstoneRow]:
    """Return the partitions of compacted topics on which a group lags, most urgent first."""
    rows = []
    for reader in readers:
        config = configs.get(reader.topic)
        sure_ms = None if config is None else tombstones_until_ms(reader.time_lag_ms, config)
        if config is not None and sure_ms is not None:
            retained = (config.delete_retention_ms, config.min_compaction_lag_ms)
            place = (reader.group, reader.topic, reader.partition)
            rows.append(TombstoneRow(*place, reader.lag, reader.time_lag_ms, *retained, sure_ms))
    return sorted(rows, key=lambda row: (row.sure_ms, row.group, row.topic, row.partition))
