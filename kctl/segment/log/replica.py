"""Read a replica's log: batch by batch over all segments, record by record on demand."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from kctl.errors import KctlError
from kctl.segment.diff.epoch_truncation import EpochHistory, history
from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import Batch
from kctl.segment.format.checkpoints import BadCheckpoint, parse_leader_epochs
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.walk import Damage, batches, content_of, is_preallocated, is_valid

MAX_EPOCHS = 100_000
MAX_DAMAGE = 100


class Replica:
    """A cursor over a replica's log. batch: None at the end; record: None until `next_record`.

    Batches with a wrong CRC, or with offsets that were already read, are skipped as damage. damage: the first damaged
    places as text; damaged: number of all.
    """

    def __init__(self, log: PartitionLog, *, limit: int) -> None:
        """Start at the first batch. limit: maximum bytes of a message."""
        self.log = log
        self.start = log.segments[0].base_offset if log.start is None else log.start
        self.end: int | None = None
        self.segment = Path()
        self.batches = self.size_bytes = self.damaged = 0
        self.damage: list[str] = []
        self.batch: Batch | None = None
        self.record: StoredRecord | None = None
        self._since_damage = False
        self._epochs: list[tuple[int, int]] = []
        self._limit = limit
        self._walk = self._all_batches()
        self._records: Iterator[StoredRecord] = iter(())
        self.source: Source | None = None
        self.next_batch()

    def close(self) -> None:
        """Close the open segment."""
        self._walk.close()

    def next_batch(self) -> None:
        """Move to the next batch, without reading its records."""
        self.record = None
        self.batch = next(self._walk, None)

    def next_record(self) -> bool:
        """Move to the next record of the batch. At the end of the batch, move to the next batch and return False."""
        assert self.batch is not None
        assert self.source is not None
        try:
            if self.record is None:
                content = content_of(self.source, self.batch, self._limit)
                self._records = all_records(self.batch, content, limit=self._limit)
            self.record = next(self._records, None)
            if self.record is not None:
                _check_offset(self.record, self.batch)
        except (BadRecords, BadPayload) as exc:
            self._damaged(self.segment, self.batch.position, str(exc))
            self.record = None
        if self.record is None:
            self.next_batch()
            return False
        return True

    def passed_damage(self) -> bool:
        """Return True if damage was skipped since the last call."""
        passed, self._since_damage = self._since_damage, False
        return passed

    def _all_batches(self) -> Generator[Batch, None, None]:
        for files in self.log.segments:
            assert files.log is not None
            with Source(files.log) as source:
                self.segment, self.source = files.log, source
                for item in batches(source):
                    if isinstance(item, Damage):
                        if is_preallocated(source, item):
                            continue
                        self._damaged(files.log, item.position, f"{item.message} ({item.length} bytes)")
                    elif not is_valid(source, item):
                        self._damaged(files.log, item.position, f"the CRC does not match ({item.size} bytes)")
                    elif self.end is not None and item.last_offset < self.end:
                        self._damaged(
                            files.log, item.position, f"offset {item.base_offset} follows offset {self.end - 1}"
                        )
                    else:
                        self._count(item)
                        yield item

    def _count(self, batch: Batch) -> None:
        self.batches += 1
        self.size_bytes += batch.size
        self.end = max(self.end or 0, batch.last_offset + 1)
        epoch = batch.partition_leader_epoch
        if epoch >= 0 and (not self._epochs or epoch > self._epochs[-1][0]) and len(self._epochs) < MAX_EPOCHS:
            self._epochs.append((epoch, batch.base_offset))

    def _damaged(self, path: Path, position: int, text: str) -> None:
        self.damaged += 1
        self._since_damage = True
        if len(self.damage) < MAX_DAMAGE:
            self.damage.append(f"{path} at {position}: {text}")

    def epochs(self) -> tuple[EpochHistory, bool]:
        """Return the leader epochs. True: from leader-epoch-checkpoint; False: from the batches read so far.

        An unreadable checkpoint is counted as damage.
        """
        end = self.start if self.end is None else self.end
        if self.log.leader_epochs is not None:
            try:
                return history(parse_leader_epochs(read_whole(self.log.leader_epochs)), end), True
            except BadCheckpoint as exc:
                self._damaged(self.log.leader_epochs, 0, str(exc))
            except KctlError as exc:
                self._damaged(self.log.leader_epochs, 0, exc.message)
        return history(self._epochs, end), False


def _check_offset(record: StoredRecord, batch: Batch) -> None:
    """Raise BadRecords if a record's offset is outside its batch.

    Old formats: only the last offset is checked, because a compressed batch does not store its first offset.
    """
    first = 0 if batch.legacy else batch.base_offset
    if not first <= record.offset <= batch.last_offset:
        raise BadRecords(f"record offset {record.offset} is outside of the batch ({first} to {batch.last_offset})")
