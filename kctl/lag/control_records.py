"""Offsets in a lag that hold no message: transaction markers, and records removed by compaction.

A marker (KIP-98) takes an offset, so that it counts as lag, in Kafka's own tools too; but no consumer is ever given it.
A group that commits the offset behind its last record, and not its position, stays one behind for as long as nothing
is written behind the marker. Offsets cannot tell that from an unread message; headers of batches can. They are read
for short ways only: of groups that are at most `MOST_LAG` behind, the nearest first.

Compaction leaves batches with fewer records than offsets, empty batches, and gaps between batches. Where a group stands
within a batch that lost some records, headers do not tell which: the missing ones count as far back as they can, so
that a message is never taken for none.

Records of aborted transactions count as messages. Consumers with isolation.level=read_uncommitted, the default, are
given them; brokers do not tell which level a group reads with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import KctlError
from kctl.lag.log_times import Wanted
from kctl.model import TopicPartition
from kctl.protocol.fetch import fetch_request, fetched
from kctl.segment.format.batch import BATCH_HEADER, CONTROL_MASK, LOG_OVERHEAD, V2_HEADER

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MOST_LAG = 200
MOST_PARTITIONS = 1000
PARTITION_BYTES = 16 << 10
_PARTITIONS_PER_REQUEST = 200


class Markers(NamedTuple):
    """Return the offsets of a log from `first` to before `end` that hold no message, in order."""

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
    client: ClusterClient, wanted: Mapping[TopicPartition, Wanted]
) -> tuple[dict[TopicPartition, Markers], dict[TopicPartition, KctlError]]:
    """The markers from each offset that is wanted to the log end, of MOST_PARTITIONS logs; and why others have none.

    Logs whose batches do not fit into PARTITION_BYTES are in neither. Raises nothing of brokers that do not answer.
    """
    nearest = sorted(wanted, key=lambda tp: (wanted[tp].log_end - wanted[tp].offset, tp))[:MOST_PARTITIONS]
    by_leader: dict[int, Iterator[TopicPartition]] = {
        leader: iter([tp for tp in nearest if wanted[tp].leader == leader])
        for leader in {wanted[tp].leader for tp in nearest}
    }
    found: dict[TopicPartition, Markers] = {}
    failed: dict[TopicPartition, KctlError] = {}
    while True:
        asked = {leader: list(islice(rest, _PARTITIONS_PER_REQUEST)) for leader, rest in by_leader.items()}
        requests = {
            leader: fetch_request(
                {tp: wanted[tp].offset for tp in tps},
                partition_bytes=PARTITION_BYTES,
                max_bytes=PARTITION_BYTES * len(tps),
            )
            for leader, tps in asked.items()
            if tps
        }
        if not requests:
            return found, failed
        for leader, response in client.send_each(requests).items():
            _take(asked[leader], response, wanted, found, failed)


def _take(
    asked: list[TopicPartition],
    response: object,
    wanted: Mapping[TopicPartition, Wanted],
    found: dict[TopicPartition, Markers],
    failed: dict[TopicPartition, KctlError],
) -> None:
    try:
        if isinstance(response, KctlError):
            raise response
        for tp, data in fetched(response):
            if tp not in wanted:
                continue
            if isinstance(data, KctlError):
                failed[tp] = data
                continue
            markers = markers_of(data, wanted[tp].offset, wanted[tp].log_end)
            if markers is not None:
                found[tp] = markers
    except KctlError as exc:
        failed.update(dict.fromkeys(asked, exc))


def markers_of(data: bytes, first: int, end: int) -> Markers | None:
    """The offsets without a message among the batches at the beginning of `data`; None: they do not reach to `end`.

    Headers suffice: of the last batch no more needs to be there. Batches of magic 0 and 1 have no markers, and tell
    where they end only when they are read through: there the count ends.
    """
    at, following, offsets = 0, first, list[int]()
    while following < end and at + V2_HEADER <= len(data):
        base, length, _, magic, _, attributes, delta, *_, records = BATCH_HEADER.unpack_from(data, at)
        size, offsets_of_batch = LOG_OVERHEAD + length, delta + 1
        if magic < 2 or size < V2_HEADER or not 0 <= records <= offsets_of_batch:
            break
        at += size
        if base + offsets_of_batch <= following:
            continue  # a batch before the offset that was asked for
        without_record = offsets_of_batch if attributes & CONTROL_MASK else offsets_of_batch - records
        offsets += range(following, min(base + without_record, end))
        following = base + offsets_of_batch
    return Markers(first, end, tuple(offsets)) if following >= end else None
