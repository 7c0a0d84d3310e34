"""Records of one partition, by columns: what reading hands on, so that the cost is per batch and not per record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from kctl.model import TopicPartition
from kctl.records.record import Record
from kctl.segment.dump.rows import Shown
from kctl.segment.format.record import Header

_NO_HEADERS: tuple[Header, ...] = ()


class Chunk(NamedTuple):
    """Records in the order of their offsets. timestamps: ms, -1 for none; headers: by index, of those that have any.

    shown: what decoders made of each record; None without decoders.
    """

    tp: TopicPartition
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Mapping[int, tuple[Header, ...]]
    shown: Sequence[Shown] | None = None

    @property
    def size(self) -> int:
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        """Of keys and values."""
        return _size(self.keys) + _size(self.values)

    def part(self, begin: int, end: int) -> Chunk:
        """The records from index `begin` up to `end`."""
        if begin == 0 and end >= self.size:
            return self
        headers = {index - begin: found for index, found in self.headers.items() if begin <= index < end}
        shown = None if self.shown is None else self.shown[begin:end]
        return Chunk(
            self.tp, self.offsets[begin:end], self.timestamps[begin:end], self.keys[begin:end],
            self.values[begin:end], headers, shown,
        )  # fmt: skip

    def chosen(self, keep: Sequence[bool]) -> Chunk:
        """The records for which `keep` is true."""
        numbers = list(compress(range(self.size), keep))
        if len(numbers) == self.size:
            return self
        headers = {new: self.headers[old] for new, old in enumerate(numbers) if old in self.headers}
        shown = None if self.shown is None else list(compress(self.shown, keep))
        return Chunk(
            self.tp, list(compress(self.offsets, keep)), list(compress(self.timestamps, keep)),
            list(compress(self.keys, keep)), list(compress(self.values, keep)), headers, shown,
        )  # fmt: skip

    def headers_of(self, index: int) -> tuple[Header, ...]:
        return self.headers.get(index, _NO_HEADERS)

    def records(self) -> Iterator[Record]:
        """One by one."""
        topic, number = self.tp
        for index, (offset, timestamp, key, value) in enumerate(
            zip(self.offsets, self.timestamps, self.keys, self.values, strict=True)
        ):
            headers = tuple((name.decode("utf-8", "replace"), data) for name, data in self.headers_of(index))
            yield Record(topic, number, offset, timestamp if timestamp >= 0 else None, key, value, headers)


def _size(column: Sequence[bytes | None]) -> int:
    if None in column:
        return sum(len(data) for data in column if data is not None)
    return sum(map(len, column))  # type: ignore[arg-type]  # None was looked for
