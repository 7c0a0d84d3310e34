"""Collect the statistics of `kctl segment stats` from counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kctl.base.timestamps import format_timestamp
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.dump.rows import encoded
from kctl.segment.format.batch import NO_TIMESTAMP
from kctl.segment.log.log_selection import SelectedLog
from kctl.segment.log.log_tally import LogTally, Progress, SegmentTally, Tally, TallyOptions, read_logs
from kctl.segment.log.segment_retention import LogSegment, RetentionLimits, deletions
from kctl.segment.log.transactions import OpenTransaction
from kctl.segment.stats.cardinality import ENTRY_BYTES, Superseded, displayed_part
from kctl.segment.stats.producer_shares import ProducerShare
from kctl.segment.stats.record_tally import SizeHistogram
from kctl.segment.stats.statistics import (
    Bucket,
    CodecRow,
    Compaction,
    HotKeyRow,
    KeyStatistics,
    LogStatistics,
    LogTotals,
    OpenRow,
    Producers,
    ProducerStatistics,
    SegmentDetails,
    SegmentStatistics,
    SizeStatistics,
    Timestamps,
    TransactionStatistics,
)

DEFAULT_MEMORY_BYTES = 64 << 20
DEFAULT_TRANSACTION_TIMEOUT_MS = 15 * 60_000  # transaction.max.timeout.ms
MAX_OPEN_ROWS = 500


@dataclass(frozen=True, slots=True)
class StatisticsOptions:
    """The options of the statistics.

    now: reference time of ages, in ms. records: read records, not only batch headers. top: number of keys and producers
    to list. memory_bytes: for the keys of a log; beyond it, numbers are estimates. retention_ms, retention_bytes: None:
    no limit.
    """

    now: int
    records: bool = True
    top: int = 10
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    retention_ms: int | None = None
    retention_bytes: int | None = None
    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    max_message_bytes: int = MAX_MESSAGE_BYTES


@dataclass(frozen=True, slots=True)
class Collected:
    """The statistics. remarks: why files beside the logs could not be used. notes: what is not counted."""

    statistics: SegmentStatistics
    remarks: tuple[str, ...]
    notes: tuple[str, ...]


def collect_statistics(
    logs: Sequence[SelectedLog], options: StatisticsOptions, progress: Progress | None = None
) -> Collected:
    """Read the logs. Raises NotFound, NotAuthorized, UsageError, OperationFailed; NotSupported for a codec."""
    max_keys = max(options.memory_bytes // ENTRY_BYTES, 1)
    tally_options = TallyOptions(options.now, max_keys, options.records, options.max_message_bytes)
    tally = read_logs(logs, tally_options, progress)
    segments = tuple(row for log in tally.logs for row in _segments(log, options))
    records = options.records
    statistics = SegmentStatistics(
        at=format_timestamp(options.now),
        retention_ms=options.retention_ms,
        retention_bytes=options.retention_bytes,
        totals=_totals(tally),
        logs=tuple(_log(log) for log in tally.logs),
        codecs=tuple(_codecs(tally, records=records)),
        batch_sizes=_sizes(tally.batch_sizes),
        record_sizes=_sizes(tally.records.sizes) if records else None,
        keys=_keys(tally, options.top) if records else None,
        compaction=_compaction(tally) if records else None,
        timestamps=_timestamps(tally, records=records),
        producers=_producers(tally, options.top),
        transactions=_transactions(tally, options),
        segments=segments,
    )
    return Collected(statistics, tuple(tally.remarks), tuple(tally.notes))


# --- totals, codecs, sizes ------------------------------------------------------------------------------------------


def _all_segments(tally: Tally) -> list[SegmentTally]:
    return [segment for log in tally.logs for segment in log.segments]


def _totals(tally: Tally) -> LogTotals:
    segments = _all_segments(tally)
    latest = max((segment.largest_timestamp for segment in segments), default=NO_TIMESTAMP)
    earliest = tally.earliest if tally.records.earliest is None else tally.records.earliest
    return LogTotals(
        logs=len(tally.logs),
        segments=len(segments),
        size_bytes=sum(segment.size_bytes for segment in segments),
        batches=sum(segment.batches for segment in segments),
        control_batches=tally.control_batches,
        records=sum(segment.records for segment in segments),
        records_exact=tally.records_exact,
        control_records=tally.control_records,
        earliest_timestamp=None if earliest is None else format_timestamp(earliest),
        latest_timestamp=format_timestamp(latest),
        damaged_places=sum(segment.damaged_places for segment in segments),
        damaged_bytes=sum(segment.damaged_bytes for segment in segments),
    )


def _log(log: LogTally) -> LogStatistics:
    return LogStatistics(
        log=str(log.selected.folder),
        topic=log.selected.topic,
        partition=log.selected.partition,
        segments=len(log.segments),
        segments_left_out=log.selected.left_out,
        size_bytes=sum(segment.size_bytes for segment in log.segments),
        records=sum(segment.records for segment in log.segments),
        first_offset=log.first_offset,
        log_end_offset=log.log_end_offset,
        log_start_offset=log.selected.log_start_offset,
        high_watermark=log.selected.high_watermark,
        last_stable_offset=_last_stable_offset(log),
    )


def _last_stable_offset(log: LogTally) -> int | None:
    """Return the lowest of the high watermark, the log end offset and the first offsets of open transactions."""
    offsets = [log.selected.high_watermark, log.log_end_offset, *(each.first_offset for each in log.open)]
    return min((offset for offset in offsets if offset is not None), default=None)


def _codecs(tally: Tally, *, records: bool) -> Iterator[CodecRow]:
    for name, codec in sorted(tally.codecs.items(), key=lambda item: -item[1].size_bytes):
        readable = records or name == "none"
        yield CodecRow(
            codec=name,
            batches=codec.batches,
            records=codec.records,
            size_bytes=codec.size_bytes,
            uncompressed_bytes=codec.uncompressed_bytes if readable else None,
            ratio=round(codec.uncompressed_bytes / codec.size_bytes, 4) if readable else None,
        )


def _sizes(buckets: SizeHistogram) -> SizeStatistics:
    digits = range(min(buckets.counts), max(buckets.counts) + 1) if buckets.counts else range(0)
    return SizeStatistics(
        smallest_bytes=buckets.smallest,
        mean_bytes=round(buckets.total / buckets.number, 1) if buckets.number else None,
        largest_bytes=buckets.largest if buckets.number else None,
        histogram=tuple(Bucket((1 << n) >> 1, (1 << n) - 1, buckets.counts[n]) for n in digits),
    )


def _timestamps(tally: Tally, *, records: bool) -> Timestamps:
    counted, types = tally.records, tally.time_types
    return Timestamps(
        create_time_batches=types["CreateTime"],
        log_append_time_batches=types["LogAppendTime"],
        no_timestamp_batches=types[None],
        out_of_order_records=counted.out_of_order if records else None,
        largest_step_back_ms=counted.largest_step_back if records else None,
        future_records=counted.future if records else None,
        future_segments=sum(segment.largest_timestamp > tally.options.now for segment in _all_segments(tally)),
    )


# --- keys, compaction, producers ------------------------------------------------------------------------------------


def _keys(tally: Tally, top: int) -> KeyStatistics:
    counted = tally.records
    distinct = sum(log.distinct[0] for log in tally.logs)
    variance = sum((count * error) ** 2 for count, error in (log.distinct for log in tally.logs))
    return KeyStatistics(
        records_with_key=counted.records - counted.null_keys,
        null_keys=counted.null_keys,
        tombstones=counted.tombstones,
        null_values_without_key=counted.null_values_without_key,
        key_bytes=counted.key_bytes,
        value_bytes=counted.value_bytes,
        records_with_headers=counted.records_with_headers,
        headers=counted.headers,
        header_bytes=counted.header_bytes,
        distinct_keys=distinct,
        distinct_error=round(variance**0.5 / distinct, 6) if distinct else 0.0,
        # A key with no more records than the error may have fewer than a key that was dropped.
        hottest=tuple(
            _hot(key.identity, key.records, counted.records)
            for key in counted.hot.top(top)
            if key.records > counted.hot.error
        ),
        hottest_error=counted.hot.error,
    )


def _hot(identity: bytes, records: int, total: int) -> HotKeyRow:
    part, truncated = displayed_part(identity)
    return HotKeyRow(*encoded(part), truncated, records, _share(records, total))


def _share(part: int, total: int) -> float:
    return round(part / total, 6) if total else 0.0


def _compaction(tally: Tally) -> Compaction:
    cleanable = [(log, _cleanable(log)) for log in tally.logs]
    last = [segments[-1] for _, segments in cleanable if segments]
    superseded = _sum(segment.superseded for segment in last)
    aborted = _sum(segment.aborted for segment in last)
    everything = _sum(log.segments[-1].superseded for log in tally.logs if log.segments)
    return Compaction(
        cleanable_segments=sum(len(segments) for _, segments in cleanable),
        cleanable_bytes=sum(segment.size_bytes for _, segments in cleanable for segment in segments),
        superseded_records=superseded.records,
        superseded_bytes=superseded.size_bytes,
        aborted_records=aborted.records,
        aborted_bytes=aborted.size_bytes,
        bytes_exact=tally.records.exact_bytes,
        lower_bound=any(log.overflown for log in tally.logs),
        with_active_records=everything.records,
        with_active_bytes=everything.size_bytes,
    )


def _cleanable(log: LogTally) -> list[SegmentTally]:
    """Return the segments before the last stable offset and before the active segment.

    Source: LogCleanerManager.cleanableOffsets, calculateCleanableBytes.
    """
    stable = _last_stable_offset(log)
    cleanable: list[SegmentTally] = []
    for segment in log.segments:
        next_base = segment.selected.next_base_offset
        if next_base is None or stable is None or next_base > stable:
            break
        cleanable.append(segment)
    return cleanable


def _sum(parts: Iterator[Superseded]) -> Superseded:
    rows = list(parts)
    return Superseded(sum(row.records for row in rows), sum(row.size_bytes for row in rows))


def _producers(tally: Tally, top: int) -> Producers:
    listed, others = tally.producers.top(top)
    count, exact = tally.producers.count()
    total = sum(share.size_bytes for share in listed) + (others.size_bytes if others else 0)
    return Producers(
        producers=count,
        exact=exact,
        listed=tuple(_producer(share, total) for share in listed),
        others=None if others is None else _producer(others, total),
        error_bytes=tally.producers.error_bytes,
    )


def _producer(share: ProducerShare, total: int) -> ProducerStatistics:
    return ProducerStatistics(
        producer_id=None if share.producer_id == -1 else share.producer_id,
        producer_epoch=None if share.producer_epoch == -1 else share.producer_epoch,
        batches=share.batches,
        transactional_batches=share.transactional_batches,
        records=share.records,
        size_bytes=share.size_bytes,
        share=_share(share.size_bytes, total),
    )


# --- transactions, retention ----------------------------------------------------------------------------------------


def _transactions(tally: Tally, options: StatisticsOptions) -> TransactionStatistics:
    open_ = [(log, each) for log in tally.logs for each in sorted(log.open, key=lambda each: each.first_offset)]
    return TransactionStatistics(
        transaction_timeout_ms=options.transaction_timeout_ms,
        committed=tally.committed,
        aborted=tally.aborted,
        other_markers=tally.other_markers,
        index_entries=tally.index_entries,
        open_count=len(open_),
        open_exact=not any(log.untracked for log in tally.logs),
        hanging_count=sum(_is_hanging(each, options) for _, each in open_),
        open=tuple(_open(log, each, options) for log, each in open_[:MAX_OPEN_ROWS]),
    )


def _age_ms(each: OpenTransaction, now: int) -> int | None:
    return None if each.first_timestamp < 0 else max(now - each.first_timestamp, 0)


def _is_hanging(each: OpenTransaction, options: StatisticsOptions) -> bool:
    """Return True if the coordinator should have aborted it. Later writes do not extend the timeout."""
    age = _age_ms(each, options.now)
    return age is not None and age > options.transaction_timeout_ms


def _open(log: LogTally, each: OpenTransaction, options: StatisticsOptions) -> OpenRow:
    log_start = log.segments[0].base_offset if log.segments else None
    return OpenRow(
        log=str(log.selected.folder),
        producer_id=each.producer_id,
        producer_epoch=each.producer_epoch,
        first_offset=each.first_offset,
        last_offset=each.last_offset,
        first_timestamp=format_timestamp(each.first_timestamp),
        last_timestamp=format_timestamp(each.last_timestamp),
        age_ms=_age_ms(each, options.now),
        records=each.records,
        before_log=log_start is not None and each.first_offset < log_start,
        hanging=_is_hanging(each, options),
    )


def _segments(log: LogTally, options: StatisticsOptions) -> Iterator[SegmentDetails]:
    rows = [_log_segment(log, segment) for segment in log.segments]
    selected = log.selected
    limits = RetentionLimits(
        options.retention_ms, options.retention_bytes, selected.high_watermark, selected.log_start_offset
    )
    for segment, row, deletion in zip(log.segments, rows, deletions(rows, limits, options.now), strict=True):
        yield SegmentDetails(
            log=str(selected.folder),
            file=segment.selected.log.name,
            base_offset=row.base_offset,
            last_offset=segment.last_offset,
            active=row.active,
            size_bytes=segment.size_bytes,
            batches=segment.batches,
            records=segment.records,
            largest_timestamp=format_timestamp(row.largest_timestamp),
            timestamp_from_file=segment.largest_timestamp < 0,
            deletable_at=None if deletion.deletable_at is None else format_timestamp(deletion.deletable_at),
            deletable_now=deletion.deletable_now,
            pinned_by=deletion.pinned_by,
            pinned_by_segment=deletion.pinned_by_segment,
            damaged_places=segment.damaged_places,
        )


def _log_segment(log: LogTally, segment: SegmentTally) -> LogSegment:
    next_base = segment.selected.next_base_offset
    base = segment.base_offset or 0
    end = log.log_end_offset if log.log_end_offset is not None else base
    return LogSegment(
        base,
        segment.size_bytes,
        segment.largest_timestamp if segment.largest_timestamp >= 0 else segment.mtime,
        max(end, base) if next_base is None else next_base,
        active=next_base is None,
    )
