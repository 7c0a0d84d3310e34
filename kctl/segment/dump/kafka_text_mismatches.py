"""Mismatches of indexes and offsets, which DumpLogSegments prints after all files.

3.9 keeps lists in maps of Scala. Kafka 4 keeps sorted maps by the first number of a pair in maps of Java.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kctl.segment.format.hash_order import java_map_order, mutable_map_order
from kctl.segment.format.release import Release

_BEFORE_FIRST = -1


class Mismatches:
    """Mismatches by kind and file, as pairs of numbers.

    file: the file that is being dumped, with its folder (java.io.File.getAbsolutePath). expected_lines: number of lines
    that report no mismatch.
    """

    def __init__(self, release: Release) -> None:
        self.file = ""
        self.expected_lines = 0
        self._release = release
        self.offsets: dict[str, array[int]] = {}
        self.timestamps: dict[str, array[int]] = {}
        self.out_of_order: dict[str, array[int]] = {}
        self.not_found: dict[str, array[int]] = {}
        self.gaps: dict[str, array[int]] = {}

    def add(self, kind: dict[str, array[int]], *numbers: int) -> None:
        """Add pairs of numbers to one of the kinds."""
        if numbers:
            kind.setdefault(self.file, array("q")).extend(numbers)

    def start_log(self, first_offset: int) -> None:
        """Add the first offset of a log. The tool of Kafka 4 expects 0, also in later segments."""
        if self._release is not Release.KAFKA_3_9 and first_offset > 0:
            self.expected_lines += 1 if self.file in self.gaps else 2  # with the line of the file
            self.add(self.gaps, _BEFORE_FIRST, first_offset)

    def lines(self) -> Iterator[str]:
        """Yield the lines for stderr in the order of Kafka's tool."""
        for name, pairs in self._files(self.offsets, replaced=True):
            yield f"Mismatches in :{name}"
            for index, log in self._offset_pairs(pairs, latest_first=True):
                yield f"  Index offset: {index}, log offset: {log}"
        for name, pairs in self._files(self.timestamps):
            yield f"Found timestamp mismatch in :{name}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in _pairs(pairs))
        for name, pairs in self._files(self.out_of_order):
            yield f"Found out of order timestamp in :{name}"
            yield from (
                f"  Index timestamp: {now}, Previously indexed timestamp: {last}" for now, last in _pairs(pairs)
            )
        for name, pairs in self._files(self.not_found):
            place = "the log." if self._release is Release.KAFKA_3_9 else f":{name}"
            yield f"The following indexed offsets are not found in {place}"
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in _pairs(pairs))
        for name, pairs in self._files(self.gaps, replaced=True):
            yield f"Non-consecutive offsets in {name}"
            for first, second in self._offset_pairs(pairs, latest_first=self._release is Release.KAFKA_3_9):
                yield f"  {first} is followed by {second}"

    def _files(self, kind: dict[str, array[int]], *, replaced: bool = False) -> Iterator[tuple[str, array[int]]]:
        """Return the files with their pairs in the order of Kafka's map. replaced: each pair replaces the list."""
        names = list(kind)
        if self._release is not Release.KAFKA_3_9:
            return ((name, kind[name]) for name in java_map_order(names))
        put_again = replaced and bool(names) and len(kind[names[-1]]) > 2
        return ((name, kind[name]) for name in mutable_map_order(names, put_again=put_again))

    def _offset_pairs(self, numbers: array[int], *, latest_first: bool) -> Iterator[tuple[int, int]]:
        if self._release is Release.KAFKA_3_9:
            return _latest_first(numbers)
        return iter(sorted(dict(_pairs(numbers)).items(), reverse=latest_first))


def _pairs(numbers: array[int]) -> Iterator[tuple[int, int]]:
    return ((numbers[at], numbers[at + 1]) for at in range(0, len(numbers), 2))


def _latest_first(numbers: array[int]) -> Iterator[tuple[int, int]]:
    return ((numbers[at], numbers[at + 1]) for at in range(len(numbers) - 2, -1, -2))
