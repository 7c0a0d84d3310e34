"""The bytes that a retention change frees, and the messages that groups lose. Pure.

Kafka deletes whole segments from the start of a log, so the result is a range, one segment wide:

- by bytes: at most all bytes beyond retention.bytes, at least all but one segment.bytes;
- by time: a segment is deleted when its newest record is older than retention.ms: at most all older bytes, at least
  all but one segment;
- both delete from the start of the log, so the larger amount counts.

The write time of a message is interpolated between times with a known log end (kctl.lag.rates.LogEnd), and between the
first record and the first of these times. Bytes are assumed to be spread evenly over offsets. Without "delete" in
cleanup.policy nothing is freed. retention.segment_usage computes exact values from the files of log dirs.
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
_MAX_VALUE = 2**63 - 1


class KnownLog(NamedTuple):
    """The log of a partition. ends: log end offsets in order of time; the last one is current.

    size_bytes: of the leader's replica. oldest_timestamp_ms: of the first record; None: empty, or unknown.
    """

    topic: str
    partition: int
    size_bytes: int | None
    log_start_offset: int | None
    oldest_timestamp_ms: int | None
    ends: tuple[LogEnd, ...]


class Freed(NamedTuple):
    """Bounds of the bytes that are deleted from one replica, and the highest log start offset afterwards."""

    least_bytes: int
    most_bytes: int
    start_offset_at_most: int


@dataclass(frozen=True, slots=True)
class Change:
    """The topic configs to try; None: unchanged."""

    retention_ms: int | None = None
    retention_bytes: int | None = None

    def applied(self, config: LogConfig) -> LogConfig:
        """Return the configs with the change."""
        return config._replace(
            retention_ms=config.retention_ms if self.retention_ms is None else self.retention_ms,
            retention_bytes=config.retention_bytes if self.retention_bytes is None else self.retention_bytes,
        )


def parse_change(settings: Sequence[str]) -> Change:
    """Parse settings such as "retention.ms=3d", "retention.bytes=10GB" and "retention.ms=-1". Raises UsageError."""
    result: dict[str, int] = {}
    for text in settings:
        name, separator, value = text.partition("=")
        if not separator or name not in _PARSERS:
            raise UsageError(
                f"{text!r} is not a retention change", hint="write retention.ms=3d or retention.bytes=10GB"
            )
        if name in result:
            raise UsageError(f"{name} is set twice")
        result[name] = -1 if value.strip() == _NONE else _PARSERS[name](value)
        if result[name] > _MAX_VALUE:
            raise UsageError(f"{text!r} is more than Kafka can hold")
    return Change(result.get("retention.ms"), result.get("retention.bytes"))


def _milliseconds(text: str) -> int:
    """Parse a duration. A number without a unit is milliseconds, as in Kafka's configs."""
    plain = text.strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 20 else parse_duration_ms(text)


_PARSERS: Mapping[str, Callable[[str], int]] = {"retention.ms": _milliseconds, "retention.bytes": parse_size}


def freed(log: KnownLog, config: LogConfig, now_ms: int) -> Freed | None:
    """Return the bytes that retention with `config` deletes from one replica; None: unknown."""
    start = log.log_start_offset
    if log.size_bytes is None or start is None or not log.ends:
        return None
    if not deletes(config.cleanup_policy):
        return Freed(0, 0, start)
    segment = max(config.segment_bytes or 0, 0)
    end = log.ends[-1].offset
    over = _excess(log.size_bytes, config.retention_bytes)
    min_cut, max_cut = _first_retained(log, config.retention_ms, now_ms)
    most = max(over, _bytes_before(log, max_cut))
    least = max(over - segment, _bytes_before(log, min_cut) - segment, 0)
    by_bytes = start + _ceil_div((end - start) * over, log.size_bytes) if over else start
    return Freed(least, most, max(min(by_bytes, end), max_cut))


def _excess(size_bytes: int, retention_bytes: int | None) -> int:
    if retention_bytes is None or retention_bytes < 0:
        return 0
    return max(size_bytes - retention_bytes, 0)


def _ceil_div(amount: int, divisor: int) -> int:
    return -(-amount // divisor)


def _first_retained(log: KnownLog, retention_ms: int | None, now_ms: int) -> tuple[int, int]:
    """Return the lower and upper bound of the first offset that is young enough to be retained."""
    start = log.log_start_offset or 0
    if retention_ms is None or retention_ms < 0:
        return start, start
    return offsets_at(log, now_ms - retention_ms)


def offsets_at(log: KnownLog, moment_ms: int) -> tuple[int, int]:
    """Return the lower and upper bound of the first offset that was written at or after this time.

    They differ only if the time is before all known points of the log.
    """
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
    """Return times and offsets, both non-decreasing, without ends before the log start."""
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
    """Return the number of unread messages that a group loses when the log start moves to `start_offset`."""
    if committed is None or log.log_start_offset is None or not log.ends:
        return 0
    return max(min(start_offset, log.ends[-1].offset) - max(committed, log.log_start_offset), 0)
