"""Describe groups: a summary of each, or its members, assignments and offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.name_patterns import matches, parse_patterns, select
from kctl.cluster.groups.describe import describe_groups, list_groups
from kctl.cluster.groups.model import CLASSIC, WITHOUT_MEMBERS, Group, Member
from kctl.cluster.groups.names import describe_existing, known_types
from kctl.cluster.groups.newer_groups import StartOffset
from kctl.cluster.groups.streams import StreamsMember, Topology
from kctl.errors import NotFound, UsageError
from kctl.lag.collect import LagReport, collect
from kctl.lag.control_records import MAX_PARTITIONS
from kctl.lag.rules import LagRow
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

STATES = (
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead", "Unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group in a list. coordinator: a broker id. member_count: None if unknown."""

    group: str
    state: str
    protocol_type: str
    type: str | None
    coordinator: int
    member_count: int | None


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """The partitions of one topic that are assigned to a member."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group.

    assignments: None if not in the consumer format (Kafka Connect has its own format; a streams group has tasks, see
    kctl.cluster.groups.streams). subscribed_topics: None if unknown. owned_assignments: partitions that a classic
    member owned when it joined. member_epoch, target_assignments, type: see kctl.cluster.groups.model.Member.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    type: str | None
    member_epoch: int | None
    subscribed_topics: tuple[str, ...] | None
    subscribed_topics_regex: str | None
    assignments: tuple[TopicAssignment, ...] | None
    target_assignments: tuple[TopicAssignment, ...] | None
    owned_assignments: tuple[TopicAssignment, ...] | None
    streams: StreamsMember | None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members and the lag of each of its partitions.

    members: None if the broker cannot describe them. epoch, assignment_epoch: None for a classic group. topology: only
    for a streams group. start_offsets: only for a share group, which has no commits; None if unknown.
    """

    group: str
    state: str
    protocol_type: str
    type: str | None
    assignor: str | None
    coordinator: int
    epoch: int | None
    assignment_epoch: int | None
    topology: Topology | None
    members: tuple[MemberDescription, ...] | None
    offsets: tuple[LagRow, ...]
    start_offsets: tuple[StartOffset, ...] | None


def known_states(states: Collection[str] | None) -> frozenset[str] | None:
    """Return `states` in lower case. Raises UsageError for an unknown state."""
    if not states:
        return None
    state_names = {state.lower() for state in STATES}
    selected = frozenset(state.lower().replace("-", "").replace("_", "") for state in states)
    for state in sorted(selected - state_names):
        raise UsageError(f"{state!r} is not a group state", hint=f"use {', '.join(STATES)}")
    return selected


def summaries(
    client: ClusterClient,
    *,
    states: Collection[str] | None = None,
    types: Collection[str] | None = None,
    match: Sequence[str] = (),
) -> tuple[list[GroupSummary], list[str]]:
    """Return the selected groups by name, and a line for each failure. Default: all groups.

    states, types, match: select groups by state, type and group id. Raises NotFound if no id matches. Brokers before
    3.8 do not report types: all their groups are classic.
    """
    selected_states, selected_types = known_states(states), known_types(types)
    patterns = parse_patterns("--match", match)
    listed = list_groups(client)
    if patterns and not listed.unlisted:
        select(listed.groups, patterns=patterns, noun="group")
    chosen = {
        name: group
        for name, group in listed.groups.items()
        if (not patterns or matches(name, patterns))
        and (selected_types is None or (group.type or CLASSIC) in selected_types)
    }
    # Empty groups have no members to describe. Brokers before 2.6 do not list states: describe all groups.
    to_describe = [name for name, group in chosen.items() if group.state not in WITHOUT_MEMBERS]
    described = describe_groups(client, to_describe, listing=listed) if to_describe else listed
    failures = [error.message for error in listed.unlisted.values()]
    rows: list[GroupSummary] = []
    for name, group in chosen.items():
        error = described.failed_groups.get(name)
        if isinstance(error, NotFound):
            continue  # deleted since it was listed
        if error:
            failures.append(error.message)
        rows.append(_summary(described.groups.get(name, group)))
    return [row for row in rows if selected_states is None or row.state.lower() in selected_states], failures


