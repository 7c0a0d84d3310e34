"""Where to look first: what the partitions with a problem have in common, what flaps, what cannot be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.membership import fenced_brokers
from kctl.errors import KctlError, NotHealthy
from kctl.health.causes import Suspect, find_suspects, troubled
from kctl.health.collect import adding_replicas, min_isr_of
from kctl.health.held_back import HeldBack, find_held_back
from kctl.health.hidden import hidden_line, hidden_topics
from kctl.health.isr_changes import IsrChanges
from kctl.health.partitions import adding_unknown, under_min_isr
from kctl.model import ClusterState, PartitionState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """partitions: how many there are. offline, under_replicated: «orders-3», each in one of them only. under_min_isr:
    of the under-replicated those that refuse acks=all. held_back: what lies behind the high watermark. watched_ms: how
    long ISRs were watched, None when they were not; isr_changes: what changed meanwhile. failures: what could not be
    read, and why.
    """

    partition_count: int
    offline: tuple[str, ...]
    under_replicated: tuple[str, ...]
    under_min_isr: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    held_back: tuple[HeldBack, ...]
    watched_ms: int | None
    isr_changes: tuple[IsrChanges, ...]
    failures: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        return not (self.offline or self.under_replicated or self.held_back or self.isr_changes)

    def require_healthy(self) -> None:
        """Raise NotHealthy if a partition has a problem, with the most likely cause."""
        if self.healthy:
            return
        problems = [
            f"{len(names):,} {what}"
            for names, what in (
                (self.offline, "without a leader"),
                (self.under_replicated, "under-replicated"),
                (self.under_min_isr, "under min ISR, where acks=all is refused"),
                (self.held_back, "with records behind the high watermark"),
                (self.isr_changes, "with a changing ISR"),
            )
            if names
        ]
        cause = f"; most in common: {self.suspects[0].description}" if self.suspects else ""
        raise NotHealthy(f"of {counted(self.partition_count, 'partition')}: {', '.join(problems)}{cause}")


def diagnose(
    client: ClusterClient,
    state: ClusterState,
    *,
    watched_ms: int | None = None,
    changes: Sequence[IsrChanges] = (),
) -> Diagnosis:
    """Of a cluster as it was seen last. watched_ms, changes: of a watch before.

    Raises ConnectionFailed's subclasses.
    """
    with client.asking_silent_brokers_once():
        adding = adding_replicas(client, state)
        problems = troubled(state, adding)
        log_dirs = fetch_log_dirs(client, state.brokers)
        fenced = fenced_brokers(client) if problems else {}
        min_isr = min_isr_of(client, {p.topic for p in problems if not p.offline}, state.brokers)
        held_back, failures = find_held_back(client, state)
        hidden = hidden_topics(client, state, log_dirs)
    failures += [found.message for found in log_dirs.values() if isinstance(found, KctlError)]
    if isinstance(fenced, KctlError):
        failures.append(fenced.message)
        fenced = {}
    failures += [found.message for found in min_isr.values() if isinstance(found, KctlError)]
    unknown = adding_unknown(adding) if any(not p.offline for p in problems) else None
    failures += [unknown] if unknown else []
    if isinstance(hidden, KctlError):
        failures.append(hidden.message)
    elif hidden:
        failures.append(f"{hidden_line(hidden)}: nothing is known of them")
    places = replica_places(state, {n: dirs for n, dirs in log_dirs.items() if not isinstance(dirs, KctlError)})
    return Diagnosis(
        partition_count=sum(len(topic.partitions) for topic in state.topics.values()),
        offline=tuple(str(p.tp) for p in problems if p.offline),
        under_replicated=tuple(str(p.tp) for p in problems if not p.offline),
        under_min_isr=tuple(_refusing(problems, min_isr)),
        suspects=tuple(find_suspects(state, places, adding, fenced)),
        held_back=tuple(held_back),
        watched_ms=watched_ms,
        isr_changes=tuple(changes),
        failures=tuple(dict.fromkeys(failures)),
    )


def _refusing(problems: Iterable[PartitionState], min_isr: Mapping[str, int | KctlError]) -> Iterator[str]:
    for p in problems:
        least = min_isr.get(p.topic)
        if isinstance(least, int) and not p.offline and under_min_isr(p, least):
            yield str(p.tp)


def replica_places(
    state: ClusterState, log_dirs: Mapping[int, Collection[LogDir]]
) -> dict[tuple[TopicPartition, int], str]:
    """(partition, broker) → log dir, of the brokers that told. Pure.

    An offline log dir does not say what it held: a replica that is in none of the others was there, when a broker has
    just one that is offline.
    """
    places = {
        (TopicPartition(r.topic, r.partition), node): found.path
        for node, dirs in log_dirs.items()
        for found in dirs
        for r in found.replicas
        if not r.future
    }
    offline = {node: [found.path for found in dirs if found.error] for node, dirs in log_dirs.items()}
    lost = {node: paths[0] for node, paths in offline.items() if len(paths) == 1}
    for topic in state.topics.values():
        for p in topic.partitions:
            for node in p.replicas:
                if node in lost:
                    places.setdefault((p.tp, node), lost[node])
    return places
