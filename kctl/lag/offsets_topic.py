"""Read the log of __consumer_offsets from a live cluster: whole batches, transaction markers included.

Uses Fetch (kctl.protocol.fetch), so that the log itself shows which transactions were committed. Requires the ACL
operation READ on the topic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kctl.base.binary_layout import INT32, UINT16
from kctl.cluster.offsets import OffsetSpec, fetch_offsets_each
from kctl.errors import KctlError, NotFound, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.fetch import fetch_request, fetched
from kctl.segment.format.batch import BATCH_HEADER, LEGACY_HEADER, LOG_OVERHEAD, V0_OVERHEAD, V2_HEADER
from kctl.segment.format.offset_commits import TOPIC

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

FETCH_BYTES = 4 << 20
_MAX_WAIT_MS = 500
_MAX_EMPTY = 5  # consecutive empty responses below the log end
_DELTA_AT = BATCH_HEADER.offset("last_offset_delta")


class OffsetsLog(NamedTuple):
    """A partition of the topic, with its log start offset and its high watermark when read."""

    partition: int
    leader: int
    first: int
    end: int


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of the topic that holds a group's commits. partitions: how many the topic has.

    Source: kafka.coordinator.group.GroupMetadataManager.partitionFor; String.hashCode over UTF-16.
    """
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for (unit,) in UINT16.iter_unpack(units):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions  # Utils.abs


def offsets_logs(
    client: ClusterClient, partitions: Collection[int] | None = None
) -> tuple[list[OffsetsLog], list[str]]:
    """Return the readable partitions among `partitions` (None: all), and why others are not readable.

    Raises NotFound if no group has ever committed an offset, and the errors of ClusterClient.
    """
    topic = client.metadata([TOPIC]).topics.get(TOPIC)
    if topic is None:
        raise NotFound(f"{TOPIC} does not exist", hint="no group has committed offsets yet")
    leaders = {
        each.tp: each.leader for each in topic.partitions if partitions is None or each.tp.partition in partitions
    }
    failed = [f"{tp} has no leader" for tp, leader in leaders.items() if leader < 0]
    by_leader: dict[int, list[TopicPartition]] = {}
    for tp, leader in leaders.items():
        if leader >= 0:
            by_leader.setdefault(leader, []).append(tp)
    if not by_leader:
        return [], failed
    first = fetch_offsets_each(client, by_leader, OffsetSpec.EARLIEST)
    end = fetch_offsets_each(client, by_leader, OffsetSpec.LATEST)
    logs: list[OffsetsLog] = []
    for tp in (tp for tps in by_leader.values() for tp in tps):
        low, high = first.get(tp), end.get(tp)
        if isinstance(low, int) and isinstance(high, int):
            logs.append(OffsetsLog(tp.partition, leaders[tp], low, high))
        else:
            problem = next(
                (each.message for each in (low, high) if isinstance(each, KctlError)), "missing in the response"
            )
            failed.append(f"{tp}: {problem}")
    return logs, failed


def fetch_log(client: ClusterClient, log: OffsetsLog) -> Iterator[bytes]:
    """Yield whole batches from the log's start to its end, about FETCH_BYTES at a time.

    The last batches may extend beyond the end. Raises OperationFailed, and the errors of ClusterClient.
    """
    position, empty = log.first, 0
    while position < log.end:
        data = _fetch(client, log, position)
        size, next_offset = whole_batches(data)
        if size and next_offset > position:
            yield data[:size]
            position, empty = next_offset, 0
            continue
        empty += 1
        if size or len(data) or empty >= _MAX_EMPTY:
            raise OperationFailed(
                f"{TOPIC}-{log.partition} is not readable at offset {position} of {log.end}",
                hint="the log was truncated or a batch is damaged; check the files with `kctl segment verify`",
            )


def _fetch(client: ClusterClient, log: OffsetsLog, position: int) -> bytes:
    requested = TopicPartition(TOPIC, log.partition)
    request = fetch_request(
        {requested: position}, partition_bytes=FETCH_BYTES, max_bytes=FETCH_BYTES, max_wait_ms=_MAX_WAIT_MS
    )
    for tp, data in fetched(client.send(request, node_id=log.leader)):
        if tp != requested:
            continue
        if isinstance(data, KctlError):
            raise data
        return data
    raise OperationFailed(f"the response of broker {log.leader} lacks {requested}")


def whole_batches(data: bytes) -> tuple[int, int]:
    """Return the size of the whole batches at the start of `data`, and the offset after them; (0, -1): none."""
    at, next_offset = 0, -1
    while at + LOG_OVERHEAD + V0_OVERHEAD <= len(data):
        base, length, _, magic, _ = LEGACY_HEADER.unpack_from(data, at)  # at the same positions in magic 2
        end = at + LOG_OVERHEAD + length
        if length < V0_OVERHEAD or end > len(data) or (magic >= 2 and end - at < V2_HEADER):
            break
        delta = INT32.unpack_from(data, at + _DELTA_AT)[0] if magic >= 2 else 0
        at, next_offset = end, base + max(delta, 0) + 1
    return at, next_offset
