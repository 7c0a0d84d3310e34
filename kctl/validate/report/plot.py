"""A plot of acknowledged writes per second, with the faults. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kctl.validate.report.gaps import Fault, writes_per_second
from kctl.validate.workload.history import SentRecords

_NS = 1_000_000_000
_MAX_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Mark:
    """A fault. at_s: seconds since the start of the plot."""

    at_s: float
    name: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot. per_s: acknowledged records in each second since the first record was sent."""

    per_s: tuple[int, ...]
    marks: tuple[Mark, ...]


def plot_of(records: SentRecords, faults: Sequence[Fault]) -> Plot:
    """Return the plot from the first record to the stop of the producer, or to the last acknowledgment after it."""
    begins = [partition.first_ns for partition in records.partitions.values() if partition.first_ns >= 0]
    if not begins:
        return Plot((), ())
    begin = min(begins)
    end = records.stop_ns if records.stop_ns >= 0 else records.last_ns
    end = max([end, *(partition.ack_ns[-1] + 1 for partition in records.partitions.values() if partition.ack_ns)])
    end = min(max(end, begin), begin + _MAX_S * _NS)
    marks = [Mark(round((fault.at_ns - begin) / _NS, 3), fault.name) for fault in faults]
    return Plot(tuple(writes_per_second(records, begin, end)), tuple(marks))


def letters(count: int) -> list[str]:
    """Return the letters of marks: a to z, then numbers."""
    return [chr(ord("a") + n) if n < 26 else str(n + 1) for n in range(count)]


def ceiling(values: Sequence[int]) -> int:
    """Return a round number no smaller than any value: 1, 2, 5 or 10 times a power of ten."""
    highest = max(values, default=0)
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= highest:
                return factor * step
        step *= 10
