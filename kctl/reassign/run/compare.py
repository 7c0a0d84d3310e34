"""Where a partition of a plan stands in the cluster. Pure: the cluster comes in as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kctl.cluster.log_dirs import LogDir
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.live_state import LiveState


class Standing(str, Enum):
    """What a partition is, seen from its plan.

    reached: replicas and log dirs are as planned. moving: our reassignment is under way. log_dirs: the replicas are
    as planned, a log dir is not yet. before: as the plan found it. order: the planned replicas in another order.
    foreign: a reassignment to somewhere else is under way. changed: other replicas. gone: no such partition.
    anew: the topic was deleted and made again.
    """

    REACHED = "reached"
    MOVING = "moving"
    LOG_DIRS = "log_dirs"
    BEFORE = "before"
    ORDER = "order"
    FOREIGN = "foreign"
    CHANGED = "changed"
    GONE = "gone"
    ANEW = "anew"


OURS = frozenset({Standing.REACHED, Standing.MOVING, Standing.LOG_DIRS, Standing.BEFORE})


class Place(NamedTuple):
    """A replica on a broker. future_path: the log dir that it is being copied to, None when it is not."""

    path: str
    size_bytes: int
    future_path: str | None = None
    future_bytes: int = 0


Places = dict[tuple[int, TopicPartition], Place]


@dataclass
class View:
    """The cluster as far as some partitions of a plan are concerned."""

    live: LiveState
    places: Places = field(default_factory=dict)


def places_of(log_dirs: Mapping[int, list[LogDir] | KctlError]) -> Places:
    """Every replica in the log dirs of brokers that answered."""
    found: Places = {}
    futures: list[tuple[tuple[int, TopicPartition], str, int]] = []
    for node, dirs in log_dirs.items():
        for log_dir in () if isinstance(dirs, KctlError) else dirs:
            for replica in log_dir.replicas:
                key = (node, TopicPartition(replica.topic, replica.partition))
                if replica.future:
                    futures.append((key, log_dir.path, replica.size_bytes))
                else:
                    found[key] = Place(log_dir.path, replica.size_bytes)
    for key, path, size in futures:
        if key in found:
            found[key] = found[key]._replace(future_path=path, future_bytes=size)
    return found


def standing(r: Reassignment, view: View) -> Standing:
    """Where the partition stands."""
    live = view.live
    partition = live.partition(r.tp)
    if partition is None:
        return Standing.GONE
    topic_id = live.topics[r.topic].topic_id
    if r.topic_id is not None and topic_id is not None and topic_id != r.topic_id:
        return Standing.ANEW
    moving = live.moving.get(r.tp)
    if moving is not None:
        ours = set(moving.adding) == set(r.adding) and set(moving.removing) == set(r.removing)
        return Standing.MOVING if ours else Standing.FOREIGN
    if partition.replicas == r.after:
        return Standing.LOG_DIRS if misplaced(r, view.places) else Standing.REACHED
    if partition.replicas == r.before:
        return Standing.BEFORE
    return Standing.ORDER if set(partition.replicas) == set(r.after) else Standing.CHANGED


def misplaced(r: Reassignment, places: Mapping[tuple[int, TopicPartition], Place]) -> list[tuple[int, str]]:
    """(broker, log dir that its replica should be in) of replicas that are elsewhere, or that no broker told of."""
    wrong = []
    for node, path in zip(r.after, r.log_dirs or (), strict=False):
        place = places.get((node, r.tp))
        if path is not None and (place is None or place.path != path):
            wrong.append((node, path))
    return wrong


def log_dir_copies(r: Reassignment, places: Mapping[tuple[int, TopicPartition], Place]) -> list[tuple[int, Place]]:
    """(broker, its replica) of copies between log dirs that the plan wants and that are being made."""
    found = []
    for node, path in misplaced(r, places):
        place = places.get((node, r.tp))
        if place is not None and place.future_path == path:
            found.append((node, place))
    return found


def log_dirs_as_before(r: Reassignment, places: Mapping[tuple[int, TopicPartition], Place]) -> bool:
    """Of a partition that only log dirs are missing to: was no move of it begun, or was each taken back?

    False where a broker does not tell.
    """
    wrong = misplaced(r, places)
    known = all((node, r.tp) in places for node, _ in wrong)
    return r.before == r.after and bool(wrong) and known and not log_dir_copies(r, places)


def is_back(r: Reassignment, view: View) -> bool:
    """Is the partition as it was before the plan?"""
    found = standing(r, view)
    return found is Standing.BEFORE or (found is Standing.LOG_DIRS and log_dirs_as_before(r, view.places))


def named_brokers(rows: Iterable[Reassignment]) -> set[int]:
    """Brokers on which the plan names a log dir."""
    return {node for r in rows for node, path in zip(r.after, r.log_dirs or (), strict=False) if path is not None}


def reason(r: Reassignment, view: View, found: Standing) -> str:
    """One line: why a partition is not where the plan wants it."""
    partition = view.live.partition(r.tp)
    if found is Standing.GONE or partition is None:
        what = "topic" if r.topic not in view.live.topics else "partition"
        return f"{r.tp}: the {what} does not exist any more"
    if found is Standing.ANEW:
        return f"{r.tp}: the topic was deleted and made again"
    if found is Standing.FOREIGN:
        target = view.live.target(r.tp) or ()
        return f"{r.tp}: another reassignment moves it to {_ids(target)}"
    if found is Standing.MOVING:
        return f"{r.tp}: it is still being moved"
    if found is Standing.LOG_DIRS:
        copied = {node for node, _ in log_dir_copies(r, view.places)}
        missing = misplaced(r, view.places)
        what = "it is still being copied to" if all(node in copied for node, _ in missing) else "it is not in"
        return f"{r.tp}: {what} {', '.join(f'{path} of broker {node}' for node, path in missing)}"
    if found is Standing.BEFORE:
        return f"{r.tp}: its replicas are {_ids(partition.replicas)} as before"
    not_these = _ids(r.after) if r.before is None else f"{_ids(r.before)} nor {_ids(r.after)}"
    return (
        f"{r.tp}: its replicas are {_ids(partition.replicas)}, {'not' if r.before is None else 'neither'} {not_these}"
    )


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))
