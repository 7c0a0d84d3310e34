"""How long each partition took no write: before the first fault, and after each. Pure.

The measure at any moment is the time since the last acknowledgement; a window's gap is the largest one in it. So a gap
counts in full in the window in which it ends, and one that is open at a window's end counts up to there, too. A
partition without any acknowledgement waits since its first record was taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from kctl.validate.workload.history import Sent, SentPartition

_MS = 1_000_000  # ns


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was done to the cluster at a moment of the monotonic clock. brokers: those that it was done to."""

    name: str
    at_ns: int
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A partition's longest time without an acknowledged write in a window. after: the fault that begins the window;
    None for the time before the first one. begin_ns: its last acknowledgement before; open: none came in the window."""

    partition: int
    after: str | None
    gap_ms: int
    begin_ns: int
    open: bool


def find_gaps(sent: Sent, faults: Sequence[Fault], *, end_ns: int | None = None) -> list[Gap]:
    """For each partition that was written to, one before the first fault and one after each.

    faults: in their order. end_ns: where the last window ends; None: where the producer was asked to stop, or where its
    journal ends.
    """
    end = end_ns if end_ns is not None else sent.stop_ns if sent.stop_ns >= 0 else sent.last_ns
    found = []
    for number, partition in sorted(sent.partitions.items()):
        begins = [partition.first_ns, *(max(fault.at_ns, partition.first_ns) for fault in faults)]
        names = [None, *(fault.name for fault in faults)]
        for index, (name, begin) in enumerate(zip(names, begins, strict=True)):
            until = begins[index + 1] if index + 1 < len(begins) else max(end, begin)
            found.append(_longest(number, name, partition, begin, until))
    return found


def _longest(number: int, name: str | None, partition: SentPartition, begin: int, until: int) -> Gap:
    """In [begin, until)."""
    acks = partition.ack_ns
    at = bisect_left(acks, begin)
    last = acks[at - 1] if at else partition.first_ns
    longest, where, is_open = 0, last, False
    while at < len(acks) and acks[at] < until:
        if acks[at] - last > longest:
            longest, where = acks[at] - last, last
        last = acks[at]
        at += 1
    if until - last > longest:
        longest, where, is_open = until - last, last, True
    return Gap(number, name, round(longest / _MS), where, is_open)


def worst(gaps: Sequence[Gap]) -> dict[str | None, Gap]:
    """The longest of all partitions in each window, in the order of the windows."""
    found: dict[str | None, Gap] = {}
    for gap in gaps:
        if gap.after not in found or gap.gap_ms > found[gap.after].gap_ms:
            found[gap.after] = gap
    return found


def writes_per_second(sent: Sent, begin_ns: int, end_ns: int) -> list[int]:
    """Acknowledged records of all partitions in each second from begin_ns on: what a plot shows."""
    counts = [0] * max(0, -(-(end_ns - begin_ns) // (1000 * _MS)))
    for partition in sent.partitions.values():
        for at, count in zip(partition.ack_ns, partition.ack_counts, strict=True):
            second = (at - begin_ns) // (1000 * _MS)
            if 0 <= second < len(counts):
                counts[second] += count
    return counts
