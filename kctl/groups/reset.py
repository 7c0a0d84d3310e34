"""Reset a group's offsets: plan from the current offsets, commit, and verify.

The offsets are committed offsets, or the start offsets of a share group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from kctl.base.grouping import grouped
from kctl.base.outcomes import ItemResult
from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import SHARE, WITHOUT_MEMBERS, Group
from kctl.cluster.groups.names import missing_groups
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets, read_offsets_at
from kctl.cluster.offsets import Commit
from kctl.cluster.rights import refuse_hidden_topics
from kctl.errors import KctlError, NotFound, OperationFailed, Reason, Refused
from kctl.groups.commit import OffsetToCommit
from kctl.groups.group_offsets import read_current, read_offsets, unsettled_offsets, write_offsets
from kctl.groups.reset_rules import ResetTarget, To, new_offset, read_again, skipped
from kctl.groups.streams_topics import remaining_internal_topics
from kctl.groups.topic_choice import TopicChoice, chosen_partitions, matching
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_NAMED = 5
_IN_TRANSACTION = "an open transaction would replace the new offset when it commits"
_WAIT = "nothing was changed; run `kctl transaction list --state Ongoing` to see open transactions"

ExplicitOffsets = Mapping[str, Mapping[TopicPartition, OffsetToCommit]]


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """The change to a group's committed offset for one partition. The field names are the JSON keys and never change.

    result: "would reset", "reset", "unchanged" or "failed". old_offset: None without a commit. skipped, read_again:
    number of offsets in the log between old and new. note: why new_offset is not the requested offset. error: why there
    is no new offset, or why it was not committed.
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
    """A planned reset.

    rows: sorted by group, topic, partition. active: groups with members, whose offsets cannot be set. coordinators: of
    existing groups, which saves the lookup. share: the share groups, also those to create. internal_topics: of streams
    groups, the topics that keep state from before the reset.
    """

    rows: list[OffsetChange]
    active: dict[str, Group] = field(default_factory=dict)
    coordinators: dict[str, int] = field(default_factory=dict)
    share: frozenset[str] = frozenset()
    internal_topics: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def todo(self) -> list[OffsetChange]:
        return [row for row in self.rows if row.result is ItemResult.WOULD_RESET]

    def check(self) -> None:
        """Raise Refused if a group is active or a row has no new offset: a reset is never partial."""
        refuse_active(self.active)
        failed = [row for row in self.rows if row.error]
        if failed:
            first = failed[0]
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            raise Refused(
                f"no new offset for {first.topic}-{first.partition} of group {first.group!r}: {first.error}{more}",
                hint="nothing was changed; select other partitions with --topic TOPIC:PARTITIONS",
                details={"problems": [f"{row.group} {row.topic}-{row.partition}: {row.error}" for row in failed]},
                reason=Reason.IMPOSSIBLE,
            )


def refuse_active(active: Mapping[str, Group]) -> None:
    """Raise Refused, with the members, if there are active groups."""
    if not active:
        return
    descriptions = [_members(group) for group in active.values()]
    raise Refused(
        "; ".join(descriptions[:_NAMED])
        + (f"; and {len(descriptions) - _NAMED} more groups" if len(descriptions) > _NAMED else ""),
        hint="nothing was changed; stop its consumers first",
        details={
            "groups": [{"group": g.group, "state": g.state, "members": list(g.members or ())} for g in active.values()]
        },
    )


def _members(group: Group) -> str:
    members = group.members
    if not members:
        return f"group {group.group!r} is {group.state}"
    listed = ", ".join(f"{m.client_id} at {m.host}" for m in members[:_NAMED])
    more = f" and {len(members) - _NAMED} more" if len(members) > _NAMED else ""
    return f"group {group.group!r} is {group.state}, with members: {listed}{more}"


def is_active(group: Group) -> bool:
    """Return True if the group has members, according to its state. Commits by non-members are then rejected."""
    return group.state not in WITHOUT_MEMBERS


