"""Find the batches of aborted transactions by the .txnindex files. Compaction removes such batches (LogCleaner)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from kctl.segment.format.batch import Batch
from kctl.segment.format.indexes import TransactionSlots
from kctl.segment.log.source import Source

MAX_ENTRIES = 50_000  # per log


class AbortedBatches:
    """The aborted transactions of a log. entries: number of index entries, including those beyond MAX_ENTRIES."""

    def __init__(self, limit: int = MAX_ENTRIES) -> None:
        self._limit = limit
        self._upcoming: list[tuple[int, int, int]] = []  # a heap of (first offset, last offset, producer id)
        self._started: dict[int, int] = {}  # producer id → last offset
        self.entries = 0

    def add_index(self, path: Path) -> int:
        """Add a .txnindex. Return its number of entries. Raises NotFound and the like if unreadable."""
        with Source(path) as source:
            slots = TransactionSlots(source, 0)
            count = len(slots)
            free = self._limit - len(self._upcoming)
            self.add((entry.first_offset, entry.last_offset, entry.producer_id) for entry in islice(slots, free))
        self.entries += count
        return count

    def add(self, transactions: Iterable[tuple[int, int, int]]) -> None:
        """Add transactions as (first offset, marker offset, producer id)."""
        for entry in transactions:
            heapq.heappush(self._upcoming, entry)

    def has(self, batch: Batch) -> bool:
        """Return True if the batch was aborted. Call in log order."""
        while self._upcoming and self._upcoming[0][0] <= batch.base_offset:
            _, last, producer_id = heapq.heappop(self._upcoming)
            self._started[producer_id] = max(last, self._started.get(producer_id, -1))
        last = self._started.get(batch.producer_id, -1)
        if last < batch.base_offset:
            if last >= 0:
                del self._started[batch.producer_id]
            return False
        return batch.transactional and not batch.control
