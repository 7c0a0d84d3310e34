"""Groups for people and programs: a line each, or members, assignments and offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.errors import NotFound, UsageError
from kctl.groups.describe import Group, Member, describe_groups, list_groups
from kctl.lag.collect import LagReport, collect
from kctl.lag.rules import LagRow
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.client import ClusterClient

STATES = (
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead", "Unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group in a list. coordinator is a broker id. members is None when it could not be had."""

    group: str
    state: str
    protocol_type: str
    type: str | None
    coordinator: int
    members: int | None


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """The partitions of one topic that a member was given."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member. assignments is None when it is not a consumer's (Kafka Connect has its own format)."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignments: tuple[TopicAssignment, ...] | None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members and the lag of each of its partitions."""

    group: str
    state: str
    protocol_type: str
    type: str | None
    assignor: str | None
    coordinator: int
    members: tuple[MemberDescription, ...]
    offsets: tuple[LagRow, ...]


def known_states(states: Collection[str] | None) -> frozenset[str] | None:
    """`states` in lower case. Raises UsageError for a state that no broker has."""
    if not states:
        return None
    known = {state.lower() for state in STATES}
    wanted = frozenset(state.lower().replace("-", "").replace("_", "") for state in states)
    for state in sorted(wanted - known):
        raise UsageError(f"{state!r} is not a group state", hint=f"known: {', '.join(STATES)}")
    return wanted


def summaries(client: ClusterClient, *, states: Collection[str] | None = None) -> tuple[list[GroupSummary], list[str]]:
    """All groups (or those in `states`) by name; and what could not be read, one line each."""
    wanted = known_states(states)
    listed = list_groups(client)
    # An empty group has no members: nothing to ask. Brokers before 2.6 do not tell the state: ask about all.
    ask = [name for name, group in listed.groups.items() if group.state not in {"Empty", "Dead"}]
    described = describe_groups(client, ask, known=listed) if ask else listed
    failures = [error.message for error in listed.failed_brokers.values()]
    rows: list[GroupSummary] = []
    for name, group in listed.groups.items():
        error = described.failed_groups.get(name)
        if isinstance(error, NotFound):
            continue  # gone since it was listed
        if error:
            failures.append(error.message)
        rows.append(_summary(described.groups.get(name, group)))
    chosen = [row for row in rows if wanted is None or row.state.lower() in wanted]
    return chosen, failures


def _summary(group: Group) -> GroupSummary:
    known = group.members is not None
    members = len(group.members or ()) if known or group.state in {"Empty", "Dead"} else None
    return GroupSummary(group.group, group.state, group.protocol_type, group.type, group.coordinator, members)


def describe(client: ClusterClient, names: Sequence[str]) -> tuple[list[GroupDescription], list[str]]:
    """The groups named, in that order; and what could not be read. Raises NotFound for a group that is not there."""
    report = collect(client, names)
    rows: dict[str, list[LagRow]] = {}
    for row in report.rows:
        rows.setdefault(row.group, []).append(row)
    found = [
        _description(report.groups[name], rows.get(name, [])) for name in dict.fromkeys(names) if name in report.groups
    ]
    return found, failures_of(report)


def failures_of(report: LagReport) -> list[str]:
    """What a report lacks, one line each; many partitions without an answer are one line for each reason."""
    lines = [reason if name in reason else f"{name}: {reason}" for name, reason in report.failed.items()]
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, reason in report.unread.items():
        by_reason.setdefault(reason, []).append(tp)
    for reason, tps in by_reason.items():
        lines.append(f"no offsets of {_some(map(str, sorted(tps)))}: {reason}")
    return lines


def _some(names: Iterable[str], limit: int = 5) -> str:
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def _description(group: Group, rows: Sequence[LagRow]) -> GroupDescription:
    return GroupDescription(
        group=group.group,
        state=group.state,
        protocol_type=group.protocol_type,
        type=group.type,
        assignor=group.protocol,
        coordinator=group.coordinator,
        members=tuple(_member(member) for member in group.members or ()),
        offsets=tuple(rows),
    )


def _member(member: Member) -> MemberDescription:
    return MemberDescription(
        member.member_id, member.group_instance_id, member.client_id, member.host, _assignments(member.partitions)
    )


def _assignments(partitions: tuple[TopicPartition, ...] | None) -> tuple[TopicAssignment, ...] | None:
    if partitions is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return tuple(TopicAssignment(topic, tuple(sorted(numbers))) for topic, numbers in sorted(by_topic.items()))
