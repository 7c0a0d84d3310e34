"""Check retention and compaction in the files of log dirs.

Finds segments due for deletion or retained too long, and pending compaction. Input: a broker's log dirs (on its host,
or copies) and the topics' configs. Rules: kctl.segment.log.segment_retention, retention.tombstones. Only batch headers
are read, unless keys are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kctl.errors import KctlError
from kctl.history.retention.tombstones import (
    CompactedSegment,
    Dirty,
    dedupe_keys,
    dirty,
    due_since_ms,
    needs_cleaning,
)
from kctl.lag.log_config import LogConfig, compacts
from kctl.lag.retention import at, deletes
from kctl.segment.log.log_selection import select_logs
from kctl.segment.log.log_tally import LogTally, TallyOptions, read_logs
from kctl.segment.log.partition import holds_segments, parse_folder_name, partition_folders
from kctl.segment.log.partition_log import CLEANED, checkpointed, log_dirs_of
from kctl.segment.log.segment_retention import (
    DeletionReason,
    LogSegment,
    Pin,
    RetentionLimits,
    SegmentDeletion,
    deletions,
)

_SILENT_MS = 15 * 60_000  # an idle cleaner looks for work much more often: every log.cleaner.backoff.ms, 15 s
_MAX_EXACT_KEYS = 1 << 20


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment that may be deleted now (reason), or that is retained beyond its own age (pinned_by).

    pinned_by_segment: base offset of the earlier segment that must be deleted first. expired: by its newest record.
    deletable_at: by time, after all earlier segments. The field names are the JSON keys and never change.
    """

    log_dir: str
    topic: str
    partition: int
    base_offset: int
    size_bytes: int
    active: bool
    largest_timestamp: datetime | None
    expired: bool
    reason: DeletionReason | None
    deletable_at: datetime | None
    pinned_by: Pin | None
    pinned_by_segment: int | None


@dataclass(frozen=True, slots=True)
class CleanerRow:
    """A compacted log. The field names are the JSON keys and never change.

    offsets: offsets in the cleanable part, an upper bound for its keys. keys: distinct keys of the whole log, if
    counted; keys_exact: False if estimated. rounds: maximum number of cleaning rounds with this dedupe buffer.
    waiting_ms: how long it has been due for cleaning. silent_ms: time since the log dir's cleaner last finished a log.
    stands_still: the log has been due and the cleaner silent for over 15 minutes.
    """

    log_dir: str
    topic: str
    partition: int
    size_bytes: int
    clean_bytes: int
    cleanable_bytes: int
    dirty_ratio: float | None
    min_cleanable_dirty_ratio: float | None
    wants_cleaning: bool
    cleaned_to_offset: int | None
    uncleanable_from_offset: int
    offsets: int
    keys: int | None
    keys_exact: bool | None
    dedupe_keys: int
    rounds: int
    waiting_ms: int | None
    silent_ms: int | None
    stands_still: bool


@dataclass
class FilesReport:
    """The result of reading logs.

    logs, segments_seen: number of logs and segments read. failures: a line for each unreadable log.
    """

    segments: list[SegmentRow] = field(default_factory=list)
    cleaner: list[CleanerRow] = field(default_factory=list)
    logs: int = 0
    segments_seen: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SegmentRequest:
    """The options of read_segments. configs: by topic; logs of other topics are skipped. now_ms: reference for ages.

    cleaner: report the cleaning of compacted logs, instead of the retention of logs that delete. keys: count the keys,
    which reads every record. buffer_bytes, threads: log.cleaner.dedupe.buffer.size and log.cleaner.threads.
    """

    configs: Mapping[str, LogConfig]
    now_ms: int
    cleaner: bool = False
    keys: bool = False
    buffer_bytes: int = 128 << 20
    threads: int = 1


def log_folders(log_dirs: Sequence[Path]) -> list[Path]:
    """Return the partition folders in log dirs, without those that a broker is about to remove.

    A path may also be a partition folder. Raises NotFound, NotAuthorized, UsageError.
    """
    result: list[Path] = []
    for path in log_dirs:
        folders = [path] if holds_segments(path) else partition_folders(path)
        result += [each for each in folders if parse_folder_name(each.resolve().name)[2] is None]
    return result


def topics_of(folders: Sequence[Path]) -> set[str]:
    """Return the topics of partition folders."""
    names = (parse_folder_name(each.resolve().name)[0] for each in folders)
    return {name for name in names if name is not None}


def read_segments(
    folders: Sequence[Path], request: SegmentRequest, progress: Callable[[int, int], None] | None = None
) -> FilesReport:
    """Read logs one at a time. An unreadable log is added to the failures."""
    report = FilesReport()
    for number, folder in enumerate(folders):
        if progress is not None:
            progress(number, len(folders))
        topic, partition, _ = parse_folder_name(folder.resolve().name)
        config = None if topic is None else request.configs.get(topic)
        if topic is None or partition is None or config is None:
            continue
        if not (compacts if request.cleaner else deletes)(config.cleanup_policy):
            continue
        try:
            tally = _tally(folder, request)
        except KctlError as exc:
            report.failures.append(exc.message)
            continue
        report.logs += 1
        report.segments_seen += len(tally.segments)
        if request.cleaner:
            report.cleaner.append(_cleaner(folder, topic, partition, tally, config, request))
        else:
            report.segments += _segments(folder, topic, partition, tally, config, request.now_ms)
    report.cleaner.sort(key=lambda row: (not row.stands_still, -(row.dirty_ratio or 0.0), row.topic, row.partition))
    return report


