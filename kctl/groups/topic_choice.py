"""«orders», «orders:0,1», «orders:0-3»: topics and partitions as people choose them, as Kafka's own tool takes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.topic_names import check_name
from kctl.errors import NotFound, UsageError
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")
_MAX_PARTITION = 2**31 - 1
_MAX_CHOSEN = 1_000_000


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """A topic, and some of its partitions; None for all of them."""

    topic: str
    partitions: tuple[int, ...] | None


def parse_choices(texts: Iterable[str]) -> list[TopicChoice]:
    """What the repeatable `--topic TOPIC[:PARTITIONS]` says. Raises UsageError."""
    found: dict[str, set[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        check_name(topic)
        chosen = _numbers(text, numbers) if colon else None
        before = found.get(topic, set())
        found[topic] = None if chosen is None or before is None else before | chosen
    return [TopicChoice(topic, None if chosen is None else tuple(sorted(chosen))) for topic, chosen in found.items()]


def _numbers(text: str, numbers: str) -> set[int]:
    chosen: set[int] = set()
    for part in numbers.split(","):
        match = _RANGE.fullmatch(part.strip())
        first = int(match[1]) if match else 0
        last = int(match[2] or match[1]) if match else -1
        if last < first or last > _MAX_PARTITION or last - first >= _MAX_CHOSEN:
            raise UsageError(
                f"--topic {text!r}: {part!r} is no partition", hint="write for example orders:0,1 or orders:0-3"
            )
        chosen.update(range(first, last + 1))
    return chosen


def chosen_partitions(client: ClusterClient, choices: Sequence[TopicChoice]) -> list[TopicPartition]:
    """Every partition chosen. Raises NotFound for a topic or partition that does not exist."""
    from kctl.cluster.topics import known_topics

    state = known_topics(client, [choice.topic for choice in choices])
    found: list[TopicPartition] = []
    for choice in choices:
        there = {partition.partition for partition in state.topics[choice.topic].partitions}
        missing = sorted(set(choice.partitions or ()) - there)
        if missing:
            raise NotFound(
                f"topic {choice.topic} has no partition {missing[0]}", hint=f"it has {len(there)}, counted from 0"
            )
        found += (TopicPartition(choice.topic, number) for number in choice.partitions or sorted(there))
    return found


def matching(partitions: Collection[TopicPartition], choices: Sequence[TopicChoice]) -> list[TopicPartition]:
    """Those of `partitions` that are chosen, sorted; all of them when there is no choice."""
    if not choices:
        return sorted(partitions)
    by_topic = {choice.topic: choice.partitions for choice in choices}
    return sorted(
        tp
        for tp in partitions
        if tp.topic in by_topic and ((numbers := by_topic[tp.topic]) is None or tp.partition in numbers)
    )
