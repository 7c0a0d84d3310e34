"""Compare two replicas of a partition: read both logs once, side by side.

Batches with equal headers and valid CRCs are equal. Otherwise records are compared by offset, because batches may
differ where records do not: compaction rewrites batches, on each replica at its own time, and so does a conversion to
an older format, which drops headers (magic 1) and timestamps (magic 0).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.dump.rows import RecordRow, record_row
from kctl.segment.format.batch import Batch
from kctl.segment.format.record import StoredRecord
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.replica import Replica

MAX_RANGES = 1000  # per kind; further ranges are only counted


class LackReason(str, Enum):
    """Why a replica lacks records.

    start: they are below its log start offset; end: after its log end; damage: next to damage; compaction: below its
    cleaner offset; hole: none of these.
    """

    START = "start"
    END = "end"
    DAMAGE = "damage"
    COMPACTION = "compaction"
    HOLE = "hole"


@dataclass(slots=True)
class Lack:
    """Records that only the other replica has. path: of the replica without them; records: None if unknown."""

    path: str
    first_offset: int
    last_offset: int
    records: int | None
    where: LackReason


@dataclass(slots=True)
class DivergentRange:
    """Offsets at which the records of both replicas differ. differs: the differing fields (key, value, epoch, …)."""

    first_offset: int
    last_offset: int
    records: int
    differs: list[str]


@dataclass(frozen=True, slots=True)
class DivergentRecord:
    """One side of a divergence."""

    segment: str
    position: int
    leader_epoch: int | None
    record: RecordRow | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first divergence. differs: the differing fields."""

    offset: int
    differs: list[str]
    first: DivergentRecord
    second: DivergentRecord


@dataclass(slots=True)
class Comparison:
    """The comparison. Lists have at most MAX_RANGES entries; the numbers count all."""

    divergence: Divergence | None = None
    divergent: list[DivergentRange] = field(default_factory=list)
    divergent_records: int = 0
    lacks: list[Lack] = field(default_factory=list)
    lacking_ranges: int = 0
    holes: int = 0
    equal_batches: int = 0
    equal_records: int = 0
    common: bool = False


