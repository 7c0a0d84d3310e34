"""Groups for the rules: members, lag, and rebalances while they are watched."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import CLASSIC, SHARE, WITHOUT_MEMBERS, Group
from kctl.cluster.rights import NEED_ALL_TOPICS, may_describe_all_topics, may_describe_cluster
from kctl.doctor.rule_facts import GroupFacts, GroupState
from kctl.doctor.rules_groups import MOVING
from kctl.errors import KctlError
from kctl.groups.overview import failures_of
from kctl.lag.collect import collect

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_LOOK_S = 0.5  # a rebalance of few members takes about as long


def read_groups(client: ClusterClient, watch_s: float = 0.0) -> GroupFacts | KctlError:
    """All groups once; those with members again and again for watch_s seconds. The KctlError when nobody lists them."""
    try:
        report = collect(client)
    except KctlError as exc:
        return exc
    unread = [*failures_of(report), *_kept_back(client)]
    looks = _watch(client, report.groups, watch_s) if watch_s > 0 else []
    last = looks[-1] if looks else report.groups
    states = {
        name: group_state(last.get(name, group), _count(name, [report.groups, *looks]) if looks else None)
        for name, group in report.groups.items()
    }
    return GroupFacts(states, report.rows, tuple(unread), int(watch_s * 1000) if looks else None)


def _kept_back(client: ClusterClient) -> list[str]:
    """What brokers leave out without a word."""
    found = []
    if may_describe_cluster(client) is False:
        found.append("only groups that this user may describe are judged: all need an ACL for Describe on the cluster")
    if may_describe_all_topics(client) is False:
        found.append(f"only commits for topics that this user may describe are judged: {NEED_ALL_TOPICS}")
    return found


def _watch(client: ClusterClient, groups: Mapping[str, Group], watch_s: float) -> list[Mapping[str, Group]]:
    """Looks at the groups that have members. One that was not answered is left out."""
    names = [name for name, group in groups.items() if group.type != SHARE and group.state not in WITHOUT_MEMBERS]
    end = time.monotonic() + watch_s
    looks: list[Mapping[str, Group]] = []
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_LOOK_S, left))
        looks.append(describe_groups(client, names).groups if names else {})
        if not names:
            break
    return looks


def _count(name: str, looks: Sequence[Mapping[str, Group]]) -> int:
    return count_rebalances([look[name] for look in looks if name in look])


def count_rebalances(looks: Sequence[Group]) -> int:
    """How many rebalances a group had between its first look and its last. Pure.

    Newer groups count them themselves (their epoch). Of a classic one: each time it began, or had other members or
    another assignment than before without having been seen at it.
    """
    if not looks:
        return 0
    if looks[-1].type not in (CLASSIC, None) and looks[0].epoch is not None and looks[-1].epoch is not None:
        return max(looks[-1].epoch - looks[0].epoch, 0)
    count = 0
    settled = looks[0]
    moving = looks[0].state in MOVING
    for look in looks[1:]:
        if look.state in MOVING:
            count += not moving
            moving = True
            continue
        count += not moving and _assigned(look) != _assigned(settled)
        settled, moving = look, False
    return count


def _assigned(group: Group) -> dict[str, object]:
    return {member.member_id: member.partitions for member in group.members or ()}


def group_state(group: Group, rebalances: int | None = None) -> GroupState:
    """A group for the rules. Pure."""
    members = None
    if group.members is not None:
        members = {m.member_id: None if m.partitions is None else len(m.partitions) for m in group.members}
    elif group.state in WITHOUT_MEMBERS:
        members = {}
    subscribed = frozenset(topic for m in group.members or () for topic in m.topics or ())
    return GroupState(group.group, group.state, members, subscribed, group.epoch, rebalances)
