"""Progress, rate and stalls of a batch. Pure: times are parameters.

The progress of a copy is the size of its new log relative to the leader's log: the offset_lag of brokers is 0 until a
replica has almost caught up. Times are seconds on a monotonic clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kctl.base.units import format_duration, format_size
from kctl.model import TopicPartition
from kctl.reassign.planner.assignment import Reassignment

RATE_WINDOW_S = 20.0  # brokers average a throttle over 11 seconds


class ReplicaCopy(NamedTuple):
    """A replica that is being copied. size_bytes: of the leader's log now; None if no broker reported it."""

    tp: TopicPartition
    broker: int
    size_bytes: int | None
    copied_bytes: int
    done: bool


class MovePhase(str, Enum):
    """The activity of the brokers for the open partitions of a batch."""

    COPYING = "copying"
    SYNCING = "waiting for in-sync replicas"
    REMOVING = "removing replicas"
    ORDERING = "reordering replicas"
    DONE = "batch complete"


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of the whole run. batch: from 1.

    rate_bytes: current bytes per second; eta_ms: time left at that rate. Both are None while unknown.
    """

    phase: MovePhase
    batch: int
    batches: int
    partitions_done: int
    partition_count: int
    done_bytes: int
    total_bytes: int
    rate_bytes: float | None
    eta_ms: int | None


class StallCause(str, Enum):
    """The reason why a batch makes no progress."""

    BROKER_DOWN = "broker_down"
    NO_LEADER = "no_leader"
    THROTTLE = "throttle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """A batch without progress for `after_ms`; message has the reason, if known.

    copy_rate, growth_rate: bytes per second that are copied, and that are added to the partitions.
    """

    cause: StallCause
    message: str
    after_ms: int
    copy_rate: float
    growth_rate: float


def move_phase(rows: Collection[Reassignment], copies: Iterable[ReplicaCopy]) -> MovePhase:
    """Return the phase of a batch.

    rows: partitions that are not at their target; copies: the copies of these partitions.
    """
    open_copies = [copy for copy in copies if not copy.done]
    if any(copy.size_bytes is None or copy.copied_bytes < copy.size_bytes for copy in open_copies):
        return MovePhase.COPYING
    if open_copies:
        return MovePhase.SYNCING
    if not rows:
        return MovePhase.DONE
    return MovePhase.REMOVING if any(r.removing for r in rows) else MovePhase.ORDERING


class Meter:
    """Bytes copied over time: the rate of the last RATE_WINDOW_S."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def add(self, now_s: float, done_bytes: int) -> float | None:
        """Add a reading and return the rate; None until two readings are a second apart."""
        readings = self._readings
        readings.append((now_s, done_bytes))
        while len(readings) > 2 and now_s - readings[1][0] >= RATE_WINDOW_S:
            readings.popleft()
        span = now_s - readings[0][0]
        return max(0.0, (done_bytes - readings[0][1]) / span) if span >= 1.0 else None


def eta_ms(rest_bytes: int, rate_bytes: float | None) -> int | None:
    """Return the time for the rest at a rate, None if there is no rate."""
    return None if not rate_bytes else round(1000 * rest_bytes / rate_bytes)


class _Reading(NamedTuple):
    at_s: float
    open_copies: int
    rest_bytes: int
    copied_bytes: int
    size_bytes: int


