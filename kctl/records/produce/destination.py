"""The topic that records are written to: whether it is there, what it takes, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.topic_configs import fetch_topic_configs, min_isr_in
from kctl.cluster.topics import known_topics
from kctl.errors import KctlError, NotFound, Refused, UsageError
from kctl.health.partitions import under_min_isr
from kctl.records.produce.options import ProduceOptions

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

MAX_RECORD_BYTES = 64 << 20  # where a topic's limit does not say less
_LIMITS = ("max.message.bytes", "segment.bytes")
_ENCODED = 6  # bytes of JSON for a byte of a record at most (\\u0000)
_LINE_BESIDE = 64 * 1024  # JSON's other fields
_CONFIGS_S = 3.0  # the size limit is good to know, and no reason to wait


class Destination(NamedTuple):
    """The topic that is written to. max_batch_bytes: the largest batch that it takes, of which limit_name is the
    config; None when it may not be read."""

    state: ClusterState
    max_batch_bytes: int | None
    limit_name: str = "max.message.bytes"


def check_topic(client: ClusterClient, options: ProduceOptions) -> Destination:
    """The topic with its limit, after checking that it and the partition exist.

    Raises NotFound for an unknown topic or partition, Refused for a topic of Kafka's own, UsageError for options that
    exclude each other.
    """
    if options.idempotent and options.acks != "all":
        raise UsageError("idempotence needs --acks all", hint="add --no-idempotence, or leave --acks out")
    state = known_topics(client, [options.topic])
    topic = state.topics[options.topic]
    if topic.internal:  # ReplicaManager.appendToLocalLog: INVALID_TOPIC_EXCEPTION
        raise Refused(f"topic {options.topic} is Kafka's own: brokers take no records for it from clients")
    count = len(topic.partitions)
    if options.partition is not None and options.partition >= count:
        raise NotFound(f"topic {options.topic} has no partition {options.partition}", hint=f"it has 0 to {count - 1}")
    configs = fetch_topic_configs(
        client, [options.topic], state.brokers, names=_LIMITS, defaults=True, limit_s=_CONFIGS_S
    )[options.topic]
    if isinstance(configs, KctlError):
        return Destination(state, None)  # not allowed to look: the broker will say
    # A batch has to fit into a segment, too (UnifiedLog.append: RecordBatchTooLargeException).
    limits = [(int(e.value), e.name) for e in configs if e.name in _LIMITS and e.value and e.value.isdigit()]
    return Destination(state, *min(limits)) if limits else Destination(state, None)


def longest_line(destination: Destination, options: ProduceOptions, *, encoded: bool) -> int:
    """The most bytes that a line can have and still be a record. encoded: as JSON, hex or base64."""
    limit = destination.max_batch_bytes
    largest = max(limit or 0, MAX_RECORD_BYTES)  # what fits without a codec fits with one
    if limit is None or options.compression != "none":
        limit = largest
    return min(limit * _ENCODED + _LINE_BESIDE, largest * 2) if encoded else limit


def shortage(client: ClusterClient, topic: str) -> str | None:
    """Why brokers may be refusing acks=all just now, in a line: too few replicas in sync, or no leader."""
    try:
        state = known_topics(client, [topic])
        configs = fetch_topic_configs(client, [topic], state.brokers)[topic]
    except KctlError:
        return None
    partitions = state.topics[topic].partitions
    offline = [str(p.partition) for p in partitions if p.offline]
    least = 0 if isinstance(configs, KctlError) else min_isr_in(configs)
    short = [str(p.partition) for p in partitions if under_min_isr(p, least) and not p.offline]
    if offline:
        return f"partitions without a leader: {', '.join(offline)}"
    if short:
        return f"partitions with fewer replicas in sync than min.insync.replicas: {', '.join(short)}"
    return None
