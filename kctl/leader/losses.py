"""The losses of an unclean election, as far as live brokers know.

Records that exist only on dead brokers cannot be counted. Known are the log end offset of the replica that would lead
(later records are lost), the log end offsets of the other live replicas (which are truncated to the new leader's), and
committed offsets (one beyond the new end proves a loss). Eligible leader replicas (KIP-966) that are down have every
committed record, so records may be lost even if no loss is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.eligible import NONE_ELIGIBLE, Eligible
from kctl.cluster.offsets import fetch_replica_ends
from kctl.errors import KctlError
from kctl.leader.election import Election
from kctl.model import ClusterState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class UncleanLoss:
    """The loss of one partition. elected_end_offset: of the replica that would lead; later records are lost.

    ends: broker → log end offset of each live replica, None if unknown. unreachable: brokers that host a replica but
    are down; their later records are unknown. committed: the largest committed offset, None if there is none or it is
    unreadable. known_end_offset: the highest known log end offset or committed offset. eligible: eligible leader
    replicas that are down. last_known_eligible: see Eligible.last_known.
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
        """Return the number of offsets known to be lost.

        None if the new leader's log end offset is unknown, or if no loss is known and replicas that are down have all
        committed records.
        """
        if self.elected_end_offset is None or self.known_end_offset is None:
            return None
        lost_count = max(0, self.known_end_offset - self.elected_end_offset)
        return None if not lost_count and (self.eligible or self._last_known_is_down) else lost_count

    @property
    def _last_known_is_down(self) -> bool:
        return any(node in self.unreachable for node in self.last_known_eligible)

    def __str__(self) -> str:
        tp = TopicPartition(self.topic, self.partition)
        if self.elected_end_offset is None:
            text = f"{tp}: broker {self.elected} would lead; its log end offset is unknown"
        else:
            text = f"{tp}: broker {self.elected} would lead from offset {self.elected_end_offset}"
        if self.known_lost:
            last = (self.known_end_offset or 0) - 1
            text += f"; {self.elected_end_offset} to {last} existed ({self._evidence()}) and are lost"
        if self.unreachable:
            nodes = ", ".join(map(str, self.unreachable))
            word = "broker" if len(self.unreachable) == 1 else "brokers"
            text += f"; further records of {word} {nodes} are lost too, and cannot be counted"
        if self.eligible:
            single = len(self.eligible) == 1
            nodes = ", ".join(map(str, self.eligible))
            text += (
                f"; {'broker' if single else 'brokers'} {nodes} {'has' if single else 'have'} every committed record"
            )
        last_known = [node for node in self.last_known_eligible if node in self.unreachable]
        if last_known and not self.eligible:
            nodes = ", ".join(map(str, last_known))
            text += f"; broker {nodes} was the last leader and may have more: if possible, start it instead"
        return text

    def _evidence(self) -> str:
        for node, end in self.ends.items():
            if end == self.known_end_offset:
                return f"broker {node} has them"
        return "a group has committed them"


def find_losses(
    client: ClusterClient,
    state: ClusterState,
    plan: Collection[Election],
    eligible: Mapping[TopicPartition, Eligible] | None = None,
) -> list[UncleanLoss]:
    """Return the loss of each planned election. Unreadable values are None, never an error."""
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
        end_offsets = {node: _offset(ends, node, row.tp) for node in replicas if node in state.brokers}
        down = [node for node in replicas if node not in state.brokers]
        eligible_replicas = (eligible or {}).get(row.tp, NONE_ELIGIBLE)
        losses.append(_loss(row, end_offsets, down, committed.get(row.tp), eligible_replicas))
    return losses


def _loss(
    row: Election, ends: Mapping[int, int | None], down: Collection[int], committed: int | None, eligible: Eligible
) -> UncleanLoss:
    assert row.elected is not None
    known_ends = [end for end in (*ends.values(), committed) if end is not None]
    return UncleanLoss(
        topic=row.topic,
        partition=row.partition,
        elected=row.elected,
        elected_end_offset=ends.get(row.elected),
        known_end_offset=max(known_ends, default=None),
        ends=dict(ends),
        unreachable=tuple(down),
        committed=committed,
        eligible=eligible.replicas,
        last_known_eligible=eligible.last_known,
    )


def _offset(ends: Mapping[int, Mapping[TopicPartition, int | KctlError]], node: int, tp: TopicPartition) -> int | None:
    end_offset = ends.get(node, {}).get(tp)
    return end_offset if isinstance(end_offset, int) else None


def _committed(client: ClusterClient, topics: Collection[str]) -> dict[TopicPartition, int]:
    """Return the largest committed offset of any group, by partition; empty if groups are unreadable."""
    from kctl.lag.collect import collect

    try:
        report = collect(client, topics=topics, members=False)
    except KctlError:
        return {}
    offsets: dict[TopicPartition, int] = {}
    for row in report.rows:
        if row.committed_offset is not None:
            tp = TopicPartition(row.topic, row.partition)
            offsets[tp] = max(offsets.get(tp, 0), row.committed_offset)
    return offsets