class StallWatch:
    """A detector of stalls: what remains of a batch (bytes to copy, number of copies) no longer shrinks."""

    def __init__(self, stall_after_ms: int) -> None:
        self._after_s = stall_after_ms / 1000
        self._readings: deque[_Reading] = deque()

    def add(self, now_s: float, copies: Iterable[ReplicaCopy], waiting: int = 0) -> None:
        """Add a reading. waiting: partitions that wait for something other than bytes, e.g. a leader."""
        open_copies = [copy for copy in copies if not copy.done]
        sizes = sum(copy.size_bytes or 0 for copy in open_copies)
        copied = sum(copy.copied_bytes for copy in open_copies)
        rest = sum(max(0, (copy.size_bytes or 0) - copy.copied_bytes) for copy in open_copies)
        readings = self._readings
        readings.append(_Reading(now_s, len(open_copies) + waiting, rest, copied, sizes))
        while len(readings) > 2 and now_s - readings[1].at_s >= self._after_s:
            readings.popleft()

    def reset(self) -> None:
        """Start over, after the cluster was unreachable for a while."""
        self._readings.clear()

    @property
    def stalled(self) -> bool:
        """Return True if the rest has not shrunk for the allowed time."""
        if len(self._readings) < 2:
            return False
        first, last = self._readings[0], self._readings[-1]
        if last.at_s - first.at_s < self._after_s or not last.open_copies:
            return False
        return last.open_copies >= first.open_copies and last.rest_bytes >= first.rest_bytes

    def explain(
        self,
        copies: Sequence[ReplicaCopy],
        *,
        down: Mapping[int, int],
        behind: Mapping[int, int],
        leaderless: Sequence[TopicPartition],
        silent: Collection[int],
        throttle_bytes: int | None,
    ) -> Stall:
        """Return the reason why the batch is stalled.

        down, behind: brokers that are down, or up and not in sync → partitions of the batch that wait for them.
        leaderless: partitions of the batch without a leader. silent: leaders of the batch that do not respond.
        """
        first, last = self._readings[0], self._readings[-1]
        span = max(last.at_s - first.at_s, 1e-9)
        copy_rate = max(0.0, (last.copied_bytes - first.copied_bytes) / span)
        growth = max(0.0, (last.size_bytes - first.size_bytes) / span)
        if down:
            cause, why = StallCause.BROKER_DOWN, waits_for(down)
        elif leaderless:
            cause, why = StallCause.NO_LEADER, f"{_some(leaderless)} without a leader to copy from"
        elif silent:
            nodes = ", ".join(map(str, sorted(silent)))
            cause, why = StallCause.NO_LEADER, f"broker {nodes}, the source of the copies, does not respond"
        else:
            cause, why = _slow(copies, behind, throttle_bytes, copy_rate, growth)
        after_ms = round(self._after_s * 1000)
        return Stall(cause, f"no progress for {format_duration(after_ms)}: {why}", after_ms, copy_rate, growth)


def _slow(
    copies: Sequence[ReplicaCopy],
    behind: Mapping[int, int],
    throttle_bytes: int | None,
    copy_rate: float,
    growth: float,
) -> tuple[StallCause, str]:
    """Return the cause if all required brokers are up."""
    limit = None if throttle_bytes is None else f"{format_size(throttle_bytes)}/s"
    if copy_rate and growth:
        allowed = "" if limit is None else f" (throttle: {limit} per broker)"
        return StallCause.THROTTLE, (
            f"the partitions grow by {format_size(round(growth))}/s, but only {format_size(round(copy_rate))}/s are "
            f"copied{allowed}"
        )
    open_copies = [copy for copy in copies if not copy.done]
    if behind and all(copy.copied_bytes >= (copy.size_bytes or 0) for copy in open_copies):
        nodes = ", ".join(map(str, behind))
        return (
            StallCause.UNKNOWN,
            f"all data is copied, but the replicas on broker {nodes} are not in sync; check its log",
        )
    receivers = ", ".join(str(node) for node in sorted({copy.broker for copy in open_copies}))
    receiving = f" to broker {receivers}" if receivers else ""
    if limit is not None:
        return (
            StallCause.THROTTLE,
            f"nothing is copied{receiving}, although the throttle allows {limit}; other moves may use it up",
        )
    return StallCause.UNKNOWN, f"nothing is copied{receiving}; check the logs of these brokers"


def waits_for(down: Mapping[int, int]) -> str:
    """Return e.g. "broker 4 is down, and 12 partitions wait for it"."""
    nodes, count = ", ".join(map(str, down)), sum(down.values())
    waiting = "1 partition waits" if count == 1 else f"{count:,} partitions wait"
    if len(down) == 1:
        return f"broker {nodes} is down, and {waiting} for it"
    return f"brokers {nodes} are down, and {waiting} for them"


def _some(partitions: Sequence[TopicPartition]) -> str:
    names = ", ".join(map(str, partitions[:3]))
    more = f" and {len(partitions) - 3:,} more" if len(partitions) > 3 else ""
    return f"{names}{more} {'is' if len(partitions) == 1 else 'are'}"
