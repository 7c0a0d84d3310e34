"""The effect of a retention change on a cluster: freed bytes, disks, and groups that would lose messages. Pure.

The rules are those of retention.what_if. Each replica deletes segments on its own, so each frees the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from kctl.history.retention.deletion import Limits
from kctl.history.retention.disk_full import ceiling_bytes
from kctl.history.retention.disk_loss import ConsumingGroup, loss_ms
from kctl.history.retention.outlook import Outlook
from kctl.history.retention.volumes import Disks, Partition, Place, Rate
from kctl.history.retention.what_if import Change, Freed, KnownLog, freed, lost_unread
from kctl.lag.log_config import LogConfig
from kctl.lag.rates import LogEnd
from kctl.lag.retention import at
from kctl.lag.selection import Names


@dataclass(frozen=True, slots=True)
class TopicWhatIf:
    """A topic with the change, over all of its replicas. The range of freed bytes is one segment per replica wide.

    unknown_partitions: number of partitions whose freed bytes are unknown. ceiling_bytes, new_ceiling_bytes: the
    maximum size of the replicas in the long run, without and with the change; None: no limit, or unknown.
    """

    topic: str
    partition_count: int
    replicas_bytes: int
    retention_ms: int | None
    new_retention_ms: int | None
    retention_bytes: int | None
    new_retention_bytes: int | None
    freed_at_least_bytes: int
    freed_at_most_bytes: int
    unknown_partitions: int
    ceiling_bytes: int | None
    new_ceiling_bytes: int | None


@dataclass(frozen=True, slots=True)
class LogDirWhatIf:
    """A log dir with the change.

    new_full_ms: with freed_at_least_bytes. full_after_ms, new_full_after_ms: see kctl.history.retention.outlook.
    """

    broker: int
    log_dir: str
    usable_bytes: int | None
    freed_at_least_bytes: int
    freed_at_most_bytes: int
    full_ms: int | None
    full_at: datetime | None
    new_full_ms: int | None
    new_full_at: datetime | None
    full_after_ms: int | None = None
    new_full_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupWhatIf:
    """A group that may lose unread messages, or lose them sooner. lost_at_most: messages that it loses at once.

    loss_ms, new_loss_ms: the time until the first loss, without and with the change, over its partitions.
    """

    group: str
    topic: str
    partition_count: int
    lost_at_most: int
    loss_ms: int | None = None
    new_loss_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The effect of the change.

    groups: first those that lose messages at once, largest loss first; then those that lose messages sooner than
    without the change, soonest first. Other groups are omitted.
    """

    topics: list[TopicWhatIf]
    log_dirs: list[LogDirWhatIf]
    groups: list[GroupWhatIf]


def what_if(
    outlook: Outlook,
    change: Change,
    topics: Names,
    readers: Iterable[ConsumingGroup],
    ends: Mapping[Partition, Sequence[LogEnd]],
) -> WhatIf:
    """Return the effect of the change on the selected topics. ends: earlier log end offsets, in order of time."""
    chosen = {name: config for name, config in outlook.disks.configs.items() if name in topics}
    logs = _logs(outlook, chosen, ends)
    cut = {partition: freed(log, change.applied(chosen[log.topic]), outlook.now_ms) for partition, log in logs.items()}
    return WhatIf(
        topics=_topics(outlook, change, chosen, cut),
        log_dirs=_log_dirs(outlook, change, chosen, cut),
        groups=_groups(readers, change, chosen, logs, cut),
    )


def _logs(
    outlook: Outlook, chosen: Mapping[str, LogConfig], ends: Mapping[Partition, Sequence[LogEnd]]
) -> dict[Partition, KnownLog]:
    result: dict[Partition, KnownLog] = {}
    for log in outlook.disks.logs:
        partition = (log.topic, log.partition)
        if log.topic not in chosen:
            continue
        points = [point for point in ends.get(partition, ()) if point.at_ms < outlook.now_ms]
        if log.log_end_offset is not None:
            # Larger earlier ends belong to a deleted topic of this name, or to a log that was truncated.
            points = [point for point in points if point.offset <= (log.log_end_offset or 0)]
            points.append(LogEnd(outlook.now_ms, log.log_end_offset))
        size = outlook.rates.get(partition, Rate(None, None)).leader_bytes
        result[partition] = KnownLog(
            log.topic, log.partition, size, log.log_start_offset, log.oldest_timestamp_ms, tuple(points)
        )
    return result


def _topics(
    outlook: Outlook, change: Change, chosen: Mapping[str, LogConfig], cut: Mapping[Partition, Freed | None]
) -> list[TopicWhatIf]:
    copies: dict[Partition, list[int]] = {}
    for each in outlook.disks.current():
        if each.topic in chosen and not each.future:
            copies.setdefault((each.topic, each.partition), []).append(each.growth.last_bytes)
    rows = []
    for topic, config in sorted(chosen.items()):
        partitions = {partition: result for partition, result in cut.items() if partition[0] == topic}
        results = {partition: result for partition, result in partitions.items() if result is not None}
        new = change.applied(config)
        rates = {partition: outlook.rates.get(partition, Rate(None, None)) for partition in partitions}
        number = {partition: len(copies.get(partition, ())) for partition in partitions}
        rows.append(
            TopicWhatIf(
                topic=topic,
                partition_count=len(partitions),
                replicas_bytes=sum(sum(copies.get(partition, ())) for partition in partitions),
                retention_ms=config.retention_ms,
                new_retention_ms=new.retention_ms,
                retention_bytes=config.retention_bytes,
                new_retention_bytes=new.retention_bytes,
                freed_at_least_bytes=sum(result.least_bytes * number[p] for p, result in results.items()),
                freed_at_most_bytes=sum(result.most_bytes * number[p] for p, result in results.items()),
                unknown_partitions=len(partitions) - len(results),
                ceiling_bytes=_ceilings(config, rates, number),
                new_ceiling_bytes=_ceilings(new, rates, number),
            )
        )
    return rows


