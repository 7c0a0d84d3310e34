"""Compacted topics: how much of a log is dirty, whether its cleaner stands still, and how long deletions can be read.
Pure. Sources: LogCleanerManager (LogToClean, cleanableOffsets, calculateCleanableBytes), LogCleaner.buildOffsetMap,
SkimpyOffsetMap, CleanerConfig of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kctl.history.retention.growth import Growth
from kctl.lag.log_config import LogConfig, compacts

DEDUPE_BUFFER_BYTES = 128 * 1024 * 1024  # log.cleaner.dedupe.buffer.size
LOAD_FACTOR = 0.9  # log.cleaner.io.buffer.load.factor
KEY_BYTES = 24  # SkimpyOffsetMap: an MD5 and an offset
DEFAULT_DIRTY_RATIO = 0.5  # min.cleanable.dirty.ratio


class CompactedSegment(NamedTuple):
    """A segment as the cleaner sees it. The last one of a log is the active one. closed_ms: since when nothing is
    written to it (of the broker's clock: its file's), None: not known."""

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    closed_ms: int | None = None


class Dirty(NamedTuple):
    """What the cleaner has before it. ratio: cleanable ÷ (clean + cleanable); None when there is neither.

    first_dirty_offset: where it goes on; first_uncleanable_offset: where it must end for now. offsets: between them: no
    more keys than that can be there.
    """

    clean_bytes: int
    cleanable_bytes: int
    ratio: float | None
    first_dirty_offset: int
    first_uncleanable_offset: int

    @property
    def offsets(self) -> int:
        """How many offsets it would read."""
        return max(self.first_uncleanable_offset - self.first_dirty_offset, 0)


def dirty(
    segments: Sequence[CompactedSegment],
    *,
    cleaned_to: int | None,
    log_start: int | None,
    last_stable: int | None,
    now_ms: int,
    min_compaction_lag_ms: int = 0,
) -> Dirty:
    """The state of a log. cleaned_to: of cleaner-offset-checkpoint, None: never cleaned. Raises ValueError without
    segments."""
    if not segments:
        raise ValueError("a log has at least its active segment")
    start = segments[0].base_offset if log_start is None else max(log_start, segments[0].base_offset)
    first = start if cleaned_to is None else max(cleaned_to, start)
    active = segments[-1].base_offset
    closed = [(each, after.base_offset) for each, after in pairwise(segments)]  # with the offset behind each
    bound = active if last_stable is None else min(active, last_stable)
    if min_compaction_lag_ms > 0:
        young = (
            each.base_offset for each, end in closed if end > first and _is_young(each, now_ms, min_compaction_lag_ms)
        )
        bound = min(bound, next(young, active))
    uncleanable = next((each.base_offset for each, end in closed if end > bound), active)
    begin = min(first, uncleanable)
    clean = sum(each.size_bytes for each in segments if each.base_offset < first)
    cleanable = sum(each.size_bytes for each, end in closed if end > begin and each.base_offset < uncleanable)
    total = clean + cleanable
    return Dirty(clean, cleanable, cleanable / total if total else None, first, uncleanable)


def _is_young(segment: CompactedSegment, now_ms: int, min_compaction_lag_ms: int) -> bool:
    return segment.largest_timestamp > now_ms - min_compaction_lag_ms


def wants_cleaning(found: Dirty, config: LogConfig) -> bool:
    """Whether the cleaner would take this log (LogCleanerManager.grabFilthiestCompactedLog; max.compaction.lag.ms
    aside)."""
    return compacts(config.cleanup_policy) and _too_dirty(found.clean_bytes, found.cleanable_bytes, config)


def _too_dirty(clean_bytes: int, cleanable_bytes: int, config: LogConfig) -> bool:
    limit = config.min_cleanable_dirty_ratio
    if cleanable_bytes <= 0:
        return False
    return cleanable_bytes / (clean_bytes + cleanable_bytes) > (DEFAULT_DIRTY_RATIO if limit is None else limit)


def wanted_since_ms(segments: Sequence[CompactedSegment], found: Dirty, config: LogConfig) -> int | None:
    """Since when the cleaner would take this log: when the segment was closed with which its dirty part became large
    enough. None: it would not take it, or that is not known."""
    if not wants_cleaning(found, config):
        return None
    cleanable = 0
    for each, after in pairwise(segments):
        if after.base_offset <= found.first_dirty_offset or each.base_offset >= found.first_uncleanable_offset:
            continue
        cleanable += each.size_bytes
        if _too_dirty(found.clean_bytes, cleanable, config):
            return each.closed_ms
    return None


def dirty_at_least(found: Growth, config: LogConfig) -> float | None:
    """A lower bound of the dirty ratio from sizes over time alone: a cleaning makes a log smaller, or leaves it as it
    is. What was added since it last shrank, but for the active segment, is dirty. None where it is not compacted."""
    if not compacts(config.cleanup_policy) or found.last_bytes <= 0:
        return None
    closed = found.since_shrunk_bytes - max(config.segment_bytes or 0, 0)
    return max(closed, 0) / found.last_bytes


def stands_still(found: Growth, config: LogConfig) -> bool | None:
    """Whether the cleaner passes a log over that it should take, as far as sizes over time tell: dirty beyond the
    limit. None: not compacted."""
    ratio = dirty_at_least(found, config)
    if ratio is None:
        return None
    limit = config.min_cleanable_dirty_ratio
    return ratio > (DEFAULT_DIRTY_RATIO if limit is None else limit)


def dedupe_keys(buffer_bytes: int = DEDUPE_BUFFER_BYTES, threads: int = 1, load_factor: float = LOAD_FACTOR) -> int:
    """How many different keys one cleaner thread can hold in its part of the buffer. With more, a log is cleaned in
    several rounds."""
    return int(buffer_bytes // max(threads, 1) // KEY_BYTES * load_factor)


def tombstones_until_ms(time_lag_ms: int | None, config: LogConfig) -> int | None:
    """For how long a group that is so far behind is sure to see each deletion (tombstone) that it has not read.

    A tombstone stays for delete.retention.ms from when the cleaner first comes by (KIP-534), which is not before
    min.compaction.lag.ms: a group that returns later may keep records that were deleted. 0: it may be too late. None:
    not compacted, nothing unread, or not known.
    """
    if time_lag_ms is None or time_lag_ms <= 0 or config.delete_retention_ms is None:
        return None
    if not compacts(config.cleanup_policy):
        return None
    retained = config.delete_retention_ms + max(config.min_compaction_lag_ms or 0, 0)
    return max(retained - time_lag_ms, 0)
