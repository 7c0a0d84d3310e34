"""The gate of a rolling restart: whether brokers may be stopped now, and which topics stay unprotected. Pure.

A partition accepts acks=all while at least min.insync.replicas of its replicas are in sync. So brokers may be stopped
if |ISR − brokers| ≥ min.insync.replicas for every partition that they host. A partition with no more replicas than that
(a single replica, or a replication factor of min.insync.replicas) cannot be protected by any order of restarts: it is
reported before the start and not waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotAuthorized
from kctl.health.brokers import silent_voters
from kctl.health.model import Adding
from kctl.health.partitions import adding_of, effective_min_isr, partitions_of
from kctl.model import ClusterState, PartitionState, TopicPartition
from kctl.protocol.quorum import Quorum
from kctl.restart.snapshot import MinIsr

if TYPE_CHECKING:
    from kctl.restart.snapshot import GateSnapshot

NAMED = 3  # names shown if a list is longer


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason why brokers cannot be stopped. topic, partition: None if it is not about one partition."""

    topic: str | None
    partition: int | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.topic is None else f"{self.topic}-{self.partition} {self.reason}"


class ZookeeperDown(Blocker):
    """The blocker for a ZooKeeper ensemble that does not serve."""


@dataclass(frozen=True, slots=True)
class UnprotectedTopic:
    """A topic that rejects acks=all, or is unavailable, while a broker that hosts it is down."""

    topic: str
    partition_count: int
    replication_factor: int
    min_insync_replicas: int
    consequence: str


def blockers(state: ClusterState, min_isr: MinIsr, down: Collection[int], adding: Adding = None) -> list[Blocker]:
    """Return why the brokers of `down` cannot all be stopped now; [] if they can.

    min_isr: min.insync.replicas by topic, for all topics that they host. adding: ongoing reassignments, as in
    kctl.health.
    """
    problems = _unknown_min_isr(state, min_isr, down)
    for p in _hosted(state, down):
        least = min_isr.get(p.topic)
        if not isinstance(least, int):
            continue
        if isinstance(adding, Mapping) and p.tp in adding:
            problems.append(Blocker(p.topic, p.partition, "is being reassigned"))
        elif not _protectable(p, least):
            continue
        elif p.offline:
            problems.append(Blocker(p.topic, p.partition, "has no leader"))
        elif len(set(p.isr).difference(down)) < effective_min_isr(p, least):
            problems.append(Blocker(p.topic, p.partition, _too_few(p, least, down)))
    return problems


