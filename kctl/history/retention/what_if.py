"""What another retention would free, and who would lose by it. Pure.

Kafka deletes whole segments from the start of a log, so what is told is a range, one segment wide:

- by bytes: of what lies over retention.bytes, at most all, at least all but one segment.bytes;
- by time: a segment goes when its newest record is older than retention.ms: at most all that is older, at least all but
  one segment;
- both go from the start: the larger one counts.

When a message was written is interpolated between moments at which the log's end is known (kctl.lag.rates.LogEnd),
and between the first record and the first such moment; bytes are taken to be spread evenly over offsets. Nothing is
freed where cleanup.policy has no «delete». With the log dirs' files retention.segment_usage tells it exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.base.units import parse_duration_ms, parse_size
from kctl.errors import UsageError
from kctl.lag.log_config import LogConfig
from kctl.lag.rates import LogEnd
from kctl.lag.retention import deletes

_NONE = "-1"
_MOST = 2**63 - 1


class KnownLog(NamedTuple):
    """A partition's log. ends: where it ended at some moments, in order of time; the last is now.

    size_bytes: of the leader's replica. oldest_timestamp_ms: of the first record, None: empty, or not known.
    """

    topic: str
    partition: int
    size_bytes: int | None
    log_start_offset: int | None
    oldest_timestamp_ms: int | None
    ends: tuple[LogEnd, ...]


class Freed(NamedTuple):
    """least ≤ what is deleted ≤ most, in bytes of one replica; and how far the log start may go at most."""

    least_bytes: int
    most_bytes: int
    start_offset_at_most: int


@dataclass(frozen=True, slots=True)
class Change:
    """A topic's configs that are to be tried; None: as it is."""

    retention_ms: int | None = None
    retention_bytes: int | None = None

    def applied(self, config: LogConfig) -> LogConfig:
        """The configs with the change."""
        return config._replace(
            retention_ms=config.retention_ms if self.retention_ms is None else self.retention_ms,
            retention_bytes=config.retention_bytes if self.retention_bytes is None else self.retention_bytes,
        )


def parse_change(settings: Sequence[str]) -> Change:
    """«retention.ms=3d», «retention.bytes=10GB», «retention.ms=259200000», «retention.ms=-1». Raises UsageError."""
    result: dict[str, int] = {}
    for text in settings:
        name, separator, value = text.partition("=")
        if not separator or name not in _PARSERS:
            raise UsageError(
                f"{text!r} is no change of retention", hint="write retention.ms=3d or retention.bytes=10GB"
            )
        if name in result:
            raise UsageError(f"{name} is given twice")
        result[name] = -1 if value.strip() == _NONE else _PARSERS[name](value)
        if result[name] > _MOST:
            raise UsageError(f"{text!r} is more than Kafka can hold")
    return Change(result.get("retention.ms"), result.get("retention.bytes"))


def _milliseconds(text: str) -> int:
    """A bare number is milliseconds, as in Kafka's configs."""
    plain = text.strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 20 else parse_duration_ms(text)


_PARSERS: Mapping[str, Callable[[str], int]] = {"retention.ms": _milliseconds, "retention.bytes": parse_size}


def freed(log: KnownLog, config: LogConfig, now_ms: int) -> Freed | None:
    """What a check of retention by `config` deletes of the log, one replica of it; None where it is not known."""
    start = log.log_start_offset
    if log.size_bytes is None or start is None or not log.ends:
        return None
    if not deletes(config.cleanup_policy):
        return Freed(0, 0, start)
    segment = max(config.segment_bytes or 0, 0)
    end = log.ends[-1].offset
    over = _over(log.size_bytes, config.retention_bytes)
    least_cut, most_cut = _cut(log, config.retention_ms, now_ms)
    most = max(over, _bytes_before(log, most_cut))
    least = max(over - segment, _bytes_before(log, least_cut) - segment, 0)
    by_bytes = start + _up((end - start) * over, log.size_bytes) if over else start
    return Freed(least, most, max(min(by_bytes, end), most_cut))


def _over(size_bytes: int, retention_bytes: int | None) -> int:
    if retention_bytes is None or retention_bytes < 0:
        return 0
    return max(size_bytes - retention_bytes, 0)


def _up(amount: int, divisor: int) -> int:
    return -(-amount // divisor)


def _cut(log: KnownLog, retention_ms: int | None, now_ms: int) -> tuple[int, int]:
    """The first offset that is young enough to stay: at least, and at most."""
    start = log.log_start_offset or 0
    if retention_ms is None or retention_ms < 0:
        return start, start
    return offsets_at(log, now_ms - retention_ms)


def offsets_at(log: KnownLog, moment_ms: int) -> tuple[int, int]:
    """The first offset that was written at or after a moment: at least, and at most. They differ only where the moment
    is before all that is known of the log."""
    start = log.log_start_offset or 0
    points = _points(log)
    if not points:
        return start, start
    if moment_ms <= points[0].at_ms:
        return start, points[0].offset
    if moment_ms >= points[-1].at_ms:
        return points[-1].offset, points[-1].offset
    place = next(i for i in range(1, len(points)) if points[i].at_ms >= moment_ms)
    (early_ms, low), (late_ms, high) = points[place - 1], points[place]
    result = low + int(float(high - low) * (float(moment_ms - early_ms) / float(late_ms - early_ms)))
    return result, result


def _points(log: KnownLog) -> list[LogEnd]:
    """Moments and offsets, both never decreasing. Ends from before the log start say nothing of what is there."""
    start = log.log_start_offset or 0
    points = [LogEnd(at_ms, max(offset, start)) for at_ms, offset in log.ends if offset >= start]
    oldest = log.oldest_timestamp_ms
    if oldest is not None and points and oldest < points[0].at_ms:
        points.insert(0, LogEnd(oldest, start))
    return points


def _bytes_before(log: KnownLog, offset: int) -> int:
    start, end = log.log_start_offset or 0, log.ends[-1].offset
    if end <= start or not log.size_bytes:
        return 0
    return log.size_bytes * (min(offset, end) - start) // (end - start)


def lost_unread(committed: int | None, log: KnownLog, start_offset: int) -> int:
    """How many messages a group loses that it has not read, when the log start goes to `start_offset`."""
    if committed is None or log.log_start_offset is None or not log.ends:
        return 0
    return max(min(start_offset, log.ends[-1].offset) - max(committed, log.log_start_offset), 0)
