"""Consumer groups that read a topic: they have committed offsets for it, or members assigned to it.

Requests: ListGroups to each broker, DescribeGroups and OffsetFetch to each coordinator, and one for the rights, because
brokers silently omit groups that the user may not describe.
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
class ReadingGroup:
    """A group that reads a topic. assigned_partitions: assigned to its members now. committed: offsets by partition."""

    group: str
    state: str
    assigned_partitions: int
    committed: dict[int, int]


def fetch_readers(
    client: ClusterClient, topics: Collection[str]
) -> tuple[dict[str, list[ReadingGroup]] | None, list[str]]:
    """Return the readers of each topic by group name (None: unreadable), and what is unreadable, one line each."""
    try:
        listing = all_groups(client, members=True)
    except KctlError as exc:
        return None, [f"the groups that read the topic are unknown: {exc.message}"]
    failures = []
    if may_describe_cluster(client) is False:
        failures.append("groups that this user may not describe are omitted (this requires Describe on the cluster)")
    failures += [f"groups of {name} are unknown: {exc.message}" for name, exc in listing.unlisted.items()]
    failures += [f"members are unknown: {exc.message}" for exc in listing.failed_groups.values()]
    coordinators = {name: group.coordinator for name, group in listing.groups.items() if group.type != _SHARE}
    commits = ask_coordinators(
        client, coordinators, lambda by: fetch_committed_each(client, by), coordinators=coordinators
    )
    failures += [
        f"committed offsets are unknown: {exc.message}" for exc in commits.values() if isinstance(exc, KctlError)
    ]
    readers: dict[str, list[ReadingGroup]] = {name: [] for name in topics}
    for name, group in sorted(listing.groups.items()):
        committed = commits.get(name)
        for topic, reader in _of_group(group, {} if isinstance(committed, KctlError) else committed or {}).items():
            if topic in readers:
                readers[topic].append(reader)
    return readers, failures


def _of_group(group: Group, committed: Committed) -> dict[str, ReadingGroup]:
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, number), offset in committed.items():
        by_topic.setdefault(topic, {})[number] = offset
    owned: dict[str, list[TopicPartition]] = {}
    for tp in owners_of(group):
        owned.setdefault(tp.topic, []).append(tp)
    return {
        topic: ReadingGroup(group.group, group.state, len(owned.get(topic, ())), by_topic.get(topic, {}))
        for topic in by_topic.keys() | owned.keys()
    }
