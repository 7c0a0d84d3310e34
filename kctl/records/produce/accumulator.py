"""The batches of a topic's partitions that records are collected in until they are sent.

Records go to the partition that they name, to that of their key, or, without a key, to the sticky partition (KIP-480).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kctl.model import PartitionState
from kctl.records.produce.batch import ClosedBatch, OpenBatch
from kctl.records.produce.lane import Lane
from kctl.records.produce.options import SenderOptions
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.partitioner import partition_of


class RecordAccumulator:
    """lanes: by partition; busy: those that have batches, in the order in which they are sent; bytes: of all batches
    that are not released."""

    def __init__(self, options: SenderOptions, partitions: Sequence[PartitionState]) -> None:
        self._options = options
        self.lanes = [Lane(each.partition, each.leader) for each in partitions]
        self.busy: dict[int, Lane] = {}
        self.bytes = 0
        self._sticky: Lane | None = None

    def add(self, record: Outgoing, number: int) -> None:
        """Take a record. Its partition, when it names one, is one that the topic has."""
        if record.partition is not None:
            lane = self.lanes[record.partition]
        elif record.key is not None:
            lane = self.lanes[partition_of(record.key, len(self.lanes))]
        else:
            lane = self._sticky_lane()
        batch = self._open_batch(lane)
        before = batch.size
        if not batch.add(record, number):
            self.close_batch(lane)
            batch = self._open_batch(lane)
            before = batch.size
            batch.add(record, number)
        self.bytes += batch.size - before
        if batch.full:
            self.close_batch(lane)

    def add_values(self, values: Sequence[bytes], start: int, end: int, number: int, partition: int | None) -> None:
        """Take values[start:end] as records without keys; `number` is that of the first."""
        while start < end:
            lane = self._sticky_lane() if partition is None else self.lanes[partition]
            batch = self._open_batch(lane)
            before = batch.size
            behind = batch.add_values(values, start, end, number)
            self.bytes += batch.size - before
            number, start = number + behind - start, behind
            if start < end or batch.full:
                self.close_batch(lane)

    def add_batch(self, batch: ClosedBatch) -> None:
        """Take a whole batch, which is sent as it is. A partition gets either batches or single records."""
        lane = self.lanes[batch.partition]
        lane.waiting.append(batch)
        self.bytes += batch.size
        self.busy[lane.partition] = lane

    def _open_batch(self, lane: Lane) -> OpenBatch:
        if lane.open is None:
            lane.open = OpenBatch(lane.partition, self._options.batch_bytes)
            self.bytes += lane.open.size
            self.busy[lane.partition] = lane
        return lane.open

    def close_batch(self, lane: Lane) -> None:
        """Close the open batch of a lane: it waits to be sent."""
        assert lane.open is not None
        lane.waiting.append(lane.open.close(self._options.codec, self._options.compress))
        lane.open = None
        if lane is self._sticky:
            self._sticky = None

    def release(self, batch: ClosedBatch) -> None:
        """Forget a batch that has its outcome."""
        self.bytes -= batch.size
        if not self.lanes[batch.partition].busy:
            self.busy.pop(batch.partition, None)

    def _sticky_lane(self) -> Lane:
        """Records without a key fill one batch after the other, where the fewest batches wait and a leader is."""
        if self._sticky is None or (self._sticky.open is None and self._sticky.leader < 0):
            able = [lane for lane in self.lanes if lane.leader >= 0] or self.lanes
            shortest = min(lane.length for lane in able)
            self._sticky = random.choice([lane for lane in able if lane.length == shortest])  # noqa: S311 - no secret
        return self._sticky
