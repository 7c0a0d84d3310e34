"""Check whether a plan can run now: a problem for each partition, topic or broker that prevents it.

Pure: the plan and the live state are parameters. Brokers check little of this: requests are not atomic, and brokers
accept moves to a full disk and moves of under-replicated partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kctl.base.units import format_size
from kctl.cluster.log_dirs import LogDir, is_cordoned
from kctl.errors import KctlError
from kctl.model import PartitionState, TopicPartition
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of
from kctl.reassign.run.live_state import LiveState


class PlanProblem(NamedTuple):
    """A problem of a plan. subject: "topic-partition", "topic t", "broker 3" …"""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


def check(
    plan: PlanFile, live: LiveState, *, run_partitions: frozenset[TopicPartition] = frozenset()
) -> list[PlanProblem]:
    """Return the reasons why `plan` cannot run now.

    live: with the plan's topics, and the log dirs of all brokers. run_partitions: partitions that this run moves, which
    may be in flight. A partition at its target is not a problem.
    """
    problems = [*_check_cluster(plan, live), *_check_foreign(plan, live, run_partitions), *_check_topics(plan, live)]
    copies = _SpaceNeeded(live)
    subjects = {p.subject for p in problems}
    for r in plan.reassignments:
        state = live.partition(r.tp)
        if state is None:
            if r.topic in live.topics and f"topic {r.topic}" not in subjects:
                count = len(live.topics[r.topic].partitions)
                problems.append(PlanProblem(str(r.tp), f"no such partition: the topic has {count}"))
            continue
        if r.tp in live.moving and r.tp not in run_partitions:
            continue  # reported above, and its replicas are changing
        problems += [PlanProblem(str(r.tp), reason) for reason in _check_partition(r, state, live, copies)]
    return problems + copies.problems()


def unchecked(plan: PlanFile, live: LiveState) -> list[PlanProblem]:
    """Return the sizes and free space that `check` could not verify (brokers before 3.3, or down)."""
    copies = _SpaceNeeded(live)
    for r in plan.reassignments:
        state = live.partition(r.tp)
        if state is not None and state.replicas != r.after:
            copies.add(r, state)
    return copies.unchecked()


# --- the cluster and its topics -------------------------------------------------------------------------------------


def _check_cluster(plan: PlanFile, live: LiveState) -> Iterator[PlanProblem]:
    if plan.cluster_id is not None and live.cluster_id is not None and plan.cluster_id != live.cluster_id:
        yield PlanProblem("the plan", f"it was made for cluster {plan.cluster_id}, but this is {live.cluster_id}")
    if live.controller_id is None:
        yield PlanProblem("the cluster", "it has no active controller")


def _check_foreign(plan: PlanFile, live: LiveState, run_partitions: frozenset[TopicPartition]) -> Iterator[PlanProblem]:
    planned = {r.tp for r in plan.reassignments}
    for tp in sorted(live.moving.keys() - run_partitions):
        reason = "it is already being moved by someone else"
        if tp not in planned:
            reason += "; it is not in the plan, but the throttles would interfere"
        yield PlanProblem(str(tp), reason)


def _check_topics(plan: PlanFile, live: LiveState) -> Iterator[PlanProblem]:
    checked_topics: set[str] = set()
    for r in plan.reassignments:
        if r.topic in checked_topics:
            continue
        checked_topics.add(r.topic)
        topic, subject = live.topics.get(r.topic), f"topic {r.topic}"
        if topic is None:
            yield PlanProblem(subject, "it does not exist")
        elif r.topic_id is not None and topic.topic_id is not None and r.topic_id != topic.topic_id:
            yield PlanProblem(subject, "it was deleted and created again since the plan was made")
        elif 0 < plan.partition_counts.get(r.topic, 0) < len(topic.partitions):
            planned = plan.partition_counts[r.topic]
            yield PlanProblem(
                subject, f"it has {len(topic.partitions)} partitions, but had {planned} when the plan was made"
            )


# --- one partition --------------------------------------------------------------------------------------------------


def _check_partition(r: Reassignment, state: PartitionState, live: LiveState, copies: _SpaceNeeded) -> Iterator[str]:
    if state.replicas == r.after and r.tp not in live.moving:
        if _new_log_dirs(r):
            yield from _check_log_dirs(r, live)
            copies.add(r, state)
        return
    stale = _stale(r, state, live)
    if stale:
        yield stale
        return
    for node in r.after:
        if node not in live.brokers and node not in state.replicas:
            yield f"broker {node}, the target of a replica, is down or not in the cluster"
        log_dirs = live.log_dirs.get(node)
        if node not in state.replicas and isinstance(log_dirs, list) and is_cordoned(log_dirs):
            yield f"broker {node} would receive a replica, but is cordoned in all log dirs"
    if state.offline:
        yield "it has no leader to copy from"
    elif set(r.after) != set(state.replicas) or _new_log_dirs(r):
        yield from _check_in_sync(r, state, live)
    yield from _check_log_dirs(r, live)
    copies.add(r, state)


def _stale(r: Reassignment, state: PartitionState, live: LiveState) -> str | None:
    target = live.target(r.tp)
    if r.tp in live.moving:  # moved by this run
        if target is not None and set(target) == set(r.after):
            return None
        return f"it is moving to {_ids(target or ())}, not to {_ids(r.after)}"
    if r.before is not None and state.replicas != r.before:
        return f"its replicas are {_ids(state.replicas)}, but were {_ids(r.before)} when the plan was made"
    return None


def _check_in_sync(r: Reassignment, state: PartitionState, live: LiveState) -> Iterator[str]:
    """Yield the out-of-sync replicas, except replicas being added or to be removed from down brokers."""
    moving = live.moving.get(r.tp)
    adding = set(moving.adding) if moving else set()
    for node in state.replicas:
        if node in state.isr or node in adding:
            continue
        if node in r.after:
            yield f"its replica on broker {node} is not in sync: a move now would leave fewer in-sync replicas"
        elif node in live.brokers:
            yield f"its replica on broker {node} is not in sync, although the broker is up"


def _check_log_dirs(r: Reassignment, live: LiveState) -> Iterator[str]:
    for node, path in zip(r.after, r.log_dirs or (), strict=False):
        if path is None or node not in live.brokers:
            continue
        log_dirs = live.log_dirs.get(node)
        if log_dirs is None or isinstance(log_dirs, KctlError):
            why = f": {log_dirs.message}" if log_dirs else ""
            yield f"cannot read log dir {path} of broker {node}{why}"
            continue
        dirs = {log_dir.path: log_dir for log_dir in log_dirs}
        if path not in dirs:
            yield f"broker {node} has no log dir {path}; it has {', '.join(sorted(dirs))}"
        elif dirs[path].error:
            yield f"log dir {path} of broker {node} is offline"
        elif dirs[path].cordoned and not _is_in(dirs[path], r):
            yield f"log dir {path} of broker {node} is cordoned"


def _is_in(log_dir: LogDir, r: Reassignment) -> bool:
    return any((each.topic, each.partition, each.future) == (*r.tp, False) for each in log_dir.replicas)


def _new_log_dirs(r: Reassignment) -> bool:
    """Return True if a replica moves between the log dirs of its broker."""
    return r.before is not None and bool(set(receivers_of(r)) - set(r.adding))


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas)) or "none"


# --- disk space -----------------------------------------------------------------------------------------------------


class _SpaceNeeded:
    """The bytes still to be copied to each broker and named log dir, compared with the free space."""

    def __init__(self, live: LiveState) -> None:
        self._live = live
        self._needed: dict[int, int] = {}
        self._needed_in: dict[tuple[int, str], int] = {}
        self._unknown_size = 0
        self._on_disk: dict[tuple[str, int], dict[int, int]] = {}
        self._arrived: dict[tuple[str, int, int, str], int] = {}
        for node, log_dirs in live.log_dirs.items():
            for log_dir in () if isinstance(log_dirs, KctlError) else log_dirs:
                for replica in log_dir.replicas:
                    tp = (replica.topic, replica.partition)
                    self._arrived[replica.topic, replica.partition, node, log_dir.path] = replica.size_bytes
                    if not replica.future:
                        self._on_disk.setdefault(tp, {})[node] = replica.size_bytes

    def add(self, r: Reassignment, state: PartitionState) -> None:
        """Add the bytes that the partition's new copies still need."""
        moving = self._live.moving.get(r.tp)
        receivers = {node for node in r.after if node not in state.replicas or (moving and node in moving.adding)}
        if r.before is not None and _new_log_dirs(r):
            receivers |= set(receivers_of(r)) & set(state.replicas)
        if not receivers:
            return
        size = self._size(r, state)
        if size is None:
            self._unknown_size += 1
            return
        targets = dict(zip(r.after, r.log_dirs or (), strict=False))
        for node in receivers:
            path = targets.get(node)
            if path is not None:
                copied = self._arrived.get((r.topic, r.partition, node, path), 0)
                self._needed_in[node, path] = self._needed_in.get((node, path), 0) + max(0, size - copied)
            else:
                copied = self._on_disk.get(r.tp, {}).get(node, 0)
            self._needed[node] = self._needed.get(node, 0) + max(0, size - copied)

    def _size(self, r: Reassignment, state: PartitionState) -> int | None:
        """Return the size of the leader's log, else of the largest known replica."""
        sizes = self._on_disk.get(r.tp, {})
        return sizes.get(state.leader, max(sizes.values(), default=r.size_bytes))

    def problems(self) -> list[PlanProblem]:
        """Return the brokers and log dirs with too little space."""
        problems = []
        for node, needed in sorted(self._needed.items()):
            free = self._free(node)
            if free is not None and needed > free:
                problems.append(
                    PlanProblem(
                        f"broker {node}", f"it will receive {format_size(needed)}, but has {format_size(free)} free"
                    )
                )
        for (node, path), needed in sorted(self._needed_in.items()):
            free = next((d.usable_bytes for d in self._online(node) if d.path == path), None)
            if free is not None and needed > free:
                reason = f"it will receive {format_size(needed)}, but has {format_size(free)} free"
                problems.append(PlanProblem(f"log dir {path} of broker {node}", reason))
        return problems

    def unchecked(self) -> list[PlanProblem]:
        """Return brokers whose free space, and partitions whose size, is unknown."""
        problems = []
        if self._unknown_size:
            count = "1 partition" if self._unknown_size == 1 else f"{self._unknown_size} partitions"
            problems.append(PlanProblem("disk space", f"the size of {count} is unknown and was not counted"))
        for node in sorted(self._needed):
            if self._free(node) is None:
                response = self._live.log_dirs.get(node)
                why = response.message if isinstance(response, KctlError) else "brokers report it only since Kafka 3.3"
                problems.append(PlanProblem(f"broker {node}", f"its free disk space is unknown ({why})"))
        return problems

    def _free(self, node: int) -> int | None:
        """Return the free bytes of all log dirs that can receive replicas; None if one is unknown.

        Log dirs with identical total and free bytes share a file system, and count once.
        """
        dirs = self._online(node)
        if not dirs or any(d.usable_bytes is None for d in dirs):
            return None
        return sum({(d.total_bytes, d.usable_bytes): d.usable_bytes or 0 for d in dirs}.values())

    def _online(self, node: int) -> list[LogDir]:
        log_dirs = self._live.log_dirs.get(node)
        return [] if log_dirs is None or isinstance(log_dirs, KctlError) else [d for d in log_dirs if d.receives]
