"""Whether brokers may be taken down now, and what is left without protection while they are. Pure.

A partition keeps taking acks=all as long as min.insync.replicas of its replicas are in sync. So brokers may go when for
every partition that they host |ISR − brokers| is at least that. Where there are no more replicas than that (one alone,
or a replication factor of min.insync.replicas) no order of restarts helps: those are told before, and not waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.quorum import Quorum
from kctl.errors import KctlError, NotAuthorized
from kctl.health.brokers import silent_voters
from kctl.health.model import Adding
from kctl.health.partitions import adding_of, effective_min_isr, partitions_of
from kctl.model import ClusterState, PartitionState, TopicPartition
from kctl.restart.seen import MinIsr

if TYPE_CHECKING:
    from kctl.restart.seen import Seen

NAMED = 3  # of many, by name


@dataclass(frozen=True, slots=True)
class Blocker:
    """What keeps brokers from being taken down. topic, partition: None for what is not about one partition."""

    topic: str | None
    partition: int | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.topic is None else f"{self.topic}-{self.partition} {self.reason}"


class NoZookeeper(Blocker):
    """The ensemble does not serve."""


@dataclass(frozen=True, slots=True)
class Unprotected:
    """A topic that stops taking acks=all, or is not there at all, while a broker is down that hosts it."""

    topic: str
    partition_count: int
    replication_factor: int
    min_insync_replicas: int
    consequence: str


def blockers(state: ClusterState, min_isr: MinIsr, down: Collection[int], adding: Adding = None) -> list[Blocker]:
    """Why the brokers of `down` may not go, all at once, now: [] when they may.

    min_isr: of each topic that they host at least. adding: running reassignments, as kctl.health has them.
    """
    found = _not_known(state, min_isr, down)
    for p in _hosted(state, down):
        least = min_isr.get(p.topic)
        if not isinstance(least, int):
            continue
        if isinstance(adding, Mapping) and p.tp in adding:
            found.append(Blocker(p.topic, p.partition, "is being reassigned"))
        elif not _protectable(p, least):
            continue
        elif p.offline:
            found.append(Blocker(p.topic, p.partition, "has no leader"))
        elif len(set(p.isr).difference(down)) < effective_min_isr(p, least):
            found.append(Blocker(p.topic, p.partition, _too_few(p, least, down)))
    return found


def _not_known(state: ClusterState, min_isr: MinIsr, down: Collection[int]) -> list[Blocker]:
    """Topics whose min.insync.replicas nobody told, one row for each reason: it is the same for many."""
    topics: dict[str, list[str]] = {}
    for topic in dict.fromkeys(p.topic for p in _hosted(state, down)):
        least = min_isr.get(topic)
        if not isinstance(least, int):
            topics.setdefault(least.message if isinstance(least, KctlError) else "nobody told", []).append(topic)
    return [
        Blocker(None, None, f"min.insync.replicas of {_some(names)} is not known: {why}")
        for why, names in topics.items()
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more topics" if len(names) > NAMED else "")


def gate(seen: Seen, batch: Collection[int], brokers: Collection[int]) -> list[Blocker]:
    """Why `batch` may not go now. brokers: all of the run. Pure."""
    if seen.zookeeper is not None:
        return [NoZookeeper(None, None, f"without ZooKeeper a broker cannot start again: {seen.zookeeper}")]
    found = blockers(seen.state, seen.min_isr, batch, seen.adding)
    named = {(b.topic, b.partition) for b in found}
    found += [
        Blocker(tp.topic, tp.partition, "has a replica that is not in sync")
        for tp in unsettled(seen.state, seen.adding, brokers, but=batch)
        if (tp.topic, tp.partition) not in named
    ]
    found += [
        Blocker(None, None, f"broker {node} does not answer: {why}")
        for node, why in seen.silent.items()
        if node not in batch
    ]
    quorum = quorum_blocker(seen.quorum, batch)
    found += [quorum] if quorum else []
    if seen.state.controller_id is None:
        found.append(Blocker(None, None, "the cluster has no controller"))
    return found


def said(found: Sequence[Blocker]) -> str:
    """The first of them, and how many more."""
    more = f"; and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return "; ".join(str(each) for each in found[:NAMED]) + more


def quorum_blocker(quorum: Quorum | KctlError | None, down: Collection[int]) -> Blocker | None:
    """KRaft brokers that are voters as well: the others that fetch must be a majority. None: with ZooKeeper."""
    if isinstance(quorum, NotAuthorized) or quorum is None:
        return None
    if isinstance(quorum, KctlError):
        return Blocker(None, None, f"the metadata quorum does not tell its state: {quorum.message}")
    voters = {voter.id: voter for voter in quorum.voters}
    if not voters.keys() & set(down) or len(voters) == 1:  # a single one can only be without
        return None
    alive = voters.keys() - {voter.id for voter in silent_voters(quorum)}
    left, needed = len(alive.difference(down)), len(voters) // 2 + 1
    if left >= needed:
        return None
    return Blocker(None, None, f"the metadata quorum would have {left} of {len(voters)} voters, and needs {needed}")


def unsettled(
    state: ClusterState, adding: Adding, brokers: Collection[int], *, but: Collection[int] = ()
) -> list[TopicPartition]:
    """Partitions with a replica that is to come back into the ISR and is not there yet.

    brokers: those that are restarted. What only brokers lack that are down, and are none of these, is not counted:
    nothing in a restart brings it back. but: brokers that may lack any: they are restarted now, which may be the cure.
    """
    waited_for = set(state.brokers) | set(brokers)
    found = []
    for p in partitions_of(state):
        missing = set(p.replicas).difference(p.isr, adding_of(p, adding), but)
        if missing & waited_for or (p.offline and waited_for.intersection(p.isr)):
            found.append(p.tp)
    return found


def unprotected(state: ClusterState, min_isr: MinIsr, brokers: Collection[int]) -> list[Unprotected]:
    """The topics of which partitions on `brokers` cannot be protected, by name."""
    rows: dict[tuple[str, int, int], int] = {}
    for p in _hosted(state, brokers):
        least = min_isr.get(p.topic)
        if isinstance(least, int) and not _protectable(p, least):
            key = p.topic, len(p.replicas), least
            rows[key] = rows.get(key, 0) + 1
    return [
        Unprotected(topic, count, factor, least, _consequence(factor)) for (topic, factor, least), count in rows.items()
    ]


def fits_together(state: ClusterState, min_isr: MinIsr, brokers: Collection[int], run: Collection[int]) -> bool:
    """Could these go at the same time when everything is in sync? Not asked of what cannot be protected anyway.

    run: all brokers of the run. Replicas on others that are down do not count: nothing brings them back.
    """
    coming = set(state.brokers).union(run)
    for p in _hosted(state, brokers):
        least = min_isr.get(p.topic)
        left = coming.intersection(p.replicas).difference(brokers)
        if isinstance(least, int) and _protectable(p, least):
            if len(left) < effective_min_isr(p, least):
                return False
        elif len(set(p.replicas).intersection(brokers)) > 1 and not left:
            return False  # one after the other there is a replica at least
    return True


def fit(seen: Seen, brokers: Collection[int], run: Collection[int]) -> bool:
    """`fits_together`, and the metadata quorum keeps its majority without them."""
    return fits_together(seen.state, seen.min_isr, brokers, run) and quorum_blocker(seen.quorum, brokers) is None


def _hosted(state: ClusterState, brokers: Collection[int]) -> Iterator[PartitionState]:
    wanted = set(brokers)
    return (p for p in partitions_of(state) if wanted.intersection(p.replicas))


def _protectable(p: PartitionState, min_isr: int) -> bool:
    return effective_min_isr(p, min_isr) < len(p.replicas)


def _too_few(p: PartitionState, min_isr: int, down: Collection[int]) -> str:
    isr = ", ".join(map(str, p.isr)) or "no replica"
    left = len(set(p.isr).difference(down))
    return f"has {isr} in sync: {left} would be left, and min.insync.replicas is {min_isr}"


def _consequence(factor: int) -> str:
    if factor == 1:
        return "not available while its broker is down"
    return "acks=all refused while a broker is down"
