"""What each producer wrote, in bounded memory: the largest ones by name, the rest together."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from kctl.segment.format.batch import Batch
from kctl.segment.stats.cardinality import DistinctSketch

CAPACITY = 1 << 13
_ID_BYTES = 8


@dataclass(slots=True)
class ProducerShare:
    """A producer (−1: without an id) and its batches, control batches aside. epoch: of its last one."""

    producer_id: int
    producer_epoch: int = -1
    batches: int = 0
    transactional_batches: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, other: ProducerShare) -> None:
        """Take over what another one wrote."""
        self.batches += other.batches
        self.transactional_batches += other.transactional_batches
        self.records += other.records
        self.size_bytes += other.size_bytes


class ProducerShares:
    """others: those that are not told by name. error_bytes: how much too low size_bytes of a named one may be."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._named: dict[int, ProducerShare] = {}
        self._ids = DistinctSketch()
        self.others = ProducerShare(-1)
        self.error_bytes = 0

    def add(self, batch: Batch, records: int) -> None:
        """Count a batch with so many records."""
        share = self._named.get(batch.producer_id)
        if share is None:
            if len(self._named) >= 2 * self._capacity:
                self._shrink()
            share = self._named[batch.producer_id] = ProducerShare(batch.producer_id)
        share.producer_epoch = batch.producer_epoch
        share.batches += 1
        share.transactional_batches += batch.transactional
        share.records += records
        share.size_bytes += batch.size

    def _shrink(self) -> None:
        """Keep those that wrote the most bytes."""
        self._ids.add([_id_bytes(producer_id) for producer_id in self._named])
        ranked = heapq.nlargest(self._capacity + 1, self._named.values(), key=lambda share: share.size_bytes)
        kept = {share.producer_id: share for share in ranked[:-1]}
        self.error_bytes += ranked[-1].size_bytes
        for share in self._named.values():
            if share.producer_id not in kept:
                self.others.add(share)
        self._named = kept

    def count(self) -> tuple[int, bool]:
        """(how many producers with an id there were, whether that is exact)."""
        if self._ids.empty:
            return len(self._named) - (-1 in self._named), True
        self._ids.add([_id_bytes(producer_id) for producer_id in self._named])
        return self._ids.estimate(), False

    def top(self, number: int) -> tuple[list[ProducerShare], ProducerShare | None]:
        """(the largest by bytes, the rest together; None when there is no rest)."""
        ranked = sorted(self._named.values(), key=lambda share: (-share.size_bytes, share.producer_id))
        rest = ProducerShare(-1)
        for share in (self.others, *ranked[number:]):
            rest.add(share)
        return ranked[:number], rest if rest.batches else None


def _id_bytes(producer_id: int) -> bytes:
    return producer_id.to_bytes(_ID_BYTES, "big", signed=True)
