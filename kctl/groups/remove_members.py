"""Remove members from a group: LeaveGroup on their behalf (KIP-345), with a reason if supported (KIP-800)."""

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
from kctl.errors import KctlError, NotFound, OperationFailed, Reason, Refused
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.cluster.groups.model import Member
    from kctl.protocol.client import ClusterClient

_REASON = "removed by an operator with kctl"


@dataclass(frozen=True, slots=True)
class RemovedMember:
    """A member to remove. result: "would remove", "removed", "joined again" or "failed"."""

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
    """Return the selected members.

    Raises NotFound for an unknown group or member, Refused for groups whose members cannot be removed.
    """
    described = describe_existing(client, [group])[group]
    if described.type in {SHARE, STREAMS}:
        raise Refused(
            f"{group!r} is a {described.type} group: its members cannot be removed",
            hint="stop its consumers instead",
            reason=Reason.WRONG_TYPE,
        )
    members = described.members or ()
    missing = sorted(set(member_ids) - {member.member_id for member in members})
    missing += sorted(set(instance_ids) - {member.group_instance_id for member in members if member.group_instance_id})
    if missing:
        hint = f"run `kctl group members {group}` to see the members"
        raise NotFound(f"group {group!r} has no member {missing[0]!r}", hint=hint)
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
    """Remove the members of `plan`, and verify. Return the rows with results, and the error of each failed row.

    A running client rejoins at once: with another member id, or with KIP-848 under the same id.
    """
    answer = ask_coordinators(client, [group], partial(_leave, client, plan))[group]
    outcomes = dict.fromkeys((row.member_id for row in plan), answer) if isinstance(answer, KctlError) else answer
    described = describe_groups(client, [group])
    read_error = described.failed_groups.get(group)
    members = described.groups[group].members or () if group in described.groups else ()
    present = {member.member_id for member in members}
    # A group without commits disappears with its last member.
    if isinstance(read_error, NotFound):
        read_error = None
    results = [_read_back(row, outcomes.get(row.member_id), present, read_error) for row in plan]
    return [row for row, _ in results], [error for _, error in results if error is not None]


def _read_back(
    row: RemovedMember, error: KctlError | None, present: Collection[str], read_error: KctlError | None
) -> tuple[RemovedMember, KctlError | None]:
    if read_error is not None:
        error = error or OperationFailed(f"removed, but not verified: {read_error.message}")
    elif isinstance(error, _Restarted):
        return replace(row, result=ItemResult.JOINED_AGAIN), None
    elif row.member_id not in present:
        return replace(row, result=ItemResult.REMOVED), None
    elif error is None:
        return replace(row, result=ItemResult.JOINED_AGAIN), None
    return replace(row, result=ItemResult.FAILED, error=error.message), error


class _Restarted(Refused):
    """Another member has the instance id now: the planned member has left, and its successor runs."""


def _leave(
    client: ClusterClient, plan: Sequence[RemovedMember], by_node: ByCoordinator
) -> dict[str, dict[str, KctlError | None] | KctlError]:
    from kafka.protocol.consumer import LeaveGroupRequest

    ((node, (group,)),) = by_node.items()
    identity = LeaveGroupRequest.MemberIdentity
    # Send both ids: a static member that has restarted has another member id, and must not be removed.
    members = [
        identity(member_id=row.member_id, group_instance_id=row.group_instance_id, reason=_REASON) for row in plan
    ]
    answer = client.send_each({node: LeaveGroupRequest(group_id=group, members=members, min_version=3)})[node]
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
