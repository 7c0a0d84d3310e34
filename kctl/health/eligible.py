"""Eligible leader replicas of partitions at risk: without a leader, or with too few replicas in sync (KIP-966)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kctl.base.text import counted
from kctl.cluster.eligible import NONE_ELIGIBLE, Eligible
from kctl.errors import KctlError
from kctl.model import ClusterState, PartitionState, TopicPartition

# KctlError: why they are unknown. None: the cluster does not support eligible leader replicas.
EligibleByPartition = Mapping[TopicPartition, Eligible] | KctlError | None


@dataclass(frozen=True, slots=True)
class EligibleReplicas:
    """A partition at risk that has eligible or last known eligible leader replicas. leader: None if there is none."""

    topic: str
    partition: int
    leader: int | None
    eligible: tuple[int, ...]
    last_known_eligible: tuple[int, ...]


def eligible_rows(state: ClusterState, eligible: EligibleByPartition) -> tuple[EligibleReplicas, ...] | None:
    """Return the partitions with eligible or last known replicas; None if not supported or unknown. Pure."""
    if eligible is None or isinstance(eligible, KctlError):
        return None
    topics = {tp.topic for tp in eligible} & state.topics.keys()
    states = {p.tp: p for name in topics for p in state.topics[name].partitions}
    return tuple(
        EligibleReplicas(tp.topic, tp.partition, states[tp].leader if not states[tp].offline else None, *replicas)
        for tp, replicas in sorted(eligible.items())
        if (replicas.replicas or replicas.last_known) and tp in states
    )


def brokers_to_start(state: ClusterState, offline: Collection[PartitionState], eligible: EligibleByPartition) -> str:
    """Return which brokers to start so that partitions get a leader without data loss; "" if unknown. Pure.

    Greedy: each broker covers as many of the remaining partitions as possible.
    """
    if eligible is None or isinstance(eligible, KctlError):
        return ""
    replicas_of = {p.tp: eligible.get(p.tp, NONE_ELIGIBLE) for p in offline}
    down = {
        tp: _down(state, each.replicas) for tp, each in replicas_of.items()
    }  # if one of them is up, the controller elects it
    last_known = {tp: _down(state, each.last_known) for tp, each in replicas_of.items() if not each.replicas}
    pieces = [
        _sentence(down, len(offline), "an eligible leader replica", "eligible leader replicas"),
        _sentence(last_known, len(offline), "the last known leader", "the last known leaders"),
    ]
    return "; ".join(piece for piece in pieces if piece)


def _down(state: ClusterState, nodes: Collection[int]) -> list[int]:
    return [node for node in nodes if node not in state.brokers]


def _sentence(nodes: Mapping[TopicPartition, Collection[int]], total: int, one: str, several: str) -> str:
    remaining = {tp: set(each) for tp, each in nodes.items() if each}
    if not remaining:
        return ""
    count = len(remaining)
    chosen = []
    while remaining:
        counts: dict[int, int] = {}
        for each in remaining.values():
            for node in each:
                counts[node] = counts.get(node, 0) + 1
        best = min(counts, key=lambda node: (-counts[node], node))
        chosen.append(best)
        remaining = {tp: each for tp, each in remaining.items() if best not in each}
    whose = "" if total == 1 else f" of {'all' if count == total else counted(count, 'partition')}"
    if len(chosen) == 1:
        return f"start broker {chosen[0]}, {one}{whose}"
    return f"start brokers {', '.join(map(str, sorted(chosen)))}, {several}{whose}"