def _ceilings(config: LogConfig, rates: Mapping[Partition, Rate], number: Mapping[Partition, int]) -> int | None:
    result = {p: ceiling_bytes(config, rate.written_per_hour, rate.leader_bytes or 0) for p, rate in rates.items()}
    if not result or any(each is None for each in result.values()):
        return None
    return int(sum((each or 0.0) * number[partition] for partition, each in result.items()))


def _log_dirs(
    outlook: Outlook, change: Change, chosen: Mapping[str, LogConfig], cut: Mapping[Partition, Freed | None]
) -> list[LogDirWhatIf]:
    least: dict[Place, int] = {}
    most: dict[Place, int] = {}
    for each in outlook.disks.current():
        result = cut.get((each.topic, each.partition))
        if result is not None and not each.future:
            place = (each.broker, each.log_dir)
            least[place] = least.get(place, 0) + result.least_bytes
            most[place] = most.get(place, 0) + result.most_bytes
    after = _changed(outlook, change, chosen, cut).full()
    rows = []
    for row in outlook.by_log_dir():
        place = (row.broker, row.log_dir)
        then = after.get(place)
        new = then.eta_ms if then is not None else None
        rows.append(
            LogDirWhatIf(
                broker=row.broker,
                log_dir=row.log_dir,
                usable_bytes=row.usable_bytes,
                freed_at_least_bytes=least.get(place, 0),
                freed_at_most_bytes=most.get(place, 0),
                full_ms=row.full_ms,
                full_at=row.full_at,
                new_full_ms=new,
                new_full_at=None if new is None else at(outlook.now_ms + new),
                full_after_ms=row.full_after_ms,
                new_full_after_ms=then.after_ms if then is not None else None,
            )
        )
    return rows


def _changed(
    outlook: Outlook, change: Change, chosen: Mapping[str, LogConfig], cut: Mapping[Partition, Freed | None]
) -> Disks:
    """Return the disks after the change has freed its lower bound. Rates do not change."""
    disks = outlook.disks
    spare: dict[Place, int] = {}
    replicas = []
    for each in disks.replicas:
        result = cut.get((each.topic, each.partition))
        freed_bytes = min(result.least_bytes, each.growth.last_bytes) if result is not None and not each.future else 0
        place = (each.broker, each.log_dir)
        spare[place] = spare.get(place, 0) + freed_bytes
        replicas.append(each._replace(growth=each.growth._replace(last_bytes=each.growth.last_bytes - freed_bytes)))
    return replace(
        disks,
        configs={**disks.configs, **{name: change.applied(config) for name, config in chosen.items()}},
        replicas=replicas,
        freed=spare,
    )


def _groups(
    readers: Iterable[ConsumingGroup],
    change: Change,
    chosen: Mapping[str, LogConfig],
    logs: Mapping[Partition, KnownLog],
    cut: Mapping[Partition, Freed | None],
) -> list[GroupWhatIf]:
    result: dict[tuple[str, str], list[_Loss]] = {}
    for reader in readers:
        if reader.topic in chosen:
            partition, config = (reader.topic, reader.partition), chosen[reader.topic]
            loss = _loss(reader, config, change.applied(config), logs.get(partition), cut.get(partition))
            if loss is not None:
                result.setdefault((reader.group, reader.topic), []).append(loss)
    rows = [
        GroupWhatIf(
            group=group,
            topic=topic,
            partition_count=len(losses),
            lost_at_most=sum(loss.amount for loss in losses),
            loss_ms=min((loss.before_ms for loss in losses if loss.before_ms is not None), default=None),
            new_loss_ms=min((loss.after_ms for loss in losses if loss.after_ms is not None), default=None),
        )
        for (group, topic), losses in result.items()
    ]
    return sorted(rows, key=lambda row: (-row.lost_at_most, row.new_loss_ms or 0, row.group, row.topic))


class _Loss(NamedTuple):
    """The messages of a partition that a group loses at once, and its first loss without and with the change."""

    amount: int
    before_ms: int | None
    after_ms: int | None


def _loss(
    reader: ConsumingGroup, config: LogConfig, new: LogConfig, log: KnownLog | None, result: Freed | None
) -> _Loss | None:
    """Return the loss of the group; None: the change costs it nothing."""
    amount = 0
    if log is not None and result is not None:
        amount = lost_unread(reader.committed_offset, log, result.start_offset_at_most)
    before_ms, after_ms = (
        loss_ms(reader, Limits(each.cleanup_policy, each.retention_ms, each.retention_bytes)) for each in (config, new)
    )
    if amount:
        return _Loss(amount, before_ms, 0)
    if after_ms is None or (before_ms is not None and before_ms <= after_ms):
        return None
    return _Loss(0, before_ms, after_ms)
