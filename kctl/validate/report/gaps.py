"""The time without acknowledged writes in each partition: before the first fault, and after each fault. Pure.

The gap of a window is the longest time since the last acknowledgment at any point in the window. So a gap counts in
full in the window in which it ends, and a gap that is open at the end of a window counts up to there. In a partition
without acknowledgments, the gap starts when its first record was sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from kctl.validate.workload.history import SentPartition, SentRecords

_MS = 1_000_000  # ns


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault injected into the cluster. at_ns: on the monotonic clock. brokers: brokers that it hit."""

    name: str
    at_ns: int
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteGap:
    """The longest time without an acknowledged write in a partition and window.

    after: the fault that starts the window, None before the first fault. begin_ns: the last acknowledgment before the
    gap; open: the gap is still open at the window's end.
    """

    partition: int
    after: str | None
    gap_ms: int
    begin_ns: int
    open: bool


def find_gaps(records: SentRecords, faults: Sequence[Fault], *, end_ns: int | None = None) -> list[WriteGap]:
    """Return the gaps of each partition with writes, before the first fault and after each.

    faults: in order. end_ns: end of the last window; None: the stop request of the producer, or the end of its journal.
    """
    end = end_ns if end_ns is not None else records.stop_ns if records.stop_ns >= 0 else records.last_ns
    gaps = []
    for number, partition in sorted(records.partitions.items()):
        begins = [partition.first_ns, *(max(fault.at_ns, partition.first_ns) for fault in faults)]
        names = [None, *(fault.name for fault in faults)]
        for index, (name, begin) in enumerate(zip(names, begins, strict=True)):
            until = begins[index + 1] if index + 1 < len(begins) else max(end, begin)
            gaps.append(_longest(number, name, partition, begin, until))
    return gaps


def _longest(number: int, name: str | None, partition: SentPartition, begin: int, until: int) -> WriteGap:
    """Return the longest gap in [begin, until)."""
    acks = partition.ack_ns
    at = bisect_left(acks, begin)
    last = acks[at - 1] if at else partition.first_ns
    longest, start, is_open = 0, last, False
    while at < len(acks) and acks[at] < until:
        if acks[at] - last > longest:
            longest, start = acks[at] - last, last
        last = acks[at]
        at += 1
    if until - last > longest:
        longest, start, is_open = until - last, last, True
    return WriteGap(number, name, round(longest / _MS), start, is_open)


def worst(gaps: Sequence[WriteGap]) -> dict[str | None, WriteGap]:
    """Return the longest gap of all partitions in each window, in order."""
    longest: dict[str | None, WriteGap] = {}
    for gap in gaps:
        if gap.after not in longest or gap.gap_ms > longest[gap.after].gap_ms:
            longest[gap.after] = gap
    return longest


def writes_per_second(records: SentRecords, begin_ns: int, end_ns: int) -> list[int]:
    """Return the acknowledged records per second since begin_ns, over all partitions."""
    counts = [0] * max(0, -(-(end_ns - begin_ns) // (1000 * _MS)))
    for partition in records.partitions.values():
        for at, count in zip(partition.ack_ns, partition.ack_counts, strict=True):
            second = (at - begin_ns) // (1000 * _MS)
            if 0 <= second < len(counts):
                counts[second] += count
    return counts
