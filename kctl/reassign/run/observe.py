"""Looking at the partitions of one batch: what moves, where their replicas are, how large they are."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.cluster.reassignments import ongoing_reassignments
from kctl.errors import NotSupported
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.partition_requests import numbers_by_topic
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of
from kctl.reassign.run.compare import Places, View, named_brokers, places_of
from kctl.reassign.run.live_state import LiveState
from kctl.reassign.run.progress import Copy

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_METADATA_S = 3.0  # a topic is described as a whole, and may have many more partitions than the batch


class Observer:
    """Asks about partitions again and again, as little as possible.

    Each look: one ListPartitionReassignments of these partitions, DescribeLogDirs of them from the brokers that
    receive or lead; Metadata only when some have come to an end or the last one is old.
    """

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._state: ClusterState | None = None
        self._read_at = 0.0
        self._moving: set[TopicPartition] = set()
        self._places: Places = {}

    def look(self, rows: Sequence[Reassignment], *, fresh: bool = False) -> View:
        """The cluster as far as `rows` are concerned. fresh: Metadata whatever its age.

        Raises what ClusterClient's requests raise. A broker that does not tell its log dirs keeps what it told last.
        """
        asked = [r.tp for r in rows]
        found = ongoing_reassignments(self._client, asked) if asked else {}
        if found is None:
            raise NotSupported("the brokers cannot be asked for reassignments", hint="Kafka 2.4 or newer is needed")
        ended = bool(self._moving.intersection(asked) - found.keys())
        self._moving = set(found)
        now = time.monotonic()
        if fresh or ended or self._state is None or now - self._read_at > _METADATA_S:
            self._state = self._client.metadata({r.topic for r in rows})
            self._read_at = now
        state = self._state
        live = LiveState(state.brokers, state.controller_id, state.cluster_id, state.topics, found)
        nodes = _to_ask(rows, live) & state.brokers.keys()
        if nodes:
            told = fetch_log_dirs(self._client, nodes, topics=numbers_by_topic(asked))
            answered = {node for node, dirs in told.items() if isinstance(dirs, list)}
            kept = {key: place for key, place in self._places.items() if key[0] not in answered}
            self._places = kept | places_of(told)
            live.log_dirs = told
        return View(live, self._places)


def _to_ask(rows: Iterable[Reassignment], live: LiveState) -> set[int]:
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


def copies_of(rows: Iterable[Reassignment], view: View, reached: Collection[TopicPartition]) -> list[Copy]:
    """Every copy that the rows make, and how far it is."""
    return [copy for r in rows for copy in _copies(r, view, r.tp in reached)]


def _copies(r: Reassignment, view: View, reached: bool) -> Iterable[Copy]:
    adding = set(r.adding)
    wanted = dict(zip(r.after, r.log_dirs or (), strict=False))
    partition = view.live.partition(r.tp)
    leader = -1 if partition is None else partition.leader
    isr = () if partition is None else partition.isr
    source = view.places.get((leader, r.tp))
    size = r.size_bytes if source is None else source.size_bytes
    for node in receivers_of(r):
        place = view.places.get((node, r.tp))
        if reached:
            yield Copy(r.tp, node, size, size or 0, True)
        elif node in adding:
            copied = 0 if place is None else place.size_bytes
            yield Copy(r.tp, node, size, copied, node in isr)
        else:
            there = place is not None and place.path == wanted.get(node)
            own = size if place is None else place.size_bytes
            yield Copy(r.tp, node, own, (own or 0) if there else place.future_bytes if place else 0, there)
