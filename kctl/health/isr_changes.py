"""Replicas that leave and join the ISR during a watch.

A replica that does both indicates a disk, network or broker that is barely fast enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kctl.base.deadline import Deadline
from kctl.health.partitions import partitions_of
from kctl.model import ClusterState, PartitionState, TopicPartition


@dataclass(frozen=True, slots=True)
class IsrChanges:
    """The changes of one partition.

    changes: how often the ISR differed from the previous poll. left, joined: the brokers. leader_changes: how often the
    leader differed.
    """

    topic: str
    partition: int
    changes: int
    left: tuple[int, ...]
    joined: tuple[int, ...]
    leader_changes: int


class IsrWatch:
    """The changes from each poll of the cluster to the next. Memory: one row per changed partition."""

    def __init__(self, first: ClusterState) -> None:
        self._last = {p.tp: p for p in partitions_of(first)}
        self._rows: dict[TopicPartition, IsrChanges] = {}

    def add_poll(self, state: ClusterState) -> int:
        """Compare with the last poll; return how many partitions changed. New and deleted partitions do not count."""
        now = {p.tp: p for p in partitions_of(state)}
        changed = 0
        for tp, p in now.items():
            before = self._last.get(tp)
            if before is None or (set(before.isr) == set(p.isr) and before.leader == p.leader):
                continue
            changed += 1
            self._rows[tp] = _added(self._rows.get(tp), before, p)
        self._last = now
        return changed

    @property
    def rows(self) -> list[IsrChanges]:
        """Return the rows, the partition with the most changes first."""
        return sorted(self._rows.values(), key=lambda r: (-r.changes - r.leader_changes, r.topic, r.partition))


def _added(row: IsrChanges | None, before: PartitionState, now: PartitionState) -> IsrChanges:
    departed = tuple(node for node in before.isr if node not in now.isr)
    joined = tuple(node for node in now.isr if node not in before.isr)
    return IsrChanges(
        topic=now.topic,
        partition=now.partition,
        changes=(row.changes if row else 0) + bool(departed or joined),
        left=_union(row.left if row else (), departed),
        joined=_union(row.joined if row else (), joined),
        leader_changes=(row.leader_changes if row else 0) + (before.leader != now.leader),
    )


def _union(first: Iterable[int], more: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*first, *more}))


def watch_isr(
    first: ClusterState,
    poll: Callable[[], ClusterState],
    *,
    seconds: float,
    pause_s: float,
    sleep: Callable[[float], None],
    report: Callable[[int, float], None],
) -> list[IsrChanges]:
    """Poll every `pause_s` for `seconds`. report: called with the number of changed partitions and the seconds left."""
    watch = IsrWatch(first)
    deadline = Deadline(seconds)
    while not deadline.expired:
        sleep(min(pause_s, deadline.left_s))
        watch.add_poll(poll())
        report(len(watch.rows), deadline.left_s)
    return watch.rows