def _unknown_min_isr(state: ClusterState, min_isr: MinIsr, down: Collection[int]) -> list[Blocker]:
    """Return one blocker per reason why min.insync.replicas is unknown, because many topics share a reason."""
    topics: dict[str, list[str]] = {}
    for topic in dict.fromkeys(p.topic for p in _hosted(state, down)):
        least = min_isr.get(topic)
        if not isinstance(least, int):
            topics.setdefault(least.message if isinstance(least, KctlError) else "not reported", []).append(topic)
    return [
        Blocker(None, None, f"min.insync.replicas of {_listed(names)} is unknown: {why}")
        for why, names in topics.items()
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more topics" if len(names) > NAMED else "")


def gate(snapshot: GateSnapshot, batch: Collection[int], brokers: Collection[int]) -> list[Blocker]:
    """Return why `batch` cannot be stopped now. brokers: all brokers of the run. Pure."""
    if snapshot.zookeeper is not None:
        return [ZookeeperDown(None, None, f"a stopped broker could not start without ZooKeeper: {snapshot.zookeeper}")]
    problems = blockers(snapshot.state, snapshot.min_isr, batch, snapshot.adding)
    blocked_partitions = {(b.topic, b.partition) for b in problems}
    problems += [
        Blocker(tp.topic, tp.partition, "has a replica that is not in sync")
        for tp in out_of_sync(snapshot.state, snapshot.adding, brokers, but=batch)
        if (tp.topic, tp.partition) not in blocked_partitions
    ]
    problems += [
        Blocker(None, None, f"broker {node} does not respond: {why}")
        for node, why in snapshot.silent.items()
        if node not in batch
    ]
    quorum = quorum_blocker(snapshot.quorum, batch)
    problems += [quorum] if quorum else []
    if snapshot.state.controller_id is None:
        problems.append(Blocker(None, None, "the cluster has no controller"))
    return problems


def summary(problems: Sequence[Blocker]) -> str:
    """Return the first blockers and the number of others as text."""
    more = f"; and {len(problems) - NAMED:,} more" if len(problems) > NAMED else ""
    return "; ".join(str(each) for each in problems[:NAMED]) + more


def quorum_blocker(quorum: Quorum | KctlError | None, down: Collection[int]) -> Blocker | None:
    """Return a blocker if stopping KRaft voters would leave the quorum without a majority, or if it has no leader.

    None with ZooKeeper.
    """
    if isinstance(quorum, NotAuthorized) or quorum is None:
        return None
    if isinstance(quorum, KctlError):
        return Blocker(None, None, f"cannot read the state of the metadata quorum: {quorum.message}")
    if quorum.no_controller is not None:
        return Blocker(None, None, quorum.no_controller)
    voters = {voter.id: voter for voter in quorum.voters}
    if not voters.keys() & set(down) or len(voters) == 1:  # a single voter cannot be protected
        return None
    alive = voters.keys() - {voter.id for voter in silent_voters(quorum)}
    live_count, majority = len(alive.difference(down)), len(voters) // 2 + 1
    if live_count >= majority:
        return None
    return Blocker(
        None, None, f"the metadata quorum would have {live_count} of {len(voters)} voters; it needs {majority}"
    )


def out_of_sync(
    state: ClusterState, adding: Adding, brokers: Collection[int], *, but: Collection[int] = ()
) -> list[TopicPartition]:
    """Return the partitions that lack an in-sync replica or a leader that is expected to come back.

    brokers: the brokers of the run. Replicas on other brokers that are down are not expected, because the restart does
    not bring them back. but: brokers whose replicas may be out of sync: they restart now, which may fix them.
    """
    expected_brokers = set(state.brokers) | set(brokers)
    problems = []
    for p in partitions_of(state):
        missing = set(p.replicas).difference(p.isr, adding_of(p, adding), but)
        if missing & expected_brokers or (p.offline and expected_brokers.intersection(p.isr)):
            problems.append(p.tp)
    return problems


def unprotected(state: ClusterState, min_isr: MinIsr, brokers: Collection[int]) -> list[UnprotectedTopic]:
    """Return the topics with partitions on `brokers` that cannot be protected."""
    rows: dict[tuple[str, int, int], int] = {}
    for p in _hosted(state, brokers):
        least = min_isr.get(p.topic)
        if isinstance(least, int) and not _protectable(p, least):
            key = p.topic, len(p.replicas), least
            rows[key] = rows.get(key, 0) + 1
    return [
        UnprotectedTopic(topic, count, factor, least, _consequence(factor))
        for (topic, factor, least), count in rows.items()
    ]


def fits_together(state: ClusterState, min_isr: MinIsr, brokers: Collection[int], run: Collection[int]) -> bool:
    """Return True if these brokers can be stopped together when everything is in sync.

    Partitions that cannot be protected do not count. run: all brokers of the run. Replicas on other brokers that are
    down do not count: the restart does not bring them back.
    """
    expected_brokers = set(state.brokers).union(run)
    for p in _hosted(state, brokers):
        least = min_isr.get(p.topic)
        remaining = expected_brokers.intersection(p.replicas).difference(brokers)
        if isinstance(least, int) and _protectable(p, least):
            if len(remaining) < effective_min_isr(p, least):
                return False
        elif len(set(p.replicas).intersection(brokers)) > 1 and not remaining:
            return False  # if they stop one by one, at least one replica stays up
    return True


def can_stop_together(snapshot: GateSnapshot, brokers: Collection[int], run: Collection[int]) -> bool:
    """Return True if `fits_together` and the metadata quorum keeps its majority."""
    return (
        fits_together(snapshot.state, snapshot.min_isr, brokers, run)
        and quorum_blocker(snapshot.quorum, brokers) is None
    )


def _hosted(state: ClusterState, brokers: Collection[int]) -> Iterator[PartitionState]:
    broker_ids = set(brokers)
    return (p for p in partitions_of(state) if broker_ids.intersection(p.replicas))


def _protectable(p: PartitionState, min_isr: int) -> bool:
    return effective_min_isr(p, min_isr) < len(p.replicas)


def _too_few(p: PartitionState, min_isr: int, down: Collection[int]) -> str:
    isr = ", ".join(map(str, p.isr)) or "no replica"
    in_sync_count = len(set(p.isr).difference(down))
    return f"has {isr} in sync: {in_sync_count} would be left, and min.insync.replicas is {min_isr}"


def _consequence(factor: int) -> str:
    if factor == 1:
        return "unavailable while its broker is down"
    return "rejects acks=all while a broker is down"
