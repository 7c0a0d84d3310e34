"""Which groups there are, their state, and their members.

A group's state for people: Stable, PreparingRebalance, CompletingRebalance, Empty (no members), as brokers say.
Brokers answer «Dead» (before 4.0) or «group id not found» about a group that does not exist, but also about one
whose kind the request does not know (KIP-848 «consumer» groups, share groups): ListGroups decides, and such groups have
requests of their own.
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

CLASSIC_CONSUMER = "consumer"  # the protocol type of consumers, and its assignment format


def list_groups(
    client: ClusterClient, *, brokers: Collection[int] | None = None, pauses_s: Sequence[float] = PAUSES_S
) -> Groups:
    """Every group on every broker, by one ListGroups each; without members. Brokers before 2.6 give no state.

    brokers: None for all; then raises the first one's error when none tells. One that does not is among `unlisted`,
    and so is the offsets topic when partitions of it have no leader, as far as this user may describe it. pauses_s:
    before each new attempt at brokers that are still loading their groups.
    """
    from kafka.protocol.admin import ListGroupsRequest

    unlisted: dict[str, KctlError] = {}
    if brokers is None:
        state = client.metadata([OFFSETS_TOPIC], keep_errors=True)
        nodes, unlisted = sorted(state.brokers), _without_coordinator(state)
    else:
        nodes = sorted(brokers)
    asked = set(nodes)
    found: list[Group] = []
    failed: dict[int, KctlError] = {}
    for pause in (*pauses_s, None):
        for node, response in client.send_each({node: ListGroupsRequest() for node in nodes}).items():
            failed.pop(node, None)
            error = _listing_error(node, response)
            if error:
                failed[node] = error
            else:
                found += (
                    Group(g.group_id, g.group_state or "", g.protocol_type or "", g.group_type or None, node)
                    for g in response.groups
                )
        nodes = [node for node, error in failed.items() if isinstance(error, CoordinatorMoved)]
        if not nodes or pause is None:
            break
        time.sleep(pause)  # a coordinator that has just moved there is still reading its log
    if brokers is None and failed and failed.keys() == asked:
        raise failed[min(failed)]
    unlisted |= {f"broker {node}": error for node, error in failed.items()}
    return Groups({g.group: g for g in sorted(found, key=lambda g: g.group)}, unlisted, {})


def _without_coordinator(state: ClusterState) -> dict[str, KctlError]:
    topic = state.topics.get(OFFSETS_TOPIC)
    lost = [str(each.partition) for each in topic.partitions if each.leader < 0] if topic else []
    if not lost:
        return {}
    error = ConnectionFailed(
        f"no leader of {OFFSETS_TOPIC}, partition {', '.join(lost)}: the groups in it have no coordinator",
        hint=f"start the brokers that have it: `kctl topic describe {OFFSETS_TOPIC}`",
    )
    return {OFFSETS_TOPIC: error}


def _listing_error(node: int, response: Any) -> KctlError | None:
    from kctl.protocol.client import error_for

    if isinstance(response, KctlError):
        return response
    if response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return CoordinatorMoved(f"broker {node} is still loading its groups")
    if response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE or not response.error_code:
        return None  # without a coordinator: the broker coordinates nothing yet
    return error_for(response.error_code, None, subject=f"groups of broker {node}")


def describe_groups(client: ClusterClient, groups: Iterable[str], *, known: Groups | None = None) -> Groups:
    """The groups with their members, by one DescribeGroups to each coordinator.

    known: from list_groups, which saves looking for coordinators. A group that does not exist is a NotFound
    among failed_groups.
    """
    names = list(dict.fromkeys(groups))
    listed = known.groups if known else {}
    newer = {name: listed[name] for name in names if name in listed and listed[name].type in DESCRIBED}
    answers = ask_coordinators(
        client,
        [name for name in names if name not in newer],
        lambda by_node: _describe(client, by_node),
        known={name: listed[name].coordinator for name in names if name in listed},
    )
    vanished = [name for name, answer in answers.items() if isinstance(answer, Group) and answer.state == "Dead"]
    answers |= _listed(client, vanished, answers)
    newer |= {name: each for name, each in answers.items() if isinstance(each, Group) and each.type in DESCRIBED}
    answers |= describe_newer(client, newer)
    described: dict[str, Group] = {}
    failed: dict[str, KctlError] = {}
    for name in names:
        answer = answers[name]
        if isinstance(answer, KctlError):
            failed[name] = answer
        else:
            other = listed.get(name)
            described[name] = replace(answer, type=answer.type or (other.type if other else None))
    if any(isinstance(error, CoordinatorMoved) for error in failed.values()) and _no_groups_yet(client):
        failed = {name: _unknown(name) if isinstance(e, CoordinatorMoved) else e for name, e in failed.items()}
    return Groups(described, dict(known.unlisted) if known else {}, failed)


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


def _listed(
    client: ClusterClient, vanished: Sequence[str], answers: Mapping[str, Group | KctlError]
) -> dict[str, Group | KctlError]:
    """What ListGroups says of groups that DescribeGroups calls dead: there after all, without members, or unknown."""
    if not vanished:
        return {}
    nodes = {answer.coordinator for name in vanished if isinstance(answer := answers[name], Group)}
    listing = list_groups(client, brokers=nodes)
    truth: dict[str, Group | KctlError] = {}
    for name in vanished:
        answer = answers[name]
        assert isinstance(answer, Group)
        unseen = listing.unlisted.get(f"broker {answer.coordinator}")
        truth[name] = listing.groups.get(name) or unseen or _unknown(name)
    return truth


def _unknown(name: str) -> NotFound:
    return NotFound(f"group {name!r} does not exist", hint="`kctl group list` shows the groups")


def _no_groups_yet(client: ClusterClient) -> bool:
    """A cluster where no group ever was has no offsets topic, and therefore no coordinator to ask. False when it cannot
    be told: users may not describe that topic as a rule."""
    try:
        return OFFSETS_TOPIC not in client.metadata([OFFSETS_TOPIC]).topics
    except KctlError:
        return False
