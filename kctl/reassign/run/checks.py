"""Whether a plan can be carried out on the cluster as it is: every entry that cannot, each with its reason.

Pure: a plan and the live state go in, problems come out. Brokers check little of this themselves: a request is not
atomic, and a move to a disk that is too full, or of a partition that is short of replicas, is accepted.
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


class Problem(NamedTuple):
    """subject: «topic-partition», «topic t», «broker 3» … reason: what is wrong with it."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


def check(plan: PlanFile, live: LiveState, *, ours: frozenset[TopicPartition] = frozenset()) -> list[Problem]:
    """Everything that speaks against carrying out `plan` now.

    live: with the plan's topics, and the log dirs of all brokers. ours: partitions that this run has in flight, which
    may move. A partition that has reached its target is no problem.
    """
    problems = [*_check_cluster(plan, live), *_check_foreign(plan, live, ours), *_check_topics(plan, live)]
    copies = _Copies(live)
    named = {p.subject for p in problems}
    for r in plan.reassignments:
        state = live.partition(r.tp)
        if state is None:
            if r.topic in live.topics and f"topic {r.topic}" not in named:
                count = len(live.topics[r.topic].partitions)
                problems.append(Problem(str(r.tp), f"there is no such partition: the topic has {count}"))
            continue
        if r.tp in live.moving and r.tp not in ours:
            continue  # is named already, and its replicas are in flux
        problems += [Problem(str(r.tp), reason) for reason in _check_partition(r, state, live, copies)]
    return problems + copies.problems()


def doubts(plan: PlanFile, live: LiveState) -> list[Problem]:
    """What `check` could not find out: sizes and free space that brokers do not tell (before 3.3, or no answer)."""
    copies = _Copies(live)
    for r in plan.reassignments:
        state = live.partition(r.tp)
        if state is not None and state.replicas != r.after:
            copies.add(r, state)
    return copies.doubts()


# --- the cluster and its topics -------------------------------------------------------------------------------------


def _check_cluster(plan: PlanFile, live: LiveState) -> Iterator[Problem]:
    if plan.cluster_id is not None and live.cluster_id is not None and plan.cluster_id != live.cluster_id:
        yield Problem("the plan", f"it was made for cluster {plan.cluster_id}, and this is {live.cluster_id}")
    if live.controller_id is None:
        yield Problem("the cluster", "it has no controller now")


def _check_foreign(plan: PlanFile, live: LiveState, ours: frozenset[TopicPartition]) -> Iterator[Problem]:
    planned = {r.tp for r in plan.reassignments}
    for tp in sorted(live.moving.keys() - ours):
        reason = "it is being moved already, not by this run"
        if tp not in planned:
            reason += "; the plan does not have it, but throttles would mix"
        yield Problem(str(tp), reason)


def _check_topics(plan: PlanFile, live: LiveState) -> Iterator[Problem]:
    seen: set[str] = set()
    for r in plan.reassignments:
        if r.topic in seen:
            continue
        seen.add(r.topic)
        topic, subject = live.topics.get(r.topic), f"topic {r.topic}"
        if topic is None:
            yield Problem(subject, "it does not exist (any more)")
        elif r.topic_id is not None and topic.topic_id is not None and r.topic_id != topic.topic_id:
            yield Problem(subject, "it was deleted and made again since the plan was made")
        elif 0 < plan.partition_counts.get(r.topic, 0) < len(topic.partitions):
            planned = plan.partition_counts[r.topic]
            yield Problem(
                subject, f"it has {len(topic.partitions)} partitions, and had {planned} when the plan was made"
            )


# --- one partition --------------------------------------------------------------------------------------------------


def _check_partition(r: Reassignment, state: PartitionState, live: LiveState, copies: _Copies) -> Iterator[str]:
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
            yield f"broker {node}, which is to get a replica, is down or not in the cluster"
        found = live.log_dirs.get(node)
        if node not in state.replicas and isinstance(found, list) and is_cordoned(found):
            yield f"broker {node} would receive a replica, but is cordoned in all log dirs"
    if state.offline:
        yield "it has no leader to copy from"
    elif set(r.after) != set(state.replicas) or _new_log_dirs(r):
        yield from _check_in_sync(r, state, live)
    yield from _check_log_dirs(r, live)
    copies.add(r, state)


def _stale(r: Reassignment, state: PartitionState, live: LiveState) -> str | None:
    target = live.target(r.tp)
    if r.tp in live.moving:  # one of ours
        if target is not None and set(target) == set(r.after):
            return None
        return f"it is on its way to {_ids(target or ())}, and not to {_ids(r.after)}"
    if r.before is not None and state.replicas != r.before:
        return f"its replicas are {_ids(state.replicas)}, and were {_ids(r.before)} when the plan was made"
    return None


def _check_in_sync(r: Reassignment, state: PartitionState, live: LiveState) -> Iterator[str]:
    """Replicas that are behind: fine where they are on their way in, or leave a broker that is down."""
    moving = live.moving.get(r.tp)
    on_their_way = set(moving.adding) if moving else set()
    for node in state.replicas:
        if node in state.isr or node in on_their_way:
            continue
        if node in r.after:
            yield f"its replica on broker {node} is not in sync: moving it now would leave it with fewer"
        elif node in live.brokers:
            yield f"its replica on broker {node} is not in sync, although the broker is up"


