"""How long a plan takes at a throttle."""

from __future__ import annotations

from collections.abc import Sequence

from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import copies_to

DEFAULT_RATE = 50_000_000  # bytes per second: what is shown where no throttle is given


def estimated_ms(
    reassignments: Sequence[Reassignment], batches: Sequence[Sequence[int]], bytes_per_s: int, leaders: Sequence[int]
) -> int:
    """The least time: one batch after the other, each as long as its busiest broker takes.

    The throttle holds for what a broker receives and for what it gives, each by itself (KIP-73), and for what it copies
    between its log dirs (KIP-113). leaders: who gives, beside reassignments. Sizes that are not known take no time.
    """
    total_bytes = 0
    for batch in batches:
        busy: dict[tuple[str, int], int] = {}
        for position in batch:
            r = reassignments[position]
            size = r.size_bytes or 0
            for node in copies_to(r):
                inside = r.before is not None and node in r.before
                roads = [("inside", node)] if inside else [("in", node), ("out", leaders[position])]
                for road in roads:
                    busy[road] = busy.get(road, 0) + size
        total_bytes += max(busy.values(), default=0)
    return total_bytes * 1000 // bytes_per_s
