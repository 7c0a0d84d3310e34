"""kafka-python's consumer as `kctl consume` needs it: a member of a group that reads nothing itself.

All that it is given is paused, so that poll() joins, shares, beats and commits, and fetches nothing; its positions are
set to what was delivered. It commits them each second in poll(), and before it gives partitions away.
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
    """As a member of the group."""
    return client.consumer(
        group_id=options.group,
        enable_auto_commit=True,
        auto_commit_interval_ms=1000,
        session_timeout_ms=_SESSION_MS,  # a reader that was killed should not keep its partitions for long
        heartbeat_interval_ms=_SESSION_MS // 3,
        auto_offset_reset="none",  # never jump over records without saying so
        isolation_level="read_committed" if options.read_committed else "read_uncommitted",
        allow_auto_create_topics=False,
        exclude_internal_topics=False,
        request_timeout_ms=max(int(options.timeout_s * 1000), 2000),
    )


class Ownership:
    """Which partitions a member has. kafka-python's thread changes it, only while poll() or close() waits for it."""

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self._changed: set[TopicPartition] = set()

    def changes(self) -> set[TopicPartition]:
        """What was taken away or given since the last call, also what was first the one and then the other."""
        changed, self._changed = self._changed, set()
        return changed

    def listener(self, consumer: Any) -> Any:
        """For the consumer's `subscribe`."""
        from kafka import ConsumerRebalanceListener

        ownership = self

        class Listener(ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                ownership._changed |= (taken := set(map(ours, revoked)))
                ownership.owned -= taken

            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                consumer.pause(*assigned)
                ownership._changed |= (given := set(map(ours, assigned)))
                ownership.owned |= given

        return Listener()


def settled(consumer: Any) -> bool:
    """Whether it is a member and stays one, so that poll() has nothing to wait for."""
    from kafka.structs import MemberState

    coordinator = consumer._coordinator  # noqa: SLF001 - nothing public tells it
    stable = consumer.group_metadata().state == MemberState.STABLE
    return stable and not coordinator.need_rejoin() and not coordinator.coordinator_unknown()


def positions(consumer: Any) -> dict[TopicPartition, int]:
    """Of the partitions that it has and knows the position of, without asking anybody."""
    known = consumer._subscription.all_consumed_offsets()  # noqa: SLF001 - position() asks, and looks at all for each
    return {ours(tp): position.offset for tp, position in known.items()}


def set_position(consumer: Any, tp: TopicPartition, offset: int) -> None:
    """What it commits for the partition; nothing when it was taken away meanwhile."""
    with suppress(KeyError):
        consumer._subscription.seek(theirs(tp), offset)  # noqa: SLF001 - its own seek() makes a set of all for each


def unstick(consumer: Any) -> None:
    """Make a member rejoin that has forgotten to.

    kafka-python 3.0.12, pinned: when the leader of a group rejoins because metadata have changed, and poll() times
    out while it does, nothing ever takes the result: the member stays «rebalancing», without heartbeats, for ever.
    """
    from kafka.structs import MemberState

    if consumer.group_metadata().state != MemberState.REBALANCING:
        return
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no public way to ask for a rejoin
    if not coordinator.need_rejoin():
        coordinator.request_rejoin()


def failure(exc: Any, options: ConsumeOptions, *, what: str | None = None) -> KctlError:
    """A KafkaError of the consumer as one of kctl's. what: what did not happen because of it."""
    from kctl.protocol.client import error_from

    error = error_from(exc, subject=_read_by(options))
    if isinstance(error, (NotAuthorized, ConnectionFailed)) and not what:
        return error
    return OperationFailed(f"{error.message}; {what}" if what else error.message, hint=error.hint)


def _read_by(options: ConsumeOptions) -> str:
    return f"group {options.group}"


def theirs(tp: TopicPartition) -> Any:
    """As kafka-python has it."""
    from kafka.structs import TopicPartition as KafkaTopicPartition

    return KafkaTopicPartition(tp.topic, tp.partition)


def ours(tp: Any) -> TopicPartition:
    """As kctl has it."""
    return TopicPartition(tp.topic, tp.partition)
