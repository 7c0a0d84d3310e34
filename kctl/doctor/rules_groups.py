"""Rules about consumer groups: rebalances, members without work, lag that nobody works off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kctl.base.grouping import grouped
from kctl.base.text import counted
from kctl.cluster.groups.model import WITHOUT_MEMBERS
from kctl.doctor.rule import Found, Rule, Severity, grouped_by_message
from kctl.doctor.rule_facts import GroupFacts, GroupState, RuleFacts
from kctl.lag.rules import LagRow
from kctl.model import ClusterState

MOVING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
_OFTEN = 2  # rebalances that were seen while it was watched: one is what a new member makes


def _facts(facts: RuleFacts) -> GroupFacts:
    assert isinstance(facts.groups, GroupFacts)
    return facts.groups


def _groups(facts: RuleFacts) -> list[GroupState]:
    return list(_facts(facts).groups.values())


def _moving(facts: RuleFacts) -> list[Found]:
    return grouped_by_message(
        (f"group {each.group}", each.state if each.state in MOVING else None) for each in _groups(facts)
    )


def _often(facts: RuleFacts) -> list[Found]:
    watched = _facts(facts).watched_ms
    if watched is None:
        return []
    return [
        Found(f"{each.rebalances} rebalances in {watched / 1000:g} s", (f"group {each.group}",))
        for each in _groups(facts)
        if each.rebalances is not None and each.rebalances >= _OFTEN
    ]


def _idle(facts: RuleFacts) -> Iterator[tuple[GroupState, int, int]]:
    """Groups with idle members: how many, and how many partitions there are for them (0: not known)."""
    assert isinstance(facts.state, ClusterState)
    for group in _groups(facts):
        if group.state != "Stable" or not group.members:
            continue
        idle = sum(count == 0 for count in group.members.values())
        topics = [facts.state.topics.get(name) for name in group.subscribed]
        if idle and topics:
            yield group, idle, sum(len(topic.partitions) for topic in topics if topic is not None)


def _more_members(facts: RuleFacts) -> list[Found]:
    return [
        Found(f"{len(group.members or ())} members for {counted(there, 'partition')}", (f"group {group.group}",))
        for group, _, there in _idle(facts)
        if 0 < there < len(group.members or ())
    ]


def _idle_members(facts: RuleFacts) -> list[Found]:
    return [
        Found(
            f"{idle} of {counted(len(group.members or ()), 'member')} without a partition, of {there}",
            (f"group {group.group}",),
        )
        for group, idle, there in _idle(facts)
        if there >= len(group.members or ())
    ]


def _by_group(rows: Sequence[LagRow]) -> dict[str, list[LagRow]]:
    return grouped(rows, lambda row: row.group)


def _abandoned(facts: RuleFacts) -> list[Found]:
    lags = {}
    for name, rows in _by_group(_facts(facts).rows).items():
        group = _facts(facts).groups.get(name)
        lag = sum(row.lag or 0 for row in rows)
        if group is not None and group.state in WITHOUT_MEMBERS and lag:
            lags[name] = lag
    return _largest_first(lags, "no members, and a lag of")


def _largest_first(counts: Mapping[str, int], what: str) -> list[Found]:
    """One finding for all groups, however many there are."""
    if not counts:
        return []
    names = sorted(counts, key=lambda name: (-counts[name], name))
    said = f"{what} {counts[names[0]]:,}"
    if len(names) > 1:
        said = f"{counted(len(names), 'group')}: {what} up to {counts[names[0]]:,}"
    return [Found(said, tuple(f"group {name}" for name in names))]


def _lost(facts: RuleFacts) -> list[Found]:
    counts = {name: sum(row.lost or 0 for row in rows) for name, rows in _by_group(_facts(facts).rows).items()}
    return _largest_first({name: lost for name, lost in counts.items() if lost}, "records deleted unread:")


def _unassigned(facts: RuleFacts) -> list[Found]:
    """Partitions of a stable group that no member has: nobody reads on."""
    found = []
    for name, rows in _by_group(_facts(facts).rows).items():
        group = _facts(facts).groups.get(name)
        if group is None or group.state != "Stable" or not group.members or None in group.members.values():
            continue
        alone = [row for row in rows if row.client_id is None and row.lag and row.topic in group.subscribed]
        if alone:
            said = f"{counted(len(alone), 'partition')} with lag and without a member"
            found.append(Found(said, (f"group {name}",)))
    return found


_G, _BOTH = ("groups",), ("groups", "state")

RULES = (
    Rule(
        "group-rebalancing", Severity.WARNING, "A group is rebalancing now", _G,
        "While a classic group rebalances nobody reads (with the cooperative assignor, nobody reads what moves). "
        "Seconds "
        "are normal; look again.",
        "KIP-429, KIP-848", "`kctl group describe GROUP`; `kctl doctor --watch-for 30s` counts rebalances.", _moving,
    ),
    Rule(
        "group-rebalances-often", Severity.WARNING, "A group rebalances again and again", _G,
        "Members leave and come: they are slower than max.poll.interval.ms, silent for session.timeout.ms, or "
        "restarted. "
        "Only seen with --watch-for.",
        "Kafka's documentation, max.poll.interval.ms", "Fewer records a poll (max.poll.records), a longer "
        "max.poll.interval.ms, group.instance.id for restarts (KIP-345), the cooperative assignor.",
        _often,
    ),
    Rule(
        "group-more-members", Severity.INFO, "More members than partitions", _BOTH,
        "A partition is read by one member of a group: the others wait, and take over when one fails.",
        "Kafka's documentation, «Consumers»", "Fewer members, or more partitions.", _more_members,
    ),
    Rule(
        "group-idle-members", Severity.WARNING, "Members without a partition, while there are enough", _BOTH,
        "Members subscribe to different topics, or the range assignor gives the first members more: some work, some do "
        "not.",
        "org.apache.kafka.clients.consumer.RangeAssignor", "Look at what each subscribes to (`kctl group members`); "
        "the "
        "cooperative sticky assignor spreads partitions over all topics.",
        _idle_members,
    ),
    Rule(
        "group-abandoned", Severity.WARNING, "Lag, and no members", _G,
        "Nobody reads on; what retention deletes is lost for this group, and after offsets.retention.minutes so are "
        "its "
        "offsets.",
        "KIP-211", "Start its consumers; or `kctl group delete` if it is not needed any more.", _abandoned,
    ),
    Rule(
        "group-lost-records", Severity.WARNING, "Records were deleted before a group read them", _G,
        "Its committed offset is below the beginning of the log. Kafka's own tool counts these as lag.",
        "`kctl lag`, the column LOST", "A longer retention; the group goes on where auto.offset.reset says.", _lost,
    ),
    Rule(
        "group-unassigned", Severity.WARNING, "Partitions with lag that no member reads", _G,
        "The group is stable and reads this topic, yet nobody has these partitions: an assignment by hand, or members "
        "whose metadata is older than new partitions (metadata.max.age.ms, 5 minutes).",
        "`kctl group describe`", "`kctl group describe GROUP`; restart members.", _unassigned,
    ),
)  # fmt: skip
