"""Deliver records to the sink: decode, filter, count, and stop at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume.options import ConsumeOptions
from kctl.records.decode.decoding import RecordDecoder

_STATS_EVERY_S = 1.0
_DECODE_RECORDS = 1000  # decoded at once


class Sink(Protocol):
    """The destination of records. A record is delivered once flush has returned after its write."""

    def write(self, chunk: Chunk) -> None: ...

    def flush(self) -> None: ...

    def warn(self, text: str) -> None: ...

    def stats(self, stats: Stats) -> None: ...


@dataclass(frozen=True, slots=True)
class Stats:
    """The throughput: delivered records and their bytes in the last interval, and in total."""

    interval_ms: int
    records: int
    bytes: int
    total_records: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """The delivered records of a partition. committed_offset: committed for the group; None: nothing committed."""

    topic: str
    partition: int
    records: int
    committed_offset: int | None


@dataclass
class ConsumeResult:
    """The result of consuming.

    skipped: records that were deleted before they could be read. ended: why reading ended. filtered: records that did
    not match the conditions. undecoded: records whose key or value could not be decoded, and that were shown undecoded;
    first_undecoded: the first one, and why. partition_count: the partitions that were read, with or without records.
    partitions: only those with records or commits.
    """

    topics: list[str]
    group: str | None
    records: int = 0
    bytes: int = 0
    skipped: int = 0
    ended: str = "interrupted"
    duration_ms: int = 0
    filtered: int = 0
    undecoded: int = 0
    first_undecoded: str | None = None
    partition_count: int = 0
    partitions: list[PartitionRead] = field(default_factory=list)


class Delivery:
    """The path of chunks to the sink, in the order in which they arrive."""

    def __init__(
        self,
        options: ConsumeOptions,
        sink: Sink,
        ends: Mapping[TopicPartition, int],
        decoder: RecordDecoder | None,
        *,
        stats: bool = False,
    ) -> None:
        self._options, self._sink, self._decoder, self._stats_enabled = options, sink, decoder, stats
        self.ends = dict(ends)  # shared: the reader adds ends that it learns later
        self._select = None if options.selection.is_empty else options.selection
        self._until_ms = options.until_ms
        self.counts: dict[TopicPartition, int] = {}
        self.records = self.bytes = self.filtered = self.undecoded = 0
        self.first_undecoded: str | None = None
        self._unflushed = False  # records were taken since the last flush
        now = time.monotonic()
        self._last_record = now
        self._stats_at, self._stats_records, self._stats_bytes = now, 0, 0

    @property
    def full(self) -> bool:
        """Return True if --max-messages records were delivered."""
        limit = self._options.max_messages
        return limit is not None and self.records >= limit

    def take(self, chunk: Chunk) -> int:
        """Write the visible records of the chunk. Return how many of its records were handled, written or not.

        Fewer than all are handled if the end or max_messages was reached. Call `flush` afterwards. Decoded values may
        be many times larger than their bytes, so only a limited number is decoded at once.
        """
        self._unflushed = True
        handled, step = 0, chunk.size if self._decoder is None else _DECODE_RECORDS
        for begin in range(0, chunk.size, max(1, step)):
            piece = chunk.part(begin, begin + step)
            count = self._take(piece)
            handled += count
            if count < piece.size:
                break
        return handled

    def _take(self, chunk: Chunk) -> int:
        if self.full:
            return 0
        end = self.ends.get(chunk.tp)
        if end is not None and chunk.offsets[-1] >= end:
            chunk = _before(chunk, end)
            if not chunk.size:
                return 0
        whole = chunk
        if self._until_ms is not None and max(chunk.timestamps) >= self._until_ms:
            chunk = chunk.select([timestamp < self._until_ms for timestamp in chunk.timestamps])
        if self._decoder is not None:
            chunk = self._decoded(chunk, self._decoder)
        if self._select is not None:
            unfiltered = chunk.size
            chunk = self._select.matching(chunk)
            self.filtered += unfiltered - chunk.size
        limit = self._options.max_messages
        handled = whole.size
        if limit is not None and self.records + chunk.size >= limit:
            chunk = chunk.part(0, limit - self.records)
            if self.records + chunk.size == limit and chunk.size:
                handled = whole.offsets.index(chunk.offsets[-1]) + 1
        if chunk.size:
            self._sink.write(chunk)
            self._count(chunk)
        return handled

    def flush(self) -> None:
        """Flush the sink. The time that a slow reader of the output takes does not count as idle."""
        self._sink.flush()
        if self._unflushed:
            self._unflushed = False
            self.not_idle()

    def not_idle(self) -> None:
        """Restart the idle timer."""
        self._last_record = time.monotonic()

    def _count(self, chunk: Chunk) -> None:
        self.records += chunk.size
        self.bytes += chunk.size_bytes
        self.counts[chunk.tp] = self.counts.get(chunk.tp, 0) + chunk.size
        if chunk.decoded is None:
            return
        for decoded, offset in zip(chunk.decoded, chunk.offsets, strict=True):
            if decoded.error is not None:
                self.undecoded += 1
                self.first_undecoded = self.first_undecoded or f"{chunk.tp} offset {offset}: {decoded.error}"

    @staticmethod
    def _decoded(chunk: Chunk, decoder: RecordDecoder) -> Chunk:
        return chunk._replace(decoded=[decoder(record) for record in chunk.records()])

    def tick(self) -> None:
        """Report the throughput, at most once per interval."""
        if not self._stats_enabled:
            return
        now = time.monotonic()
        if now - self._stats_at < _STATS_EVERY_S:
            return
        self._sink.stats(
            Stats(
                round((now - self._stats_at) * 1000), self.records - self._stats_records,
                self.bytes - self._stats_bytes, self.records, self.bytes,
            )
        )  # fmt: skip
        self._stats_at, self._stats_records, self._stats_bytes = now, self.records, self.bytes

    def why_ended(self, at_the_end: Callable[[], bool]) -> str | None:
        """Return the reason to stop; None: continue."""
        options = self._options
        if self.full:
            return "max-messages"
        if at_the_end():
            return "until" if options.until_ms is not None or options.until_offset is not None else "end"
        if options.idle_ms is not None and time.monotonic() - self._last_record > options.idle_ms / 1000:
            return "idle"
        return None


def _before(chunk: Chunk, end: int) -> Chunk:
    from bisect import bisect_left

    return chunk.part(0, bisect_left(chunk.offsets, end))
