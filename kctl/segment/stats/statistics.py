"""What `kctl segment stats` tells: field names are the JSON keys. Times are ISO 8601 UTC, None where there are none.

What only records can tell is None when only batch headers were read.
"""

from __future__ import annotations

from dataclasses import dataclass

from kctl.segment.log.segment_retention import Pin, Reason


@dataclass(frozen=True, slots=True)
class LogRow:
    """A partition's log. log_end_offset: behind its last batch. last_stable_offset: where read_committed consumers
    stop: the first offset of the oldest open transaction, or the high watermark. high_watermark, log_start_offset: of
    the log dir's checkpoints. segments_left_out: segments of the folder that were not asked for."""

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
class Totals:
    """All of it. records: data records; control_records: markers of transactions and of KRaft. records_exact: false
    when a compressed batch of magic 0 or 1 was counted by its header. damaged_places: batches that cannot be read, or
    do not have their CRC, and bytes that are no batch."""

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
    """Batches of one codec. uncompressed_bytes: what they had without it; ratio: that through size_bytes."""

    codec: str
    batches: int
    records: int
    size_bytes: int
    uncompressed_bytes: int | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many sizes lie there, both ends included."""

    from_bytes: int
    to_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of batches (in the log) or of records (decompressed)."""

    smallest_bytes: int | None
    mean_bytes: float | None
    largest_bytes: int | None
    histogram: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Batches by what their timestamps are. out_of_order_records: earlier than the one before in the log, at most by
    largest_step_back_ms. future_records: later than `at`, which stop retention by time."""

    create_time_batches: int
    log_append_time_batches: int
    no_timestamp_batches: int
    out_of_order_records: int | None
    largest_step_back_ms: int | None
    future_records: int | None
    future_segments: int


@dataclass(frozen=True, slots=True)
class HotKeyRow:
    """A key with many records: at least so many, at most `hottest_error` more. truncated: only its beginning is told.
    share: of all records."""

    key: str | None
    key_encoding: str | None
    truncated: bool
    records: int
    share: float


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys and values. distinct_keys: added up over logs; distinct_error: its standard error as a share, 0.0: exact.
    tombstones: records with a key and no value. hottest: those that surely have more records than all others."""

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
    """What compaction would remove: records that a later one of the same key supersedes, in the segments that it may
    touch (before the active one and the last stable offset), and records of aborted transactions.

    bytes: of the records as they stand in the log; bytes_exact: false when batches are compressed, where each record is
    told its share. lower_bound: more keys than fit into the memory. with_active: as if the active segments were rolled
    and nothing kept compaction back.
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
class ProducerRow:
    """A producer and what it wrote, markers aside. producer_id: None for those without; share: of the bytes."""

    producer_id: int | None
    producer_epoch: int | None
    batches: int
    transactional_batches: int
    records: int
    size_bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Producers:
    """producers: how many have an id. others: those that are not listed, together. error_bytes: a listed one may have
    so many more; 0: exact."""

    producers: int
    exact: bool
    listed: tuple[ProducerRow, ...]
    others: ProducerRow | None
    error_bytes: int


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A transaction without a marker. age_ms: since its first batch, or since the snapshot that tells of it; None
    without timestamps. hanging: it is older than the timeout. before_log: it began before the first segment."""

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
class Transactions:
    """committed, aborted: markers of transactions that began in the log or its snapshot; other_markers: of others.
    index_entries: aborted ones in .txnindex. open: oldest first, at most some hundreds; open_count: all of them."""

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
class SegmentRow:
    """A segment, and when a broker may delete it. largest_timestamp: of its batches, or when the file was changed
    where they have none (timestamp_from_file). deletable_at: by retention.ms, and by the segments before it."""

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
    deletable_now: Reason | None
    pinned_by: Pin | None
    pinned_by_segment: int | None
    damaged_places: int


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """at: the moment that ages and the future are counted from."""

    at: str | None
    retention_ms: int | None
    retention_bytes: int | None
    totals: Totals
    logs: tuple[LogRow, ...]
    codecs: tuple[CodecRow, ...]
    batch_sizes: Sizes
    record_sizes: Sizes | None
    keys: Keys | None
    compaction: Compaction | None
    timestamps: Timestamps
    producers: Producers
    transactions: Transactions
    segments: tuple[SegmentRow, ...]
