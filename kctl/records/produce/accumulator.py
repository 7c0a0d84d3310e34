"""Collect records in one batch per partition until the batches are sent.

A record goes to the partition that it names, otherwise to the partition of its key. Records without a key go to the
sticky partition (KIP-480).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kctl.model import PartitionState
from kctl.records.produce.batch import ClosedBatch, OpenBatch
from kctl.records.produce.options import SenderOptions
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.partition_queue import PartitionQueue
from kctl.records.produce.partitioner import partition_of


class RecordAccumulator:
    """The queues of all partitions.

    queues: by partition; busy: the queues with batches, in sending order; bytes: of all batches not yet released.
    """

    def __init__(self, options: SenderOptions, partitions: Sequence[PartitionState]) -> None:
        self._options = options
        self.queues = [PartitionQueue(each.partition, each.leader) for each in partitions]
        self.busy: dict[int, PartitionQueue] = {}
        self.bytes = 0
        self._sticky: PartitionQueue | None = None

    def add(self, record: Outgoing, number: int) -> None:
        """Add a record. Its partition, if set, must exist."""
        if record.partition is not None:
            queue = self.queues[record.partition]
        elif record.key is not None:
            queue = self.queues[partition_of(record.key, len(self.queues))]
        else:
            queue = self._sticky_queue()
        batch = self._open_batch(queue)
        size_before = batch.size
        if not batch.add(record, number):
            self.close_batch(queue)
            batch = self._open_batch(queue)
            size_before = batch.size
            batch.add(record, number)
        self.bytes += batch.size - size_before
        if batch.full:
            self.close_batch(queue)

    def add_values(self, values: Sequence[bytes], start: int, end: int, number: int, partition: int | None) -> None:
        """Add values[start:end] as records without keys. number: the input line of the first value."""
        while start < end:
            queue = self._sticky_queue() if partition is None else self.queues[partition]
            batch = self._open_batch(queue)
            size_before = batch.size
            next_start = batch.add_values(values, start, end, number)
            self.bytes += batch.size - size_before
            number, start = number + next_start - start, next_start
            if start < end or batch.full:
                self.close_batch(queue)

    def add_batch(self, batch: ClosedBatch) -> None:
        """Add a complete batch, which is sent unchanged. A partition gets either batches or single records."""
        queue = self.queues[batch.partition]
        queue.waiting.append(batch)
        self.bytes += batch.size
        self.busy[queue.partition] = queue

    def _open_batch(self, queue: PartitionQueue) -> OpenBatch:
        if queue.open is None:
            queue.open = OpenBatch(queue.partition, self._options.batch_bytes)
            self.bytes += queue.open.size
            self.busy[queue.partition] = queue
        return queue.open

    def close_batch(self, queue: PartitionQueue) -> None:
        """Move the open batch of a queue to the waiting batches."""
        assert queue.open is not None
        queue.waiting.append(queue.open.close(self._options.codec, self._options.compress))
        queue.open = None
        if queue is self._sticky:
            self._sticky = None

    def release(self, batch: ClosedBatch) -> None:
        """Release a batch that has an outcome."""
        self.bytes -= batch.size
        if not self.queues[batch.partition].busy:
            self.busy.pop(batch.partition, None)

    def _sticky_queue(self) -> PartitionQueue:
        """Return the queue for records without a key: the one with the fewest batches among those with a leader."""
        if self._sticky is None or (self._sticky.open is None and self._sticky.leader < 0):
            queues = [queue for queue in self.queues if queue.leader >= 0] or self.queues
            shortest = min(queue.length for queue in queues)
            self._sticky = random.choice([each for each in queues if each.length == shortest])  # noqa: S311 - no secret
        return self._sticky