def _check_log_dirs(r: Reassignment, live: LiveState) -> Iterator[str]:
    for node, path in zip(r.after, r.log_dirs or (), strict=False):
        if path is None or node not in live.brokers:
            continue
        found = live.log_dirs.get(node)
        if found is None or isinstance(found, KctlError):
            why = f": {found.message}" if found else ""
            yield f"log dir {path} of broker {node} cannot be looked at{why}"
            continue
        dirs = {log_dir.path: log_dir for log_dir in found}
        if path not in dirs:
            yield f"broker {node} has no log dir {path}; it has {', '.join(sorted(dirs))}"
        elif dirs[path].error:
            yield f"log dir {path} of broker {node} is offline"
        elif dirs[path].cordoned and not _lies_in(dirs[path], r):
            yield f"log dir {path} of broker {node} is cordoned"


def _lies_in(log_dir: LogDir, r: Reassignment) -> bool:
    return any((each.topic, each.partition, each.future) == (*r.tp, False) for each in log_dir.replicas)


def _new_log_dirs(r: Reassignment) -> bool:
    """Is anything copied between the log dirs of one broker?"""
    return r.before is not None and bool(set(receivers_of(r)) - set(r.adding))


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas)) or "none"


# --- disk space -----------------------------------------------------------------------------------------------------


class _Copies:
    """Bytes that still come to each broker, and to each of its log dirs that is named, against what is free."""

    def __init__(self, live: LiveState) -> None:
        self._live = live
        self._needed: dict[int, int] = {}
        self._needed_in: dict[tuple[int, str], int] = {}
        self._unknown_size = 0
        self._on_disk: dict[tuple[str, int], dict[int, int]] = {}
        self._arrived: dict[tuple[str, int, int, str], int] = {}
        for node, found in live.log_dirs.items():
            for log_dir in () if isinstance(found, KctlError) else found:
                for replica in log_dir.replicas:
                    tp = (replica.topic, replica.partition)
                    self._arrived[replica.topic, replica.partition, node, log_dir.path] = replica.size_bytes
                    if not replica.future:
                        self._on_disk.setdefault(tp, {})[node] = replica.size_bytes

    def add(self, r: Reassignment, state: PartitionState) -> None:
        """Count what this partition's new copies need beyond what has arrived already."""
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
        wanted = dict(zip(r.after, r.log_dirs or (), strict=False))
        for node in receivers:
            path = wanted.get(node)
            if path is not None:
                there = self._arrived.get((r.topic, r.partition, node, path), 0)
                self._needed_in[node, path] = self._needed_in.get((node, path), 0) + max(0, size - there)
            else:
                there = self._on_disk.get(r.tp, {}).get(node, 0)
            self._needed[node] = self._needed.get(node, 0) + max(0, size - there)

    def _size(self, r: Reassignment, state: PartitionState) -> int | None:
        """The leader's log is the partition; else the largest replica that is known."""
        sizes = self._on_disk.get(r.tp, {})
        return sizes.get(state.leader, max(sizes.values(), default=r.size_bytes))

    def problems(self) -> list[Problem]:
        """Brokers and log dirs with too little space."""
        found = []
        for node, needed in sorted(self._needed.items()):
            free = self._free(node)
            if free is not None and needed > free:
                found.append(
                    Problem(f"broker {node}", f"{format_size(needed)} come to it, and {format_size(free)} are free")
                )
        for (node, path), needed in sorted(self._needed_in.items()):
            free = next((d.usable_bytes for d in self._online(node) if d.path == path), None)
            if free is not None and needed > free:
                reason = f"{format_size(needed)} come to it, and {format_size(free)} are free"
                found.append(Problem(f"log dir {path} of broker {node}", reason))
        return found

    def doubts(self) -> list[Problem]:
        """Brokers whose free space, and partitions whose size, is not known."""
        found = []
        if self._unknown_size:
            count = "1 partition" if self._unknown_size == 1 else f"{self._unknown_size} partitions"
            found.append(Problem("disk space", f"the size of {count} is not known, and was not counted"))
        for node in sorted(self._needed):
            if self._free(node) is None:
                answer = self._live.log_dirs.get(node)
                why = answer.message if isinstance(answer, KctlError) else "brokers tell it from Kafka 3.3 on"
                found.append(Problem(f"broker {node}", f"its free disk space is not known ({why})"))
        return found

    def _free(self, node: int) -> int | None:
        """Of all log dirs that receive something; None when one does not tell.

        Log dirs with the same size and the same free space to the byte share a file system, and count once.
        """
        dirs = self._online(node)
        if not dirs or any(d.usable_bytes is None for d in dirs):
            return None
        return sum({(d.total_bytes, d.usable_bytes): d.usable_bytes or 0 for d in dirs}.values())

    def _online(self, node: int) -> list[LogDir]:
        found = self._live.log_dirs.get(node)
        return [] if found is None or isinstance(found, KctlError) else [d for d in found if d.receives]
