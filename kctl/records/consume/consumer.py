"""kafka-python's consumer as a group member that fetches nothing itself.

Every assigned partition is paused, so that poll() joins, rebalances, sends heartbeats and commits, but does not fetch.
Its positions are set to the delivered offsets. It commits them each second in poll(), and before partitions are
revoked.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, OperationFailed
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.records.consume.options import ConsumeOptions

_SESSION_MS = 10_000


def open_consumer(client: ClusterClient, options: ConsumeOptions) -> Any:
    """Return a consumer that is a member of the group."""
    return client.consumer(
        group_id=options.group,
        enable_auto_commit=True,
        auto_commit_interval_ms=1000,
        session_timeout_ms=_SESSION_MS,  # a killed reader should not keep its partitions for long
        heartbeat_interval_ms=_SESSION_MS // 3,
        auto_offset_reset="none",  # never skip records silently
        isolation_level="read_committed" if options.read_committed else "read_uncommitted",
        allow_auto_create_topics=False,
        exclude_internal_topics=False,
        request_timeout_ms=max(int(options.timeout_s * 1000), 2000),
    )


class Ownership:
    """The partitions of a member. kafka-python's thread changes it, but only while poll() or close() waits for it."""

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self._changed: set[TopicPartition] = set()

    def changes(self) -> set[TopicPartition]:
        """Return the partitions revoked or assigned since the last call, including those with both changes."""
        changed, self._changed = self._changed, set()
        return changed

    def listener(self, consumer: Any) -> Any:
        """Return a listener for the consumer's `subscribe`."""
        from kafka import ConsumerRebalanceListener

        ownership = self

        class RebalanceListener(ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                ownership._changed |= (partitions := set(map(from_kafka, revoked)))
                ownership.owned -= partitions

            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                consumer.pause(*assigned)
                ownership._changed |= (partitions := set(map(from_kafka, assigned)))
                ownership.owned |= partitions

        return RebalanceListener()


def is_settled(consumer: Any) -> bool:
    """Return True if the consumer is a stable member, so that poll() has nothing to wait for."""
    from kafka.structs import MemberState

    coordinator = consumer._coordinator  # noqa: SLF001 - no public access
    stable = consumer.group_metadata().state == MemberState.STABLE
    return stable and not coordinator.need_rejoin() and not coordinator.coordinator_unknown()


def positions(consumer: Any) -> dict[TopicPartition, int]:
    """Return the positions that the consumer knows, without a request."""
    offsets = consumer._subscription.all_consumed_offsets()  # noqa: SLF001 - position() sends requests and is quadratic
    return {from_kafka(tp): position.offset for tp, position in offsets.items()}


def set_position(consumer: Any, tp: TopicPartition, offset: int) -> None:
    """Set the offset that the consumer commits for the partition; no effect if it was revoked in the meantime."""
    with suppress(KeyError):
        consumer._subscription.seek(to_kafka(tp), offset)  # noqa: SLF001 - the public seek() is quadratic


def unstick(consumer: Any) -> None:
    """Make a stuck member rejoin.

    A bug of kafka-python 3.0.12 (the pinned release): if the group's leader rejoins after a metadata change and poll()
    times out in the meantime, nothing processes the result. The member stays in REBALANCING, without heartbeats.
    """
    from kafka.structs import MemberState

    if consumer.group_metadata().state != MemberState.REBALANCING:
        return
    coordinator = consumer._coordinator  # noqa: SLF001 - no public way to request a rejoin
    if not coordinator.need_rejoin():
        coordinator.request_rejoin()


def failure(exc: Any, options: ConsumeOptions, *, what: str | None = None) -> KctlError:
    """Return the consumer's KafkaError as a KctlError. what: the consequence, e.g. what was not done."""
    from kctl.protocol.client import error_from

    error = error_from(exc, subject=_subject(options))
    if isinstance(error, (NotAuthorized, ConnectionFailed)) and not what:
        return error
    return OperationFailed(f"{error.message}; {what}" if what else error.message, hint=error.hint)


def _subject(options: ConsumeOptions) -> str:
    return f"group {options.group}"


def to_kafka(tp: TopicPartition) -> Any:
    """Return kafka-python's TopicPartition."""
    from kafka.structs import TopicPartition as KafkaTopicPartition

    return KafkaTopicPartition(tp.topic, tp.partition)


def from_kafka(tp: Any) -> TopicPartition:
    """Return kctl's TopicPartition."""
    return TopicPartition(tp.topic, tp.partition)
