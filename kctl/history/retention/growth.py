"""The growth of a log or a volume, from its sizes over time. Pure; evaluate.growth computes it.

The size of a log is a sawtooth: it rises with writes and falls when a segment is deleted or compacted. So there are
three figures, in bytes per hour over the whole span:

- net: last size − first size, the load on the disk;
- written: bytes added in the steps in which the log did not shrink, divided by the time of those steps. A step in which
  the log shrank says nothing about the bytes written meanwhile;
- freed: written − net.

A compacted log that is cleaned as fast as it is written oscillates and does not grow. Its growth is the size when it
last shrank minus the first size. The first size may be anywhere in the oscillation: growth below one oscillation may be
missed, but an oscillation is never mistaken for growth. If a log never shrank in the span, all writes count.

Sizes and net rates are added up over logs. The write rate of several logs is the sum of their write rates, never that
of the summed sizes, where the deletion in one log hides the writes in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

HOUR_MS = 3_600_000


class Growth(NamedTuple):
    """The growth over a time span. Rates are bytes per hour; None: fewer than two samples, or each step shrank.

    shrunk_at_ms: the last sample that was smaller than the one before; None: the log never shrank in the span.
    since_shrunk_bytes: bytes added since then, or since the first sample.
    """

    samples: int
    first_ms: int
    last_ms: int
    first_bytes: int
    last_bytes: int
    grown_bytes: int
    grown_ms: int
    shrunk_at_ms: int | None
    since_shrunk_bytes: int

    @property
    def span_ms(self) -> int:
        """Return the time from the first sample to the last."""
        return self.last_ms - self.first_ms

    @property
    def net_per_hour(self) -> float | None:
        """Return the change of the size."""
        return per_hour(self.last_bytes - self.first_bytes, self.span_ms)

    @property
    def written_per_hour(self) -> float | None:
        """Return the write rate."""
        return per_hour(self.grown_bytes, self.grown_ms)

    @property
    def lasting_per_hour(self) -> float | None:
        """Return the growth rate that remains after compaction, at least 0."""
        if self.shrunk_at_ms is None:
            return self.written_per_hour
        low = self.last_bytes - self.since_shrunk_bytes
        rate = per_hour(low - self.first_bytes, self.shrunk_at_ms - self.first_ms)
        return None if rate is None else max(rate, 0.0)

    @property
    def freed_per_hour(self) -> float | None:
        """Return the rate of deletion and compaction."""
        if self.net_per_hour is None or self.written_per_hour is None:
            return None
        return max(self.written_per_hour - self.net_per_hour, 0.0)


class GrownReplica(NamedTuple):
    """A replica in a log dir, as of its last sample. offset_lag, future: as in DescribeLogDirs."""

    topic: str
    partition: int
    broker: int
    log_dir: str
    future: bool
    offset_lag: int
    growth: Growth


class GrownVolume(NamedTuple):
    """The volume of a log dir, as of its last sample. growth: of its usable bytes."""

    broker: int
    log_dir: str
    total_bytes: int | None
    growth: Growth


def per_hour(size_bytes: int, duration_ms: int) -> float | None:
    """Return a rate; None without a duration."""
    return size_bytes * HOUR_MS / duration_ms if duration_ms > 0 else None


def added(rates: Iterable[float | None]) -> float | None:
    """Return the sum of known rates; None if all are unknown."""
    values = [rate for rate in rates if rate is not None]
    return sum(values) if values else None
