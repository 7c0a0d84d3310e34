"""What is read on its way to the sink: decoded, selected, counted, and cut where it has to end."""

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
_DECODED_AT_ONCE = 1000  # records


class Sink(Protocol):
    """Where records go. A record counts as delivered once flush has returned after its write."""

    def write(self, chunk: Chunk) -> None: ...

    def flush(self) -> None: ...

    def warn(self, text: str) -> None: ...

    def stats(self, stats: Stats) -> None: ...


@dataclass(frozen=True, slots=True)
class Stats:
    """How fast it goes: records shown and their bytes in the last interval, and in all."""

    interval_ms: int
    records: int
    bytes: int
    total_records: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """What was shown of a partition. committed_offset: the next one, as committed for the group (None: nothing)."""

    topic: str
    partition: int
    records: int
    committed_offset: int | None


@dataclass
class ConsumeResult:
    """What was read. skipped: records that were deleted before they could be read. filtered: records that a condition
    left out. undecoded: records whose key or value a decoder could not take, which were shown as they are;
    first_undecoded: where, and why. ended: why it stopped.
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
    """Takes chunks in the order in which they are to be seen."""

    def __init__(
        self,
        options: ConsumeOptions,
        sink: Sink,
        ends: Mapping[TopicPartition, int],
        decoder: RecordDecoder | None,
        *,
        stats: bool = False,
    ) -> None:
        self._options, self._sink, self._decoder, self._stats_wanted = options, sink, decoder, stats
        self.ends = dict(ends)  # shared: a reader may find more of them
        self._select = None if options.selection.everything else options.selection
        self._until_ms = options.until_ms
        self.counts: dict[TopicPartition, int] = {}
        self.records = self.bytes = self.filtered = self.undecoded = 0
        self.first_undecoded: str | None = None
        self._taken = False  # since the last flush
        now = time.monotonic()
        self._last_record = now
        self._stats_at, self._stats_records, self._stats_bytes = now, 0, 0

    @property
    def full(self) -> bool:
        """--max-messages were shown."""
        most = self._options.max_messages
        return most is not None and self.records >= most

    def take(self, chunk: Chunk) -> int:
        """Write what is to be seen of the chunk; how many of its records were dealt with, fewer than it has when
        max_messages was reached. `flush` after it.

        Decoded values may be many times larger than their bytes: only so many are there at once."""
        self._taken = True
        dealt, step = 0, chunk.size if self._decoder is None else _DECODED_AT_ONCE
        for begin in range(0, chunk.size, max(1, step)):
            piece = chunk.part(begin, begin + step)
            count = self._take(piece)
            dealt += count
            if count < piece.size:
                break
        return dealt

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
            chunk = chunk.chosen([timestamp < self._until_ms for timestamp in chunk.timestamps])
        if self._decoder is not None:
            chunk = self._decoded(chunk, self._decoder)
        if self._select is not None:
            before = chunk.size
            chunk = self._select.of(chunk)
            self.filtered += before - chunk.size
        most = self._options.max_messages
        dealt = whole.size
        if most is not None and self.records + chunk.size >= most:
            chunk = chunk.part(0, most - self.records)
            if self.records + chunk.size == most and chunk.size:
                dealt = whole.offsets.index(chunk.offsets[-1]) + 1
        if chunk.size:
            self._sink.write(chunk)
            self._count(chunk)
        return dealt

    def flush(self) -> None:
        """What was taken is handed over. Time that a slow reader takes for it is not idle."""
        self._sink.flush()
        if self._taken:
            self._taken = False
            self.not_idle()

    def not_idle(self) -> None:
        """The time without a record begins now."""
        self._last_record = time.monotonic()

    def _count(self, chunk: Chunk) -> None:
        self.records += chunk.size
        self.bytes += chunk.size_bytes
        self.counts[chunk.tp] = self.counts.get(chunk.tp, 0) + chunk.size
        if chunk.shown is None:
            return
        for shown, offset in zip(chunk.shown, chunk.offsets, strict=True):
            if shown.error is not None:
                self.undecoded += 1
                self.first_undecoded = self.first_undecoded or f"{chunk.tp} offset {offset}: {shown.error}"

    @staticmethod
    def _decoded(chunk: Chunk, decoder: RecordDecoder) -> Chunk:
        return chunk._replace(shown=[decoder(record) for record in chunk.records()])

    def tick(self) -> None:
        """Tell how fast it goes, when it is time to."""
        if not self._stats_wanted:
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
        """Whether it is time to stop, and why."""
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
