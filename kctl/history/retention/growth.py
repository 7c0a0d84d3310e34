"""How a log, or a volume, grows, from its sizes at some moments. Pure; evaluate.growth computes it.

A log's size is a saw: it rises with what is written and falls when a segment is deleted or compacted. So there are
three figures, in bytes an hour over the whole span:

- net: last size − first size, what the disk has to bear;
- written: what was added in the steps in which the log did not shrink, through the time of those steps. A step in which
  it shrank says nothing of what was written meanwhile;
- freed: written − net.

A compacted log that is written as much as it is cleaned swings, and does not grow. Its lowest points tell: what it had
left when it last shrank, less the first size. As the first size lies anywhere in the swing, less than a swing may be
missed, and none is taken for growth. A log that never shrank in the span lasts as it is written.

Sizes are added up over logs, and so are net rates; a written rate of a sum of logs is the sum of theirs, never that of
the summed sizes, where one log's deletion hides what another one wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

HOUR_MS = 3_600_000


class Growth(NamedTuple):
    """What is known of a span of time. Rates are bytes an hour; None: no two samples, or each step shrank.

    shrunk_at_ms: the last sample that was smaller than the one before; None: it never shrank in the span.
    since_shrunk_bytes: what has been added since then, or since the first sample.
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
        """Return the growth that compaction leaves, at least 0."""
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
    """A replica in a log dir, as its last sample had it. offset_lag, future: as DescribeLogDirs says."""

    topic: str
    partition: int
    broker: int
    log_dir: str
    future: bool
    offset_lag: int
    growth: Growth


class GrownVolume(NamedTuple):
    """A log dir's volume, as its last sample had it. growth: of its usable bytes."""

    broker: int
    log_dir: str
    total_bytes: int | None
    growth: Growth


def per_hour(size_bytes: int, duration_ms: int) -> float | None:
    """Return a rate; None without a duration."""
    return size_bytes * HOUR_MS / duration_ms if duration_ms > 0 else None


def added(rates: Iterable[float | None]) -> float | None:
    """Return the sum of known rates; None if all are unknown."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