def plan_reset(
    client: ClusterClient,
    groups: Sequence[str],
    target: ResetTarget,
    choices: Sequence[TopicChoice] = (),
    *,
    offsets: ExplicitOffsets | None = None,
    create: bool = False,
    create_share: bool = False,
) -> ResetPlan:
    """Return the new offsets of `groups`: for the selected partitions, else those in `offsets`, else all commits.

    offsets: for To.GIVEN, by group. create: accept groups that do not exist; the first commit creates them, as classic
    groups or, with create_share, as share groups. "All commits" are the start offsets of a share group, and leave out
    the internal topics of a streams group. Raises NotFound for unknown groups, topics and partitions, Refused if there
    is nothing to reset, NotAuthorized if all commits are selected and brokers may omit some.
    """
    described = _existing(client, groups, create=create)
    share = frozenset(name for name in groups if (described[name].type == SHARE if name in described else create_share))
    if offsets is None and not choices:
        refuse_hidden_topics(client, hint="nothing was changed; use --topic with topics that this user may describe")
    current = read_current(client, described)
    fixed = chosen_partitions(client, choices) if choices and offsets is None else None
    partitions: dict[str, list[TopicPartition]] = {}
    for group in groups:
        if fixed is not None:
            partitions[group] = fixed
        else:
            partitions[group] = matching(
                current.readable[group] if offsets is None else offsets.get(group, {}), choices
            )
        if not partitions[group]:
            refuse_active({name: each for name, each in described.items() if is_active(each)})
            raise Refused(
                f"nothing to reset for group {group!r}",
                hint=_nothing_hint(choices, offsets),
                reason=Reason.NOTHING_TO_DO,
            )
    logs = _Logs(client, {tp for tps in partitions.values() for tp in tps}, target)
    coordinators = {name: group.coordinator for name, group in described.items()}
    in_transactions = unsettled_offsets(client, partitions, share, coordinators)
    rows = [
        _check_transaction(
            _row(
                group, tp, target, current.committed[group].get(tp), logs,
                offsets[group][tp] if offsets is not None else None,
                share=_ShareState(current.lags[group].get(tp)) if group in share else None,
            ),
            tp in in_transactions.get(group, ()),
        )
        for group in sorted(partitions)
        for tp in sorted(partitions[group])
    ]  # fmt: skip
    active = {name: group for name, group in described.items() if is_active(group)}
    internal = {name: topics for name in groups if (topics := _internal_topics(client, described.get(name)))}
    return ResetPlan(rows, active, coordinators, share, internal)


def _internal_topics(client: ClusterClient, group: Group | None) -> tuple[str, ...]:
    return () if group is None else remaining_internal_topics(client, group)


def _check_transaction(row: OffsetChange, in_transaction: bool) -> OffsetChange:
    """Return the row, marked as failed if an open transaction would silently replace the new offset."""
    if not in_transaction or row.result is not ItemResult.WOULD_RESET:
        return row
    return replace(row, result=ItemResult.FAILED, error=_IN_TRANSACTION)


def _nothing_hint(choices: Sequence[TopicChoice], offsets: ExplicitOffsets | None) -> str:
    if offsets is not None:
        return "the source has no offsets for the selected topics" if choices else "the source has no offsets for it"
    return "the group has no commits; select topics with --topic"


def _existing(client: ClusterClient, groups: Sequence[str], *, create: bool) -> dict[str, Group]:
    described = describe_groups(client, groups)
    missing = [name for name in groups if isinstance(described.failed_groups.get(name), NotFound)]
    if missing and not create:
        unknown = missing_groups(client, missing)
        raise NotFound(unknown.message, hint=f"{unknown.hint}\nuse --create to create the group")
    for name, error in described.failed_groups.items():
        if name not in missing:
            raise error
    return described.groups


class _Logs:
    """The log offsets of the partitions of a plan, and the offsets at a time."""

    def __init__(self, client: ClusterClient, partitions: set[TopicPartition], target: ResetTarget) -> None:
        self.ends, missing, unread = read_log_offsets(client, partitions)
        self.at: dict[TopicPartition, int] = {}
        if target.to is To.TIME:
            self.at, deleted, failed = read_offsets_at(client, list(self.ends), target.value)
            missing |= deleted
            unread |= failed
        self.errors = dict.fromkeys(missing, "the topic or partition does not exist")
        self.errors |= {tp: error.message for tp, error in unread.items()}


class _ShareState(NamedTuple):
    """The reported lag of a share group in a partition. None: unknown."""

    lag: int | None

    def delivered(self, start: int, log: LogOffsets) -> bool:
        """Return True if records after the start offset may be done, so that a reset to it changes something."""
        return self.lag is None or self.lag != log.end - start


def _row(
    group: str,
    tp: TopicPartition,
    target: ResetTarget,
    commit: Commit | None,
    logs: _Logs,
    explicit: OffsetToCommit | None,
    *,
    share: _ShareState | None = None,
) -> OffsetChange:
    old = commit.offset if commit else None
    if explicit is not None and share is not None:
        explicit = explicit._replace(metadata="")  # share groups have no metadata
    log = logs.ends.get(tp)
    error = logs.errors.get(tp)
    if log is None or error is not None:
        return _failed(group, tp, old, log, error or "its log offsets are missing in the response")
    try:
        new = new_offset(
            target, old, log, at_time=logs.at.get(tp), explicit=explicit.offset if explicit else None,
            noun="commit" if share is None else "start offset",
        )  # fmt: skip
    except Refused as exc:
        return _failed(group, tp, old, log, exc.message)
    change = "" if new.offset != old else _other_change(target, new.offset, log, commit, explicit, share)
    return OffsetChange(
        group=group,
        topic=tp.topic,
        partition=tp.partition,
        result=ItemResult.UNCHANGED if change is None else ItemResult.WOULD_RESET,
        old_offset=old,
        new_offset=new.offset,
        difference=None if old is None else new.offset - old,
        skipped=skipped(old, new.offset, log),
        read_again=read_again(old, new.offset, log),
        log_start_offset=log.start,
        log_end_offset=log.end,
        metadata=explicit.metadata if explicit else "",
        note=new.note or change or None,
    )


