"""Describe KIP-848 groups, share groups (KIP-932) with their offsets, and streams groups (KIP-1071).

kafka-python lacks these messages. Its classes are generated from the definitions in this folder, which are Kafka's
(clients/src/main/resources/common/message).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.cluster.groups.coordinators import ByCoordinator, ask_coordinators, failure, send_in_chunks
from kctl.cluster.groups.model import CLASSIC, CONSUMER, SHARE, STREAMS, Group, Member
from kctl.cluster.groups.streams import Topology, sources, streams_member, topology_of
from kctl.errors import KctlError, NotSupported
from kctl.model import TopicPartition
from kctl.protocol.error_meanings import error_for
from kctl.protocol.message_classes import request_class

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

DESCRIBED = frozenset({CONSUMER, SHARE, STREAMS})
_OFFSETS = "share offsets"
_MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}


_MESSAGES = {
    CONSUMER: "ConsumerGroupDescribe",
    SHARE: "ShareGroupDescribe",
    STREAMS: "StreamsGroupDescribe",
    _OFFSETS: "DescribeShareGroupOffsets",
}


def describe_newer(client: ClusterClient, groups: Mapping[str, Group]) -> dict[str, Group | KctlError]:
    """Describe groups of the types in DESCRIBED with their members, by one request to each coordinator.

    A group that a broker cannot describe (share groups before 4.1) stays as listed.
    """
    results: dict[str, Group | KctlError] = {}
    for kind in sorted({group.type for group in groups.values() if group.type}):
        names = [name for name, group in groups.items() if group.type == kind]
        coordinators = {name: groups[name].coordinator for name in names}
        try:
            results |= ask_coordinators(client, names, partial(_ask, client, kind, groups), coordinators=coordinators)
        except NotSupported:
            results |= {name: groups[name] for name in names}
    return results


def _ask(
    client: ClusterClient, kind: str, groups: Mapping[str, Group], by_node: ByCoordinator
) -> dict[str, Group | KctlError]:
    request = request_class(__package__, _MESSAGES[kind])

    def request_for(names: Sequence[str]) -> object:
        return request(group_ids=list(names), include_authorized_operations=False)

    def parse(response: Any) -> dict[str, Group | KctlError]:
        return {row.group_id: _group(row, groups[row.group_id]) for row in response.groups}

    return send_in_chunks(client, by_node, request_for, parse)


def _group(row: Any, listed: Group) -> Group | KctlError:
    if row.error_code:
        return failure(row.error_code, row.error_message, row.group_id)
    described = replace(listed, state=row.group_state, epoch=row.group_epoch, assignment_epoch=row.assignment_epoch)
    if listed.type == STREAMS:
        topology = topology_of(row.topology)
        members = tuple(_streams_member(member, topology) for member in row.members)
        return replace(described, members=members, topology=topology)
    return replace(described, protocol=row.assignor_name or None, members=tuple(map(_member, row.members)))


def _streams_member(row: Any, topology: Topology | None) -> Member:
    streams = streams_member(row)
    return Member(
        member_id=row.member_id,
        group_instance_id=row.instance_id,
        client_id=row.client_id,
        host=row.client_host.removeprefix("/"),
        partitions=sources(topology, streams),
        rack=row.rack_id,
        epoch=row.member_epoch,
        type=CLASSIC if row.is_classic else STREAMS,
        streams=streams,
    )


def _member(row: Any) -> Member:
    target = getattr(row, "target_assignment", None)  # share groups have none
    return Member(
        member_id=row.member_id,
        group_instance_id=getattr(row, "instance_id", None),
        client_id=row.client_id,
        host=row.client_host.removeprefix("/"),  # Java's InetAddress.toString
        partitions=_partitions(row.assignment),
        rack=row.rack_id,
        topics=tuple(sorted(row.subscribed_topic_names)),
        topics_regex=getattr(row, "subscribed_topic_regex", None) or None,
        epoch=row.member_epoch,
        target=None if target is None else _partitions(target),
        type=_MEMBER_TYPES.get(getattr(row, "member_type", -1)),
    )


def _partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(row.topic_name, number) for row in assignment.topic_partitions for number in row.partitions
        )
    )


@dataclass(frozen=True, slots=True)
class StartOffset:
    """A share group's start offset in a partition: records before it are done. The field names are the JSON keys.

    start_offset: None if nothing has been read yet. lag: None if unknown, as before Kafka 4.2.
    """

    group: str
    topic: str
    partition: int
    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class StartOffsets(NamedTuple):
    """Start offsets, sorted, and the partitions that could not be read, with the reason."""

    offsets: tuple[StartOffset, ...]
    unread: dict[TopicPartition, KctlError]


def fetch_start_offsets(
    client: ClusterClient, groups: Collection[str], *, coordinators: Mapping[str, int] | None = None
) -> dict[str, StartOffsets | KctlError]:
    """Return the start offsets of share groups, by one DescribeShareGroupOffsets to each coordinator (Kafka 4.1).

    The value is a KctlError for a group that failed, also with NotSupported. coordinators: known coordinators, which
    saves the lookup.
    """
    try:
        return ask_coordinators(client, groups, partial(_ask_offsets, client), coordinators=coordinators)
    except NotSupported as exc:
        return dict.fromkeys(groups, exc)


def _ask_offsets(client: ClusterClient, by_node: ByCoordinator) -> dict[str, StartOffsets | KctlError]:
    request = request_class(__package__, _MESSAGES[_OFFSETS])
    group_class = request.DescribeShareGroupOffsetsRequestGroup

    def request_for(names: Sequence[str]) -> object:
        return request(groups=[group_class(group_id=name, topics=None) for name in names])

    return send_in_chunks(client, by_node, request_for, _start_offsets)


def _start_offsets(response: Any) -> dict[str, StartOffsets | KctlError]:
    results: dict[str, StartOffsets | KctlError] = {}
    for group in response.groups:
        if group.error_code:
            results[group.group_id] = failure(group.error_code, group.error_message, group.group_id)
            continue
        offsets: list[StartOffset] = []
        unread: dict[TopicPartition, KctlError] = {}
        for topic in group.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.topic_name, row.partition_index)
                if row.error_code:
                    unread[tp] = error_for(row.error_code, row.error_message, subject=f"start offset of {tp}")
                else:
                    values = (row.start_offset, row.leader_epoch, row.lag)
                    offsets.append(
                        StartOffset(group.group_id, *tp, *(value if value >= 0 else None for value in values))
                    )
        offsets.sort(key=lambda offset: (offset.topic, offset.partition))
        results[group.group_id] = StartOffsets(tuple(offsets), unread)
    return results
