"""The topic that records are written to: its existence, its size limits, and what prevents writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.topic_configs import fetch_topic_configs, min_isr_in
from kctl.cluster.topics import known_topics
from kctl.errors import KctlError, NotFound, Reason, Refused, UsageError
from kctl.health.partitions import under_min_isr
from kctl.records.produce.options import ProduceOptions

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

MAX_RECORD_BYTES = 64 << 20  # unless the topic's limit is lower
_LIMITS = ("max.message.bytes", "segment.bytes")
_ENCODED = 6  # bytes of JSON for one byte of a record, at most (\\u0000)
_LINE_OVERHEAD = 64 * 1024  # other JSON fields
_CONFIGS_S = 3.0  # the size limit is useful, but not worth a long wait


class Destination(NamedTuple):
    """The topic to write to.

    max_batch_bytes: the largest batch that the topic accepts, None if unreadable; limit_name: its config.
    """

    state: ClusterState
    max_batch_bytes: int | None
    limit_name: str = "max.message.bytes"


def check_topic(client: ClusterClient, options: ProduceOptions) -> Destination:
    """Return the topic with its limit, after checking that the topic and the partition exist.

    Raises NotFound for an unknown topic or partition, Refused for an internal topic, UsageError for conflicting
    options.
    """
    if options.idempotent and options.acks != "all":
        raise UsageError("idempotence requires --acks all", hint="add --no-idempotence, or remove --acks")
    state = known_topics(client, [options.topic])
    topic = state.topics[options.topic]
    if topic.internal:  # ReplicaManager.appendToLocalLog: INVALID_TOPIC_EXCEPTION
        raise Refused(
            f"topic {options.topic} is internal: brokers reject records from clients", reason=Reason.INTERNAL_TOPIC
        )
    count = len(topic.partitions)
    if options.partition is not None and options.partition >= count:
        raise NotFound(f"topic {options.topic} has no partition {options.partition}", hint=f"use 0 to {count - 1}")
    configs = fetch_topic_configs(
        client, [options.topic], state.brokers, names=_LIMITS, defaults=True, limit_s=_CONFIGS_S
    )[options.topic]
    if isinstance(configs, KctlError):
        return Destination(state, None)  # unreadable: the broker will decide
    # A batch must also fit into a segment (UnifiedLog.append: RecordBatchTooLargeException).
    limits = [(int(e.value), e.name) for e in configs if e.name in _LIMITS and e.value and e.value.isdigit()]
    return Destination(state, *min(limits)) if limits else Destination(state, None)


def longest_line(destination: Destination, options: ProduceOptions, *, encoded: bool) -> int:
    """Return the maximum length of a line that can be a record. encoded: as JSON, hex or base64."""
    limit = destination.max_batch_bytes
    largest = max(limit or 0, MAX_RECORD_BYTES)  # a record that fits uncompressed also fits compressed
    if limit is None or options.compression != "none":
        limit = largest
    return min(limit * _ENCODED + _LINE_OVERHEAD, largest * 2) if encoded else limit


def shortage(client: ClusterClient, topic: str) -> str | None:
    """Return why brokers may reject acks=all now: too few replicas in sync, or no leader. None: no reason."""
    try:
        state = known_topics(client, [topic])
        configs = fetch_topic_configs(client, [topic], state.brokers)[topic]
    except KctlError:
        return None
    partitions = state.topics[topic].partitions
    offline = [str(p.partition) for p in partitions if p.offline]
    min_isr = 0 if isinstance(configs, KctlError) else min_isr_in(configs)
    short = [str(p.partition) for p in partitions if under_min_isr(p, min_isr) and not p.offline]
    if offline:
        return f"partitions without a leader: {', '.join(offline)}"
    if short:
        return f"partitions with fewer replicas in sync than min.insync.replicas: {', '.join(short)}"
    return None
