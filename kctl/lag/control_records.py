"""Offsets in a lag that hold no message: transaction markers, and records removed by compaction.

A marker (KIP-98) takes an offset, so it counts as lag, in Kafka's tools too, but no consumer ever receives it. A group
that commits the offset after its last record, instead of its position, stays one behind until something is written
after the marker. Offsets cannot distinguish that from an unread message, but batch headers can. They are read only for
groups at most `MAX_LAG` behind, the smallest lags first.

Compaction leaves batches with fewer records than offsets, empty batches, and gaps between batches. Within a batch that
lost records, headers do not show which: the missing ones are assumed to be the first ones, so that a message is never
counted as missing.

Records of aborted transactions count as messages. Consumers with isolation.level=read_uncommitted, the default, receive
them, and brokers do not report the isolation level of a group.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import KctlError
from kctl.lag.log_times import UnreadLog
from kctl.model import TopicPartition
from kctl.protocol.fetch import fetch_request, fetched
from kctl.segment.format.batch import BATCH_HEADER, CONTROL_MASK, LOG_OVERHEAD, V2_HEADER

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MAX_LAG = 200
MAX_PARTITIONS = 1000
PARTITION_BYTES = 16 << 10
_PARTITIONS_PER_REQUEST = 200


class Markers(NamedTuple):
    """The offsets of a log from `first` to before `end` that hold no message, in order."""

    first: int
    end: int
    offsets: tuple[int, ...]


def control_records(markers: Markers | None, offset: int, log_end: int) -> int | None:
    """Return the number of offsets from `offset` to before `log_end` that hold no message; None if unknown."""
    if offset >= log_end:
        return 0
    if markers is None or offset < markers.first or log_end != markers.end:
        return None
    return len(markers.offsets) - bisect_left(markers.offsets, offset)


def fetch_markers(
    client: ClusterClient, ranges: Mapping[TopicPartition, UnreadLog]
) -> tuple[dict[TopicPartition, Markers], dict[TopicPartition, KctlError]]:
    """Return the markers from each requested offset to the log end, for MAX_PARTITIONS logs, and the errors of others.

    Logs whose batches do not fit into PARTITION_BYTES are in neither. Logs of unresponsive brokers have errors.
    """
    nearest = sorted(ranges, key=lambda tp: (ranges[tp].log_end - ranges[tp].offset, tp))[:MAX_PARTITIONS]
    by_leader: dict[int, Iterator[TopicPartition]] = {
        leader: iter([tp for tp in nearest if ranges[tp].leader == leader])
        for leader in {ranges[tp].leader for tp in nearest}
    }
    markers: dict[TopicPartition, Markers] = {}
    failed: dict[TopicPartition, KctlError] = {}
    while True:
        batch = {leader: list(islice(rest, _PARTITIONS_PER_REQUEST)) for leader, rest in by_leader.items()}
        requests = {
            leader: fetch_request(
                {tp: ranges[tp].offset for tp in tps},
                partition_bytes=PARTITION_BYTES,
                max_bytes=PARTITION_BYTES * len(tps),
            )
            for leader, tps in batch.items()
            if tps
        }
        if not requests:
            return markers, failed
        for leader, response in client.send_each(requests).items():
            _add_markers(batch[leader], response, ranges, markers, failed)


def _add_markers(
    partitions: list[TopicPartition],
    response: object,
    ranges: Mapping[TopicPartition, UnreadLog],
    markers: dict[TopicPartition, Markers],
    failed: dict[TopicPartition, KctlError],
) -> None:
    try:
        if isinstance(response, KctlError):
            raise response
        for tp, data in fetched(response):
            if tp not in ranges:
                continue
            if isinstance(data, KctlError):
                failed[tp] = data
                continue
            each = markers_of(data, ranges[tp].offset, ranges[tp].log_end)
            if each is not None:
                markers[tp] = each
    except KctlError as exc:
        failed.update(dict.fromkeys(partitions, exc))


def markers_of(data: bytes, first: int, end: int) -> Markers | None:
    """Return the offsets without a message in the batches at the start of `data`; None if they do not reach `end`.

    Headers suffice: the last batch may be incomplete. Batches of magic 0 and 1 have no markers, and their end is
    unknown unless all of their records are read, so the count stops there.
    """
    at, following, offsets = 0, first, list[int]()
    while following < end and at + V2_HEADER <= len(data):
        base, length, _, magic, _, attributes, delta, *_, records = BATCH_HEADER.unpack_from(data, at)
        size, offsets_of_batch = LOG_OVERHEAD + length, delta + 1
        if magic < 2 or size < V2_HEADER or not 0 <= records <= offsets_of_batch:
            break
        at += size
        if base + offsets_of_batch <= following:
            continue  # a batch before the requested offset
        without_record = offsets_of_batch if attributes & CONTROL_MASK else offsets_of_batch - records
        offsets += range(following, min(base + without_record, end))
        following = base + offsets_of_batch
    return Markers(first, end, tuple(offsets)) if following >= end else None
