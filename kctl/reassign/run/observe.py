"""Read the partitions of a batch: moves in progress, places and sizes of the replicas."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.cluster.reassignments import ongoing_reassignments
from kctl.errors import NotSupported, Reason
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.partition_requests import numbers_by_topic
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of
from kctl.reassign.run.compare import PlanView, ReplicaPlaces, named_brokers, places_of
from kctl.reassign.run.live_state import LiveState
from kctl.reassign.run.progress import ReplicaCopy

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_METADATA_S = 3.0  # a topic is described as a whole, and may have many more partitions than the batch


class PartitionObserver:
    """A repeated reader of partitions that sends as few requests as possible.

    Each read sends one ListPartitionReassignments for these partitions and DescribeLogDirs to the brokers that receive
    or lead them; Metadata only if a move has ended or the last Metadata is old.
    """

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._state: ClusterState | None = None
        self._read_at = 0.0
        self._moving: set[TopicPartition] = set()
        self._places: ReplicaPlaces = {}

    def observe(self, rows: Sequence[Reassignment], *, fresh: bool = False) -> PlanView:
        """Return the state of the cluster for `rows`. fresh: read Metadata even if the last one is recent.

        Raises the errors of ClusterClient's requests. If a broker does not report its log dirs, its last
        report is used.
        """
        partitions = [r.tp for r in rows]
        moving = ongoing_reassignments(self._client, partitions) if partitions else {}
        if moving is None:
            raise NotSupported(
                "the brokers do not support reassignments",
                hint="upgrade to Kafka 2.4 or later",
                reason=Reason.VERSION_UNSUPPORTED,
            )
        ended = bool(self._moving.intersection(partitions) - moving.keys())
        self._moving = set(moving)
        now = time.monotonic()
        if fresh or ended or self._state is None or now - self._read_at > _METADATA_S:
            self._state = self._client.metadata({r.topic for r in rows})
            self._read_at = now
        state = self._state
        live = LiveState(state.brokers, state.controller_id, state.cluster_id, state.topics, moving)
        nodes = _brokers_to_read(rows, live) & state.brokers.keys()
        if nodes:
            log_dirs = fetch_log_dirs(self._client, nodes, topics=numbers_by_topic(partitions))
            responsive = {node for node, dirs in log_dirs.items() if isinstance(dirs, list)}
            previous = {key: place for key, place in self._places.items() if key[0] not in responsive}
            self._places = previous | places_of(log_dirs)
            live.log_dirs = log_dirs
        return PlanView(live, self._places)


def _brokers_to_read(rows: Iterable[Reassignment], live: LiveState) -> set[int]:
    nodes: set[int] = set()
    rows = list(rows)
    for r in rows:
        receivers = receivers_of(r)
        if receivers:
            nodes.update(receivers)
            partition = live.partition(r.tp)
            if partition is not None:
                nodes.add(partition.leader)
    return nodes | named_brokers(rows)


def copies_of(rows: Iterable[Reassignment], view: PlanView, reached: Collection[TopicPartition]) -> list[ReplicaCopy]:
    """Return the progress of each copy that the rows make."""
    return [copy for r in rows for copy in _copies(r, view, r.tp in reached)]


def _copies(r: Reassignment, view: PlanView, reached: bool) -> Iterable[ReplicaCopy]:
    adding = set(r.adding)
    targets = dict(zip(r.after, r.log_dirs or (), strict=False))
    partition = view.live.partition(r.tp)
    leader = -1 if partition is None else partition.leader
    isr = () if partition is None else partition.isr
    source = view.places.get((leader, r.tp))
    size = r.size_bytes if source is None else source.size_bytes
    for node in receivers_of(r):
        place = view.places.get((node, r.tp))
        if reached:
            yield ReplicaCopy(r.tp, node, size, size or 0, True)
        elif node in adding:
            copied = 0 if place is None else place.size_bytes
            yield ReplicaCopy(r.tp, node, size, copied, node in isr)
        else:
            arrived = place is not None and place.path == targets.get(node)
            replica_size = size if place is None else place.size_bytes
            yield ReplicaCopy(
                r.tp,
                node,
                replica_size,
                (replica_size or 0) if arrived else place.future_bytes if place else 0,
                arrived,
            )
