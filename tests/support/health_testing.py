"""Clusters as values, for the rules of health. Replicas and ISRs are written as strings, e.g. 123."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kctl.cluster.log_dirs import LogDir
from kctl.cluster.membership import BrokerView
from kctl.errors import KctlError
from kctl.health.model import Adding, Facts
from kctl.model import Broker, ClusterState, PartitionState, TopicState


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(digit) for digit in text)


def partition(
    replicas: str, isr: str, *, leader: int = 1, topic: str = "t", number: int = 0, offline: str = ""
) -> PartitionState:
    """Return a partition of topic t, led by broker 1."""
    return PartitionState(topic, number, leader, 0, _ids(replicas), _ids(isr), _ids(offline))


def state(
    partitions: Sequence[PartitionState], *, alive: str = "123", racks: Mapping[int, str] | None = None
) -> ClusterState:
    """Return a cluster of these partitions; broker 1 is the controller."""
    names = sorted({p.topic for p in partitions})
    topics = {name: TopicState(name, False, None, tuple(p for p in partitions if p.topic == name)) for name in names}
    brokers = {node: Broker(node, f"host{node}", 9092, (racks or {}).get(node)) for node in _ids(alive)}
    return ClusterState("id", 1, brokers, topics)


def facts(
    cluster: ClusterState,
    *,
    views: Mapping[int, BrokerView | KctlError] | None = None,
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError] | None = None,
    min_isr: Mapping[str, int | KctlError] | None = None,
    adding: Adding = None,
    **others: object,
) -> Facts:
    """Return facts of a cluster; by default all brokers respond and agree, with one log dir each."""
    alive = tuple(sorted(cluster.brokers))
    found = {node: BrokerView(alive, cluster.controller_id) for node in alive}
    disks = {node: [LogDir("/data", 100, 50, [])] for node in alive}
    return Facts(
        state=cluster,
        views={**found, **(views or {})},
        log_dirs={**disks, **(log_dirs or {})},
        min_isr=min_isr or {},
        adding=adding,
        **others,  # type: ignore[arg-type]  # quorum and fenced, as Facts has them
    )
