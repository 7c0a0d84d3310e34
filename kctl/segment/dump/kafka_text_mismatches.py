"""Mismatches of indexes and offsets, which DumpLogSegments prints after all files."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kctl.segment.format.scala_order import mutable_map_order


class Mismatches:
    """Mismatches by kind and file, as pairs of numbers.

    file: the file that is being dumped, with its folder (java.io.File.getAbsolutePath).
    """

    def __init__(self) -> None:
        self.file = ""
        self.offsets: dict[str, array[int]] = {}
        self.timestamps: dict[str, array[int]] = {}
        self.out_of_order: dict[str, array[int]] = {}
        self.not_found: dict[str, array[int]] = {}
        self.gaps: dict[str, array[int]] = {}

    def add(self, kind: dict[str, array[int]], *numbers: int) -> None:
        """Add pairs of numbers to one of the kinds."""
        if numbers:
            kind.setdefault(self.file, array("q")).extend(numbers)

    def lines(self) -> Iterator[str]:
        """Yield the lines for stderr in the order of Kafka's tool: offsets latest first, times in order."""
        for name, pairs in _in_maps_order(self.offsets, replaced=True):
            yield f"Mismatches in :{name}"
            yield from (f"  Index offset: {index}, log offset: {log}" for index, log in _latest_first(pairs))
        for name, pairs in _in_maps_order(self.timestamps):
            yield f"Found timestamp mismatch in :{name}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in _pairs(pairs))
        for name, pairs in _in_maps_order(self.out_of_order):
            yield f"Found out of order timestamp in :{name}"
            yield from (
                f"  Index timestamp: {now}, Previously indexed timestamp: {last}" for now, last in _pairs(pairs)
            )
        for _, pairs in _in_maps_order(self.not_found):
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in _pairs(pairs))
        for name, pairs in _in_maps_order(self.gaps, replaced=True):
            yield f"Non-consecutive offsets in {name}"
            yield from (f"  {first} is followed by {second}" for first, second in _latest_first(pairs))


def _in_maps_order(kind: dict[str, array[int]], *, replaced: bool = False) -> Iterator[tuple[str, array[int]]]:
    """Return the files with their pairs in the order of Kafka's map. replaced: each pair replaces the map's list."""
    names = list(kind)
    put_again = replaced and bool(names) and len(kind[names[-1]]) > 2
    return ((name, kind[name]) for name in mutable_map_order(names, put_again=put_again))


def _pairs(numbers: array[int]) -> Iterator[tuple[int, int]]:
    return ((numbers[at], numbers[at + 1]) for at in range(0, len(numbers), 2))


def _latest_first(numbers: array[int]) -> Iterator[tuple[int, int]]:
    return ((numbers[at], numbers[at + 1]) for at in range(len(numbers) - 2, -1, -2))
