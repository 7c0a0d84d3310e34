"""Moving a group's committed offsets: planned from what is there, committed, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kctl.base.grouping import grouped
from kctl.base.outcomes import ItemResult
from kctl.cluster.groups.coordinators import ask_coordinators
from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import SHARE, WITHOUT_MEMBERS, Group
from kctl.cluster.groups.names import missing_groups
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets, read_offsets_at
from kctl.cluster.offsets import Commit, fetch_commits_each
from kctl.cluster.rights import refuse_hidden_topics
from kctl.errors import KctlError, NotFound, OperationFailed, Refused
from kctl.groups.commit import OffsetToCommit, commit_offsets
from kctl.groups.open_commits import open_commits
from kctl.groups.reset_rules import Target, To, new_offset, read_again, skipped
from kctl.groups.topic_choice import TopicChoice, chosen_partitions, matching
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_NAMED = 5
_IN_TRANSACTION = "an open transaction has an offset for it, and would replace the new one"
_WAIT = "nothing was changed; `kctl transaction list --state Ongoing` shows what is open"

Given = Mapping[str, Mapping[TopicPartition, OffsetToCommit]]


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """What becomes of one partition of one group. The field names are the JSON keys and never change.

    result: «would reset», «reset», «unchanged» or «failed». old_offset: None without a commit. skipped, read_again:
    offsets that lie in the log, of those between old and new. note: why new_offset is not what was asked for. error:
    why there is none, or why it was not committed.
    """

    group: str
    topic: str
    partition: int
    result: ItemResult
    old_offset: int | None
    new_offset: int | None
    difference: int | None
    skipped: int | None
    read_again: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    metadata: str = ""
    note: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class ResetPlan:
    """rows: sorted by group, topic, partition. active: groups that have members, which no offset can be set for.
    coordinators: of the groups that are there, which saves looking for them."""

    rows: list[OffsetChange]
    active: dict[str, Group] = field(default_factory=dict)
    coordinators: dict[str, int] = field(default_factory=dict)

    @property
    def todo(self) -> list[OffsetChange]:
        return [row for row in self.rows if row.result is ItemResult.WOULD_RESET]

    def check(self) -> None:
        """Raise Refused while a group is active, or when a row has no new offset: nothing is done by halves."""
        refuse_active(self.active)
        failed = [row for row in self.rows if row.error]
        if failed:
            first = failed[0]
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            raise Refused(
                f"no new offset for {first.topic}-{first.partition} of group {first.group!r}: {first.error}{more}",
                hint="nothing was changed; --topic TOPIC:PARTITIONS leaves partitions out",
                details={"problems": [f"{row.group} {row.topic}-{row.partition}: {row.error}" for row in failed]},
            )


def refuse_active(active: Mapping[str, Group]) -> None:
    """Raise Refused, naming the members, when there are groups with some."""
    if not active:
        return
    told = [_members(group) for group in active.values()]
    raise Refused(
        "; ".join(told[:_NAMED]) + (f"; and {len(told) - _NAMED} more groups" if len(told) > _NAMED else ""),
        hint="nothing was changed; stop its consumers first",
        details={
            "groups": [{"group": g.group, "state": g.state, "members": list(g.members or ())} for g in active.values()]
        },
    )


def _members(group: Group) -> str:
    members = group.members
    if not members:
        return f"group {group.group!r} is {group.state}"
    named = ", ".join(f"{m.client_id} at {m.host}" for m in members[:_NAMED])
    more = f" and {len(members) - _NAMED} more" if len(members) > _NAMED else ""
    return f"group {group.group!r} is {group.state}, with members: {named}{more}"


def is_active(group: Group) -> bool:
    """Whether the group has members, by its state: what commits for a group are refused for."""
    return group.state not in WITHOUT_MEMBERS


def plan_reset(
    client: ClusterClient,
    groups: Sequence[str],
    target: Target,
    choices: Sequence[TopicChoice] = (),
    *,
    given: Given | None = None,
    create: bool = False,
) -> ResetPlan:
    """The new offsets of `groups`: of the partitions chosen, else of those given, else of all that have a commit.

    given: the offsets of To.GIVEN by group. create: a group need not be there: its first commit makes it.
    Raises NotFound for groups, topics and partitions that are not there, Refused for share groups and where there is
    nothing to reset, NotAuthorized where all commits are meant and brokers do not tell all.
    """
    found = _described(client, groups, create=create)
    if given is None and not choices:
        refuse_hidden_topics(client, hint="nothing was changed; --topic chooses topics that this user may describe")
    committed = _committed(client, found)
    fixed = chosen_partitions(client, choices) if choices and given is None else None
    partitions: dict[str, list[TopicPartition]] = {}
    for group in groups:
        if fixed is not None:
            partitions[group] = fixed
        else:
            partitions[group] = matching(committed[group] if given is None else given.get(group, {}), choices)
        if not partitions[group]:
            refuse_active({name: each for name, each in found.items() if is_active(each)})
            raise Refused(f"there is nothing to reset for group {group!r}", hint=_nothing(choices, given))
    logs = _Logs(client, {tp for tps in partitions.values() for tp in tps}, target)
    known = {name: group.coordinator for name, group in found.items()}
    unsettled = open_commits(client, partitions, known=known)
    rows = [
        _settled(
            _row(group, tp, target, committed[group].get(tp), logs, given[group][tp] if given is not None else None),
            tp in unsettled[group],
        )
        for group in sorted(partitions)
        for tp in sorted(partitions[group])
    ]
    active = {name: group for name, group in found.items() if is_active(group)}
    return ResetPlan(rows, active, known)


def _settled(row: OffsetChange, in_transaction: bool) -> OffsetChange:
    """The row, or why it cannot be: what a transaction commits later would take its place without a word."""
    if not in_transaction or row.result is not ItemResult.WOULD_RESET:
        return row
    return replace(row, result=ItemResult.FAILED, error=_IN_TRANSACTION)


def _nothing(choices: Sequence[TopicChoice], given: Given | None) -> str:
    if given is not None:
        return "no offset that was given is of a topic that was chosen" if choices else "no offset was given for it"
    return "it has committed nothing; --topic chooses topics"


def _described(client: ClusterClient, groups: Sequence[str], *, create: bool) -> dict[str, Group]:
    found = describe_groups(client, groups)
    missing = [name for name in groups if isinstance(found.failed_groups.get(name), NotFound)]
    if missing and not create:
        unknown = missing_groups(client, missing)
        raise NotFound(unknown.message, hint=f"{unknown.hint}\n--create makes a group")
    for name, error in found.failed_groups.items():
        if name not in missing:
            raise error
    share = [name for name, group in found.groups.items() if group.type == SHARE]
    if share:
        raise Refused(f"{share[0]!r} is a share group, which has no committed offsets", hint="nothing was changed")
    return found.groups


def _committed(client: ClusterClient, groups: Mapping[str, Group]) -> dict[str, dict[TopicPartition, Commit]]:
    """What each group has committed; a group that is not there yet has nothing."""
    known = {name: group.coordinator for name, group in groups.items()}
    committed: dict[str, dict[TopicPartition, Commit]] = _Empty()
    for name, answer in fetch_commits(client, list(groups), known=known).items():
        if isinstance(answer, KctlError):
            raise answer
        committed[name] = answer
    return committed


class _Empty(dict[str, dict[TopicPartition, Commit]]):
    def __missing__(self, key: str) -> dict[TopicPartition, Commit]:
        return {}


class _Logs:
    """The logs of the partitions of a plan, and the offsets of a time in them."""

    def __init__(self, client: ClusterClient, partitions: set[TopicPartition], target: Target) -> None:
        self.ends, gone, unread = read_log_offsets(client, partitions)
        self.at: dict[TopicPartition, int] = {}
        if target.to is To.TIME:
            self.at, gone_since, not_found = read_offsets_at(client, list(self.ends), target.value)
            gone |= gone_since
            unread |= not_found
        self.errors = dict.fromkeys(gone, "the topic or partition does not exist")
        self.errors |= {tp: error.message for tp, error in unread.items()}


def _row(
    group: str, tp: TopicPartition, target: Target, commit: Commit | None, logs: _Logs, given: OffsetToCommit | None
) -> OffsetChange:
    old = commit.offset if commit else None
    log = logs.ends.get(tp)
    error = logs.errors.get(tp)
    if log is None or error is not None:
        return _hopeless(group, tp, old, log, error or "nothing was answered about its log")
    try:
        new = new_offset(target, old, log, at_time=logs.at.get(tp), given=given.offset if given else None)
    except Refused as exc:
        return _hopeless(group, tp, old, log, exc.message)
    # A file without metadata says nothing about it.
    other_metadata = (
        given is not None and bool(given.metadata) and commit is not None and commit.metadata != given.metadata
    )
    same = new.offset == old
    return OffsetChange(
        group=group,
        topic=tp.topic,
        partition=tp.partition,
        result=ItemResult.UNCHANGED if same and not other_metadata else ItemResult.WOULD_RESET,
        old_offset=old,
        new_offset=new.offset,
        difference=None if old is None else new.offset - old,
        skipped=skipped(old, new.offset, log),
        read_again=read_again(old, new.offset, log),
        log_start_offset=log.start,
        log_end_offset=log.end,
        metadata=given.metadata if given else "",
        note=new.note or ("only the metadata differs" if same and other_metadata else None),
    )


def _hopeless(group: str, tp: TopicPartition, old: int | None, log: LogOffsets | None, error: str) -> OffsetChange:
    start, end = (log.start, log.end) if log else (None, None)
    return OffsetChange(group, *tp, ItemResult.FAILED, old, None, None, None, None, start, end, error=error)


def apply_reset(client: ClusterClient, plan: ResetPlan) -> tuple[list[OffsetChange], list[KctlError]]:
    """Commit what `plan` says «would reset», read it back, and say what was seen; and the error of each failed row.

    Raises Refused as `ResetPlan.check` does, and when somebody has committed since the plan was made.
    """
    plan.check()
    _refuse_stale(client, plan)
    by_group = grouped(plan.todo, lambda row: row.group)
    offsets = {
        group: {_tp(row): OffsetToCommit(row.new_offset or 0, row.metadata) for row in rows}
        for group, rows in by_group.items()
    }
    outcomes = commit_offsets(client, offsets, known=plan.coordinators)
    seen = fetch_commits(client, list(by_group), known=plan.coordinators)
    done = [
        _read_back(row, outcomes[row.group].get(_tp(row)), seen[row.group])
        if row.result is ItemResult.WOULD_RESET
        else (row, None)
        for row in plan.rows
    ]
    return [row for row, _ in done], [error for _, error in done if error is not None]


def _refuse_stale(client: ClusterClient, plan: ResetPlan) -> None:
    """A consumer may have come and gone while the question waited: the plan was of what it had committed before."""
    by_group = {group: [_tp(row) for row in rows] for group, rows in grouped(plan.todo, lambda row: row.group).items()}
    now = fetch_commits(client, list(by_group), known=plan.coordinators)
    unsettled = open_commits(client, by_group, known=plan.coordinators)
    for row in plan.todo:
        if _tp(row) in unsettled[row.group]:
            raise Refused(f"{row.topic}-{row.partition} of group {row.group!r}: {_IN_TRANSACTION}", hint=_WAIT)
        seen = now[row.group]
        if isinstance(seen, KctlError):
            raise seen
        there = seen.get(_tp(row))
        if (there.offset if there else None) != row.old_offset:
            is_now = "has none" if there is None else f"is {there.offset}"
            raise Refused(
                f"group {row.group!r} has committed since the plan was made: {row.topic}-{row.partition} was at "
                f"{'no commit' if row.old_offset is None else row.old_offset} and {is_now} now",
                hint="nothing was changed; look at the plan again",
            )


def _tp(row: OffsetChange) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def _read_back(
    row: OffsetChange, error: KctlError | None, seen: Mapping[TopicPartition, Commit] | KctlError
) -> tuple[OffsetChange, KctlError | None]:
    """The row as it was found; and, where that failed, why."""
    if isinstance(seen, KctlError):
        error = error or OperationFailed(f"committed, but it could not be read back: {seen.message}")
        return replace(row, result=ItemResult.FAILED, error=error.message), error
    there = seen.get(_tp(row))
    if there is not None and (there.offset, there.metadata) == (row.new_offset, row.metadata):
        return replace(row, result=ItemResult.RESET), None
    now = "nothing is committed" if there is None else f"{there.offset} {there.metadata}".rstrip() + " is committed"
    error = error or OperationFailed(f"{now}, as read back")
    return replace(row, result=ItemResult.FAILED, error=error.message), error


def fetch_commits(
    client: ClusterClient, groups: Sequence[str], *, known: Mapping[str, int] | None = None
) -> dict[str, dict[TopicPartition, Commit] | KctlError]:
    """All that each group has committed. known: coordinators that were seen already."""
    return ask_coordinators(client, groups, lambda by_node: fetch_commits_each(client, by_node), known=known)
