"""The execution of a plan: batches, and their duration at a throttle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import default_concurrency, make_batches, receivers_of
from kctl.reassign.planner.plan import Plan, reassignments

DEFAULT_RATE = 50_000_000  # bytes per second, for the estimate only


@dataclass(frozen=True, slots=True)
class Execution:
    """The execution of a plan: batches of positions in its changes, and their duration at a throttle.

    goals: the options of the plan. max_concurrent_moves: the limit of copies per batch.
    """

    batches: Sequence[Sequence[int]] = ()
    throttle_bytes_per_s: int | None = None
    estimated_ms: int | None = None
    goals: Mapping[str, Any] = field(default_factory=dict)
    max_concurrent_moves: int | None = None


def plan_execution(
    plan: Plan,
    *,
    goals: Mapping[str, Any],
    rate_bytes: int | None = None,
    max_concurrent_moves: int | None = None,
    batch_bytes: int | None = None,
) -> Execution:
    """Cut a plan into batches. goals: see Execution. None: the default rate and concurrency, batches of any size."""
    rows = reassignments(plan)
    cluster = plan.cluster
    alive = sum(1 for broker in cluster.brokers if broker.alive)
    concurrent = max_concurrent_moves or default_concurrency(alive)
    batches = make_batches(rows, max_concurrent_moves=concurrent, batch_bytes=batch_bytes)
    leaders = [
        cluster.brokers[leader].id if (leader := cluster.leader[change.partition]) >= 0 else change.before[0]
        for change in plan.changes
    ]
    rate = rate_bytes or DEFAULT_RATE
    return Execution(batches, rate, estimated_ms(rows, batches, rate, leaders), goals, concurrent)


def estimated_ms(
    reassignments: Sequence[Reassignment], batches: Sequence[Sequence[int]], bytes_per_s: int, leaders: Sequence[int]
) -> int:
    """Return a lower bound of the duration: each batch takes as long as its busiest broker.

    The throttle limits separately what a broker receives and sends (KIP-73), and what it copies between its log dirs
    (KIP-113). leaders: the source of each reassignment. Unknown sizes take no time.
    """
    total_bytes = 0
    for batch in batches:
        busy: dict[tuple[str, int], int] = {}
        for position in batch:
            r = reassignments[position]
            size = r.size_bytes or 0
            for node in receivers_of(r):
                inside = r.before is not None and node in r.before
                channels = [("inside", node)] if inside else [("in", node), ("out", leaders[position])]
                for channel in channels:
                    busy[channel] = busy.get(channel, 0) + size
        total_bytes += max(busy.values(), default=0)
    return total_bytes * 1000 // bytes_per_s
