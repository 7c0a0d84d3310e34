"""Which groups read a topic: those that have committed offsets of it, or have members that it is assigned to.

Requests: ListGroups to each broker, DescribeGroups and OffsetFetch to each coordinator, and one for the rights: groups
that this user may not describe are left out by the brokers without a word.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.groups.coordinators import ask_coordinators
from kctl.cluster.offsets import Committed, fetch_committed_each
from kctl.cluster.rights import may_describe_cluster
from kctl.errors import KctlError
from kctl.lag.collect import all_groups, owners_of
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.cluster.groups.model import Group
    from kctl.protocol.client import ClusterClient

_SHARE = "share"  # share groups (KIP-932) have no committed offsets


@dataclass(frozen=True, slots=True)
class Reader:
    """A group that reads a topic. assigned_partitions: how many its members have now; committed: offsets of it."""

    group: str
    state: str
    assigned_partitions: int
    committed: dict[int, int]


def fetch_readers(client: ClusterClient, topics: Collection[str]) -> tuple[dict[str, list[Reader]] | None, list[str]]:
    """The readers of each topic by name of the group, None when none could be listed; and what could not be read, a
    line each. Raises nothing.
    """
    try:
        found = all_groups(client, members=True)
    except KctlError as exc:
        return None, [f"which groups read it is not known: {exc.message}"]
    failures = []
    if may_describe_cluster(client) is False:
        failures.append("groups that this user may not describe are not known (it needs Describe on the cluster)")
    failures += [f"groups of {name} are not known: {exc.message}" for name, exc in found.unlisted.items()]
    failures += [f"members are not known: {exc.message}" for exc in found.failed_groups.values()]
    known = {name: group.coordinator for name, group in found.groups.items() if group.type != _SHARE}
    commits = ask_coordinators(client, known, lambda by: fetch_committed_each(client, by), known=known)
    failures += [f"commits are not known: {exc.message}" for exc in commits.values() if isinstance(exc, KctlError)]
    readers: dict[str, list[Reader]] = {name: [] for name in topics}
    for name, group in sorted(found.groups.items()):
        committed = commits.get(name)
        for topic, reader in _of_group(group, {} if isinstance(committed, KctlError) else committed or {}).items():
            if topic in readers:
                readers[topic].append(reader)
    return readers, failures


def _of_group(group: Group, committed: Committed) -> dict[str, Reader]:
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, number), offset in committed.items():
        by_topic.setdefault(topic, {})[number] = offset
    owned: dict[str, list[TopicPartition]] = {}
    for tp in owners_of(group):
        owned.setdefault(tp.topic, []).append(tp)
    return {
        topic: Reader(group.group, group.state, len(owned.get(topic, ())), by_topic.get(topic, {}))
        for topic in by_topic.keys() | owned.keys()
    }
