"""Rules about consumer groups: rebalances, idle members, lag without a consumer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kctl.base.grouping import grouped
from kctl.base.text import counted
from kctl.cluster.groups.model import WITHOUT_MEMBERS
from kctl.doctor.rule import Issue, Rule, Severity, grouped_by_message
from kctl.doctor.rule_facts import GroupFacts, GroupState, RuleFacts
from kctl.lag.rules import LagRow
from kctl.model import ClusterState

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
_FREQUENT = 2  # rebalances while watching; a single one is normal when a member joins


def _group_facts(facts: RuleFacts) -> GroupFacts:
    assert isinstance(facts.groups, GroupFacts)
    return facts.groups


def _groups(facts: RuleFacts) -> list[GroupState]:
    return list(_group_facts(facts).groups.values())


def _rebalancing(facts: RuleFacts) -> list[Issue]:
    return grouped_by_message(
        (f"group {each.group}", each.state if each.state in REBALANCING else None) for each in _groups(facts)
    )


def _rebalances_often(facts: RuleFacts) -> list[Issue]:
    watched_ms = _group_facts(facts).watched_ms
    if watched_ms is None:
        return []
    return [
        Issue(f"{each.rebalances} rebalances in {watched_ms / 1000:g} s", (f"group {each.group}",))
        for each in _groups(facts)
        if each.rebalances is not None and each.rebalances >= _FREQUENT
    ]


def _groups_with_idle_members(facts: RuleFacts) -> Iterator[tuple[GroupState, int, int]]:
    """Yield (group, idle members, partitions of its topics) for each group with idle members. 0 partitions: unknown."""
    assert isinstance(facts.state, ClusterState)
    for group in _groups(facts):
        if group.state != "Stable" or not group.members:
            continue
        idle = sum(count == 0 for count in group.members.values())
        topics = [facts.state.topics.get(name) for name in group.subscribed]
        if idle and topics:
            yield group, idle, sum(len(topic.partitions) for topic in topics if topic is not None)


def _more_members(facts: RuleFacts) -> list[Issue]:
    return [
        Issue(f"{len(group.members or ())} members for {counted(partitions, 'partition')}", (f"group {group.group}",))
        for group, _, partitions in _groups_with_idle_members(facts)
        if 0 < partitions < len(group.members or ())
    ]


def _idle_members(facts: RuleFacts) -> list[Issue]:
    return [
        Issue(
            f"{idle} of {counted(len(group.members or ()), 'member')} idle, {counted(partitions, 'partition')}",
            (f"group {group.group}",),
        )
        for group, idle, partitions in _groups_with_idle_members(facts)
        if partitions >= len(group.members or ())
    ]


def _by_group(rows: Sequence[LagRow]) -> dict[str, list[LagRow]]:
    return grouped(rows, lambda row: row.group)


def _abandoned(facts: RuleFacts) -> list[Issue]:
    lags = {}
    for name, rows in _by_group(_group_facts(facts).rows).items():
        group = _group_facts(facts).groups.get(name)
        lag = sum(row.lag or 0 for row in rows)
        if group is not None and group.state in WITHOUT_MEMBERS and lag:
            lags[name] = lag
    return _one_issue(lags, "no members, lag")


def _one_issue(counts: Mapping[str, int], description: str) -> list[Issue]:
    """Return a single issue for all groups, largest count first."""
    if not counts:
        return []
    names = sorted(counts, key=lambda name: (-counts[name], name))
    message = f"{description} {counts[names[0]]:,}"
    if len(names) > 1:
        message = f"{counted(len(names), 'group')}: {description} up to {counts[names[0]]:,}"
    return [Issue(message, tuple(f"group {name}" for name in names))]


def _lost_records(facts: RuleFacts) -> list[Issue]:
    counts = {name: sum(row.lost or 0 for row in rows) for name, rows in _by_group(_group_facts(facts).rows).items()}
    return _one_issue(
        {name: count for name, count in counts.items() if count}, "records deleted before they were read:"
    )


def _unassigned(facts: RuleFacts) -> list[Issue]:
    """Report partitions with lag that no member of a stable group is assigned to."""
    issues = []
    for name, rows in _by_group(_group_facts(facts).rows).items():
        group = _group_facts(facts).groups.get(name)
        if group is None or group.state != "Stable" or not group.members or None in group.members.values():
            continue
        orphans = [row for row in rows if row.client_id is None and row.lag and row.topic in group.subscribed]
        if orphans:
            message = f"{counted(len(orphans), 'partition')} with lag and no assigned member"
            issues.append(Issue(message, (f"group {name}",)))
    return issues


_G, _BOTH = ("groups",), ("groups", "state")

RULES = (
    Rule(
        "group-rebalancing", Severity.WARNING, "A group is rebalancing", _G,
        "During a rebalance, a classic group reads nothing (with the cooperative assignor: nothing from the "
        "partitions that move). A few seconds are normal; check again.",
        "KIP-429, KIP-848",
        "Run `kctl group describe GROUP`, or count rebalances with `kctl doctor --watch-for 30s`.", _rebalancing,
    ),
    Rule(
        "group-rebalances-often", Severity.WARNING, "A group rebalances repeatedly", _G,
        "Members keep leaving and joining: processing exceeds max.poll.interval.ms, heartbeats are missing for "
        "session.timeout.ms, or members restart. Detected only with --watch-for.",
        "Kafka's documentation, max.poll.interval.ms",
        "Lower max.poll.records, raise max.poll.interval.ms, set group.instance.id for restarts (KIP-345), or use the "
        "cooperative assignor.",
        _rebalances_often,
    ),
    Rule(
        "group-more-members", Severity.INFO, "More members than partitions", _BOTH,
        "Each partition is assigned to one member. The other members are idle until one fails.",
        "Kafka's documentation, \"Consumers\"",
        "Stop the surplus members, or add partitions: `kctl topic alter TOPIC --partitions N`.", _more_members,
    ),
    Rule(
        "group-idle-members", Severity.WARNING, "Idle members although there are enough partitions", _BOTH,
        "Members subscribe to different topics, or the range assignor gives more partitions to the first members. The "
        "load is uneven.",
        "org.apache.kafka.clients.consumer.RangeAssignor",
        "Check the subscriptions with `kctl group members`. The cooperative sticky assignor spreads partitions across "
        "all topics.",
        _idle_members,
    ),
    Rule(
        "group-abandoned", Severity.WARNING, "A group has lag but no members", _G,
        "No consumer reads the records. The group loses records that retention deletes, and its offsets expire after "
        "offsets.retention.minutes.",
        "KIP-211", "Start the consumers, or delete the group if it is no longer needed: `kctl group delete GROUP`.",
        _abandoned,
    ),
    Rule(
        "group-lost-records", Severity.WARNING, "Records were deleted before a group read them", _G,
        "The group's committed offset is below the log start offset. Kafka's own tool counts the deleted records as "
        "lag.",
        "`kctl lag`, column LOST",
        "Raise the retention: `kctl config set topic/NAME retention.ms=MS`. The group resumes at auto.offset.reset.",
        _lost_records,
    ),
    Rule(
        "group-unassigned", Severity.WARNING, "Partitions with lag are assigned to no member", _G,
        "The group is stable and reads the topic, but no member reads these partitions. Either members assign "
        "partitions manually, or their metadata is older than newly added partitions (metadata.max.age.ms, default: 5 "
        "min).",
        "`kctl group describe`", "Check `kctl group describe GROUP`, and restart the members.", _unassigned,
    ),
)  # fmt: skip
