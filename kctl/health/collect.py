"""Collect the facts of the health rules in one pass: at most seven round trips, each to all brokers at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kctl.cluster.eligible import eligible_if_known
from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.cluster.membership import BrokerView, fenced_brokers, read_views
from kctl.cluster.reassignments import reassignments_if_known
from kctl.cluster.topic_configs import MIN_ISR, fetch_topic_configs, min_isr_in
from kctl.errors import KctlError, OperationFailed
from kctl.health.hidden import hidden_topics
from kctl.health.model import Facts
from kctl.health.partitions import at_risk, partitions_of
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.quorum import Quorum

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def collect_facts(client: ClusterClient) -> Facts:
    """Read the facts. A fact that could not be read is a KctlError.

    Raises subclasses of ConnectionFailed if no broker returns metadata.
    """
    state = client.metadata()
    with client.asking_silent_brokers_once():
        views = read_views(client, state.brokers)
        responding = [node for node, view in views.items() if not isinstance(view, KctlError)]
        log_dirs = fetch_log_dirs(client, responding)
        quorum = _quorum(client, views)
        suspects = {p.topic for topic in state.topics.values() for p in topic.partitions if p.under_replicated}
        min_isr = min_isr_of(client, suspects, responding)
        return Facts(
            state=state,
            views=views,
            log_dirs=dict(log_dirs),
            min_isr=min_isr,
            adding=adding_replicas(client, state, quorum) if suspects else {},
            quorum=quorum,
            fenced=fenced_brokers(client),
            hidden=hidden_topics(client, state, log_dirs),
            eligible=eligible_if_known(client, [p.tp for p in at_risk(partitions_of(state), min_isr)]),
        )


def min_isr_of(client: ClusterClient, topics: Collection[str], brokers: Collection[int]) -> dict[str, int | KctlError]:
    """Return min.insync.replicas of each topic."""
    min_isr: dict[str, int | KctlError] = {}
    if not topics:
        return min_isr
    for topic, entries in fetch_topic_configs(client, topics, brokers, names=[MIN_ISR]).items():
        min_isr[topic] = entries if isinstance(entries, KctlError) else min_isr_in(entries)
    return min_isr


def adding_replicas(
    client: ClusterClient, state: ClusterState, quorum: Quorum | KctlError | None = None
) -> dict[TopicPartition, tuple[int, ...]] | KctlError:
    """Return the replicas that reassignments are still adding, or why they are unknown.

    quorum: if read. Without an active controller, a KRaft broker would not respond for a minute.
    """
    if isinstance(quorum, Quorum) and quorum.leader_id is None:
        return OperationFailed("reassignments are unknown: no active controller")
    moving = reassignments_if_known(client, state)
    return moving if isinstance(moving, KctlError) else {tp: row.adding for tp, row in moving.items()}


def read_quorum(client: ClusterClient) -> Quorum | KctlError | None:
    """Return the quorum, or why it is unknown; None with ZooKeeper."""
    try:
        return describe_quorum(client)
    except KctlError as exc:
        return exc


def _quorum(client: ClusterClient, views: Mapping[int, BrokerView | KctlError]) -> Quorum | KctlError | None:
    quorum = read_quorum(client)
    if quorum is not None:
        return quorum
    named = {view.controller_id for view in views.values() if isinstance(view, BrokerView)}
    if len(named) < 2:
        return None
    from kctl.protocol.controllers import quorum_of_migration  # `topic list` imports this module, too

    return quorum_of_migration(client)
