"""How far a batch is, how fast it goes, and whether it goes at all. Pure: times come in, nothing is asked.

A copy's progress is the bytes in its new log dir beside the size of the leader's log: the brokers' own offset_lag is 0
until a replica is far along. Times are seconds on a monotonic clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kctl.base.units import format_duration, format_size
from kctl.model import TopicPartition

RATE_WINDOW_S = 20.0  # brokers hand out a throttle's bytes over 11 seconds


class Copy(NamedTuple):
    """One replica that is being made. size_bytes: of the leader's log now; None when no broker told."""

    tp: TopicPartition
    broker: int
    size_bytes: int | None
    copied_bytes: int
    done: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """Of the whole run. rate_bytes: each second, lately; eta_ms: at that rate. None: not known yet.

    batch counts from 1.
    """

    batch: int
    batches: int
    copies_done: int
    copies: int
    done_bytes: int
    total_bytes: int
    rate_bytes: float | None
    eta_ms: int | None


class Cause(str, Enum):
    """Why nothing gets nearer to its end."""

    BROKER_DOWN = "broker_down"
    NO_LEADER = "no_leader"
    THROTTLE = "throttle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """The rest of a batch has not become smaller for `after_ms`. message says why, as far as it can be told.

    copy_rate, growth_rate: bytes each second that are copied, and by which the partitions grow.
    """

    cause: Cause
    message: str
    after_ms: int
    copy_rate: float
    growth_rate: float


class Meter:
    """Bytes copied over time: the rate of the last RATE_WINDOW_S."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now_s: float, done_bytes: int) -> float | None:
        """The rate with one more reading; None before there are two a second apart."""
        seen = self._seen
        seen.append((now_s, done_bytes))
        while len(seen) > 2 and now_s - seen[1][0] >= RATE_WINDOW_S:
            seen.popleft()
        span = now_s - seen[0][0]
        return max(0.0, (done_bytes - seen[0][1]) / span) if span >= 1.0 else None


def eta_ms(rest_bytes: int, rate_bytes: float | None) -> int | None:
    """How long the rest takes at a rate. None when nothing moves."""
    return None if not rate_bytes else round(1000 * rest_bytes / rate_bytes)


class _Reading(NamedTuple):
    at_s: float
    open_copies: int
    rest_bytes: int
    copied_bytes: int
    size_bytes: int


class StallWatch:
    """Looks whether the rest of a batch (leaders' sizes − bytes copied, and the number of copies) becomes smaller."""

    def __init__(self, stall_after_ms: int) -> None:
        self._after_s = stall_after_ms / 1000
        self._seen: deque[_Reading] = deque()

    def add(self, now_s: float, copies: Iterable[Copy], waiting: int = 0) -> None:
        """One more reading. waiting: partitions that wait for something else than bytes (an order, a leader)."""
        open_copies = [copy for copy in copies if not copy.done]
        sizes = sum(copy.size_bytes or 0 for copy in open_copies)
        copied = sum(copy.copied_bytes for copy in open_copies)
        rest = sum(max(0, (copy.size_bytes or 0) - copy.copied_bytes) for copy in open_copies)
        seen = self._seen
        seen.append(_Reading(now_s, len(open_copies) + waiting, rest, copied, sizes))
        while len(seen) > 2 and now_s - seen[1].at_s >= self._after_s:
            seen.popleft()

    def forget(self) -> None:
        """Begin anew: the cluster could not be asked for a while."""
        self._seen.clear()

    @property
    def stalled(self) -> bool:
        """Has nothing become smaller for as long as it may take?"""
        if len(self._seen) < 2:
            return False
        first, last = self._seen[0], self._seen[-1]
        if last.at_s - first.at_s < self._after_s or not last.open_copies:
            return False
        return last.open_copies >= first.open_copies and last.rest_bytes >= first.rest_bytes

    def explain(
        self,
        copies: Sequence[Copy],
        *,
        down: Mapping[int, int],
        behind: Mapping[int, int],
        leaderless: Sequence[TopicPartition],
        silent: Collection[int],
        throttle_bytes: int | None,
    ) -> Stall:
        """Why it is stalled.

        down, behind: brokers that are down, or up and not in sync, → partitions of the batch that need them to be.
        leaderless: partitions of the batch without a leader. silent: brokers that lead some, and do not answer.
        """
        first, last = self._seen[0], self._seen[-1]
        span = max(last.at_s - first.at_s, 1e-9)
        copy_rate = max(0.0, (last.copied_bytes - first.copied_bytes) / span)
        growth = max(0.0, (last.size_bytes - first.size_bytes) / span)
        if down:
            cause, why = Cause.BROKER_DOWN, waits_for(down)
        elif leaderless:
            cause, why = Cause.NO_LEADER, f"{_some(leaderless)} without a leader, so nothing can be copied from"
        elif silent:
            nodes = ", ".join(map(str, sorted(silent)))
            cause, why = Cause.NO_LEADER, f"broker {nodes}, which is to be copied from, does not answer"
        else:
            cause, why = _slow(copies, behind, throttle_bytes, copy_rate, growth)
        after_ms = round(self._after_s * 1000)
        return Stall(cause, f"no progress for {format_duration(after_ms)}: {why}", after_ms, copy_rate, growth)


def _slow(
    copies: Sequence[Copy], behind: Mapping[int, int], throttle_bytes: int | None, copy_rate: float, growth: float
) -> tuple[Cause, str]:
    """All brokers that are needed are up."""
    limit = None if throttle_bytes is None else f"{format_size(throttle_bytes)}/s"
    if copy_rate and growth:
        allowed = "" if limit is None else f" (the throttle is {limit} for each broker)"
        return Cause.THROTTLE, (
            f"the partitions grow by {format_size(round(growth))}/s and only {format_size(round(copy_rate))}/s are "
            f"copied{allowed}"
        )
    left = [copy for copy in copies if not copy.done]
    if behind and all(copy.copied_bytes >= (copy.size_bytes or 0) for copy in left):
        nodes = ", ".join(map(str, behind))
        return Cause.UNKNOWN, f"everything is copied, but replicas on broker {nodes} do not come in sync; see its log"
    receivers = ", ".join(str(node) for node in sorted({copy.broker for copy in left}))
    where = f" to broker {receivers}" if receivers else ""
    if limit is not None:
        return Cause.THROTTLE, f"nothing is copied{where}, although {limit} are allowed; other moves may use that up"
    return Cause.UNKNOWN, f"nothing is copied{where}; the logs of these brokers may say why"


def waits_for(down: Mapping[int, int]) -> str:
    """«broker 4 is down, and 12 partitions wait for it»."""
    nodes, count = ", ".join(map(str, down)), sum(down.values())
    waiting = "1 partition waits" if count == 1 else f"{count:,} partitions wait"
    if len(down) == 1:
        return f"broker {nodes} is down, and {waiting} for it"
    return f"brokers {nodes} are down, and {waiting} for them"


def _some(partitions: Sequence[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:3]))
    more = f" and {len(partitions) - 3:,} more" if len(partitions) > 3 else ""
    return f"{shown}{more} {'is' if len(partitions) == 1 else 'are'}"
