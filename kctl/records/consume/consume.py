"""Consume topics with kctl's own Fetch requests: without a group, or as a member through kafka-python's consumer.

A partition is finished when the position reaches the end offset that was read at the start. Counting records would not
work: compaction leaves gaps, and transaction markers are not visible to consumers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.cluster.rights import READ, topics_denied
from kctl.errors import NotAuthorized
from kctl.protocol.codes import ApiKey
from kctl.records.consume.delivery import ConsumeResult, Delivery, PartitionRead, Sink
from kctl.records.consume.direct import DirectReader
from kctl.records.consume.options import ConsumeOptions, check_options
from kctl.records.consume.plan import ReadPlan, make_plan
from kctl.records.decode.decoding import RecordDecoder

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_FETCH_BATCHES = 4  # the first version of Fetch with batches of magic 2

__all__ = ["ConsumeOptions", "ConsumeResult", "Sink", "check_options", "consume"]


def consume(
    client: ClusterClient,
    options: ConsumeOptions,
    sink: Sink,
    *,
    decoder: RecordDecoder | None = None,
    stats: bool = False,
) -> ConsumeResult:
    """Read records into `sink` until a limit is reached, or until Ctrl-C (then ended="interrupted" in the result).

    stats: report the throughput to the sink each second. Raises NotFound for an unknown topic or partition, Refused
    for a start outside the log and for a group that a classic member would change, NotAuthorized, OperationFailed if a
    topic is deleted or a batch is damaged, NotSupported for records whose codec is not installed, ConnectionFailed if
    no broker responds within timeout_s.
    """
    check_options(options)
    # Checked before joining: a member that cannot read would still commit offsets.
    client.require(ApiKey.FETCH, _FETCH_BATCHES, "kctl consume")
    plan = make_plan(client, options)
    _check_rights(client, options, plan)
    delivery = Delivery(options, sink, plan.ends, decoder, stats=stats)
    started = time.monotonic()
    result = ConsumeResult(list(plan.topics), options.group, partition_count=len(plan.partitions))
    if options.max_messages == 0:
        result.ended = "max-messages"
        return result
    if options.group is None:
        _read_alone(client, options, plan, delivery, sink, result)
    else:
        _read_as_member(client, options, plan, delivery, sink, result)
    _fill(result, plan, delivery)
    result.duration_ms = round((time.monotonic() - started) * 1000)
    return result


def _check_rights(client: ClusterClient, options: ConsumeOptions, plan: ReadPlan) -> None:
    """Raise NotAuthorized for unreadable topics from which nothing will be fetched.

    Without a Fetch, no broker reports the missing right, and the topic would look empty. A group member without a
    partition fetches nothing either.
    """
    partitions = plan.partitions if options.max_messages != 0 else ()
    fetched = {tp.topic for tp in partitions if plan.starts.get(tp, -1) < plan.ends.get(tp, 1 << 63)}
    unfetched = set(plan.topics) if options.group is not None else set(plan.topics) - fetched
    denied = topics_denied(client, unfetched, READ) if unfetched else []
    if denied:
        raise NotAuthorized(
            f"not authorized to read {'topic' if len(denied) == 1 else 'topics'} {', '.join(denied)}",
            hint="ask for the ACL operation Read on the topic",
        )


def _read_alone(
    client: ClusterClient,
    options: ConsumeOptions,
    plan: ReadPlan,
    delivery: Delivery,
    sink: Sink,
    result: ConsumeResult,
) -> None:
    reader = DirectReader(client, options, plan, delivery, sink)
    try:
        result.ended = reader.run()
    except KeyboardInterrupt:
        sink.flush()
    result.skipped = reader.skipped


def _read_as_member(
    client: ClusterClient,
    options: ConsumeOptions,
    plan: ReadPlan,
    delivery: Delivery,
    sink: Sink,
    result: ConsumeResult,
) -> None:
    from kctl.records.consume.group_check import check_group
    from kctl.records.consume.group_reader import GroupReader

    assert options.group is not None
    warning = check_group(client, options.group, as_classic_member=options.as_classic_member)
    if warning:
        sink.warn(warning)
    reader = GroupReader(client, options, plan, delivery, sink)
    result.ended = reader.run()
    result.skipped = reader.skipped
    result.partitions = [PartitionRead(*tp, 0, offset) for tp, offset in reader.committed.items()]


def _fill(result: ConsumeResult, plan: ReadPlan, delivery: Delivery) -> None:
    """Copy the counts into the result."""
    result.records, result.bytes = delivery.records, delivery.bytes
    result.filtered, result.undecoded = delivery.filtered, delivery.undecoded
    result.first_undecoded = delivery.first_undecoded
    committed = {(each.topic, each.partition): each.committed_offset for each in result.partitions}
    partitions = sorted({*delivery.counts, *(tp for tp in plan.partitions if tuple(tp) in committed)})
    result.partitions = [
        PartitionRead(tp.topic, tp.partition, delivery.counts.get(tp, 0), committed.get((tp.topic, tp.partition)))
        for tp in partitions
    ]
