"""Consuming topics by Fetch requests of our own: alone, or as a member of a group, which kafka-python's consumer is.

The end of a log is where the position reaches the end offset that was read at the start, not a count of records:
compaction leaves gaps, and transactions put markers into the log that no consumer sees.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.cluster.rights import READ, topics_denied
from kctl.errors import NotAuthorized
from kctl.protocol.codes import ApiKey
from kctl.records.consume.delivery import ConsumeResult, Delivery, PartitionRead, Sink
from kctl.records.consume.direct import Direct
from kctl.records.consume.options import ConsumeOptions, check_options
from kctl.records.consume.plan import Plan, plan
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
    """Read records into `sink` until a limit is reached or Ctrl-C (which is a result, `ended` «interrupted»).

    stats: tell the sink each second how fast it goes. Raises NotFound for an unknown topic or partition, Refused for a
    start outside the log and for a group that a classic member would change, NotAuthorized, OperationFailed when a
    topic goes away or a batch is damaged, NotSupported for records whose codec is not installed, ConnectionFailed when
    no broker answers for timeout_s.
    """
    check_options(options)
    # A member that reads nothing would leave a group with commits.
    client.require(ApiKey.FETCH, _FETCH_BATCHES, "kctl consume")
    found = plan(client, options)
    _check_rights(client, options, found)
    delivery = Delivery(options, sink, found.ends, decoder, stats=stats)
    started = time.monotonic()
    result = ConsumeResult(list(found.topics), options.group, partition_count=len(found.partitions))
    if options.max_messages == 0:
        result.ended = "max-messages"
        return result
    if options.group is None:
        _read_alone(client, options, found, delivery, sink, result)
    else:
        _read_as_member(client, options, found, delivery, sink, result)
    _fill(result, found, delivery)
    result.duration_ms = round((time.monotonic() - started) * 1000)
    return result


def _check_rights(client: ClusterClient, options: ConsumeOptions, found: Plan) -> None:
    """Raise NotAuthorized for topics that may not be read and of which nothing will be fetched, so that no broker says
    so: an empty log is not to be told of them. A member fetches nothing either as long as it has no partition.
    """
    wanted = found.partitions if options.max_messages != 0 else ()
    fetched = {tp.topic for tp in wanted if found.starts.get(tp, -1) < found.ends.get(tp, 1 << 63)}
    silent = set(found.topics) if options.group is not None else set(found.topics) - fetched
    denied = topics_denied(client, silent, READ) if silent else []
    if denied:
        raise NotAuthorized(
            f"not authorized to read {'topic' if len(denied) == 1 else 'topics'} {', '.join(denied)}",
            hint="ask for the ACL operation Read on the topic",
        )


def _read_alone(
    client: ClusterClient, options: ConsumeOptions, found: Plan, delivery: Delivery, sink: Sink, result: ConsumeResult
) -> None:
    reader = Direct(client, options, found, delivery, sink)
    try:
        result.ended = reader.run()
    except KeyboardInterrupt:
        sink.flush()
    result.skipped = reader.skipped


def _read_as_member(
    client: ClusterClient, options: ConsumeOptions, found: Plan, delivery: Delivery, sink: Sink, result: ConsumeResult
) -> None:
    from kctl.records.consume.group_check import check_group
    from kctl.records.consume.group_reader import GroupReader

    assert options.group is not None
    warning = check_group(client, options.group, as_classic_member=options.as_classic_member)
    if warning:
        sink.warn(warning)
    reader = GroupReader(client, options, found, delivery, sink)
    result.ended = reader.run()
    result.skipped = reader.skipped
    result.partitions = [PartitionRead(*tp, 0, offset) for tp, offset in reader.committed.items()]


def _fill(result: ConsumeResult, found: Plan, delivery: Delivery) -> None:
    """What was counted."""
    result.records, result.bytes = delivery.records, delivery.bytes
    result.filtered, result.undecoded = delivery.filtered, delivery.undecoded
    result.first_undecoded = delivery.first_undecoded
    committed = {(each.topic, each.partition): each.committed_offset for each in result.partitions}
    seen = sorted({*delivery.counts, *(tp for tp in found.partitions if tuple(tp) in committed)})
    result.partitions = [
        PartitionRead(tp.topic, tp.partition, delivery.counts.get(tp, 0), committed.get((tp.topic, tp.partition)))
        for tp in seen
    ]
