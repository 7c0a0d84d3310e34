"""One partition of a plan: its replicas before and after."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The reassignment of one partition. Replicas are broker ids, the preferred leader first.

    before: the replicas when the plan was made; None if the file has none (Kafka's own tool does not write them).
    log_dirs: the log dir for each replica of `after`, None where the broker chooses. log_dirs_before: the log dir of
    each replica of `before`, None where unknown. size_bytes: of one replica. topic_id: in base64, None if unknown.
    """

    topic: str
    partition: int
    after: tuple[int, ...]
    before: tuple[int, ...] | None = None
    log_dirs: tuple[str | None, ...] | None = None
    log_dirs_before: tuple[str | None, ...] | None = None
    size_bytes: int | None = None
    topic_id: str | None = None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def adding(self) -> tuple[int, ...]:
        """Return the brokers that receive a copy. Empty if `before` is unknown."""
        return () if self.before is None else tuple(node for node in self.after if node not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return () if self.before is None else tuple(node for node in self.before if node not in self.after)
