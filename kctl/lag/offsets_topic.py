"""The log of __consumer_offsets, read from a live cluster: whole batches, markers of transactions included.

By Fetch (kctl.protocol.fetch): what a transaction came to is told by the log itself. Needs an ACL for Read on the
topic.
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
_PATIENCE_MS = 500
_MOST_EMPTY = 5  # answers without anything below the log end, until it is given up
_DELTA_AT = BATCH_HEADER.offset("last_offset_delta")


class OffsetsLog(NamedTuple):
    """A partition of the topic. first, end: offsets; end: the high watermark when it was asked for."""

    partition: int
    leader: int
    first: int
    end: int


def partition_of(group: str, partitions: int) -> int:
    """The partition of the topic that has a group's commits, of so many partitions.

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
    """The partitions that can be read (None: all that there are), and why others cannot.

    Raises NotFound on a cluster where no group has ever committed, and what ClusterClient raises.
    """
    topic = client.metadata([TOPIC]).topics.get(TOPIC)
    if topic is None:
        raise NotFound(f"{TOPIC} does not exist", hint="no group has committed anything yet")
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
    found: list[OffsetsLog] = []
    for tp in (tp for tps in by_leader.values() for tp in tps):
        low, high = first.get(tp), end.get(tp)
        if isinstance(low, int) and isinstance(high, int):
            found.append(OffsetsLog(tp.partition, leaders[tp], low, high))
        else:
            problem = next(
                (each.message for each in (low, high) if isinstance(each, KctlError)), "nothing was answered"
            )
            failed.append(f"{tp}: {problem}")
    return found, failed


def fetch_log(client: ClusterClient, log: OffsetsLog) -> Iterator[bytes]:
    """Whole batches, one after the other, from the log's start to its end; about FETCH_BYTES at once.

    The last ones may go on behind the end. Raises OperationFailed, and what ClusterClient raises.
    """
    position, empty = log.first, 0
    while position < log.end:
        data = _fetch(client, log, position)
        size, following = whole_batches(data)
        if size and following > position:
            yield data[:size]
            position, empty = following, 0
            continue
        empty += 1
        if size or len(data) or empty >= _MOST_EMPTY:
            raise OperationFailed(
                f"{TOPIC}-{log.partition} cannot be read on at offset {position} of {log.end}",
                hint="was its log truncated, or is a batch damaged? `kctl segment verify` looks at the files",
            )


def _fetch(client: ClusterClient, log: OffsetsLog, position: int) -> bytes:
    asked = TopicPartition(TOPIC, log.partition)
    request = fetch_request(
        {asked: position}, partition_bytes=FETCH_BYTES, max_bytes=FETCH_BYTES, patience_ms=_PATIENCE_MS
    )
    for tp, data in fetched(client.send(request, node_id=log.leader)):
        if tp != asked:
            continue
        if isinstance(data, KctlError):
            raise data
        return data
    raise OperationFailed(f"broker {log.leader} answered without {asked}")


def whole_batches(data: bytes) -> tuple[int, int]:
    """How many bytes the whole batches at the beginning of `data` are, and the offset behind them; (0, −1): none."""
    at, following = 0, -1
    while at + LOG_OVERHEAD + V0_OVERHEAD <= len(data):
        base, length, _, magic, _ = LEGACY_HEADER.unpack_from(data, at)  # these fields are where magic 2 has them
        end = at + LOG_OVERHEAD + length
        if length < V0_OVERHEAD or end > len(data) or (magic >= 2 and end - at < V2_HEADER):
            break
        delta = INT32.unpack_from(data, at + _DELTA_AT)[0] if magic >= 2 else 0
        at, following = end, base + max(delta, 0) + 1
    return at, following
