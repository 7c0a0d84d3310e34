"""When a volume is full, and which topics fill it. Pure.

A straight line through the sizes is wrong both ways: a log that has come to its retention limit grows no more, and one
that is young hides what it will take. So each replica grows as it is written, up to its ceiling:

- by bytes: retention.bytes and one segment more (whole segments are deleted, while what stays is still at least
  retention.bytes: UnifiedLog.deleteRetentionSizeBreachedSegments);
- by time: what is written in retention.ms, and one segment more: a segment goes by its newest record, and is closed
  when it is full or segment.ms old (UnifiedLog.deleteRetentionMsBreachedSegments, LogSegment.shouldRoll);
- segments go when they are looked for: what is written in CHECK_MS comes on top;
- compacted logs, and those without limits, have none.

Nothing is taken to shrink: a log over its ceiling stays as it is. A copy that is behind takes what it lacks at once. A
follower is written as fast as its leader. What others write on the volume goes on as it did.
Sizes are of segments; indexes (some thousandths) come on top. What was observed foretells FORESIGHT times as long, and
no more: what a topic takes in some seconds says nothing of months.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.history.retention.growth import HOUR_MS
from kctl.lag.log_config import LogConfig, compacts
from kctl.lag.rates import MAX_MS
from kctl.lag.retention import deletes

MOST_BYTES = 2.0**53  # 9 PB: no log comes to that, and a limit that large is none
FORESIGHT = 100
CHECK_MS = 5 * 60_000  # log.retention.check.interval.ms, if it is as Kafka has it: segments go that much later
MOST_MS = 100 * 365 * 24 * HOUR_MS  # nor does it come to a hundred years; retention.ms is often the largest number


class ReplicaGrowth(NamedTuple):
    """One replica on the volume. written_per_hour: None: not known, and taken for nothing. ceiling_bytes: None: none.

    outstanding_bytes: what it has to fetch yet to be as large as its leader.
    """

    topic: str
    size_bytes: int
    written_per_hour: float | None = None
    ceiling_bytes: float | None = None
    outstanding_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Cause:
    """What a topic's replicas take of the volume until it is full, or until each is at its ceiling. topic None: what
    is not Kafka's. share: of all growth; written_per_hour: now."""

    topic: str | None
    bytes: int
    share: float
    written_per_hour: float


@dataclass(frozen=True, slots=True)
class DiskFull:
    """eta_ms: when the volume is full; None: never, if it goes on like this, or the free space is not known, or later
    than can be foretold: later than after_ms then, which else is None.

    growing_to_bytes: what the replicas take in the end; None: they grow without end. unknown: replicas whose rate is
    not known. causes: the largest first.
    """

    eta_ms: int | None
    growing_to_bytes: int | None
    growth_per_hour: float
    unknown: int
    causes: list[Cause]
    after_ms: int | None = None


def ceiling_bytes(config: LogConfig | None, written_per_hour: float | None, size_bytes: int = 0) -> float | None:
    """The most that a log takes that is written so fast; None: no limit, or it is not known. size_bytes: what it takes
    now: as much of it as a segment holds may be the active one, which goes last."""
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
    return None if lowest is None or lowest >= MOST_BYTES else lowest


def never_stops(config: LogConfig | None) -> bool:
    """Return True if only a full disk ends the growth of such a log: no limit and no compaction."""
    if config is None or config.cleanup_policy is None:
        return False
    if compacts(config.cleanup_policy):
        return False
    by_bytes, by_time = config.retention_bytes, config.retention_ms
    if not deletes(config.cleanup_policy) or by_bytes is None or by_time is None:
        return not deletes(config.cleanup_policy)
    return not 0 <= by_bytes < MOST_BYTES and not 0 <= by_time < MOST_MS


def disk_full(
    usable_bytes: int | None,
    replicas: Sequence[ReplicaGrowth],
    *,
    other_per_hour: float = 0.0,
    observed_ms: int | None = None,
) -> DiskFull:
    """When `replicas`, all on one volume with so much left, and what others write, have filled it. observed_ms: how
    long rates were observed; None: for as long as it takes."""
    other = max(other_per_hour, 0.0)
    hours = None if usable_bytes is None else _hours_until(float(usable_bytes), replicas, other)
    end = float("inf") if hours is None else hours
    ms = None if hours is None or hours * HOUR_MS >= MAX_MS else int(hours * HOUR_MS)
    ceilings = [_room(each) for each in replicas]
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


def _room(replica: ReplicaGrowth) -> float:
    """Return how many bytes the replica can still grow."""
    outstanding = float(replica.outstanding_bytes)
    if not replica.written_per_hour or replica.written_per_hour < 0:
        return outstanding
    if replica.ceiling_bytes is None:
        return float("inf")
    return max(replica.ceiling_bytes - replica.size_bytes, outstanding)


def _written(replica: ReplicaGrowth) -> float:
    """Return the current growth in bytes per hour; 0 at the ceiling."""
    if _room(replica) <= replica.outstanding_bytes:
        return 0.0
    return replica.written_per_hour or 0.0


def _rate(replicas: Iterable[ReplicaGrowth], other: float) -> float:
    return sum(map(_written, replicas)) + other


def grown_by(replica: ReplicaGrowth, hours: float) -> float:
    """Return the growth of the replica after a number of hours (infinite: in the end)."""
    rate = _written(replica)
    more = rate * hours if rate else 0.0
    return min(replica.outstanding_bytes + more, _room(replica))


def _forever(replica: ReplicaGrowth) -> float:
    """Return the bytes per hour by which it grows without end."""
    return _written(replica) if _room(replica) == float("inf") else 0.0


def _hours_until(usable: float, replicas: Sequence[ReplicaGrowth], other: float) -> float | None:
    """When all have grown by `usable`: from one replica's ceiling to the next, between them in a straight line."""
    left = usable - sum(each.outstanding_bytes for each in replicas)
    if left <= 0:
        return 0.0
    growing = [(each, _written(each)) for each in replicas if _written(each) > 0]
    ends = sorted(((_room(each) - each.outstanding_bytes) / rate, rate) for each, rate in growing)
    rate, now = sum(rate for _, rate in growing) + other, 0.0
    for at, own in ends:
        if at == float("inf"):
            break
        if rate * (at - now) >= left:
            return now + left / rate
        left -= rate * (at - now)
        rate, now = rate - own, at
    steady = other + sum(own for at, own in ends if at == float("inf"))  # without the rounding of many subtractions
    return now + left / steady if steady > 0 else None


def _causes(replicas: Sequence[ReplicaGrowth], other: float, hours: float) -> list[Cause]:
    """Growth by topic until then. In the end of what never ends, shares are those of the rates that stay."""
    endless = hours == float("inf") and (other > 0 or any(_room(each) == float("inf") for each in replicas))
    grown: dict[str | None, float] = {None: 0.0}
    rates: dict[str | None, float] = {None: other}
    for each in replicas:
        amount = _forever(each) if endless else grown_by(each, hours)
        grown[each.topic] = grown.get(each.topic, 0.0) + amount
        rates[each.topic] = rates.get(each.topic, 0.0) + _written(each)
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
