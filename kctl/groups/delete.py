"""Delete groups, and offsets of groups: make a plan that shows what is lost, delete, and verify.

A group can be deleted if it has no members; an offset if no member subscribes to its topic. The brokers decide
(GroupCoordinatorService.deleteGroups, deleteOffsets). The offsets of a share group are start offsets, which are deleted
for whole topics, and only if the group has no members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from kctl.base.outcomes import ItemResult
from kctl.cluster.groups.coordinators import ByCoordinator, ask_coordinators, failure, send_in_chunks
from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import SHARE, Group
from kctl.cluster.groups.names import describe_existing, missing_groups
from kctl.cluster.offsets import Commit
from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed, Reason, Refused
from kctl.groups.group_offsets import fetch_commits
from kctl.groups.reset import is_active, refuse_active
from kctl.groups.share_offsets import Starts, delete_starts, read_starts
from kctl.groups.streams_topics import remaining_internal_topics
from kctl.groups.topic_choice import TopicChoice, matching
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.protocol.error_meanings import error_for
from kctl.protocol.partition_requests import numbers_by_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


Offsets: TypeAlias = Mapping[TopicPartition, "int | None"]
Outcome: TypeAlias = tuple[Mapping[TopicPartition, "KctlError | None"], "Offsets | KctlError"]


@dataclass(frozen=True, slots=True)
class DeletedOffset:
    """A committed offset to delete, or the start offset of a share group.

    result: "would delete", "deleted", "absent" or "failed"; if the whole group is deleted, the result of the group.
    committed_offset: None if there is none.
    """

    group: str
    topic: str
    partition: int
    result: ItemResult
    committed_offset: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DeletedGroup:
    """A group to delete, with its offsets. result: "would delete", "deleted", "absent" or "failed".

    internal_topics: of a streams group, the topics with its state, which are not deleted.
    """

    group: str
    result: ItemResult
    state: str | None
    type: str | None
    topic_count: int | None
    offsets: tuple[DeletedOffset, ...]
    error: str | None = None
    internal_topics: tuple[str, ...] = ()


def plan_delete(client: ClusterClient, names: Sequence[str], *, if_exists: bool = False) -> list[DeletedGroup]:
    """Return what would be deleted. Raises NotFound (unless `if_exists`), Refused if a group has members."""
    described = describe_groups(client, names)
    missing = [name for name in names if isinstance(described.failed_groups.get(name), NotFound)]
    if missing and not if_exists:
        raise missing_groups(client, missing)
    for name, error in described.failed_groups.items():
        if name not in missing:
            raise error
    refuse_active({name: group for name, group in described.groups.items() if is_active(group)})
    offsets = present_offsets(client, described.groups)
    plan = [_plan(name, described.groups.get(name), offsets.get(name, {})) for name in names]
    topics = {name: remaining_internal_topics(client, group) for name, group in described.groups.items()}
    return [replace(row, internal_topics=topics.get(row.group, ())) for row in plan]


def present_offsets(client: ClusterClient, groups: Mapping[str, Group]) -> dict[str, Offsets]:
    """Return the offsets that are deleted with the groups. Raises the error of a group that could not be read.

    Brokers that cannot describe the offsets of share groups (4.0) have none to show.
    """
    coordinators = {name: group.coordinator for name, group in groups.items()}
    share = [name for name, group in groups.items() if group.type == SHARE]
    offsets: dict[str, Offsets] = {}
    answers: dict[str, Mapping[TopicPartition, Commit] | KctlError] = {}
    answers |= fetch_commits(client, [name for name in groups if name not in share], coordinators=coordinators)
    for name, commits in answers.items():
        if isinstance(commits, KctlError):
            raise commits
        offsets[name] = {tp: commit.offset for tp, commit in commits.items()}
    for name, starts in read_starts(client, share, coordinators=coordinators).items():
        if isinstance(starts, KctlError) and not isinstance(starts, NotSupported):
            raise starts
        offsets[name] = {} if isinstance(starts, KctlError) else _offsets_of(starts)
    return offsets


def _offsets_of(starts: Starts) -> Offsets:
    return {tp: row.start_offset for tp, row in starts.items()}


def _plan(name: str, group: Group | None, present: Offsets) -> DeletedGroup:
    if group is None:
        return DeletedGroup(name, ItemResult.ABSENT, None, None, None, ())
    offsets = tuple(DeletedOffset(name, *tp, ItemResult.WOULD_DELETE, present[tp]) for tp in sorted(present))
    return DeletedGroup(
        name, ItemResult.WOULD_DELETE, group.state, group.type, len({tp.topic for tp in present}), offsets
    )


def delete_groups(client: ClusterClient, plan: Sequence[DeletedGroup]) -> tuple[list[DeletedGroup], list[KctlError]]:
    """Delete the rows of `plan` with "would delete", and verify. Return the rows with results, and the errors."""
    names = [row.group for row in plan if row.result is ItemResult.WOULD_DELETE]
    outcomes = ask_coordinators(client, names, partial(_delete, client))
    remaining = describe_groups(client, names)
    results = []
    errors: list[KctlError] = []
    for row in plan:
        if row.result is not ItemResult.WOULD_DELETE:
            results.append(row)
        elif isinstance(remaining.failed_groups.get(row.group), NotFound):
            results.append(_with_result(row, ItemResult.DELETED))
        else:
            error = _failure(outcomes.get(row.group), remaining.failed_groups.get(row.group))
            errors.append(error)
            results.append(_with_result(row, ItemResult.FAILED, error.message))
    return results, errors


def _failure(outcome: object, read_error: KctlError | None) -> KctlError:
    if isinstance(outcome, KctlError):
        return outcome
    if read_error is not None:
        return OperationFailed(f"deleted, but not verified: {read_error.message}")
    return OperationFailed("it still exists")


def _with_result(row: DeletedGroup, result: ItemResult, error: str | None = None) -> DeletedGroup:
    offsets = tuple(replace(offset, result=result) for offset in row.offsets)
    return replace(row, result=result, offsets=offsets, error=error)


def _delete(client: ClusterClient, by_node: ByCoordinator) -> dict[str, bool | KctlError]:
    from kafka.protocol.admin import DeleteGroupsRequest

    def parse(response: Any) -> dict[str, bool | KctlError]:
        return {
            row.group_id: failure(row.error_code, None, row.group_id)
            if row.error_code not in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}
            else True
            for row in response.results
        }

    return send_in_chunks(client, by_node, lambda names: DeleteGroupsRequest(groups_names=list(names)), parse)


@dataclass(frozen=True)
class OffsetDeletion:
    """A planned deletion of offsets of a group, sorted by topic and partition. share: it is a share group."""

    group: str
    rows: list[DeletedOffset]
    share: bool = False

    @property
    def todo(self) -> list[DeletedOffset]:
        return [row for row in self.rows if row.result is ItemResult.WOULD_DELETE]


def plan_delete_offsets(client: ClusterClient, group: str, choices: Sequence[TopicChoice]) -> OffsetDeletion:
    """Return the selected offsets of a group.

    Raises NotFound for an unknown group or topic; Refused for a share group with members, or for single partitions of
    its topics.
    """
    from kctl.cluster.topics import known_topics

    described = describe_existing(client, [group])[group]
    share = described.type == SHARE
    if share:
        refuse_active({group: described} if is_active(described) else {})
        _refuse_partitions(group, choices)
        starts = read_starts(client, [group], coordinators={group: described.coordinator})[group]
        if isinstance(starts, KctlError):
            raise starts
        present = _offsets_of(starts)
    else:
        present = present_offsets(client, {group: described})[group]
    selected = matching(present, choices)
    without = {choice.topic for choice in choices} - {tp.topic for tp in selected}
    if without:  # raise if a topic does not exist; otherwise nothing is left to do
        known_topics(client, sorted(without))
    requested = {TopicPartition(choice.topic, number) for choice in choices for number in choice.partitions or ()}
    rows = [DeletedOffset(group, *tp, ItemResult.WOULD_DELETE, present[tp]) for tp in selected]
    rows += [DeletedOffset(group, *tp, ItemResult.ABSENT, None) for tp in requested.difference(selected)]
    return OffsetDeletion(group, sorted(rows, key=lambda row: (row.topic, row.partition)), share)


def _refuse_partitions(group: str, choices: Sequence[TopicChoice]) -> None:
    partial_topics = [choice.topic for choice in choices if choice.partitions is not None]
    if partial_topics:
        raise Refused(
            f"{group!r} is a share group: brokers delete its offsets for a whole topic, not for partitions",
            hint=f"nothing was changed; use --topic {partial_topics[0]}",
            reason=Reason.WRONG_TYPE,
        )


def delete_offsets(client: ClusterClient, plan: OffsetDeletion) -> tuple[list[DeletedOffset], list[KctlError]]:
    """Delete the rows of `plan` with "would delete", and verify. Return the rows with results, and the errors."""
    todo = [TopicPartition(row.topic, row.partition) for row in plan.todo]
    outcomes, remaining = (_delete_starts if plan.share else _delete_commits)(client, plan.group, todo)
    results = [
        _read_back(row, outcomes.get(TopicPartition(row.topic, row.partition)), remaining, share=plan.share)
        if row.result is ItemResult.WOULD_DELETE
        else (row, None)
        for row in plan.rows
    ]
    return [row for row, _ in results], [error for _, error in results if error is not None]


def _delete_commits(client: ClusterClient, group: str, todo: Sequence[TopicPartition]) -> Outcome:
    """Delete committed offsets; return the error of each partition, and what is committed afterwards."""
    answer = ask_coordinators(client, [group], partial(_delete_offsets, client, todo))[group]
    remaining = fetch_commits(client, [group])[group]
    if not isinstance(remaining, KctlError):
        return _each(todo, answer), {tp: commit.offset for tp, commit in remaining.items()}
    return _each(todo, answer), remaining


def _delete_starts(client: ClusterClient, group: str, todo: Sequence[TopicPartition]) -> Outcome:
    """Delete start offsets; return the error of each partition, and the remaining start offsets."""
    by_topic = delete_starts(client, group, list(dict.fromkeys(tp.topic for tp in todo)))
    remaining = read_starts(client, [group])[group]
    errors = {tp: by_topic[tp.topic] for tp in todo}
    return errors, remaining if isinstance(remaining, KctlError) else _offsets_of(remaining)


def _each(
    todo: Sequence[TopicPartition], answer: Mapping[TopicPartition, KctlError | None] | KctlError
) -> Mapping[TopicPartition, KctlError | None]:
    return dict.fromkeys(todo, answer) if isinstance(answer, KctlError) else answer


def _read_back(
    row: DeletedOffset,
    error: KctlError | None,
    remaining: Offsets | KctlError,
    *,
    share: bool,
) -> tuple[DeletedOffset, KctlError | None]:
    if isinstance(remaining, KctlError):
        error = error or OperationFailed(f"deleted, but not verified: {remaining.message}")
        return replace(row, result=ItemResult.FAILED, error=error.message), error
    tp = TopicPartition(row.topic, row.partition)
    if tp not in remaining:
        return replace(row, result=ItemResult.DELETED), None
    if error is None and share:
        error = OperationFailed(f"the start offset is still {remaining[tp]}")
    error = error or OperationFailed(f"offset {remaining[tp]} is still committed")
    return replace(row, result=ItemResult.FAILED, error=error.message), error


def _delete_offsets(
    client: ClusterClient, todo: Sequence[TopicPartition], by_node: ByCoordinator
) -> dict[str, dict[TopicPartition, KctlError | None] | KctlError]:
    from kafka.protocol.consumer import OffsetDeleteRequest

    topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition_class = topic_class.OffsetDeleteRequestPartition
    ((node, (group,)),) = by_node.items()
    topics = [
        topic_class(name=name, partitions=[partition_class(partition_index=number) for number in numbers])
        for name, numbers in numbers_by_topic(todo).items()
    ]
    answer = client.send_each({node: OffsetDeleteRequest(group_id=group, topics=topics)})[node]
    if isinstance(answer, KctlError):
        return {group: answer}
    if answer.error_code:
        return {group: failure(answer.error_code, None, group)}
    return {
        group: {
            TopicPartition(topic.name, row.partition_index): _offset_error(row.error_code, group, topic.name)
            for topic in answer.topics
            for row in topic.partitions
        }
    }


def _offset_error(code: int, group: str, topic: str) -> KctlError | None:
    if code == ErrorCode.NONE:
        return None
    hint = "stop the group's consumers of the topic first" if code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC else None
    return error_for(code, None, subject=f"group {group!r}, topic {topic}", hint=hint)
