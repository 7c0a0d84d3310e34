"""The output of `kctl segment stats`. Field names are JSON keys. Times are ISO 8601 UTC; None: no time.

Fields that need records are None if only batch headers were read.
"""

from __future__ import annotations

from dataclasses import dataclass

from kctl.segment.log.segment_retention import DeletionReason, Pin


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """The log of a partition.

    log_end_offset: after its last batch. last_stable_offset: where read_committed consumers stop: the first offset of
    the oldest open transaction, or the high watermark. high_watermark, log_start_offset: from its checkpoints.
    segments_left_out: segments of the folder that were not selected.
    """

    log: str
    topic: str | None
    partition: int | None
    segments: int
    segments_left_out: int
    size_bytes: int
    records: int
    first_offset: int | None
    log_end_offset: int | None
    log_start_offset: int | None
    high_watermark: int | None
    last_stable_offset: int | None


@dataclass(frozen=True, slots=True)
class LogTotals:
    """The totals.

    records: data records; control_records: transaction markers and KRaft control records. records_exact: false if a
    compressed batch of magic 0 or 1 was counted by its header. damaged_places: unreadable batches, batches with a wrong
    CRC, and bytes that are not a batch.
    """

    logs: int
    segments: int
    size_bytes: int
    batches: int
    control_batches: int
    records: int
    records_exact: bool
    control_records: int
    earliest_timestamp: str | None
    latest_timestamp: str | None
    damaged_places: int
    damaged_bytes: int


@dataclass(frozen=True, slots=True)
class CodecRow:
    """The batches of one codec. uncompressed_bytes: without compression; ratio: uncompressed_bytes / size_bytes."""

    codec: str
    batches: int
    records: int
    size_bytes: int
    uncompressed_bytes: int | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """The number of sizes in this range, both ends included."""

    from_bytes: int
    to_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class SizeStatistics:
    """Sizes of batches (in the log) or of records (decompressed)."""

    smallest_bytes: int | None
    mean_bytes: float | None
    largest_bytes: int | None
    histogram: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Batches by the type of their timestamps.

    out_of_order_records: earlier than the previous record, by up to largest_step_back_ms. future_records: later than
    `at`; they stop retention by time.
    """

    create_time_batches: int
    log_append_time_batches: int
    no_timestamp_batches: int
    out_of_order_records: int | None
    largest_step_back_ms: int | None
    future_records: int | None
    future_segments: int


@dataclass(frozen=True, slots=True)
class HotKeyRow:
    """A key with many records: at least `records`, at most `hottest_error` more.

    truncated: only the beginning of the key is shown. share: of all records.
    """

    key: str | None
    key_encoding: str | None
    truncated: bool
    records: int
    share: float


@dataclass(frozen=True, slots=True)
class KeyStatistics:
    """Keys and values.

    distinct_keys: sum over all logs; distinct_error: its standard error as a share, 0.0: exact. tombstones: records
    with a key and no value. hottest: keys that certainly have more records than all others.
    """

    records_with_key: int
    null_keys: int
    tombstones: int
    null_values_without_key: int
    key_bytes: int
    value_bytes: int
    records_with_headers: int
    headers: int
    header_bytes: int
    distinct_keys: int
    distinct_error: float
    hottest: tuple[HotKeyRow, ...]
    hottest_error: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """The records that compaction would remove.

    These are records that a later record with the same key supersedes, in the segments that can be compacted (before
    the active segment and the last stable offset), and records of aborted transactions. bytes: in the log; bytes_exact:
    false if batches are compressed, so that each record counts with its share. lower_bound: not all keys fit into the
    memory. with_active: as if the active segments were rolled and nothing delayed compaction.
    """

    cleanable_segments: int
    cleanable_bytes: int
    superseded_records: int
    superseded_bytes: int
    aborted_records: int
    aborted_bytes: int
    bytes_exact: bool
    lower_bound: bool
    with_active_records: int
    with_active_bytes: int


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """A producer and its batches except markers. producer_id: None if it has no id. share: of the bytes."""

    producer_id: int | None
    producer_epoch: int | None
    batches: int
    transactional_batches: int
    records: int
    size_bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Producers:
    """All producers.

    producers: number of producers with an id. others: all producers that are not listed. error_bytes: size_bytes of a
    listed producer is at most this much too low; 0: exact.
    """

    producers: int
    exact: bool
    listed: tuple[ProducerStatistics, ...]
    others: ProducerStatistics | None
    error_bytes: int


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A transaction without a marker.

    age_ms: since its first batch, or since the snapshot that lists it; None: no timestamps. hanging: older than the
    timeout. before_log: it started before the first segment.
    """

    log: str
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_timestamp: str | None
    last_timestamp: str | None
    age_ms: int | None
    records: int
    before_log: bool
    hanging: bool


@dataclass(frozen=True, slots=True)
class TransactionStatistics:
    """Transactions.

    committed, aborted: markers of transactions that started in the log or its snapshot; other_markers: other markers.
    index_entries: aborted transactions in .txnindex. open: oldest first, at most 500; open_count: all.
    """

    transaction_timeout_ms: int
    committed: int
    aborted: int
    other_markers: int
    index_entries: int
    open_count: int
    open_exact: bool
    hanging_count: int
    open: tuple[OpenRow, ...]


@dataclass(frozen=True, slots=True)
class SegmentDetails:
    """A segment, and when a broker may delete it.

    largest_timestamp: of its batches; without timestamps the modification time of the file (timestamp_from_file).
    deletable_at: by retention.ms, but not before any earlier segment.
    """

    log: str
    file: str
    base_offset: int
    last_offset: int | None
    active: bool
    size_bytes: int
    batches: int
    records: int
    largest_timestamp: str | None
    timestamp_from_file: bool
    deletable_at: str | None
    deletable_now: DeletionReason | None
    pinned_by: Pin | None
    pinned_by_segment: int | None
    damaged_places: int


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """All statistics. at: the reference time of ages."""

    at: str | None
    retention_ms: int | None
    retention_bytes: int | None
    totals: LogTotals
    logs: tuple[LogStatistics, ...]
    codecs: tuple[CodecRow, ...]
    batch_sizes: SizeStatistics
    record_sizes: SizeStatistics | None
    keys: KeyStatistics | None
    compaction: Compaction | None
    timestamps: Timestamps
    producers: Producers
    transactions: TransactionStatistics
    segments: tuple[SegmentDetails, ...]
