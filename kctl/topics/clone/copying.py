"""Copy records between topics, partition by partition, with kctl's fetcher and sender.

Reading with read_committed skips aborted transactions. Idempotent writing with acks=all avoids duplicates. Memory is
bounded by the sender's limit of unacknowledged bytes and one Fetch response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.log_offsets import read_log_offsets
from kctl.errors import KctlError, OperationFailed
from kctl.model import TopicPartition
from kctl.records.background import Background
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.records.produce.batch import ClosedBatch, Compress
from kctl.records.produce.destination import check_topic
from kctl.records.produce.options import ACKS, ProduceOptions, SenderOptions
from kctl.records.produce.producer_id import producer_id
from kctl.records.produce.sender import ACKNOWLEDGED, Sender
from kctl.topics.clone.batches import BatchFormat, CopiedBatch, copied_batches
from kctl.topics.clone.journal import Pair, PairTracker

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_UNKNOWN_LIMIT_BYTES = 16 << 10  # if max.message.bytes of the target cannot be read
_GROUP_BYTES = 4 << 20  # bytes of batches per journal write
_WAIT_S, _SHORT_WAIT_S = 0.2, 0.005

CopyProgress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """A request to copy records.

    starts: for each partition, the target's log end offset and the source offset to continue from. ends: the source
    offset at which the copy ends. append_pairs: writes offset pairs to the journal.
    """

    source: str
    target: str
    starts: Mapping[int, Pair]
    ends: Mapping[int, int]
    codec: str
    compress: Compress | None
    timeout_s: float
    append_pairs: Callable[[Mapping[int, list[Pair]]], None]


@dataclass(frozen=True, slots=True)
class CopyOutcome:
    """The result of a copy.

    records: acknowledged records of each partition, earlier runs included. problem: why the copy ended early. foreign:
    other producers wrote to the target, so the copy cannot be resumed.
    """

    records: dict[int, int]
    problem: str | None
    foreign: bool


def copy_records(client: ClusterClient, request: CopyRequest, *, progress: CopyProgress | None = None) -> CopyOutcome:
    """Copy until the ends are reached or an error occurs. KeyboardInterrupt is not caught."""
    records = {partition: target for partition, (target, _) in request.starts.items()}
    if all(source >= request.ends[partition] for partition, (_, source) in request.starts.items()):
        return CopyOutcome(records, None, foreign=False)
    try:
        copying = _CopyRun(client, request, records, progress)
    except KctlError as exc:
        return CopyOutcome(records, exc.message, foreign=False)
    return copying.run()


class _CopyRun:
    """The fetcher, the sender, and the batches in between."""

    def __init__(
        self, client: ClusterClient, request: CopyRequest, records: dict[int, int], progress: CopyProgress | None
    ) -> None:
        self._client, self._request, self._records, self._progress = client, request, records, progress
        self._foreign = False
        self._reading = {
            TopicPartition(request.source, partition): source
            for partition, (_, source) in request.starts.items()
            if source < request.ends[partition]
        }
        self._tracker = PairTracker(request.starts)
        self._group: list[CopiedBatch] = []
        self._group_bytes = 0
        self._offsets = sum(request.ends[tp.partition] - source for tp, source in self._reading.items())
        self._passed = 0
        destination = check_topic(client, ProduceOptions(request.target, compression=request.codec))
        limit = destination.max_batch_bytes or _UNKNOWN_LIMIT_BYTES
        self._format = BatchFormat(request.codec, request.compress, limit)
        self._sender = Sender(
            client,
            SenderOptions(
                topic=request.target, acks=ACKS["all"], producer=producer_id(client, request.timeout_s),
                codec=request.codec, compress=request.compress, batch_bytes=limit, linger_s=0.0,
                timeout_s=request.timeout_s,
            ),
            destination.state,
            self._done,
            Background(),
        )  # fmt: skip
        self._fetcher = Fetcher(
            client, self._reading, read_committed=True, warn=lambda _: None, timeout_s=request.timeout_s, follow=False
        )

    def run(self) -> CopyOutcome:
        """Read and write until everything is acknowledged or the sender has stopped."""
        finished = False
        try:
            try:
                self._sender.connect()
                while self._reading and self._sender.stopped is None:
                    self._read()
            except KctlError as exc:
                self._sender.stop(exc)
            while not self._sender.idle:
                self._sender.step(_WAIT_S)
            finished = True
        finally:
            self._fetcher.close()
            self._sender.close(at_once=not finished)
        stopped = self._sender.stopped
        return CopyOutcome(self._records, stopped.message if stopped else None, self._foreign)

    def _read(self) -> None:
        """Process what leaders have sent, then let the sender work."""
        if not self._sender.has_room:
            self._sender.step(_WAIT_S)
            return
        idle = self._sender.idle
        arrived = False
        for fetched in self._fetcher.poll(_WAIT_S if idle else 0):
            arrived = True
            self._take(fetched)
        self._send_group()
        if not idle or arrived:
            self._sender.step(0 if arrived else _SHORT_WAIT_S)

    def _take(self, fetched: Fetched) -> None:
        tp, request = fetched.tp, self._request
        end = request.ends[tp.partition]
        if fetched.error_code:
            raise self._unreadable(tp, fetched.position)
        for copied in copied_batches(tp, fetched.data, fetched.position, end, fetched.aborted, self._format):
            self._group.append(copied)
            self._group_bytes += copied.batch.size
            if self._group_bytes >= _GROUP_BYTES:
                self._send_group()
        position = min(fetched.next_position, end)
        self._passed += position - self._reading[tp]
        self._reading[tp] = position
        if position >= end:
            del self._reading[tp]
            self._fetcher.drop(tp)
        if self._progress:
            self._progress(f"copying {tp}", self._passed, self._offsets)

    def _send_group(self) -> None:
        """Write offset pairs that are not implied to the journal, then hand the batches to the sender."""
        pairs: dict[int, list[Pair]] = {}
        for batch, source in self._group:
            batch.expected_offset, pair = self._tracker.add(batch.partition, batch.count, source)
            if pair is not None:
                pairs.setdefault(batch.partition, []).append(pair)
        if pairs:
            self._request.append_pairs(pairs)
        for batch, _ in self._group:
            while not (self._sender.has_room or self._sender.stopped):
                self._sender.step(_WAIT_S)
            if self._sender.stopped:
                break
            self._sender.add_batch(batch)
        self._group, self._group_bytes = [], 0

    def _done(self, batch: ClosedBatch, outcome: str, _error: KctlError | None) -> None:
        if outcome != ACKNOWLEDGED:
            return
        self._records[batch.partition] += batch.count
        if batch.base_offset not in {-1, batch.expected_offset}:
            self._foreign = True
            self._sender.stop(
                OperationFailed(
                    f"partition {batch.partition} has records that the copy did not write: another producer writes "
                    "to it"
                )
            )

    def _unreadable(self, tp: TopicPartition, position: int) -> OperationFailed:
        """Return the error for a position that is not in the source log."""
        logs, _, _ = read_log_offsets(self._client, [tp])
        log = logs.get(tp)
        if log is not None and position < log.start:
            return OperationFailed(f"{tp}: offsets {position} to {log.start - 1} were deleted before they were copied")
        return OperationFailed(f"{tp}: offset {position} is no longer in the log")
