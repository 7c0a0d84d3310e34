"""What an unclean election would lose, as far as brokers that are up can tell.

Records that only replicas on dead brokers have cannot be counted: nobody is left to ask. What is known: where the log
of the replica that would lead ends (everything behind it is lost), where the logs of the other live replicas end
(they will be cut to the new leader's), and what groups have committed: an offset behind the new end was there. Where
eligible leader replicas (KIP-966) are down, they have every committed record: that nothing more is known to be lost
does not mean that nothing is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.offsets import fetch_replica_ends
from kctl.errors import KctlError
from kctl.leader.election import Election
from kctl.leader.eligible import NONE_ELIGIBLE, Eligible
from kctl.model import ClusterState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class Loss:
    """One partition. elected_end_offset: of the replica that would lead; what has this offset or a later one is lost.

    ends: broker → log end offset of each live replica, None where it did not tell. unreachable: brokers with a replica
    that are down: what they have beyond cannot be known. committed: the largest offset that a group has committed,
    None when there is none or it could not be read. known_end_offset: the largest offset that is known to have
    been reached: what lies between elected_end_offset and it is lost. eligible: eligible leader replicas that are down.
    last_known_eligible: the last ones, where there are none any more.
    """

    topic: str
    partition: int
    elected: int
    elected_end_offset: int | None
    known_end_offset: int | None
    ends: Mapping[int, int | None]
    unreachable: tuple[int, ...]
    committed: int | None
    eligible: tuple[int, ...] = ()
    last_known_eligible: tuple[int, ...] = ()

    @property
    def known_lost(self) -> int | None:
        """Offsets that were there and are lost. None when the new leader's end is not known, and where none are known
        and replicas that are down have all committed records."""
        if self.elected_end_offset is None or self.known_end_offset is None:
            return None
        lost = max(0, self.known_end_offset - self.elected_end_offset)
        return None if not lost and (self.eligible or self._last_known_is_down) else lost

    @property
    def _last_known_is_down(self) -> bool:
        return any(node in self.unreachable for node in self.last_known_eligible)

    def __str__(self) -> str:
        tp = TopicPartition(self.topic, self.partition)
        if self.elected_end_offset is None:
            begin = f"{tp}: broker {self.elected} would lead; where its log ends is not known"
        else:
            begin = f"{tp}: broker {self.elected} would lead from offset {self.elected_end_offset} on"
        if self.known_lost:
            last = (self.known_end_offset or 0) - 1
            begin += f"; {self.elected_end_offset} to {last} were there ({self._witness()}) and are lost"
        if self.unreachable:
            nodes = ", ".join(map(str, self.unreachable))
            word = "broker" if len(self.unreachable) == 1 else "brokers"
            begin += f"; what {word} {nodes} had beyond is lost too, and cannot be counted"
        if self.eligible:
            one = len(self.eligible) == 1
            nodes = ", ".join(map(str, self.eligible))
            begin += f"; {'broker' if one else 'brokers'} {nodes} {'has' if one else 'have'} every committed record"
        return begin

    def _witness(self) -> str:
        for node, end in self.ends.items():
            if end == self.known_end_offset:
                return f"broker {node} has them"
        return "a group has committed them"


def find_losses(
    client: ClusterClient,
    state: ClusterState,
    plan: Collection[Election],
    eligible: Mapping[TopicPartition, Eligible] | None = None,
) -> list[Loss]:
    """For each election that would be held. What could not be read is None, never an error."""
    todo = [row for row in plan if row.result is ItemResult.WOULD_ELECT and row.elected is not None]
    states = {p.tp: p for topic in state.topics.values() for p in topic.partitions}
    by_node: dict[int, list[TopicPartition]] = {}
    for row in todo:
        for node in states[row.tp].replicas:
            if node in state.brokers:
                by_node.setdefault(node, []).append(row.tp)
    ends = fetch_replica_ends(client, by_node) if by_node else {}
    committed = _committed(client, {row.topic for row in todo}) if todo else {}
    losses = []
    for row in todo:
        replicas = states[row.tp].replicas
        found = {node: _offset(ends, node, row.tp) for node in replicas if node in state.brokers}
        down = [node for node in replicas if node not in state.brokers]
        known = (eligible or {}).get(row.tp, NONE_ELIGIBLE)
        losses.append(_loss(row, found, down, committed.get(row.tp), known))
    return losses


def _loss(
    row: Election, ends: Mapping[int, int | None], down: Collection[int], committed: int | None, eligible: Eligible
) -> Loss:
    assert row.elected is not None
    reached = [end for end in (*ends.values(), committed) if end is not None]
    return Loss(
        topic=row.topic,
        partition=row.partition,
        elected=row.elected,
        elected_end_offset=ends.get(row.elected),
        known_end_offset=max(reached, default=None),
        ends=dict(ends),
        unreachable=tuple(down),
        committed=committed,
        eligible=eligible.replicas,
        last_known_eligible=eligible.last_known,
    )


def _offset(ends: Mapping[int, Mapping[TopicPartition, int | KctlError]], node: int, tp: TopicPartition) -> int | None:
    found = ends.get(node, {}).get(tp)
    return found if isinstance(found, int) else None


def _committed(client: ClusterClient, topics: Collection[str]) -> dict[TopicPartition, int]:
    """The largest offset that any group has committed, by partition; nothing when groups cannot be asked."""
    from kctl.lag.collect import collect

    try:
        report = collect(client, topics=topics, members=False)
    except KctlError:
        return {}
    found: dict[TopicPartition, int] = {}
    for row in report.rows:
        if row.committed_offset is not None:
            tp = TopicPartition(row.topic, row.partition)
            found[tp] = max(found.get(tp, 0), row.committed_offset)
    return found