class _Comparer:
    def __init__(self, first: Replica, second: Replica, *, compacted: bool) -> None:
        self.first, self.second, self._compacted = first, second, compacted
        self.comparison = Comparison()
        self._lack: Lack | None = None
        self._range: DivergentRange | None = None

    def run(self) -> None:
        first, second = self.first, self.second
        while first.batch is not None and second.batch is not None:
            if first.record is None and second.record is None and _same_header(first.batch, second.batch):
                self._equal_batches(first.batch, second.batch)
            elif self._skip_unmatched(first, second) or self._skip_unmatched(second, first):
                continue
            elif (first.record is not None or first.next_record()) and (
                second.record is not None or second.next_record()
            ):
                self._compare_next()
        for side, other in ((first, second), (second, first)):
            while side.batch is not None:
                self._skip_missing(side, other, side.batch, LackReason.END)

    # --- batches ----------------------------------------------------------------------------------------------------

    def _equal_batches(self, first: Batch, second: Batch) -> None:
        self.comparison.equal_batches += 1
        if _epochs_differ(first, second):
            self._add_divergent(first.base_offset, first.last_offset, max(first.record_count, 1), ["epoch"])
        else:
            self._mark_common()
        self.first.next_batch()
        self.second.next_batch()

    def _skip_unmatched(self, side: Replica, other: Replica) -> bool:
        """Skip the record or unread batch of `side` if it lies before the rest of `other`.

        Return False if they may overlap.
        """
        batch = side.batch
        assert batch is not None
        assert other.batch is not None
        if other.record is None and _first_offset_unknown(other.batch):
            return False
        other_offset = other.batch.base_offset if other.record is None else other.record.offset
        if side.record is not None:
            if side.record.offset >= other_offset:
                return False
        elif batch.last_offset >= other_offset or _first_offset_unknown(batch):
            return False
        elif batch.base_offset < other.start <= batch.last_offset:
            return False  # part of the batch is below the other's start
        self._skip_missing(side, other, batch, None)
        return True

    def _skip_missing(self, side: Replica, other: Replica, batch: Batch, where: LackReason | None) -> None:
        """Count the rest of a batch, which `other` does not have."""
        if side.record is not None:
            self._add_lack(other, side.record.offset, side.record.offset, 1, where)
            side.next_record()
            return
        count = None if _first_offset_unknown(batch) else batch.record_count
        first = batch.last_offset if count is None else batch.base_offset
        if count != 0:
            self._add_lack(other, first, batch.last_offset, count, where)
        side.next_batch()

    # --- records ----------------------------------------------------------------------------------------------------

    def _compare_next(self) -> None:
        """Compare the records of both sides if their offsets are equal; otherwise the next step skips one."""
        first, second = self.first, self.second
        assert first.record is not None
        assert second.record is not None
        if first.record.offset == second.record.offset:
            self._compare_records(first.record, second.record)
            first.next_record()
            second.next_record()

    def _compare_records(self, one: StoredRecord, two: StoredRecord) -> None:
        first, second = self.first.batch, self.second.batch
        assert first is not None
        assert second is not None
        differs = []
        if one.key != two.key:
            differs.append("key")
        if one.value != two.value:
            differs.append("value")
        if one.timestamp != two.timestamp and first.magic != 0 and second.magic != 0:
            differs.append("timestamp")
        if one.headers != two.headers and not first.legacy and not second.legacy:
            differs.append("headers")
        if first.control != second.control:
            differs.append("control")
        if _epochs_differ(first, second):
            differs.append("epoch")
        if differs:
            self._add_divergent(one.offset, one.offset, 1, differs)
        else:
            self.comparison.equal_records += 1
            self._mark_common()

    # --- results ----------------------------------------------------------------------------------------------------

    def _mark_common(self) -> None:
        self.comparison.common = True
        self._lack = self._range = None
        self.first.passed_damage()
        self.second.passed_damage()

    def _add_divergent(self, first: int, last: int, records: int, differs: list[str]) -> None:
        comparison = self.comparison
        if comparison.divergence is None:
            sides = (_divergent_record(side) for side in (self.first, self.second))
            comparison.divergence = Divergence(first, list(differs), *sides)
        comparison.divergent_records += records
        previous = self._range
        self._mark_common()
        if previous is None:
            self._range = DivergentRange(first, last, records, differs)
            if len(comparison.divergent) < MAX_RANGES:
                comparison.divergent.append(self._range)
            return
        previous.last_offset = last
        previous.records += records
        previous.differs.extend(each for each in differs if each not in previous.differs)
        self._range = previous

    def _add_lack(self, replica: Replica, first: int, last: int, records: int | None, where: LackReason | None) -> None:
        if where is None or (where is LackReason.END and replica.passed_damage()):
            where = self._why(replica, last) if where is None else LackReason.DAMAGE
        path, previous = str(replica.log.path), self._lack
        if previous is not None and previous.path == path and previous.where in {where, LackReason.DAMAGE}:
            previous.last_offset = last
            previous.records = None if previous.records is None or records is None else previous.records + records
            return
        self._lack = Lack(path, first, last, records, where)
        self.comparison.lacking_ranges += 1
        self.comparison.holes += where is LackReason.HOLE
        if len(self.comparison.lacks) < MAX_RANGES:
            self.comparison.lacks.append(self._lack)

    def _why(self, replica: Replica, last: int) -> LackReason:
        if last < replica.start:
            return LackReason.START
        if replica.passed_damage():
            return LackReason.DAMAGE
        cleaned = replica.log.cleaned is not None and last < replica.log.cleaned
        return LackReason.COMPACTION if cleaned or self._compacted else LackReason.HOLE


def _first_offset_unknown(batch: Batch) -> bool:
    """Return True for a compressed batch of an old format: the header has its last offset, not its first."""
    return batch.legacy and batch.codec != 0


def _same_header(first: Batch, second: Batch) -> bool:
    return (
        first.crc == second.crc
        and first.base_offset == second.base_offset
        and first.size == second.size
        and first.magic == second.magic
    )


def _epochs_differ(first: Batch, second: Batch) -> bool:
    """Return True if both batches have epochs and they differ. Formats before magic 2 have no epochs."""
    one, two = first.partition_leader_epoch, second.partition_leader_epoch
    return one != two and one >= 0 and two >= 0


def _divergent_record(side: Replica) -> DivergentRecord:
    batch = side.batch
    assert batch is not None
    file = str(side.segment)
    row = None if side.record is None else record_row(file, batch, side.record, valid=True)
    epoch = batch.partition_leader_epoch
    return DivergentRecord(file, batch.position, None if epoch < 0 else epoch, row)


def compare(
    first: PartitionLog, second: PartitionLog, *, compacted: bool = False, limit: int = MAX_MESSAGE_BYTES
) -> tuple[Comparison, Replica, Replica]:
    """Compare both logs. compacted: compaction explains missing records; limit: maximum bytes of a message."""
    one, two = Replica(first, limit=limit), Replica(second, limit=limit)
    try:
        comparer = _Comparer(one, two, compacted=compacted)
        comparer.run()
        return comparer.comparison, one, two
    finally:
        one.close()
        two.close()
