"""Compacted topics: the dirty ratio of a log, stalled cleaners, and how long tombstones can be read.

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
    """A segment as the cleaner sees it; the last segment of a log is active.

    closed_ms: the time of the last write (the file's, on the broker's clock); None: unknown.
    """

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    closed_ms: int | None = None


class Dirty(NamedTuple):
    """The work of the cleaner. ratio: cleanable ÷ (clean + cleanable); None if both are 0.

    first_dirty_offset: where the cleaner resumes. first_uncleanable_offset: where it has to stop for now.
    """

    clean_bytes: int
    cleanable_bytes: int
    ratio: float | None
    first_dirty_offset: int
    first_uncleanable_offset: int

    @property
    def offsets(self) -> int:
        """Return the number of offsets that the cleaner would read, an upper bound for the number of keys."""
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
    """Return the state of a log. Raises ValueError without segments.

    cleaned_to: the offset in cleaner-offset-checkpoint; None: never cleaned.
    """
    if not segments:
        raise ValueError("a log has at least its active segment")
    start = segments[0].base_offset if log_start is None else max(log_start, segments[0].base_offset)
    first = start if cleaned_to is None else max(cleaned_to, start)
    active = segments[-1].base_offset
    closed = [(each, after.base_offset) for each, after in pairwise(segments)]  # with the end offset of each
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


def needs_cleaning(state: Dirty, config: LogConfig) -> bool:
    """Return True if the cleaner would pick this log (LogCleanerManager.grabFilthiestCompactedLog).

    max.compaction.lag.ms is not considered.
    """
    return compacts(config.cleanup_policy) and _too_dirty(state.clean_bytes, state.cleanable_bytes, config)


def _too_dirty(clean_bytes: int, cleanable_bytes: int, config: LogConfig) -> bool:
    limit = config.min_cleanable_dirty_ratio
    if cleanable_bytes <= 0:
        return False
    return cleanable_bytes / (clean_bytes + cleanable_bytes) > (DEFAULT_DIRTY_RATIO if limit is None else limit)


def due_since_ms(segments: Sequence[CompactedSegment], state: Dirty, config: LogConfig) -> int | None:
    """Return the time since which the cleaner would pick this log; None: it would not, or unknown.

    That is when the segment that made the dirty part large enough was closed.
    """
    if not needs_cleaning(state, config):
        return None
    cleanable = 0
    for each, after in pairwise(segments):
        if after.base_offset <= state.first_dirty_offset or each.base_offset >= state.first_uncleanable_offset:
            continue
        cleanable += each.size_bytes
        if _too_dirty(state.clean_bytes, cleanable, config):
            return each.closed_ms
    return None


def min_dirty_ratio(growth: Growth, config: LogConfig) -> float | None:
    """Return a lower bound of the dirty ratio from sizes over time; None if the log is not compacted.

    Cleaning never makes a log larger: the bytes added since it last shrank are dirty, except for the active segment.
    """
    if not compacts(config.cleanup_policy) or growth.last_bytes <= 0:
        return None
    closed = growth.since_shrunk_bytes - max(config.segment_bytes or 0, 0)
    return max(closed, 0) / growth.last_bytes


def is_cleaner_stalled(growth: Growth, config: LogConfig) -> bool | None:
    """Return True if sizes over time show a dirty ratio above the limit; None if the log is not compacted."""
    ratio = min_dirty_ratio(growth, config)
    if ratio is None:
        return None
    limit = config.min_cleanable_dirty_ratio
    return ratio > (DEFAULT_DIRTY_RATIO if limit is None else limit)


def dedupe_keys(buffer_bytes: int = DEDUPE_BUFFER_BYTES, threads: int = 1, load_factor: float = LOAD_FACTOR) -> int:
    """Return the number of distinct keys that fit in a cleaner thread's part of the buffer.

    A log with more keys is cleaned in several rounds.
    """
    return int(buffer_bytes // max(threads, 1) // KEY_BYTES * load_factor)


def tombstones_until_ms(time_lag_ms: int | None, config: LogConfig) -> int | None:
    """Return how long a group with this time lag is sure to see each unread deletion (tombstone).

    A tombstone is retained for delete.retention.ms after the first cleaning (KIP-534), which is no earlier than
    min.compaction.lag.ms. A group that resumes later may keep records that were deleted. 0: it may be too late.
    None: not compacted, nothing unread, or unknown.
    """
    if time_lag_ms is None or time_lag_ms <= 0 or config.delete_retention_ms is None:
        return None
    if not compacts(config.cleanup_policy):
        return None
    retained = config.delete_retention_ms + max(config.min_compaction_lag_ms or 0, 0)
    return max(retained - time_lag_ms, 0)
