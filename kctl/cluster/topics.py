"""The topics that a command is about: by name, by pattern, or all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kctl.base.name_patterns import not_there, parse_patterns, select
from kctl.cluster.partition_numbers import no_partition
from kctl.cluster.rights import NEED_ALL_TOPICS, may_describe_all_topics
from kctl.cluster.topic_names import check_name, is_internal
from kctl.errors import NotFound, Refused, UsageError
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def choose(
    client: ClusterClient, names: Sequence[str] = (), match: Sequence[str] = (), *, internal: bool = False
) -> tuple[ClusterState, list[TopicState]]:
    """The topics named (in that order), those that match any of `match`, or all when neither is given; by name.

    internal: patterns and «all» take Kafka's own as well. The state has the topics named, or all there are. Raises
    UsageError for impossible names and patterns, NotFound for unknown names and patterns without a match.
    """
    patterns = parse_patterns("--match", match)
    exact = list(dict.fromkeys(check_name(name) for name in names))
    if exact and not patterns:
        state = known_topics(client, exact)
        return state, [state.topics[name] for name in exact]
    state = client.metadata()
    known = [name for name, topic in state.topics.items() if internal or name in exact or not hidden(topic)]
    if not known and not exact and not patterns:
        return state, []
    return state, [state.topics[name] for name in select(known, exact=exact, patterns=patterns)]


def only_chosen(client: ClusterClient, names: Sequence[str] = (), match: Sequence[str] = ()) -> ClusterState:
    """The cluster with the topics that `choose` gives, Kafka's own too. Raises as `choose` does."""
    state, chosen = choose(client, names, match, internal=True)
    return replace(state, topics={topic.name: topic for topic in chosen})


def not_seen(
    client: ClusterClient, names: Sequence[str], chosen: Sequence[TopicState], *, filtered: bool = False
) -> tuple[list[str], list[str]]:
    """What is to be said of topics that brokers hide from this user: doubts, and failures.

    Of all topics, where none is seen; with a filter also where some are. A filter that had nothing to look at has
    failed.
    """
    if names or (chosen and not filtered) or may_describe_all_topics(client) is not False:
        return [], []
    if chosen:
        return [f"only topics that this user may describe were looked at: {NEED_ALL_TOPICS}"], []
    line = f"there is no topic, or none that this user may describe: {NEED_ALL_TOPICS}"
    return ([], [line]) if filtered else ([line], [])


def choose_to_change(
    client: ClusterClient, names: Sequence[str], match: Sequence[str] = ()
) -> tuple[ClusterState, list[TopicState]]:
    """`choose` for commands that change topics: some have to be chosen, and none of them is Kafka's own (Refused)."""
    if not names and not match:
        raise UsageError("no topic is named", hint="give names, or --match REGEX")
    state, chosen = choose(client, names, match)
    own = [topic.name for topic in chosen if hidden(topic)]
    if own:
        raise Refused(f"{', '.join(own)} is Kafka's own", hint="it holds the groups' offsets or transactions")
    return state, chosen


def chosen_partitions(topics: Iterable[TopicState], numbers: Collection[int] | None) -> list[TopicPartition]:
    """`chosen_states`, by topic and number. Raises NotFound."""
    return [state.tp for state in chosen_states(topics, numbers)]


def chosen_states(topics: Iterable[TopicState], numbers: Collection[int] | None) -> list[PartitionState]:
    """Return all partitions of the topics, or those with these numbers.

    Raises NotFound if a topic lacks one of the numbers.
    """
    found: list[PartitionState] = []
    for topic in topics:
        missing = set(numbers or ()) - {p.partition for p in topic.partitions}
        if missing:
            raise no_partition(topic.name, missing, len(topic.partitions))
        found += [p for p in topic.partitions if numbers is None or p.partition in numbers]
    return found


def hidden(topic: TopicState) -> bool:
    """Kafka's own topic: not for people's lists."""
    return topic.internal or is_internal(topic.name)


def known_topics(client: ClusterClient, names: Collection[str]) -> ClusterState:
    """The state with exactly these topics. Raises UsageError for impossible names, NotFound for unknown ones."""
    state = client.metadata([check_name(name) for name in names])
    missing = [name for name in dict.fromkeys(names) if name not in state.topics]
    if missing:
        raise unknown_topics(client, missing)
    return state


def unknown_topics(client: ClusterClient, missing: Sequence[str]) -> NotFound:
    """The error for topics that do not exist, with what was probably meant."""
    return not_there(missing, client.metadata().topics)
