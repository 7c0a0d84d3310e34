"""One partition of a plan: where its replicas are, and where they are to be."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Reassignment:
    """Broker ids, the preferred leader first.

    before: the replicas that the plan was made for, None in a file that does not tell (Kafka's own tool writes none).
    log_dirs: beside each of `after` the log dir that the replica is to be in, None where the broker chooses.
    log_dirs_before: beside each of `before` the log dir that the replica was in, None where it is not known.
    size_bytes: of one replica. topic_id: in base64, None when not known.
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
        """Brokers that get a copy. Empty when `before` is not known."""
        return () if self.before is None else tuple(node for node in self.after if node not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return () if self.before is None else tuple(node for node in self.before if node not in self.after)
