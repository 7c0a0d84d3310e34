"""Checking the leader epochs of batches, among each other and against leader-epoch-checkpoint.

An entry is the first offset of a leader's time (LeaderEpochFileCache, KIP-101). A leader without records has one too.
Batches before the first entry are before the log's start offset: their epoch is not known any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from kctl.segment.format.batch import Batch
from kctl.segment.format.index_entries import NEVER
from kctl.segment.verify.findings import Findings

NO_EPOCH = -1


class EpochCheck:
    """Follows the epochs of a partition's log. current: the latest batch's; until: the offset at which another is due.

    Batches of the current epoch before `until` need no look.
    """

    def __init__(self, path: Path | None = None, entries: Sequence[tuple[int, int]] = ()) -> None:
        """path: of the checkpoint, None without one; entries: (epoch, start offset), in order."""
        self._path, self._entries = path, entries
        self._starts = [start for _, start in entries]
        self.current, self.until = NO_EPOCH - 1, NEVER
        self._highest = NO_EPOCH
        self._said: tuple[int, int | None] | None = None

    def pass_batch(self, batch: Batch, log: Path, findings: Findings) -> None:
        """Check a valid batch; of magic 0 and 1 there is no epoch."""
        if batch.legacy:
            return
        epoch = self.current = batch.partition_leader_epoch
        number = bisect_right(self._starts, batch.base_offset)
        self.until = self._starts[number] if number < len(self._starts) else NEVER
        if epoch < 0:
            return
        if epoch < self._highest:
            text = f"a batch of leader epoch {epoch} behind one of {self._highest}"
            findings.add("epochs_batch", log, text, position=batch.position, offset=batch.base_offset)
        self._highest = max(epoch, self._highest)
        if self._path is not None:
            self._compare(epoch, number, batch, findings)

    def _compare(self, epoch: int, number: int, batch: Batch, findings: Findings) -> None:
        known = self._entries[number - 1][0] if number else None
        if epoch == known or (known is None and self._entries) or self._said == (epoch, known):
            return
        self._said = (epoch, known)
        says = "has no entry" if known is None else f"says {known}"
        text = f"the batch at offset {batch.base_offset} is of leader epoch {epoch}, and the checkpoint {says}"
        assert self._path is not None
        findings.add("epochs_batch", self._path, text, offset=batch.base_offset)
