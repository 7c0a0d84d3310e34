"""The share of each producer in bounded memory: the largest ones by id, the rest together."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from kctl.segment.format.batch import Batch
from kctl.segment.stats.cardinality import DistinctSketch

CAPACITY = 1 << 13
_ID_BYTES = 8


@dataclass(slots=True)
class ProducerShare:
    """A producer (-1: without an id) and its batches except control batches. producer_epoch: of its last batch."""

    producer_id: int
    producer_epoch: int = -1
    batches: int = 0
    transactional_batches: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, other: ProducerShare) -> None:
        """Add the batches of another producer."""
        self.batches += other.batches
        self.transactional_batches += other.transactional_batches
        self.records += other.records
        self.size_bytes += other.size_bytes


class ProducerShares:
    """The shares of all producers.

    others: producers that are not listed by id. error_bytes: size_bytes of a listed one is at most this much too low.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._by_id: dict[int, ProducerShare] = {}
        self._ids = DistinctSketch()
        self.others = ProducerShare(-1)
        self.error_bytes = 0

    def add(self, batch: Batch, records: int) -> None:
        """Count a batch with this number of records."""
        share = self._by_id.get(batch.producer_id)
        if share is None:
            if len(self._by_id) >= 2 * self._capacity:
                self._shrink()
            share = self._by_id[batch.producer_id] = ProducerShare(batch.producer_id)
        share.producer_epoch = batch.producer_epoch
        share.batches += 1
        share.transactional_batches += batch.transactional
        share.records += records
        share.size_bytes += batch.size

    def _shrink(self) -> None:
        """Keep the producers with the most bytes."""
        self._ids.add([_id_bytes(producer_id) for producer_id in self._by_id])
        ranked = heapq.nlargest(self._capacity + 1, self._by_id.values(), key=lambda share: share.size_bytes)
        largest = {share.producer_id: share for share in ranked[:-1]}
        self.error_bytes += ranked[-1].size_bytes
        for share in self._by_id.values():
            if share.producer_id not in largest:
                self.others.add(share)
        self._by_id = largest

    def count(self) -> tuple[int, bool]:
        """Return the number of producers with an id, and True if it is exact."""
        if self._ids.empty:
            return len(self._by_id) - (-1 in self._by_id), True
        self._ids.add([_id_bytes(producer_id) for producer_id in self._by_id])
        return self._ids.estimate(), False

    def top(self, number: int) -> tuple[list[ProducerShare], ProducerShare | None]:
        """Return the largest producers by bytes, and all others together; None if there are no others."""
        ranked = sorted(self._by_id.values(), key=lambda share: (-share.size_bytes, share.producer_id))
        rest = ProducerShare(-1)
        for share in (self.others, *ranked[number:]):
            rest.add(share)
        return ranked[:number], rest if rest.batches else None


def _id_bytes(producer_id: int) -> bytes:
    return producer_id.to_bytes(_ID_BYTES, "big", signed=True)
