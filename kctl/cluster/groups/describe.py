"""Groups, their states and their members.

States: Stable, PreparingRebalance, CompletingRebalance, Empty (no members), as reported by brokers. DescribeGroups
returns "Dead" (before 4.0) or "group id not found" for a group that does not exist, but also for a group of a newer
type (KIP-848 "consumer" groups, share groups): ListGroups distinguishes them, and such groups have requests of their
own.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.cluster.groups.assignment import decode_assignment, decode_subscription
from kctl.cluster.groups.coordinators import (
    OFFSETS_TOPIC,
    PAUSES_S,
    ByCoordinator,
    CoordinatorMoved,
    ask_coordinators,
    failure,
    send_in_chunks,
)
from kctl.cluster.groups.model import CLASSIC, Group, Groups, Member
from kctl.cluster.groups.newer_groups import DESCRIBED, describe_newer
from kctl.errors import ConnectionFailed, KctlError, NotFound
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

CLASSIC_CONSUMER = "consumer"  # protocol type of consumers


def list_groups(
    client: ClusterClient, *, brokers: Collection[int] | None = None, pauses_s: Sequence[float] = PAUSES_S
) -> Groups:
    """Return every group on every broker, without members, by one ListGroups per broker. No states before Kafka 2.6.

    brokers: the brokers to query (default: all; if none of them responds, raises the first broker's error). `unlisted`
    has brokers that fail, and the offsets topic if some of its partitions have no leader, as far as this user may
    describe it. pauses_s: the pause before each retry of brokers that are still loading their groups.
    """
    from kafka.protocol.admin import ListGroupsRequest

    unlisted: dict[str, KctlError] = {}
    if brokers is None:
        state = client.metadata([OFFSETS_TOPIC], keep_errors=True)
        nodes, unlisted = sorted(state.brokers), _without_coordinator(state)
    else:
        nodes = sorted(brokers)
    requested = set(nodes)
    groups: list[Group] = []
    failed: dict[int, KctlError] = {}
    for pause in (*pauses_s, None):
        for node, response in client.send_each({node: ListGroupsRequest() for node in nodes}).items():
            failed.pop(node, None)
            error = _listing_error(node, response)
            if error:
                failed[node] = error
            else:
                groups += (
                    Group(g.group_id, g.group_state or "", g.protocol_type or "", g.group_type or None, node)
                    for g in response.groups
                )
        nodes = [node for node, error in failed.items() if isinstance(error, CoordinatorMoved)]
        if not nodes or pause is None:
            break
        time.sleep(pause)  # a new coordinator is still reading its log
    if brokers is None and failed and failed.keys() == requested:
        raise failed[min(failed)]
    unlisted |= {f"broker {node}": error for node, error in failed.items()}
    return Groups({g.group: g for g in sorted(groups, key=lambda g: g.group)}, unlisted, {})


def _without_coordinator(state: ClusterState) -> dict[str, KctlError]:
    topic = state.topics.get(OFFSETS_TOPIC)
    leaderless = [str(each.partition) for each in topic.partitions if each.leader < 0] if topic else []
    if not leaderless:
        return {}
    error = ConnectionFailed(
        f"no leader of {OFFSETS_TOPIC}, partition {', '.join(leaderless)}: groups there have no coordinator",
        hint=f"run `kctl topic describe {OFFSETS_TOPIC}`, and start the brokers of its replicas",
    )
    return {OFFSETS_TOPIC: error}


def _listing_error(node: int, response: Any) -> KctlError | None:
    from kctl.protocol.client import error_for

    if isinstance(response, KctlError):
        return response
    if response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return CoordinatorMoved(f"broker {node} is still loading its groups")
    if response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE or not response.error_code:
        return None  # the broker coordinates no groups yet
    return error_for(response.error_code, None, subject=f"groups of broker {node}")


def describe_groups(client: ClusterClient, groups: Iterable[str], *, listing: Groups | None = None) -> Groups:
    """Return the groups with their members, by DescribeGroups requests, in chunks, to each coordinator.

    listing: from list_groups, which saves the lookup of coordinators. A group that does not exist is a NotFound in
    failed_groups.
    """
    names = list(dict.fromkeys(groups))
    listed = listing.groups if listing else {}
    newer = {name: listed[name] for name in names if name in listed and listed[name].type in DESCRIBED}
    answers = ask_coordinators(
        client,
        [name for name in names if name not in newer],
        lambda by_node: _describe(client, by_node),
        coordinators={name: listed[name].coordinator for name in names if name in listed},
    )
    dead = [name for name, answer in answers.items() if isinstance(answer, Group) and answer.state == "Dead"]
    answers |= _check_dead(client, dead, answers)
    newer |= {name: each for name, each in answers.items() if isinstance(each, Group) and each.type in DESCRIBED}
    answers |= describe_newer(client, newer)
    described: dict[str, Group] = {}
    failed: dict[str, KctlError] = {}
    for name in names:
        answer = answers[name]
        if isinstance(answer, KctlError):
            failed[name] = answer
        else:
            row = listed.get(name)
            described[name] = replace(answer, type=answer.type or (row.type if row else None))
    if any(isinstance(error, CoordinatorMoved) for error in failed.values()) and _no_groups_yet(client):
        failed = {name: _no_such_group(name) if isinstance(e, CoordinatorMoved) else e for name, e in failed.items()}
    return Groups(described, dict(listing.unlisted) if listing else {}, failed)


def _describe(client: ClusterClient, by_node: ByCoordinator) -> dict[str, Group | KctlError]:
    coordinator = {group: node for node, groups in by_node.items() for group in groups}
    return send_in_chunks(client, by_node, _describe_request, lambda response: _described(response, coordinator))


def _describe_request(groups: Sequence[str]) -> object:
    from kafka.protocol.admin import DescribeGroupsRequest

    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)


def _described(response: Any, coordinator: Mapping[str, int]) -> dict[str, Group | KctlError]:
    rows: dict[str, Group | KctlError] = {}
    for row in response.groups:
        if row.error_code and row.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            rows[row.group_id] = failure(row.error_code, row.error_message, row.group_id)
            continue
        rows[row.group_id] = Group(
            group=row.group_id,
            state="Dead" if row.error_code else row.group_state,
            protocol_type=row.protocol_type,
            type=None if row.error_code or row.group_state == "Dead" else CLASSIC,
            coordinator=coordinator[row.group_id],
            protocol=row.protocol_data or None,
            members=tuple(_member(m, row.protocol_type) for m in row.members),
        )
    return rows


def _member(row: Any, protocol_type: str) -> Member:
    consumer = protocol_type == CLASSIC_CONSUMER
    subscription = decode_subscription(row.member_metadata) if consumer else None
    return Member(
        member_id=row.member_id,
        group_instance_id=row.group_instance_id,
        client_id=row.client_id,
        host=row.client_host.removeprefix("/"),  # Java's InetAddress.toString
        partitions=decode_assignment(row.member_assignment) if consumer else None,
        rack=subscription.rack if subscription else None,
        topics=subscription.topics if subscription else None,
        owned=subscription.owned if subscription else None,
    )


def _check_dead(
    client: ClusterClient, dead: Sequence[str], answers: Mapping[str, Group | KctlError]
) -> dict[str, Group | KctlError]:
    """Return what ListGroups reports for groups that DescribeGroups reports as dead.

    A group may exist without members, be missing, or be unknown because its broker failed.
    """
    if not dead:
        return {}
    nodes = {answer.coordinator for name in dead if isinstance(answer := answers[name], Group)}
    listing = list_groups(client, brokers=nodes)
    results: dict[str, Group | KctlError] = {}
    for name in dead:
        answer = answers[name]
        assert isinstance(answer, Group)
        unlisted = listing.unlisted.get(f"broker {answer.coordinator}")
        results[name] = listing.groups.get(name) or unlisted or _no_such_group(name)
    return results


def _no_such_group(name: str) -> NotFound:
    return NotFound(f"group {name!r} does not exist", hint="run `kctl group list` to see the groups")


def _no_groups_yet(client: ClusterClient) -> bool:
    """Return True if the cluster has never had a group, so it has no offsets topic and no coordinators.

    False if unknown: users usually may not describe that topic.
    """
    try:
        return OFFSETS_TOPIC not in client.metadata([OFFSETS_TOPIC]).topics
    except KctlError:
        return False
