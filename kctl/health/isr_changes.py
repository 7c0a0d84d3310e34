"""Which replicas leave and join the ISR while somebody watches: a replica that does both is a disk, a network or a
broker that is nearly too slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kctl.base.deadline import Deadline
from kctl.health.partitions import partitions_of
from kctl.model import ClusterState, PartitionState, TopicPartition


@dataclass(frozen=True, slots=True)
class IsrChanges:
    """What happened to one partition. changes: how often its ISR was another than at the look before; left, joined: the
    brokers that did; leader_changes: how often another broker led it.
    """

    topic: str
    partition: int
    changes: int
    left: tuple[int, ...]
    joined: tuple[int, ...]
    leader_changes: int


class IsrWatch:
    """Adds up what changes from one look at the cluster to the next; memory: a row for each partition that changed."""

    def __init__(self, first: ClusterState) -> None:
        self._last = {p.tp: p for p in partitions_of(first)}
        self._rows: dict[TopicPartition, IsrChanges] = {}

    def look(self, state: ClusterState) -> int:
        """Compare with the last look; how many partitions have changed. A partition that is new or gone has not."""
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
        """The partition with the most changes first."""
        return sorted(self._rows.values(), key=lambda r: (-r.changes - r.leader_changes, r.topic, r.partition))


def _added(row: IsrChanges | None, before: PartitionState, now: PartitionState) -> IsrChanges:
    left = tuple(node for node in before.isr if node not in now.isr)
    joined = tuple(node for node in now.isr if node not in before.isr)
    return IsrChanges(
        topic=now.topic,
        partition=now.partition,
        changes=(row.changes if row else 0) + bool(left or joined),
        left=_once(row.left if row else (), left),
        joined=_once(row.joined if row else (), joined),
        leader_changes=(row.leader_changes if row else 0) + (before.leader != now.leader),
    )


def _once(known: Iterable[int], more: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*known, *more}))


def watch_isr(
    first: ClusterState,
    look: Callable[[], ClusterState],
    *,
    seconds: float,
    pause_s: float,
    sleep: Callable[[float], None],
    tell: Callable[[int, float], None],
) -> list[IsrChanges]:
    """Look every `pause_s` for `seconds`. tell: partitions that have changed so far, seconds left."""
    watch = IsrWatch(first)
    deadline = Deadline(seconds)
    while not deadline.expired:
        sleep(min(pause_s, deadline.left_s))
        watch.look(look())
        tell(len(watch.rows), deadline.left_s)
    return watch.rows
