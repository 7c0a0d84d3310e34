"""Select the topics of a command: by name, by pattern, or all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kctl.base.name_patterns import not_there, parse_patterns, select
from kctl.cluster.partition_numbers import no_partition
from kctl.cluster.rights import NEED_ALL_TOPICS, may_describe_all_topics
from kctl.cluster.topic_names import check_name, is_internal
from kctl.errors import NotFound, Reason, Refused, UsageError
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def choose(
    client: ClusterClient, names: Sequence[str] = (), match: Sequence[str] = (), *, internal: bool = False
) -> tuple[ClusterState, list[TopicState]]:
    """Return the state and the selected topics: by name (in that order), by pattern, or all if neither is set.

    internal: patterns and "all" include internal topics. The state has the named topics, or all topics. Raises
    UsageError for invalid names and patterns, NotFound for unknown names and patterns without a match.
    """
    patterns = parse_patterns("--match", match)
    exact = list(dict.fromkeys(check_name(name) for name in names))
    if exact and not patterns:
        state = known_topics(client, exact)
        return state, [state.topics[name] for name in exact]
    state = client.metadata()
    available = [name for name, topic in state.topics.items() if internal or name in exact or not hidden(topic)]
    if not available and not exact and not patterns:
        return state, []
    return state, [state.topics[name] for name in select(available, exact=exact, patterns=patterns)]


def only_chosen(client: ClusterClient, names: Sequence[str] = (), match: Sequence[str] = ()) -> ClusterState:
    """Return the state with only the topics that `choose` selects, internal ones included. Raises as `choose` does."""
    state, selected = choose(client, names, match, internal=True)
    return replace(state, topics={topic.name: topic for topic in selected})


def not_seen(
    client: ClusterClient, names: Sequence[str], chosen: Sequence[TopicState], *, filtered: bool = False
) -> tuple[list[str], list[str]]:
    """Return warnings and failures about topics that brokers hide from this user.

    Without a filter, only if no topic is visible; with a filter, also if some are visible. A filter without any visible
    topic is a failure.
    """
    if names or (chosen and not filtered) or may_describe_all_topics(client) is not False:
        return [], []
    if chosen:
        return [f"only topics that this user may describe were examined; {NEED_ALL_TOPICS}"], []
    line = f"there is no topic, or none that this user may describe; {NEED_ALL_TOPICS}"
    return ([], [line]) if filtered else ([line], [])


def choose_to_change(
    client: ClusterClient, names: Sequence[str], match: Sequence[str] = ()
) -> tuple[ClusterState, list[TopicState]]:
    """Select topics to change: at least one, and no internal ones (Refused)."""
    if not names and not match:
        raise UsageError("no topic is selected", hint="name topics, or set --match REGEX")
    state, selected = choose(client, names, match)
    internal = [topic.name for topic in selected if hidden(topic)]
    if internal:
        raise Refused(
            f"internal topic: {', '.join(internal)}",
            hint="it holds committed offsets or transaction state",
            reason=Reason.INTERNAL_TOPIC,
        )
    return state, selected


def chosen_partitions(topics: Iterable[TopicState], numbers: Collection[int] | None) -> list[TopicPartition]:
    """Return the partitions of `chosen_states`, by topic and number. Raises NotFound."""
    return [state.tp for state in chosen_states(topics, numbers)]


def chosen_states(topics: Iterable[TopicState], numbers: Collection[int] | None) -> list[PartitionState]:
    """Return all partitions of the topics, or those with these numbers.

    Raises NotFound if a topic lacks one of the numbers.
    """
    states: list[PartitionState] = []
    for topic in topics:
        missing = set(numbers or ()) - {p.partition for p in topic.partitions}
        if missing:
            raise no_partition(topic.name, missing, len(topic.partitions))
        states += [p for p in topic.partitions if numbers is None or p.partition in numbers]
    return states


def hidden(topic: TopicState) -> bool:
    """Return True if the topic is internal and therefore not listed."""
    return topic.internal or is_internal(topic.name)


def known_topics(client: ClusterClient, names: Collection[str]) -> ClusterState:
    """Return the state with exactly these topics. Raises UsageError for invalid names, NotFound for unknown ones."""
    state = client.metadata([check_name(name) for name in names])
    missing = [name for name in dict.fromkeys(names) if name not in state.topics]
    if missing:
        raise unknown_topics(client, missing)
    return state


def unknown_topics(client: ClusterClient, missing: Sequence[str]) -> NotFound:
    """Return the error for topics that do not exist, with suggestions."""
    return not_there(missing, client.metadata().topics)
