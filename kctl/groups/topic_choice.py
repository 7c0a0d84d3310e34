"""Topics and partitions as written on a command line, as in Kafka's tool: "orders", "orders:0,1", "orders:0-3"."""

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
    """A topic, and some of its partitions; None: all."""

    topic: str
    partitions: tuple[int, ...] | None


def parse_choices(texts: Iterable[str]) -> list[TopicChoice]:
    """Parse the values of the repeatable option `--topic TOPIC[:PARTITIONS]`. Raises UsageError."""
    partitions: dict[str, set[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        check_name(topic)
        selected = _numbers(text, numbers) if colon else None
        before = partitions.get(topic, set())
        partitions[topic] = None if selected is None or before is None else before | selected
    return [TopicChoice(topic, None if each is None else tuple(sorted(each))) for topic, each in partitions.items()]


def _numbers(text: str, numbers: str) -> set[int]:
    partitions: set[int] = set()
    for part in numbers.split(","):
        match = _RANGE.fullmatch(part.strip())
        first = int(match[1]) if match else 0
        last = int(match[2] or match[1]) if match else -1
        if last < first or last > _MAX_PARTITION or last - first >= _MAX_CHOSEN:
            raise UsageError(
                f"--topic {text!r}: {part!r} is not a partition or range", hint="use e.g. orders:0,1 or orders:0-3"
            )
        partitions.update(range(first, last + 1))
    return partitions


def chosen_partitions(client: ClusterClient, choices: Sequence[TopicChoice]) -> list[TopicPartition]:
    """Return every selected partition. Raises NotFound for an unknown topic or partition."""
    from kctl.cluster.topics import known_topics

    state = known_topics(client, [choice.topic for choice in choices])
    partitions: list[TopicPartition] = []
    for choice in choices:
        existing = {partition.partition for partition in state.topics[choice.topic].partitions}
        missing = sorted(set(choice.partitions or ()) - existing)
        if missing:
            hint = f"it has partitions 0 to {len(existing) - 1}"
            raise NotFound(f"topic {choice.topic} has no partition {missing[0]}", hint=hint)
        partitions += (TopicPartition(choice.topic, number) for number in choice.partitions or sorted(existing))
    return partitions


def matching(partitions: Collection[TopicPartition], choices: Sequence[TopicChoice]) -> list[TopicPartition]:
    """Return the selected partitions, sorted. Without choices, all partitions are selected."""
    if not choices:
        return sorted(partitions)
    by_topic = {choice.topic: choice.partitions for choice in choices}
    return sorted(
        tp
        for tp in partitions
        if tp.topic in by_topic and ((numbers := by_topic[tp.topic]) is None or tp.partition in numbers)
    )
