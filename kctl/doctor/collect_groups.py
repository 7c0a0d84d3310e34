"""Read consumer groups for the rules: members, lag, and rebalances observed while watching."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import CLASSIC, SHARE, WITHOUT_MEMBERS, Group
from kctl.cluster.rights import NEED_ALL_TOPICS, may_describe_all_topics, may_describe_cluster
from kctl.doctor.rule_facts import GroupFacts, GroupState
from kctl.doctor.rules_groups import REBALANCING
from kctl.errors import KctlError
from kctl.groups.overview import failures_of
from kctl.lag.collect import collect

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.5  # about as long as a rebalance of a small group


def read_groups(client: ClusterClient, watch_s: float = 0.0) -> GroupFacts | KctlError:
    """Read all groups, then poll the groups that have members for watch_s seconds.

    Return the KctlError if the groups cannot be listed.
    """
    try:
        report = collect(client)
    except KctlError as exc:
        return exc
    reasons = [*failures_of(report), *_missing_rights(client)]
    polls = _watch(client, report.groups, watch_s) if watch_s > 0 else []
    latest = polls[-1] if polls else report.groups
    states = {
        name: group_state(
            latest.get(name, group), _count_group_rebalances(name, [report.groups, *polls]) if polls else None
        )
        for name, group in report.groups.items()
    }
    return GroupFacts(states, report.rows, tuple(reasons), int(watch_s * 1000) if polls else None)


def _missing_rights(client: ClusterClient) -> list[str]:
    """Return a line for each kind of object that brokers silently omit because the user may not describe it."""
    lines = []
    if may_describe_cluster(client) is False:
        lines.append("only groups that this user may describe are checked: grant Describe on the cluster to check all")
    if may_describe_all_topics(client) is False:
        lines.append(f"only committed offsets of topics that this user may describe are checked: {NEED_ALL_TOPICS}")
    return lines


def _watch(client: ClusterClient, groups: Mapping[str, Group], watch_s: float) -> list[Mapping[str, Group]]:
    """Describe the groups that have members once per poll. Each poll omits groups that it could not describe."""
    names = [name for name, group in groups.items() if group.type != SHARE and group.state not in WITHOUT_MEMBERS]
    end = time.monotonic() + watch_s
    polls: list[Mapping[str, Group]] = []
    while (remaining_s := end - time.monotonic()) > 0:
        time.sleep(min(_POLL_S, remaining_s))
        polls.append(describe_groups(client, names).groups if names else {})
        if not names:
            break
    return polls


def _count_group_rebalances(name: str, polls: Sequence[Mapping[str, Group]]) -> int:
    return count_rebalances([poll[name] for poll in polls if name in poll])


def count_rebalances(polls: Sequence[Group]) -> int:
    """Return the number of rebalances of a group between the first and the last poll. Pure.

    Groups of the new protocol (KIP-848) count rebalances themselves: the group epoch. For a classic group, a rebalance
    is counted when the group enters a rebalancing state, and when members or assignment change between two polls.
    """
    if not polls:
        return 0
    if polls[-1].type not in (CLASSIC, None) and polls[0].epoch is not None and polls[-1].epoch is not None:
        return max(polls[-1].epoch - polls[0].epoch, 0)
    count = 0
    last_stable = polls[0]
    rebalancing = polls[0].state in REBALANCING
    for group in polls[1:]:
        if group.state in REBALANCING:
            count += not rebalancing
            rebalancing = True
            continue
        count += not rebalancing and _assignment(group) != _assignment(last_stable)
        last_stable, rebalancing = group, False
    return count


def _assignment(group: Group) -> dict[str, object]:
    return {member.member_id: member.partitions for member in group.members or ()}


def group_state(group: Group, rebalances: int | None = None) -> GroupState:
    """Return the state of a group as the rules need it. Pure."""
    members = None
    if group.members is not None:
        members = {m.member_id: None if m.partitions is None else len(m.partitions) for m in group.members}
    elif group.state in WITHOUT_MEMBERS:
        members = {}
    subscribed = frozenset(topic for m in group.members or () for topic in m.topics or ())
    return GroupState(group.group, group.state, members, subscribed, group.epoch, rebalances)
