"""The facts behind planned changes to groups: states, members and offsets. See kctl.cluster.unchanged.

No response has the generation of a classic group, so its state and members are compared. Newer groups have an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import Group
from kctl.cluster.unchanged import Basis, ObjectFacts, topics
from kctl.errors import NotFound
from kctl.groups.delete import DeletedGroup, DeletedOffset, present_offsets
from kctl.groups.remove_members import RemovedMember
from kctl.groups.reset import OffsetChange
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

Offsets = Mapping[str, Mapping[TopicPartition, "int | None"]]


def of_reset(client: ClusterClient, rows: Iterable[OffsetChange]) -> Basis:
    """Return the offsets that a reset or an import replaces, and the topics of the new offsets."""
    offsets: dict[str, dict[TopicPartition, int | None]] = {}
    for row in rows:
        offsets.setdefault(row.group, {})[TopicPartition(row.topic, row.partition)] = row.old_offset
    return _offsets(client, offsets).also(topics(client, {tp.topic for each in offsets.values() for tp in each}))


def of_deleted_offsets(client: ClusterClient, rows: Iterable[DeletedOffset]) -> Basis:
    """Return the offsets that are deleted. The members of the group may change."""
    offsets: dict[str, dict[TopicPartition, int | None]] = {}
    for row in rows:
        offsets.setdefault(row.group, {})[TopicPartition(row.topic, row.partition)] = row.committed_offset
    return _offsets(client, offsets, members=False)


def of_deleted(client: ClusterClient, rows: Iterable[DeletedGroup]) -> Basis:
    """Return the groups that are deleted, with all their committed offsets."""
    offsets = {r.group: {TopicPartition(o.topic, o.partition): o.committed_offset for o in r.offsets} for r in rows}
    return _offsets(client, offsets, whole=True)


def of_members(client: ClusterClient, group: str, rows: Iterable[RemovedMember]) -> Basis:
    """Return the members that are removed. A member that rejoined has another id."""
    names = {row.member_id: row.group_instance_id or row.client_id for row in rows}

    def read_facts() -> ObjectFacts:
        group_now = describe_groups(client, [group]).groups.get(group)
        members = {member.member_id for member in (group_now.members or () if group_now is not None else ())}
        return _present(names, members)

    return Basis(_present(names, names), read_facts)


def _present(names: Mapping[str, str], members: Iterable[str]) -> ObjectFacts:
    return {f"member {names[each]} ({each})": {} for each in members if each in names}


def _offsets(client: ClusterClient, before: Offsets, *, whole: bool = False, members: bool = True) -> Basis:
    """Return a basis of committed offsets.

    whole: include the number of all commits. members: include the group's state and members.
    """
    described = describe_groups(client, list(before))

    def read_facts() -> ObjectFacts:
        current = describe_groups(client, list(before))
        for error in current.failed_groups.values():
            if not isinstance(error, NotFound):
                raise error
        offsets: Offsets = {name: {} for name in before} | present_offsets(client, current.groups)
        return _facts(current.groups, offsets, before, whole=whole, members=members)

    return Basis(_facts(described.groups, before, before, whole=whole, members=members), read_facts)


def _facts(
    groups: Mapping[str, Group], offsets: Offsets, before: Offsets, *, whole: bool, members: bool
) -> ObjectFacts:
    facts: dict[str, dict[str, object]] = {}
    for name, partitions in before.items():
        group = groups.get(name)
        if members:
            facts[f"group {name}"] = {
                "state": "absent" if group is None else group.state,
                "epoch": None if group is None else group.epoch,
                "members": () if group is None else tuple(member.member_id for member in group.members or ()),
            }
        if whole:
            facts[f"group {name}"]["number of committed offsets"] = len(offsets[name])
        for tp in partitions:
            facts[f"the offset of group {name} for {tp}"] = {"committed": offsets[name].get(tp)}
    return facts
