"""Clusters for tests of the planner: written by hand, drawn by hypothesis, or striped like Kafka places replicas."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from hypothesis import strategies as st

from kctl.reassign.planner.cluster import PlanBroker, PlanCluster


def cluster_of(
    racks: Sequence[str | None],
    rows: Sequence[Sequence[int]],
    *,
    dead: Sequence[int] = (),
    sizes: Sequence[int] | None = None,
    usable: dict[int, int] | None = None,
) -> PlanCluster:
    """Return a cluster: broker i has racks[i]; rows are the replicas of partitions t-0, t-1, …"""
    return PlanCluster(
        brokers=tuple(
            PlanBroker(i, None if i in dead else rack, i not in dead, (usable[i],) if usable and i in usable else None)
            for i, rack in enumerate(racks)
        ),
        topics=("t",),
        topic_of=array("i", [0] * len(rows)),
        number=array("i", range(len(rows))),
        replicas=[tuple(row) for row in rows],
        leader=array("i", [row[0] for row in rows]),
        size_bytes=array("q", sizes or [100] * len(rows)),
    )


def striped(brokers: int, partitions: int, factor: int, racks: int, *, empty: int = 0, topics: int = 1) -> PlanCluster:
    """Return a cluster with even replicas and leaders, at most one replica per rack, and `empty` more brokers.

    Brokers must be a multiple of racks, and partitions of brokers. Broker i is in rack i mod racks.
    """
    rows = []
    for p in range(partitions):
        first, shift = p % brokers, 1 + p // brokers % (racks - 1) if racks > factor else 1
        row, step = [first], 0
        while len(row) < factor:
            step += 1
            node = (first + step * shift + racks * (p // brokers % (brokers // racks))) % brokers
            if node % racks not in {b % racks for b in row}:
                row.append(node)
            elif step > racks:
                shift, step = 1, 0
        rows.append(tuple(row))
    return PlanCluster(
        brokers=tuple(PlanBroker(i, f"r{i % racks}", True) for i in range(brokers + empty)),
        topics=tuple(f"t{i:06}" for i in range(topics)),
        topic_of=array("i", sorted(p % topics for p in range(partitions))),
        number=array("i", (p // topics for p in sorted(range(partitions), key=lambda p: p % topics))),
        replicas=rows,
        leader=array("i", (row[0] for row in rows)),
        size_bytes=array("q", [1000] * partitions),
    )


@st.composite
def clusters(draw: st.DrawFn, *, spare: int = 2, most_factor: int = 3) -> PlanCluster:
    """Draw 4 to 8 brokers in 1 to 4 racks or none, with any replicas, also several per rack, and with empty brokers."""
    brokers = draw(st.integers(4, 8))
    count = draw(st.integers(0, 4))
    racks = [f"r{draw(st.integers(0, count - 1))}" if count else None for _ in range(brokers)]
    used = draw(st.integers(most_factor, brokers))
    row = st.integers(1, min(most_factor, brokers - spare)).flatmap(
        lambda factor: st.permutations(range(used)).map(lambda order: order[:factor])
    )
    rows = draw(st.lists(row, min_size=1, max_size=14))
    return cluster_of(racks, rows, sizes=draw(st.lists(st.integers(0, 50), min_size=len(rows), max_size=len(rows))))