def _tally(folder: Path, query: SegmentRequest) -> LogTally:
    options = TallyOptions(query.now_ms, _MAX_EXACT_KEYS, records=query.keys)
    (log,) = read_logs(select_logs([folder]), options).logs
    return log


def _largest(tally: LogTally, place: int) -> int:
    """Return the largest timestamp of a segment's batches, else the mtime of the file (LogSegment.largestTimestamp)."""
    segment = tally.segments[place]
    return segment.largest_timestamp if segment.largest_timestamp >= 0 else segment.mtime


def _log_segments(tally: LogTally) -> list[LogSegment]:
    """Return the segments as retention sees them, oldest first."""
    rows = []
    for place, segment in enumerate(tally.segments):
        base = segment.base_offset or 0
        following = segment.selected.next_base_offset
        end = max(tally.log_end_offset or base, base) if following is None else following
        rows.append(LogSegment(base, segment.size_bytes, _largest(tally, place), end, active=following is None))
    return rows


def _segments(
    folder: Path, topic: str, partition: int, tally: LogTally, config: LogConfig, now_ms: int
) -> Iterator[SegmentRow]:
    selected = tally.selected
    limits = RetentionLimits(
        _limit(config.retention_ms), _limit(config.retention_bytes), selected.high_watermark, selected.log_start_offset
    )
    segments = _log_segments(tally)
    for segment, result in zip(segments, deletions(segments, limits, now_ms), strict=True):
        if result.deletable_now is not None or result.pinned_by not in {None, Pin.EMPTY_ACTIVE}:
            yield _row(folder, topic, partition, segment, result, limits, now_ms)


def _limit(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def _row(
    folder: Path,
    topic: str,
    partition: int,
    segment: LogSegment,
    result: SegmentDeletion,
    limits: RetentionLimits,
    now_ms: int,
) -> SegmentRow:
    age = now_ms - segment.largest_timestamp
    return SegmentRow(
        log_dir=str(folder.absolute().parent),
        topic=topic,
        partition=partition,
        base_offset=segment.base_offset,
        size_bytes=segment.size_bytes,
        active=segment.active,
        largest_timestamp=at(segment.largest_timestamp),
        expired=limits.retention_ms is not None and age > limits.retention_ms,
        reason=result.deletable_now,
        deletable_at=at(result.deletable_at),
        pinned_by=result.pinned_by,
        pinned_by_segment=result.pinned_by_segment,
    )


def _cleaner(
    folder: Path, topic: str, partition: int, tally: LogTally, config: LogConfig, query: SegmentRequest
) -> CleanerRow:
    cleaned_to = checkpointed(folder, CLEANED)
    segments = [
        CompactedSegment(each.base_offset, each.size_bytes, each.largest_timestamp, segment.mtime)
        for each, segment in zip(_log_segments(tally), tally.segments, strict=True)
    ]
    result: Dirty = dirty(
        segments,
        cleaned_to=cleaned_to,
        log_start=tally.selected.log_start_offset,
        last_stable=_last_stable(tally),
        now_ms=query.now_ms,
        min_compaction_lag_ms=max(config.min_compaction_lag_ms or 0, 0),
    )
    since = due_since_ms(segments, result, config)
    waiting, silent = None if since is None else max(query.now_ms - since, 0), _silent_ms(folder, query.now_ms)
    capacity = dedupe_keys(query.buffer_bytes, query.threads)
    max_keys = result.offsets if not query.keys else min(result.offsets, tally.distinct[0])
    return CleanerRow(
        log_dir=str(folder.absolute().parent),
        topic=topic,
        partition=partition,
        size_bytes=sum(each.size_bytes for each in segments),
        clean_bytes=result.clean_bytes,
        cleanable_bytes=result.cleanable_bytes,
        dirty_ratio=result.ratio,
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
        wants_cleaning=needs_cleaning(result, config),
        cleaned_to_offset=cleaned_to,
        uncleanable_from_offset=result.first_uncleanable_offset,
        offsets=result.offsets,
        keys=tally.distinct[0] if query.keys else None,
        keys_exact=tally.distinct[1] == 0.0 if query.keys else None,
        dedupe_keys=capacity,
        rounds=-(-max_keys // max(capacity, 1)),
        waiting_ms=waiting,
        silent_ms=silent,
        stands_still=waiting is not None and min(waiting, waiting if silent is None else silent) > _SILENT_MS,
    )


def _last_stable(tally: LogTally) -> int | None:
    """Return the minimum of the high watermark, the log end offset and the first offsets of open transactions."""
    offsets = [tally.selected.high_watermark, tally.log_end_offset, *(each.first_offset for each in tally.open)]
    return min((offset for offset in offsets if offset is not None), default=None)


def _silent_ms(folder: Path, now_ms: int) -> int | None:
    """Return the age of the log dir's cleaner-offset-checkpoint; None: no file, nothing was ever cleaned here.

    The file is rewritten after each cleaned log (LogCleanerManager.doneCleaning).
    """
    for log_dir, _ in log_dirs_of(folder):
        with suppress(OSError):
            return max(now_ms - int((log_dir / CLEANED).stat().st_mtime * 1000), 0)
    return None
