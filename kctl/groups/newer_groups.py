"""Groups of the new protocol (KIP-848) and share groups (KIP-932): described by requests of their own.

kafka-python has no such messages; their definitions lie beside this file, as Kafka's generated ones have them
(clients/src/main/resources/common/message), and its classes are made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError, NotSupported
from kctl.groups.coordinators import ByCoordinator, ask_coordinators, failure, send_in_chunks
from kctl.groups.model import CLASSIC, CONSUMER, SHARE, Group, Member
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

    from kctl.client import ClusterClient

DESCRIBED = frozenset({CONSUMER, SHARE})
_MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}


@lru_cache(maxsize=1)
def _messages() -> dict[str, tuple[type[ApiMessage], type[ApiMessage]]]:
    """Type of group → request and answer; the latter is found by its api key and only has to live."""
    from kafka.protocol.api_message import ApiMessage

    class ConsumerGroupDescribeRequest(ApiMessage, load_json=__package__): ...

    class ConsumerGroupDescribeResponse(ApiMessage, load_json=__package__): ...

    class ShareGroupDescribeRequest(ApiMessage, load_json=__package__): ...

    class ShareGroupDescribeResponse(ApiMessage, load_json=__package__): ...

    return {
        CONSUMER: (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
        SHARE: (ShareGroupDescribeRequest, ShareGroupDescribeResponse),
    }


def describe_newer(client: ClusterClient, groups: Mapping[str, Group]) -> dict[str, Group | KctlError]:
    """Groups that were listed with a type of DESCRIBED, with their members, by one request to each coordinator.

    What a broker cannot describe (share groups before 4.1) stays as it was listed.
    """
    found: dict[str, Group | KctlError] = {}
    for kind in sorted({group.type for group in groups.values() if group.type}):
        names = [name for name, group in groups.items() if group.type == kind]
        known = {name: groups[name].coordinator for name in names}
        try:
            found |= ask_coordinators(client, names, partial(_ask, client, kind, groups), known=known)
        except NotSupported:
            found |= {name: groups[name] for name in names}
    return found


def _ask(
    client: ClusterClient, kind: str, groups: Mapping[str, Group], by_node: ByCoordinator
) -> dict[str, Group | KctlError]:
    request, _ = _messages()[kind]

    def request_for(names: Sequence[str]) -> object:
        return request(group_ids=list(names), include_authorized_operations=False)

    def parse(response: Any) -> dict[str, Group | KctlError]:
        return {row.group_id: _group(row, groups[row.group_id]) for row in response.groups}

    return send_in_chunks(client, by_node, request_for, parse)


def _group(row: Any, listed: Group) -> Group | KctlError:
    if row.error_code:
        return failure(row.error_code, row.error_message, row.group_id)
    return replace(
        listed,
        state=row.group_state,
        protocol=row.assignor_name or None,
        members=tuple(map(_member, row.members)),
        epoch=row.group_epoch,
        assignment_epoch=row.assignment_epoch,
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
