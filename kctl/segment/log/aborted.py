"""Which batches belong to aborted transactions, by the .txnindex files: compaction removes them (LogCleaner)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from kctl.segment.format.batch import Batch
from kctl.segment.format.indexes import TransactionSlots
from kctl.segment.log.source import Source

MOST_ENTRIES = 50_000  # of one log that are remembered


class AbortedBatches:
    """The aborted transactions of a log. entries: how many its indexes have, those behind MOST_ENTRIES included."""

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self._most = most
        self._coming: list[tuple[int, int, int]] = []  # a heap of (first offset, last offset, producer id)
        self._begun: dict[int, int] = {}  # producer id → last offset
        self.entries = 0

    def add_index(self, path: Path) -> int:
        """Take a .txnindex in; how many entries it has. Raises NotFound and the like when it cannot be read."""
        with Source(path) as source:
            slots = TransactionSlots(source, 0)
            count = len(slots)
            free = self._most - len(self._coming)
            self.add((entry.first_offset, entry.last_offset, entry.producer_id) for entry in islice(slots, free))
        self.entries += count
        return count

    def add(self, transactions: Iterable[tuple[int, int, int]]) -> None:
        """(first offset, offset of the marker, producer id) of each."""
        for entry in transactions:
            heapq.heappush(self._coming, entry)

    def has(self, batch: Batch) -> bool:
        """Whether a batch was aborted; to be asked in the log's order."""
        while self._coming and self._coming[0][0] <= batch.base_offset:
            _, last, producer_id = heapq.heappop(self._coming)
            self._begun[producer_id] = max(last, self._begun.get(producer_id, -1))
        last = self._begun.get(batch.producer_id, -1)
        if last < batch.base_offset:
            if last >= 0:
                del self._begun[batch.producer_id]
            return False
        return batch.transactional and not batch.control