def _summary(group: Group) -> GroupSummary:
    described = group.members is not None
    members = len(group.members or ()) if described or group.state in WITHOUT_MEMBERS else None
    return GroupSummary(group.group, group.state, group.protocol_type, group.type, group.coordinator, members)


def describe(client: ClusterClient, names: Sequence[str]) -> tuple[list[GroupDescription], list[str]]:
    """Return the named groups in that order, and a line for each failure. Raises NotFound for an unknown group."""
    report = collect(client, names, control_records=MAX_PARTITIONS)
    rows: dict[str, list[LagRow]] = {}
    for row in report.rows:
        rows.setdefault(row.group, []).append(row)
    failures = failures_of(report)
    descriptions = [
        _description(report.groups[name], rows.get(name, []), report.share.get(name))
        for name in dict.fromkeys(names)
        if name in report.groups
    ]
    return descriptions, failures


def failures_of(report: LagReport) -> list[str]:
    """Return a line for each failure in a report, with unreadable partitions grouped by reason."""
    lines = [reason if name in reason else f"{name}: {reason}" for name, reason in report.failed.items()]
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, reason in report.unread.items():
        by_reason.setdefault(reason, []).append(tp)
    for reason, tps in by_reason.items():
        lines.append(f"no offsets of {_first_names(map(str, sorted(tps)))}: {reason}")
    return lines


def _first_names(names: Iterable[str], limit: int = 5) -> str:
    all_names = list(names)
    more = f" and {len(all_names) - limit} more" if len(all_names) > limit else ""
    return ", ".join(all_names[:limit]) + more


def _description(
    group: Group, rows: Sequence[LagRow], start_offsets: tuple[StartOffset, ...] | None
) -> GroupDescription:
    return GroupDescription(
        group=group.group,
        state=group.state,
        protocol_type=group.protocol_type,
        type=group.type,
        assignor=group.protocol,
        coordinator=group.coordinator,
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=group.topology,
        members=_members(group),
        offsets=tuple(rows),
        start_offsets=start_offsets,
    )


def _members(group: Group) -> tuple[MemberDescription, ...] | None:
    if group.members is None and group.state not in WITHOUT_MEMBERS:
        return None
    return tuple(_member(member) for member in group.members or ())


def _member(member: Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.host,
        rack=member.rack,
        type=member.type,
        member_epoch=member.epoch,
        subscribed_topics=member.topics,
        subscribed_topics_regex=member.topics_regex,
        assignments=None if member.streams else _assignments(member.partitions),
        target_assignments=_assignments(member.target),
        owned_assignments=_assignments(member.owned),
        streams=member.streams,
    )


def _assignments(partitions: tuple[TopicPartition, ...] | None) -> tuple[TopicAssignment, ...] | None:
    if partitions is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return tuple(TopicAssignment(topic, tuple(sorted(numbers))) for topic, numbers in sorted(by_topic.items()))


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member in a list of members of several groups.

    partition_count: None if unknown, and for streams groups (tasks).
    """

    group: str
    assignor: str | None
    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    type: str | None
    member_epoch: int | None
    partition_count: int | None
    subscribed_topics: tuple[str, ...] | None
    subscribed_topics_regex: str | None
    assignments: tuple[TopicAssignment, ...] | None
    target_assignments: tuple[TopicAssignment, ...] | None
    owned_assignments: tuple[TopicAssignment, ...] | None
    streams: StreamsMember | None


def member_rows(client: ClusterClient, names: Sequence[str]) -> tuple[list[MemberRow], list[str]]:
    """Return the members of the named groups, and the groups whose members the broker cannot describe.

    Raises NotFound for an unknown group, and the error of a group that could not be described.
    """
    groups = describe_existing(client, names)
    rows = [
        MemberRow(
            group=group.group,
            assignor=group.protocol,
            partition_count=None if member.partitions is None or member.streams else len(member.partitions),
            **{name: getattr(described, name) for name in MemberDescription.__slots__},
        )
        for group in groups.values()
        for member in group.members or ()
        for described in (_member(member),)
    ]
    return rows, [name for name, group in groups.items() if _members(group) is None]
