"""kafka-python's consumer as `kctl consume` needs it: how it is opened, kept going, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, NotSupported, OperationFailed
from kctl.model import TopicPartition
from kctl.records.codecs import prepare_codecs

if TYPE_CHECKING:
    from kctl.client import ClusterClient
    from kctl.records.options import ConsumeOptions

POLL_RECORDS = 500
_SESSION_MS = 10_000


def open_consumer(client: ClusterClient, options: ConsumeOptions) -> Any:
    """As a member of the group; it commits by itself what earlier polls returned."""
    prepare_codecs()
    return client.consumer(
        group_id=options.group,
        # kafka-python commits in poll() what earlier polls returned, and before a rebalance: by then it is flushed.
        enable_auto_commit=True,
        auto_commit_interval_ms=1000,
        session_timeout_ms=_SESSION_MS,  # a reader that was killed should not keep its partitions for long
        heartbeat_interval_ms=_SESSION_MS // 3,
        auto_offset_reset="none",  # never jump over records without saying so
        isolation_level="read_committed" if options.read_committed else "read_uncommitted",
        allow_auto_create_topics=False,
        exclude_internal_topics=False,
        max_poll_records=POLL_RECORDS,
        fetch_max_bytes=8 * 1024 * 1024,
        request_timeout_ms=max(int(options.timeout_s * 1000), 2000),
    )


def subscribe(consumer: Any, topics: Sequence[str], revoked: Callable[[Collection[TopicPartition]], None]) -> None:
    """revoked: called, within a poll, with the partitions that a rebalance takes away, if only for its duration."""
    from kafka.consumer.subscription_state import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked_: Any) -> None:
            revoked([ours(tp) for tp in revoked_])

        def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    consumer.subscribe(list(topics), listener=Listener())


def positions(consumer: Any) -> dict[TopicPartition, int]:
    """The position of each assigned partition that has one.

    kafka-python's position() looks at all partitions for each, and waits for those that have none.
    """
    known = consumer._subscription.all_consumed_offsets()  # noqa: SLF001 - what its own commit() takes
    return {ours(tp): int(at.offset) for tp, at in known.items()}


def joined(consumer: Any) -> bool:
    """It is a member and has been told its partitions, if any."""
    from kafka.structs import MemberState

    return bool(consumer.group_metadata().state == MemberState.STABLE)


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
    from kafka.errors import UnsupportedCodecError

    from kctl.client import error_from

    if isinstance(exc, UnsupportedCodecError):
        return NotSupported(
            f"{_read_by(options)}: there are records whose compression needs a library that is not installed",
            hint="install kctl with its codecs: kctl[codecs]",
        )
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
