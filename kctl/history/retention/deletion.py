"""When messages will be deleted before a group has read them. Pure.

Kafka deletes whole segments from the start of a log (UnifiedLog.deleteOldSegments, every
log.retention.check.interval.ms):

- by time, when the largest timestamp in a segment is older than retention.ms;
- by bytes, when what follows a segment is still at least retention.bytes.

So the next unread message cannot be deleted before its own age reaches retention.ms, and before that many bytes follow
it: `deletion` gives these moments, the earliest possible ones. A message is kept for longer by the rest of its
segment: at most segment.bytes more, and until the next check.

If the group reads on meanwhile, it is overtaken later than that, or never: `loss_eta_ms`.
All is in ms from the moment of the figures that were given; None: never, or not known. What rates would bring later
than in FARTHEST_MS is taken for never: they were measured over minutes. (What retention.ms alone brings is told.)
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
        """Return the earlier of both."""
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
    """Return when the next unread message may be deleted if nobody reads it. time_lag_ms: its age."""
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
    left = float(retention_bytes) / bytes_each - unread  # messages that may still be written
    if left <= 0:
        return 0
    if not log.produced_per_s or log.produced_per_s < 0:
        return None
    return _whole_ms(left / log.produced_per_s * MS_PER_S)


def loss_eta_ms(
    found: Deletion, consumed_per_s: float | None, produced_per_s: float | None, *, keeps_up: bool = False
) -> int | None:
    """When the group first loses a message, if both rates stay.

    Where deletion goes forward as the log does, at the production rate, and the group at its own, a group that reads
    a share of what is written is overtaken 1 ÷ (1 − share) times later; one that reads as fast never. A group whose
    rate is not known is taken to stand still. Without production, only time deletes, and reading is not outrun: what
    is read at all is taken to be read in time. keeps_up (kctl.lag.rates): its rates differ only by when they were
    looked at, so that it loses nothing but what may be deleted at once.
    """
    eta = found.eta_ms
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
