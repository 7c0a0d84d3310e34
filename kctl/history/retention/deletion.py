"""The time until messages are deleted before a group has read them. Pure.

Kafka deletes whole segments from the start of a log (UnifiedLog.deleteOldSegments, every
log.retention.check.interval.ms):

- by time, when the largest timestamp in a segment is older than retention.ms;
- by bytes, when the bytes after a segment are still at least retention.bytes.

So the next unread message cannot be deleted before its age reaches retention.ms, or retention.bytes are written after
it. `deletion` returns these earliest possible times. The rest of its segment can retain a message for longer: for up
to segment.bytes more, and until the next check.

A group that continues reading is overtaken later than that, or never: `loss_eta_ms`.
All times are ms from the time of the input; None: never, or unknown. Rates are measured over minutes, so a time beyond
FARTHEST_MS that follows from rates counts as never. Times that follow from retention.ms alone have no such limit.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.lag.rates import FARTHEST_MS, MS_PER_S
from kctl.lag.retention import deletes


class Deletion(NamedTuple):
    """The earliest deletion of the next unread message: by time and by bytes."""

    by_time_ms: int | None
    by_bytes_ms: int | None

    @property
    def eta_ms(self) -> int | None:
        """Return the earlier of the two."""
        if self.by_time_ms is None or self.by_bytes_ms is None:
            return self.by_bytes_ms if self.by_time_ms is None else self.by_time_ms
        return min(self.by_time_ms, self.by_bytes_ms)


NEVER = Deletion(None, None)


class Log(NamedTuple):
    """The log of a partition. size_bytes: of the leader's replica; produced_per_s: messages per second."""

    log_start_offset: int | None
    log_end_offset: int | None
    size_bytes: int | None
    produced_per_s: float | None


class Limits(NamedTuple):
    """The topic's configs; None: unknown. -1: no limit."""

    cleanup_policy: str | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None


def deletion(committed: int | None, time_lag_ms: int | None, log: Log, limits: Limits) -> Deletion:
    """Return when the next unread message may be deleted if it stays unread. time_lag_ms: its age."""
    if committed is None or log.log_start_offset is None or log.log_end_offset is None:
        return NEVER
    if max(committed, log.log_start_offset) >= log.log_end_offset or not deletes(limits.cleanup_policy):
        return NEVER
    return Deletion(_by_time(time_lag_ms, limits.retention_ms), _by_bytes(committed, log, limits.retention_bytes))


def _by_time(time_lag_ms: int | None, retention_ms: int | None) -> int | None:
    if time_lag_ms is None or retention_ms is None or retention_ms < 0:
        return None
    return max(retention_ms - time_lag_ms, 0)


def _by_bytes(committed: int, log: Log, retention_bytes: int | None) -> int | None:
    """Return the time until deletion by bytes, assuming that bytes are spread evenly over offsets."""
    if retention_bytes is None or retention_bytes < 0 or not log.size_bytes or log.size_bytes < 0:
        return None
    assert log.log_start_offset is not None
    assert log.log_end_offset is not None
    bytes_each = float(log.size_bytes) / float(log.log_end_offset - log.log_start_offset)
    unread = float(log.log_end_offset - max(committed, log.log_start_offset))
    remaining = float(retention_bytes) / bytes_each - unread  # messages that may still be written
    if remaining <= 0:
        return 0
    if not log.produced_per_s or log.produced_per_s < 0:
        return None
    return _whole_ms(remaining / log.produced_per_s * MS_PER_S)


def loss_eta_ms(
    due: Deletion, consumed_per_s: float | None, produced_per_s: float | None, *, keeps_up: bool = False
) -> int | None:
    """Return when the group first loses a message at the current rates.

    Deletion advances at the production rate. A group that reads a share of the produced messages is overtaken
    1 ÷ (1 − share) times later; a group that reads all of them is never overtaken. A group with an unknown rate counts
    as stopped. Without production only retention.ms deletes, and a group that reads at all is assumed to be in time.
    keeps_up (kctl.lag.rates): the rates differ only because of the sampling times, so the group loses only messages
    that may be deleted at once.
    """
    eta = due.eta_ms
    if eta is None or eta == 0:
        return eta
    if keeps_up:
        return None
    if consumed_per_s is None or consumed_per_s <= 0:
        return eta
    if produced_per_s is None or consumed_per_s >= produced_per_s:
        return None
    return _whole_ms(float(eta) / (1.0 - consumed_per_s / produced_per_s))


def _whole_ms(ms: float) -> int | None:
    return int(ms) if ms <= FARTHEST_MS else None
