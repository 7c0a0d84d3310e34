"""Losses when a volume is full: how far each group has read by then, and what it loses. Pure.

Until then each group reads, and each log is written, at its current rate:

- unread: messages of partitions on the volume that the group has not read when it is full. A broker takes a full
  log dir offline (LogDirFailureChannel), so these can then be read only from other replicas;
- sole: unread messages without another replica;
- deleted: messages that retention deletes before the group has read them. A group that does not advance loses its
  unread messages one after the other, by age, then newly written ones.

More is lost if space is freed by a shorter retention: kctl.history.retention.what_if.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kctl.history.retention.deletion import Limits, Log, deletion, loss_eta_ms
from kctl.history.retention.growth import HOUR_MS

_S_PER_HOUR = 3600


class ConsumingGroup(NamedTuple):
    """A group on a partition with a replica on the volume. Rates are messages per second; None: unknown.

    loss_eta_ms: the time until its first loss (kctl.history.retention.deletion.loss_eta_ms); None: never, or unknown.
    time_lag_ms: the age of the next unread message. by_time_ms: the time until retention.ms deletes that message.
    keeps_up: see kctl.lag.rates. log: as of the group's reading.
    """

    group: str
    topic: str
    partition: int
    lag: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    loss_eta_ms: int | None
    replicas: int
    committed_offset: int | None = None
    time_lag_ms: int | None = None
    by_time_ms: int | None = None
    keeps_up: bool = False
    log: Log | None = None


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """Messages that a group loses when the volume is full. loss_eta_ms: the earliest of its partitions."""

    group: str
    partition_count: int
    unread: int
    sole: int
    deleted: int
    loss_eta_ms: int | None


def lag_in(reader: ConsumingGroup, duration_ms: int) -> int | None:
    """Return the lag after this time at the current rates. Unknown rates count as 0."""
    if reader.lag is None:
        return None
    rate = (reader.produced_per_s or 0.0) - (reader.consumed_per_s or 0.0)
    return max(int(reader.lag + rate * duration_ms / HOUR_MS * _S_PER_HOUR), 0)


def deleted_in(reader: ConsumingGroup, duration_ms: int) -> int:
    """Return the number of messages that are deleted unread within this time.

    From the first loss on, deletion advances at the production rate, and the group loses what it does not read.
    """
    if reader.loss_eta_ms is None or reader.loss_eta_ms > duration_ms:
        return 0
    rate = max((reader.produced_per_s or 0.0) - (reader.consumed_per_s or 0.0), 0.0)
    result = int(rate * (duration_ms - reader.loss_eta_ms) / HOUR_MS * _S_PER_HOUR)
    by_time = _deleted_by_time(reader, duration_ms)
    if by_time is not None:  # unless retention.bytes deletes sooner
        result = by_time if reader.by_time_ms == reader.loss_eta_ms else max(result, by_time)
    lag = lag_in(reader, duration_ms)
    return max(result, 1) if lag is None else min(max(result, 1), lag)


def _deleted_by_time(reader: ConsumingGroup, duration_ms: int) -> int | None:
    """Return the unread messages that retention.ms deletes within this time; None if the group reads, or if unknown.

    The next unread message is deleted first. A message written now is deleted later, by the age of that one.
    """
    if (reader.consumed_per_s or 0.0) > 0 or not reader.lag or reader.by_time_ms is None:
        return None
    passed_ms, age_ms = duration_ms - reader.by_time_ms, reader.time_lag_ms or 0
    if passed_ms < age_ms:
        return int(reader.lag * max(passed_ms, 0) / age_ms)
    return reader.lag + int((reader.produced_per_s or 0.0) * (passed_ms - age_ms) / HOUR_MS * _S_PER_HOUR)


def loss_ms(reader: ConsumingGroup, limits: Limits) -> int | None:
    """Return when the group first loses a message under these limits; None: never, or unknown."""
    if reader.log is None:
        return None
    result = deletion(reader.committed_offset, reader.time_lag_ms, reader.log, limits)
    return loss_eta_ms(result, reader.consumed_per_s, reader.produced_per_s, keeps_up=reader.keeps_up)


def losses(readers: Iterable[ConsumingGroup], duration_ms: int) -> list[GroupLoss]:
    """Return what each group loses within this time, largest first, without groups that lose nothing."""
    by_group: dict[str, list[ConsumingGroup]] = {}
    for reader in readers:
        by_group.setdefault(reader.group, []).append(reader)
    rows = [_group_loss(group, rows, duration_ms) for group, rows in by_group.items()]
    result = [row for row in rows if row.unread or row.deleted]
    return sorted(result, key=lambda row: (-row.deleted, -row.sole, -row.unread, row.group))


def _group_loss(group: str, readers: list[ConsumingGroup], duration_ms: int) -> GroupLoss:
    lags = [(reader, lag_in(reader, duration_ms) or 0) for reader in readers]
    deleted = sum(deleted_in(reader, duration_ms) for reader in readers)
    return GroupLoss(
        group=group,
        partition_count=sum(lag > 0 for _, lag in lags),
        unread=sum(lag for _, lag in lags),
        sole=sum(lag for reader, lag in lags if reader.replicas <= 1),
        deleted=deleted,
        loss_eta_ms=min((r.loss_eta_ms for r in readers if r.loss_eta_ms is not None), default=None),
    )