def _other_change(
    target: ResetTarget,
    offset: int,
    log: LogOffsets,
    commit: Commit | None,
    explicit: OffsetToCommit | None,
    share: _ShareState | None,
) -> str | None:
    """Return what a reset to the current offset changes; None if it changes nothing."""
    # No metadata in a file: keep the committed metadata.
    if explicit is not None and explicit.metadata and commit is not None and commit.metadata != explicit.metadata:
        return "only the metadata differs"
    if share is not None and target.to is not To.CURRENT and share.delivered(offset, log):
        return "records after it become available again"
    return None


def _failed(group: str, tp: TopicPartition, old: int | None, log: LogOffsets | None, error: str) -> OffsetChange:
    start, end = (log.start, log.end) if log else (None, None)
    return OffsetChange(group, *tp, ItemResult.FAILED, old, None, None, None, None, start, end, error=error)


def apply_reset(client: ClusterClient, plan: ResetPlan) -> tuple[list[OffsetChange], list[KctlError]]:
    """Commit the rows of `plan` with "would reset", and verify.

    Return the rows with results, and the error of failed rows. Raises Refused as `ResetPlan.check` does, and if someone
    has committed since the plan was made.
    """
    plan.check()
    _refuse_stale(client, plan)
    by_group = grouped(plan.todo, lambda row: row.group)
    offsets = {
        group: {_tp(row): OffsetToCommit(row.new_offset or 0, row.metadata) for row in rows}
        for group, rows in by_group.items()
    }
    outcomes = write_offsets(client, offsets, plan.share, plan.coordinators)
    commits = read_offsets(client, list(by_group), plan.share, plan.coordinators)
    results = [
        _read_back(row, outcomes[row.group].get(_tp(row)), commits[row.group], share=row.group in plan.share)
        if row.result is ItemResult.WOULD_RESET
        else (row, None)
        for row in plan.rows
    ]
    return [row for row, _ in results], [error for _, error in results if error is not None]


def _refuse_stale(client: ClusterClient, plan: ResetPlan) -> None:
    """Raise Refused if a consumer has committed since the plan was made, e.g. while the confirmation prompt waited."""
    by_group = {group: [_tp(row) for row in rows] for group, rows in grouped(plan.todo, lambda row: row.group).items()}
    now = read_offsets(client, list(by_group), plan.share, plan.coordinators)
    in_transactions = unsettled_offsets(client, by_group, plan.share, plan.coordinators)
    for row in plan.todo:
        if _tp(row) in in_transactions.get(row.group, ()):
            raise Refused(
                f"{row.topic}-{row.partition} of group {row.group!r}: {_IN_TRANSACTION}",
                hint=_WAIT,
                reason=Reason.NOT_READY,
            )
        commits = now[row.group]
        if isinstance(commits, KctlError):
            raise commits
        commit = commits.get(_tp(row))
        if (commit.offset if commit else None) != row.old_offset:
            verb, none = ("moved", "no start offset") if row.group in plan.share else ("committed", "no commit")
            before, after = row.old_offset, commit.offset if commit else None
            raise Refused(
                f"group {row.group!r} has {verb} since the plan was made: {row.topic}-{row.partition} had "
                f"{none if before is None else before}, now {none if after is None else after}",
                hint="nothing was changed; run the command again to plan from the current offsets",
                reason=Reason.CHANGED_MEANWHILE,
            )


def _tp(row: OffsetChange) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def _read_back(
    row: OffsetChange,
    error: KctlError | None,
    commits: Mapping[TopicPartition, Commit] | KctlError,
    *,
    share: bool = False,
) -> tuple[OffsetChange, KctlError | None]:
    """Return the row with its result, and the error if it failed."""
    if isinstance(commits, KctlError):
        error = error or OperationFailed(f"{'set' if share else 'committed'}, but not verified: {commits.message}")
        return replace(row, result=ItemResult.FAILED, error=error.message), error
    commit = commits.get(_tp(row))
    if commit is not None and (commit.offset, commit.metadata) == (row.new_offset, row.metadata):
        return replace(row, result=ItemResult.RESET), None
    if share:
        now = "there is no start offset" if commit is None else f"the start offset is {commit.offset}"
    elif commit is None:
        now = "nothing is committed"
    else:
        now = f"{commit.offset} {commit.metadata}".rstrip() + " is committed"
    error = error or OperationFailed(f"{now} instead")
    return replace(row, result=ItemResult.FAILED, error=error.message), error
