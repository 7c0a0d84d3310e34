"""Making members leave a group: LeaveGroup in their name (KIP-345), with a reason where brokers take one (KIP-800)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.groups.coordinators import ByCoordinator, ask_coordinators, failure
from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import SHARE, STREAMS
from kctl.cluster.groups.names import describe_existing
from kctl.errors import KctlError, NotFound, OperationFailed, Refused
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.cluster.groups.model import Member
    from kctl.protocol.client import ClusterClient

_REASON = "removed by an operator with kctl"


@dataclass(frozen=True, slots=True)
class RemovedMember:
    """What becomes of a member. result: «would remove», «removed», «joined again» or «failed»."""

    group: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    partition_count: int | None
    result: ItemResult
    error: str | None = None


def plan_remove(
    client: ClusterClient,
    group: str,
    *,
    member_ids: Collection[str] = (),
    instance_ids: Collection[str] = (),
    everyone: bool = False,
) -> list[RemovedMember]:
    """The members that are meant. Raises NotFound for a group or a member that is not there, Refused for groups whose
    members can only leave by themselves."""
    found = describe_existing(client, [group])[group]
    if found.type in {SHARE, STREAMS}:
        raise Refused(f"{group!r} is a {found.type} group: brokers remove no members of it", hint="stop its consumers")
    members = found.members or ()
    missing = sorted(set(member_ids) - {member.member_id for member in members})
    missing += sorted(set(instance_ids) - {member.group_instance_id for member in members if member.group_instance_id})
    if missing:
        raise NotFound(f"group {group!r} has no member {missing[0]!r}", hint=f"`kctl group members {group}` shows them")
    return [
        _row(group, member)
        for member in members
        if everyone or member.member_id in member_ids or member.group_instance_id in instance_ids
    ]


def _row(group: str, member: Member) -> RemovedMember:
    return RemovedMember(
        group=group,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.host,
        partition_count=None if member.partitions is None else len(member.partitions),
        result=ItemResult.WOULD_REMOVE,
    )


def remove_members(
    client: ClusterClient, group: str, plan: Sequence[RemovedMember]
) -> tuple[list[RemovedMember], list[KctlError]]:
    """Make them leave, look whether they are gone, and say what was seen; and the error of each row that failed.

    A client that runs joins again at once: with another member id, so that who was removed is gone; with the protocol
    of KIP-848 under the same one.
    """
    answer = ask_coordinators(client, [group], partial(_leave, client, plan))[group]
    outcomes = dict.fromkeys((row.member_id for row in plan), answer) if isinstance(answer, KctlError) else answer
    found = describe_groups(client, [group])
    unseen = found.failed_groups.get(group)
    members = found.groups[group].members or () if group in found.groups else ()
    there = {member.member_id for member in members}
    # A group without members and commits is gone with its last member.
    lost = None if isinstance(unseen, NotFound) else unseen
    done = [_read_back(row, outcomes.get(row.member_id), there, lost) for row in plan]
    return [row for row, _ in done], [error for _, error in done if error is not None]


def _read_back(
    row: RemovedMember, error: KctlError | None, there: Collection[str], unseen: KctlError | None
) -> tuple[RemovedMember, KctlError | None]:
    if unseen is not None:
        error = error or OperationFailed(f"removed, but it could not be read back: {unseen.message}")
    elif isinstance(error, _Restarted):
        return replace(row, result=ItemResult.JOINED_AGAIN), None
    elif row.member_id not in there:
        return replace(row, result=ItemResult.REMOVED), None
    elif error is None:
        return replace(row, result=ItemResult.JOINED_AGAIN), None
    return replace(row, result=ItemResult.FAILED, error=error.message), error


class _Restarted(Refused):
    """Another member has the instance id by now: who was shown is gone, and its successor runs."""


def _leave(
    client: ClusterClient, plan: Sequence[RemovedMember], by_node: ByCoordinator
) -> dict[str, dict[str, KctlError | None] | KctlError]:
    from kafka.protocol.consumer import LeaveGroupRequest

    ((node, (group,)),) = by_node.items()
    identity = LeaveGroupRequest.MemberIdentity
    # Both ids: a static member that was restarted meanwhile has another member id, and is not the one that was shown.
    leaving = [
        identity(member_id=row.member_id, group_instance_id=row.group_instance_id, reason=_REASON) for row in plan
    ]
    answer = client.send_each({node: LeaveGroupRequest(group_id=group, members=leaving, min_version=3)})[node]
    if isinstance(answer, KctlError):
        return {group: answer}
    if answer.error_code:
        return {group: failure(answer.error_code, None, group)}
    by_instance = {row.group_instance_id: row.member_id for row in plan if row.group_instance_id}
    return {
        group: {
            by_instance.get(row.group_instance_id, row.member_id): _leave_error(row.error_code, group)
            for row in answer.members
        }
    }


def _leave_error(code: int, group: str) -> KctlError | None:
    if code == ErrorCode.FENCED_INSTANCE_ID:
        return _Restarted(f"a member of group {group} has the same instance id")
    return failure(code, None, group) if code else None
