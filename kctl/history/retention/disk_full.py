"""Forecast of a volume: the time until it is full, and the topics that fill it. Pure.

A straight line through the sizes is wrong in both directions: a log at its retention limit no longer grows, and a young
log will grow for longer. So each replica grows at its write rate up to its ceiling:

- by bytes: retention.bytes plus one segment (only whole segments are deleted, and only if at least retention.bytes
  remain: UnifiedLog.deleteRetentionSizeBreachedSegments);
- by time: the bytes written in retention.ms plus one segment: a segment is deleted by its newest record, and closed
  when it is full or segment.ms old (UnifiedLog.deleteRetentionMsBreachedSegments, LogSegment.shouldRoll);
- retention is checked periodically: the bytes written in CHECK_MS are added;
- compacted logs, and logs without limits, have no ceiling.

Nothing is assumed to shrink: a log over its ceiling keeps its size. A lagging replica is assumed to fetch its missing
bytes at once. A follower is written as fast as its leader. Other files on the volume grow at their observed rate.
Sizes are those of segments; indexes (a few thousandths) are not counted. A prediction reaches FORESIGHT times the
observed time: a few seconds of writes say nothing about months.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.history.retention.growth import HOUR_MS
from kctl.lag.log_config import LogConfig, compacts
from kctl.lag.rates import MAX_MS
from kctl.lag.retention import deletes

UNLIMITED_BYTES = 2.0**53  # 9 PB: no log gets that large; a limit of this size is no limit
FORESIGHT = 100
CHECK_MS = 5 * 60_000  # default of log.retention.check.interval.ms: segments are deleted up to this much later
UNLIMITED_MS = 100 * 365 * 24 * HOUR_MS  # 100 years, also no limit; retention.ms is often the largest number


class ReplicaGrowth(NamedTuple):
    """A replica on the volume. written_per_hour: None if unknown, counted as 0. ceiling_bytes: None if unlimited.

    outstanding_bytes: the bytes that the replica still has to fetch to be as large as its leader.
    """

    topic: str
    size_bytes: int
    written_per_hour: float | None = None
    ceiling_bytes: float | None = None
    outstanding_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Cause:
    """The growth of a topic's replicas until the volume is full or each replica is at its ceiling.

    topic: None for files that are not Kafka's. share: of all growth. written_per_hour: the current rate.
    """

    topic: str | None
    bytes: int
    share: float
    written_per_hour: float


@dataclass(frozen=True, slots=True)
class DiskFull:
    """The forecast of a volume.

    eta_ms: the time until it is full; None: never at these rates, unknown free space, or beyond what can be predicted.
    after_ms is only set in the last case: the volume is full later than that. growing_to_bytes: the final size of the
    replicas; None: they grow without limit. unknown: number of replicas with an unknown rate. causes: largest first.
    """

    eta_ms: int | None
    growing_to_bytes: int | None
    growth_per_hour: float
    unknown: int
    causes: list[Cause]
    after_ms: int | None = None


def ceiling_bytes(config: LogConfig | None, written_per_hour: float | None, size_bytes: int = 0) -> float | None:
    """Return the maximum size of a log at this write rate; None: no limit, or unknown.

    size_bytes: the current size. Up to one segment of it may be the active segment, which is deleted last.
    """
    if config is None or not deletes(config.cleanup_policy):
        return None
    segment = float(config.segment_bytes) if config.segment_bytes is not None and config.segment_bytes >= 0 else 0.0
    late = max(written_per_hour or 0.0, 0.0) * CHECK_MS / HOUR_MS
    ceilings = []
    if config.retention_bytes is not None and config.retention_bytes >= 0:
        ceilings.append(config.retention_bytes + segment + late)
    if written_per_hour is not None and config.retention_ms is not None and config.retention_ms >= 0:
        rolled = segment
        if config.segment_ms is not None and config.segment_ms >= 0:
            rolled = min(segment, written_per_hour * config.segment_ms / HOUR_MS)
        active = max(rolled, min(segment, float(size_bytes)))
        ceilings.append(written_per_hour * config.retention_ms / HOUR_MS + active + late)
    lowest = min(ceilings, default=None)
    return None if lowest is None or lowest >= UNLIMITED_BYTES else lowest


def never_stops(config: LogConfig | None) -> bool:
    """Return True if only a full disk ends the growth of a log with these configs: no limit, no compaction."""
    if config is None or config.cleanup_policy is None:
        return False
    if compacts(config.cleanup_policy):
        return False
    by_bytes, by_time = config.retention_bytes, config.retention_ms
    if not deletes(config.cleanup_policy) or by_bytes is None or by_time is None:
        return not deletes(config.cleanup_policy)
    return not 0 <= by_bytes < UNLIMITED_BYTES and not 0 <= by_time < UNLIMITED_MS


def disk_full(
    usable_bytes: int | None,
    replicas: Sequence[ReplicaGrowth],
    *,
    other_per_hour: float = 0.0,
    observed_ms: int | None = None,
) -> DiskFull:
    """Return the forecast of the volume with these free bytes, replicas and growth of other files.

    observed_ms: how long the rates were observed; None: predictions have no limit.
    """
    other = max(other_per_hour, 0.0)
    hours = None if usable_bytes is None else _hours_until(float(usable_bytes), replicas, other)
    end = float("inf") if hours is None else hours
    ms = None if hours is None or hours * HOUR_MS >= MAX_MS else int(hours * HOUR_MS)
    ceilings = [_headroom(each) for each in replicas]
    reach = None if observed_ms is None else observed_ms * FORESIGHT
    later = ms is not None and reach is not None and ms > reach
    return DiskFull(
        eta_ms=None if later else ms,
        after_ms=reach if later else None,
        growing_to_bytes=_whole(sum(each.size_bytes for each in replicas) + sum(ceilings)),
        growth_per_hour=_rate(replicas, other),
        unknown=sum(each.written_per_hour is None for each in replicas),
        causes=_causes(replicas, other, end),
    )


def _headroom(replica: ReplicaGrowth) -> float:
    """Return how many bytes the replica can still grow."""
    outstanding = float(replica.outstanding_bytes)
    if not replica.written_per_hour or replica.written_per_hour < 0:
        return outstanding
    if replica.ceiling_bytes is None:
        return float("inf")
    return max(replica.ceiling_bytes - replica.size_bytes, outstanding)


def _growth_rate(replica: ReplicaGrowth) -> float:
    """Return the current growth in bytes per hour; 0 at the ceiling."""
    if _headroom(replica) <= replica.outstanding_bytes:
        return 0.0
    return replica.written_per_hour or 0.0


def _rate(replicas: Iterable[ReplicaGrowth], other: float) -> float:
    return sum(map(_growth_rate, replicas)) + other


def grown_by(replica: ReplicaGrowth, hours: float) -> float:
    """Return the growth of the replica after a number of hours (infinite: its final growth)."""
    rate = _growth_rate(replica)
    more = rate * hours if rate else 0.0
    return min(replica.outstanding_bytes + more, _headroom(replica))


def _endless_rate(replica: ReplicaGrowth) -> float:
    """Return the rate at which the replica grows without limit, in bytes per hour; 0 if it has a ceiling."""
    return _growth_rate(replica) if _headroom(replica) == float("inf") else 0.0


def _hours_until(usable: float, replicas: Sequence[ReplicaGrowth], other: float) -> float | None:
    """Return the hours until the replicas have grown by `usable`. Growth is linear between two ceilings."""
    remaining = usable - sum(each.outstanding_bytes for each in replicas)
    if remaining <= 0:
        return 0.0
    growing = [(each, _growth_rate(each)) for each in replicas if _growth_rate(each) > 0]
    ends = sorted(((_headroom(each) - each.outstanding_bytes) / rate, rate) for each, rate in growing)
    rate, now = sum(rate for _, rate in growing) + other, 0.0
    for at, replica_rate in ends:
        if at == float("inf"):
            break
        if rate * (at - now) >= remaining:
            return now + remaining / rate
        remaining -= rate * (at - now)
        rate, now = rate - replica_rate, at
    steady = other + sum(rate for at, rate in ends if at == float("inf"))  # avoids the rounding of many subtractions
    return now + remaining / steady if steady > 0 else None


def _causes(replicas: Sequence[ReplicaGrowth], other: float, hours: float) -> list[Cause]:
    """Return the growth by topic after these hours. If growth never ends, shares are those of the final rates."""
    endless = hours == float("inf") and (other > 0 or any(_headroom(each) == float("inf") for each in replicas))
    grown: dict[str | None, float] = {None: 0.0}
    rates: dict[str | None, float] = {None: other}
    for each in replicas:
        amount = _endless_rate(each) if endless else grown_by(each, hours)
        grown[each.topic] = grown.get(each.topic, 0.0) + amount
        rates[each.topic] = rates.get(each.topic, 0.0) + _growth_rate(each)
    grown[None] = other if endless else (other * hours if other else 0.0)
    total = sum(grown.values())
    if total <= 0:
        return []
    rows = [
        Cause(topic, 0 if endless else int(amount), amount / total, rates[topic])
        for topic, amount in grown.items()
        if amount > 0
    ]
    return sorted(rows, key=lambda row: (-row.share, row.topic is None, row.topic or ""))


def _whole(amount: float) -> int | None:
    return int(amount) if amount < MAX_MS else None
