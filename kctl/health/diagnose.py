"""Diagnose a cluster: what unhealthy partitions have in common, which ISRs change, what cannot be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.cluster.eligible import eligible_if_known
from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.membership import fenced_brokers
from kctl.errors import KctlError, NotHealthy
from kctl.health.causes import Suspect, find_suspects, unhealthy
from kctl.health.collect import adding_replicas, min_isr_of, read_quorum
from kctl.health.eligible import EligibleReplicas, eligible_rows
from kctl.health.held_back import HeldBack, find_held_back
from kctl.health.hidden import hidden_line, hidden_topics
from kctl.health.isr_changes import IsrChanges
from kctl.health.partitions import adding_unknown, at_risk, under_min_isr
from kctl.model import ClusterState, PartitionState, TopicPartition
from kctl.protocol.quorum import LAST_KNOWN, NO_CONTROLLER_HINT, Quorum

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A diagnosis.

    partition_count: all partitions. offline, under_replicated: e.g. "orders-3", disjoint. under_min_isr: the
    under-replicated partitions that reject acks=all. held_back: records above the high watermark. watched_ms: how long
    ISRs were watched; None: not watched. isr_changes: the observed changes. failures: what could not be read, and why.
    eligible: see Health.eligible.
    no_controller: why there is no active controller; None: there is one, or it is unknown, or with ZooKeeper.
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
    eligible: tuple[EligibleReplicas, ...] | None = None
    no_controller: str | None = None

    @property
    def healthy(self) -> bool:
        partitions = self.offline or self.under_replicated or self.held_back or self.isr_changes
        return not (partitions or self.no_controller)

    def require_healthy(self) -> None:
        """Raise NotHealthy if a partition has a problem, with the most likely cause."""
        if self.healthy:
            return
        problems = [
            f"{len(names):,} {what}"
            for names, what in (
                (self.offline, "without a leader"),
                (self.under_replicated, "under-replicated"),
                (self.under_min_isr, "under min ISR, where acks=all is rejected"),
                (self.held_back, "with records above the high watermark"),
                (self.isr_changes, "with a changing ISR"),
            )
            if names
        ]
        if self.no_controller is not None:
            partitions = f"; of {counted(self.partition_count, 'partition')}: {', '.join(problems)}" if problems else ""
            raise NotHealthy(f"{self.no_controller}{partitions}", hint=NO_CONTROLLER_HINT)
        cause = f"; most in common: {self.suspects[0].description}" if self.suspects else ""
        raise NotHealthy(f"of {counted(self.partition_count, 'partition')}: {', '.join(problems)}{cause}")


def diagnose(
    client: ClusterClient,
    state: ClusterState,
    *,
    watched_ms: int | None = None,
    changes: Sequence[IsrChanges] = (),
) -> Diagnosis:
    """Return the diagnosis of a cluster in this state. watched_ms, changes: of a preceding ISR watch.

    Raises subclasses of ConnectionFailed.
    """
    with client.asking_silent_brokers_once():
        quorum = read_quorum(client)
        adding = adding_replicas(client, state, quorum)
        problems = unhealthy(state, adding)
        log_dirs = fetch_log_dirs(client, state.brokers)
        fenced = fenced_brokers(client) if problems else {}
        min_isr = min_isr_of(client, {p.topic for p in problems if not p.offline}, state.brokers)
        eligible = eligible_if_known(client, [p.tp for p in at_risk(problems, min_isr)])
        held_back, failures = find_held_back(client, state)
        hidden = hidden_topics(client, state, log_dirs)
    failures += [each.message for each in log_dirs.values() if isinstance(each, KctlError)]
    if isinstance(fenced, KctlError):
        failures.append(fenced.message)
        fenced = {}
    failures += [each.message for each in min_isr.values() if isinstance(each, KctlError)]
    missing = quorum.no_controller if isinstance(quorum, Quorum) else None
    failures += [LAST_KNOWN] if missing else []
    unknown = adding_unknown(adding) if any(not p.offline for p in problems) else None
    failures += [unknown] if unknown else []
    failures += [eligible.message] if isinstance(eligible, KctlError) else []
    if isinstance(hidden, KctlError):
        failures.append(hidden.message)
    elif hidden:
        failures.append(f"{hidden_line(hidden)}: their health is unknown")
    places = replica_places(state, {n: dirs for n, dirs in log_dirs.items() if not isinstance(dirs, KctlError)})
    return Diagnosis(
        partition_count=sum(len(topic.partitions) for topic in state.topics.values()),
        offline=tuple(str(p.tp) for p in problems if p.offline),
        under_replicated=tuple(str(p.tp) for p in problems if not p.offline),
        under_min_isr=tuple(_rejecting(problems, min_isr)),
        suspects=tuple(find_suspects(state, places, adding, fenced)),
        held_back=tuple(held_back),
        watched_ms=watched_ms,
        isr_changes=tuple(changes),
        failures=tuple(dict.fromkeys(failures)),
        eligible=eligible_rows(state, eligible),
        no_controller=missing,
    )


def _rejecting(problems: Iterable[PartitionState], min_isr: Mapping[str, int | KctlError]) -> Iterator[str]:
    for p in problems:
        minimum = min_isr.get(p.topic)
        if isinstance(minimum, int) and not p.offline and under_min_isr(p, minimum):
            yield str(p.tp)


def replica_places(
    state: ClusterState, log_dirs: Mapping[int, Collection[LogDir]]
) -> dict[tuple[TopicPartition, int], str]:
    """Return (partition, broker) → log dir, for brokers that responded. Pure.

    An offline log dir does not list its replicas: if a broker has exactly one, replicas that are in no other log dir
    are assigned to it.
    """
    places = {
        (TopicPartition(r.topic, r.partition), node): log_dir.path
        for node, dirs in log_dirs.items()
        for log_dir in dirs
        for r in log_dir.replicas
        if not r.future
    }
    offline = {node: [log_dir.path for log_dir in dirs if log_dir.error] for node, dirs in log_dirs.items()}
    offline_dir = {node: paths[0] for node, paths in offline.items() if len(paths) == 1}
    for topic in state.topics.values():
        for p in topic.partitions:
            for node in p.replicas:
                if node in offline_dir:
                    places.setdefault((p.tp, node), offline_dir[node])
    return places
