"""The position of a partition relative to its plan. Pure: the cluster is a parameter."""

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


class PlanPosition(str, Enum):
    """The position of a partition relative to its plan.

    reached: the replicas and log dirs are as planned. moving: the planned reassignment is in progress. log_dirs: only a
    log dir is not as planned yet. before: the original replicas. order: the planned replicas in another order. foreign:
    another reassignment is in progress. changed: other replicas. gone: no such partition. anew: the topic was deleted
    and created again.
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


class ReplicaPlace(NamedTuple):
    """A replica on a broker. future_path: the log dir that the replica is being copied to, else None."""

    path: str
    size_bytes: int
    future_path: str | None = None
    future_bytes: int = 0


ReplicaPlaces = dict[tuple[int, TopicPartition], ReplicaPlace]


@dataclass
class PlanView:
    """The part of the cluster that concerns some partitions of a plan."""

    live: LiveState
    places: ReplicaPlaces = field(default_factory=dict)


def places_of(log_dirs: Mapping[int, list[LogDir] | KctlError]) -> ReplicaPlaces:
    """Return each replica in the log dirs of the brokers that responded."""
    places: ReplicaPlaces = {}
    futures: list[tuple[tuple[int, TopicPartition], str, int]] = []
    for node, dirs in log_dirs.items():
        for log_dir in () if isinstance(dirs, KctlError) else dirs:
            for replica in log_dir.replicas:
                key = (node, TopicPartition(replica.topic, replica.partition))
                if replica.future:
                    futures.append((key, log_dir.path, replica.size_bytes))
                else:
                    places[key] = ReplicaPlace(log_dir.path, replica.size_bytes)
    for key, path, size in futures:
        if key in places:
            places[key] = places[key]._replace(future_path=path, future_bytes=size)
    return places


def position_of(r: Reassignment, view: PlanView) -> PlanPosition:
    """Return the position of the partition."""
    live = view.live
    partition = live.partition(r.tp)
    if partition is None:
        return PlanPosition.GONE
    topic_id = live.topics[r.topic].topic_id
    if r.topic_id is not None and topic_id is not None and topic_id != r.topic_id:
        return PlanPosition.ANEW
    moving = live.moving.get(r.tp)
    if moving is not None:
        is_planned = set(moving.adding) == set(r.adding) and set(moving.removing) == set(r.removing)
        return PlanPosition.MOVING if is_planned else PlanPosition.FOREIGN
    if partition.replicas == r.after:
        return PlanPosition.LOG_DIRS if misplaced(r, view.places) else PlanPosition.REACHED
    if partition.replicas == r.before:
        return PlanPosition.BEFORE
    return PlanPosition.ORDER if set(partition.replicas) == set(r.after) else PlanPosition.CHANGED


def misplaced(r: Reassignment, places: Mapping[tuple[int, TopicPartition], ReplicaPlace]) -> list[tuple[int, str]]:
    """Return (broker, planned log dir) of replicas that are in another log dir, or that no broker reported."""
    wrong = []
    for node, path in zip(r.after, r.log_dirs or (), strict=False):
        place = places.get((node, r.tp))
        if path is not None and (place is None or place.path != path):
            wrong.append((node, path))
    return wrong


def log_dir_copies(
    r: Reassignment, places: Mapping[tuple[int, TopicPartition], ReplicaPlace]
) -> list[tuple[int, ReplicaPlace]]:
    """Return (broker, replica) of the plan's copies between log dirs that are in progress."""
    copies = []
    for node, path in misplaced(r, places):
        place = places.get((node, r.tp))
        if place is not None and place.future_path == path:
            copies.append((node, place))
    return copies


def log_dirs_as_before(r: Reassignment, places: Mapping[tuple[int, TopicPartition], ReplicaPlace]) -> bool:
    """Return True if no planned move between log dirs was started, or each was canceled.

    For a partition whose log dirs are the only difference. False if a broker does not report its replica.
    """
    wrong = misplaced(r, places)
    is_known = all((node, r.tp) in places for node, _ in wrong)
    return r.before == r.after and bool(wrong) and is_known and not log_dir_copies(r, places)


def is_back(r: Reassignment, view: PlanView) -> bool:
    """Return True if the partition has its original replicas."""
    position = position_of(r, view)
    return position is PlanPosition.BEFORE or (position is PlanPosition.LOG_DIRS and log_dirs_as_before(r, view.places))


def named_brokers(rows: Iterable[Reassignment]) -> set[int]:
    """Return the brokers for which the plan names a log dir."""
    return {node for r in rows for node, path in zip(r.after, r.log_dirs or (), strict=False) if path is not None}


def reason(r: Reassignment, view: PlanView, position: PlanPosition) -> str:
    """Return one line with the reason why a partition is not at its target."""
    partition = view.live.partition(r.tp)
    if position is PlanPosition.GONE or partition is None:
        what = "topic" if r.topic not in view.live.topics else "partition"
        return f"{r.tp}: the {what} no longer exists"
    if position is PlanPosition.ANEW:
        return f"{r.tp}: the topic was deleted and created again"
    if position is PlanPosition.FOREIGN:
        target = view.live.target(r.tp) or ()
        return f"{r.tp}: another reassignment moves it to {_ids(target)}"
    if position is PlanPosition.MOVING:
        return f"{r.tp}: it is still being moved"
    if position is PlanPosition.LOG_DIRS:
        copied = {node for node, _ in log_dir_copies(r, view.places)}
        missing = misplaced(r, view.places)
        what = "it is still being copied to" if all(node in copied for node, _ in missing) else "it is not in"
        return f"{r.tp}: {what} {', '.join(f'{path} of broker {node}' for node, path in missing)}"
    if position is PlanPosition.BEFORE:
        return f"{r.tp}: its replicas are unchanged: {_ids(partition.replicas)}"
    expected = _ids(r.after) if r.before is None else f"{_ids(r.before)} nor {_ids(r.after)}"
    return f"{r.tp}: its replicas are {_ids(partition.replicas)}, {'not' if r.before is None else 'neither'} {expected}"


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))
