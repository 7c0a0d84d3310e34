"""Records of one partition as columns, so that the cost of passing them on is per batch, not per record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from kctl.model import TopicPartition
from kctl.records.record import Record
from kctl.segment.dump.rows import DecodedRecord
from kctl.segment.format.record import Header

_NO_HEADERS: tuple[Header, ...] = ()


class Chunk(NamedTuple):
    """Records in offset order.

    timestamps: ms, -1 if a record has none. headers: by index, only for records with headers. decoded: the decoded
    keys and values; None without decoders.
    """

    tp: TopicPartition
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Mapping[int, tuple[Header, ...]]
    decoded: Sequence[DecodedRecord] | None = None

    @property
    def size(self) -> int:
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        """Return the size of the keys and values."""
        return _size(self.keys) + _size(self.values)

    def part(self, begin: int, end: int) -> Chunk:
        """Return the records from index `begin` up to `end`, exclusive."""
        if begin == 0 and end >= self.size:
            return self
        headers = {index - begin: headers for index, headers in self.headers.items() if begin <= index < end}
        decoded = None if self.decoded is None else self.decoded[begin:end]
        return Chunk(
            self.tp, self.offsets[begin:end], self.timestamps[begin:end], self.keys[begin:end],
            self.values[begin:end], headers, decoded,
        )  # fmt: skip

    def select(self, keep: Sequence[bool]) -> Chunk:
        """Return the records for which `keep` is True."""
        indexes = list(compress(range(self.size), keep))
        if len(indexes) == self.size:
            return self
        headers = {new: self.headers[old] for new, old in enumerate(indexes) if old in self.headers}
        decoded = None if self.decoded is None else list(compress(self.decoded, keep))
        return Chunk(
            self.tp, list(compress(self.offsets, keep)), list(compress(self.timestamps, keep)),
            list(compress(self.keys, keep)), list(compress(self.values, keep)), headers, decoded,
        )  # fmt: skip

    def headers_of(self, index: int) -> tuple[Header, ...]:
        return self.headers.get(index, _NO_HEADERS)

    def records(self) -> Iterator[Record]:
        """Yield the records one by one."""
        topic, partition = self.tp
        for index, (offset, timestamp, key, value) in enumerate(
            zip(self.offsets, self.timestamps, self.keys, self.values, strict=True)
        ):
            headers = tuple((name.decode("utf-8", "replace"), data) for name, data in self.headers_of(index))
            yield Record(topic, partition, offset, timestamp if timestamp >= 0 else None, key, value, headers)


def _size(column: Sequence[bytes | None]) -> int:
    if None in column:
        return sum(len(data) for data in column if data is not None)
    return sum(map(len, column))  # type: ignore[arg-type]  # no None in it
