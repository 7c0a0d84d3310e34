"""Check the order of the batches' leader epochs, and compare them with leader-epoch-checkpoint.

An entry is the first offset of an epoch (LeaderEpochFileCache, KIP-101), even of an epoch without records. Batches
before the first entry are below the log start offset: their epoch is no longer known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from kctl.segment.format.batch import Batch
from kctl.segment.format.index_entries import NEVER
from kctl.segment.verify.findings import FileProblems

NO_EPOCH = -1


class EpochCheck:
    """The check of a log's epochs. current: epoch of the latest batch; until: offset at which the next epoch starts.

    Batches of the current epoch before `until` need no check.
    """

    def __init__(self, path: Path | None = None, entries: Sequence[tuple[int, int]] = ()) -> None:
        """Start before the first batch. path: of the checkpoint, if any; entries: (epoch, start offset), in order."""
        self._path, self._entries = path, entries
        self._starts = [start for _, start in entries]
        self.current, self.until = NO_EPOCH - 1, NEVER
        self._highest = NO_EPOCH
        self._reported: tuple[int, int | None] | None = None

    def pass_batch(self, batch: Batch, log: Path, findings: FileProblems) -> None:
        """Check a valid batch. Magic 0 and 1 have no epoch."""
        if batch.legacy:
            return
        epoch = self.current = batch.partition_leader_epoch
        number = bisect_right(self._starts, batch.base_offset)
        self.until = self._starts[number] if number < len(self._starts) else NEVER
        if epoch < 0:
            return
        if epoch < self._highest:
            text = f"a batch of leader epoch {epoch} follows one of epoch {self._highest}"
            findings.add("epochs_batch", log, text, position=batch.position, offset=batch.base_offset)
        self._highest = max(epoch, self._highest)
        if self._path is not None:
            self._compare(epoch, number, batch, findings)

    def _compare(self, epoch: int, number: int, batch: Batch, findings: FileProblems) -> None:
        expected = self._entries[number - 1][0] if number else None
        if epoch == expected or (expected is None and self._entries) or self._reported == (epoch, expected):
            return
        self._reported = (epoch, expected)
        entry = "no entry" if expected is None else f"epoch {expected}"
        text = f"the batch at offset {batch.base_offset} has leader epoch {epoch}, but the checkpoint has {entry}"
        assert self._path is not None
        findings.add("epochs_batch", self._path, text, offset=batch.base_offset)
