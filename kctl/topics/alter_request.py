"""A requested change to topics, and the change that it makes to each topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kctl.errors import Reason, Refused
from kctl.model import TopicState
from kctl.topics.alter import TopicChange


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """A requested change to one or more topics.

    partitions: the new number; None: unchanged. assignment: the replicas of every partition; existing ones keep
    theirs. configs: see TopicChange.
    """

    partitions: int | None = None
    assignment: tuple[tuple[int, ...], ...] | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)

    def change_of(self, topic: TopicState) -> TopicChange:
        """Return the change to a topic. Raises Refused if the assignment would move replicas. Pure."""
        if self.assignment is None:
            return TopicChange(topic.name, self.partitions, None, self.configs)
        current = tuple(p.replicas for p in topic.partitions)
        if self.assignment[: len(current)] != current:
            raise Refused(
                f"--replica-assignment differs from the replicas of existing partitions of topic {topic.name}",
                hint="show them with `kctl topic describe`, move them with `kctl topic reassign`",
                reason=Reason.IMPOSSIBLE,
            )
        return TopicChange(topic.name, self.partitions, self.assignment[len(current) :], self.configs)
