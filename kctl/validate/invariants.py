"""The invariants between acknowledged records, the log, and delivered records. Pure.

Each violation is a finding of exactly one kind:

    lost             acknowledged, but not in the log
    misplaced        acknowledged at an offset that holds another record, and in the log elsewhere
    duplicated       in the log a second time, after its first offset
    out_of_order     its first offset follows the first offset of a record sent later
    holes            offsets missing from the log, from 0 to its end: only the validation writes to the topic
    foreign          in the log, but not sent by the producer to this partition
    not_delivered    in the log, but never delivered to the consumer
    delivered_again  delivered to the consumer a second time
    delivered_late   delivered to the consumer after a higher offset
    phantoms         delivered to the consumer, but the log has another record, or none, at that offset

Records that failed or have no outcome may or may not be in the log; they are counted. Time: about 1 µs per record.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kctl.validate.workload.entries import ACKED, FAILED
from kctl.validate.workload.history import (
    DeliveredPartition,
    DeliveredRecords,
    Log,
    LogPartition,
    SentPartition,
    SentRecords,
)

LIMIT = 100  # findings listed per kind; all are counted
_Finding = TypeVar("_Finding")


@dataclass
class FindingList(Generic[_Finding]):
    """The number of findings of a kind, and the first ones."""

    count: int = 0
    first: list[_Finding] = field(default_factory=list)

    def add(self, finding: _Finding) -> None:
        self.count += 1
        if len(self.first) < LIMIT:
            self.first.append(finding)

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(frozen=True, slots=True)
class LostRecord:
    """A lost record.

    offset: acknowledged, -1 if the broker reported none. delivered: True if the consumer received it before it was
    lost; None without a consumer.
    """

    partition: int
    offset: int
    sequence: int
    delivered: bool | None


@dataclass(frozen=True, slots=True)
class MisplacedRecord:
    """A record acknowledged at `offset`, but in the log at found_offset.

    found_sequence: of the record at `offset`; -1: foreign; None: no record.
    """

    partition: int
    offset: int
    sequence: int
    found_offset: int
    found_sequence: int | None


@dataclass(frozen=True, slots=True)
class DuplicateRecord:
    """A second copy of a record in the log. first_offset: the offset of the first copy."""

    partition: int
    offset: int
    sequence: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class OutOfOrderRecord:
    """A record that follows a later-sent record in the log. behind_sequence: the highest sequence before it."""

    partition: int
    offset: int
    sequence: int
    behind_sequence: int


@dataclass(frozen=True, slots=True)
class Hole:
    """A range of missing offsets, both inclusive."""

    partition: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """The position of a record. sequence: -1 for a foreign record."""

    partition: int
    offset: int
    sequence: int


@dataclass
class Findings:
    """The findings of a run; see the module docstring. Counts are of records; missing_offsets: size of all holes."""

    sent: int = 0
    acked: int = 0
    failed: int = 0
    indeterminate: int = 0
    failed_in_log: int = 0
    indeterminate_in_log: int = 0
    log_records: int = 0
    delivered: int | None = None
    missing_offsets: int = 0
    lost: FindingList[LostRecord] = field(default_factory=FindingList)
    misplaced: FindingList[MisplacedRecord] = field(default_factory=FindingList)
    duplicated: FindingList[DuplicateRecord] = field(default_factory=FindingList)
    out_of_order: FindingList[OutOfOrderRecord] = field(default_factory=FindingList)
    holes: FindingList[Hole] = field(default_factory=FindingList)
    foreign: FindingList[RecordPosition] = field(default_factory=FindingList)
    not_delivered: FindingList[RecordPosition] = field(default_factory=FindingList)
    delivered_again: FindingList[RecordPosition] = field(default_factory=FindingList)
    delivered_late: FindingList[RecordPosition] = field(default_factory=FindingList)
    phantoms: FindingList[RecordPosition] = field(default_factory=FindingList)


INVARIANTS = (
    "lost", "misplaced", "duplicated", "out_of_order", "holes", "foreign", "not_delivered", "delivered_again",
    "delivered_late", "phantoms",
)  # fmt: skip


def check(sent_records: SentRecords, log: Log, delivered: DeliveredRecords | None) -> Findings:
    """Return the findings. delivered: None without a consumer."""
    findings = Findings(delivered=None if delivered is None else 0)
    partitions = {*sent_records.partitions, *log, *(delivered.partitions if delivered else ())}
    for number in sorted(partitions):
        delivery = None if delivered is None else delivered.partitions.get(number, DeliveredPartition())
        partition, partition_log = sent_records.partitions.get(number, SentPartition()), log.get(number, LogPartition())
        first_offsets = _check_log(number, partition, partition_log, findings)
        if delivery is not None:
            _check_delivered(number, partition_log, delivery, findings)
        _check_outcomes(number, partition, partition_log, first_offsets, delivery, findings)
    return findings


def _check_log(number: int, partition: SentPartition, log: LogPartition, findings: Findings) -> array[int]:
    """Check the log alone. Return the first offset of each sequence sent, -1 if it is not in the log."""
    first_offsets = array("q", (-1,)) * partition.count
    count, expected, highest = partition.count, 0, -1
    for offset, sequence in zip(log.offsets, log.sequences, strict=True):
        if offset != expected:
            _hole(number, expected, offset, findings)
        expected = offset + 1
        if not 0 <= sequence < count:
            findings.foreign.add(RecordPosition(number, offset, sequence))
        elif first_offsets[sequence] >= 0:
            findings.duplicated.add(DuplicateRecord(number, offset, sequence, first_offsets[sequence]))
        else:
            first_offsets[sequence] = offset
            if sequence < highest:
                findings.out_of_order.add(OutOfOrderRecord(number, offset, sequence, highest))
            else:
                highest = sequence
    if expected < log.end:
        _hole(number, expected, log.end, findings)
    findings.log_records += len(log.offsets)
    return first_offsets


def _hole(number: int, first: int, end: int, findings: Findings) -> None:
    findings.holes.add(Hole(number, first, end - 1))
    findings.missing_offsets += end - first


def _check_outcomes(
    number: int,
    partition: SentPartition,
    log: LogPartition,
    first_offsets: array[int],
    delivery: DeliveredPartition | None,
    findings: Findings,
) -> None:
    states = Counter(partition.states)
    findings.sent += partition.count
    findings.acked += states[ACKED]
    findings.failed += states[FAILED]
    findings.indeterminate += partition.count - states[ACKED] - states[FAILED]
    is_delivered: bytearray | None = None  # by sequence: 1 if delivered; computed on the first loss
    for sequence, (state, offset, first) in enumerate(
        zip(partition.states, partition.offsets, first_offsets, strict=True)
    ):
        if state == ACKED:
            if first < 0:
                if is_delivered is None and delivery is not None:
                    is_delivered = _delivered_flags(delivery, partition.count)
                findings.lost.add(
                    LostRecord(number, offset, sequence, None if is_delivered is None else is_delivered[sequence] > 0)
                )
            elif offset not in (first, -1):
                _check_place(number, sequence, offset, first, log, findings)
        elif first >= 0:
            if state == FAILED:
                findings.failed_in_log += 1
            else:
                findings.indeterminate_in_log += 1


def _delivered_flags(delivery: DeliveredPartition, count: int) -> bytearray:
    is_delivered = bytearray(count)
    for sequence in delivery.sequences:
        if 0 <= sequence < count:
            is_delivered[sequence] = 1
    return is_delivered


def _check_place(number: int, sequence: int, offset: int, first: int, log: LogPartition, findings: Findings) -> None:
    """Check a record whose first offset is not the acknowledged one; a duplicate may be at the acknowledged offset."""
    index = log.index_of(offset)
    actual = None if index < 0 else log.sequences[index]
    if actual != sequence:
        findings.misplaced.add(MisplacedRecord(number, offset, sequence, first, actual))


def _check_delivered(number: int, log: LogPartition, delivery: DeliveredPartition, findings: Findings) -> None:
    delivered = bytearray(len(log.offsets))
    highest = -1
    for offset, sequence in zip(delivery.offsets, delivery.sequences, strict=True):
        index = log.index_of(offset)
        if index < 0 or log.sequences[index] != sequence:
            findings.phantoms.add(RecordPosition(number, offset, sequence))
            continue
        if delivered[index]:
            findings.delivered_again.add(RecordPosition(number, offset, sequence))
        elif offset < highest:
            findings.delivered_late.add(RecordPosition(number, offset, sequence))
        delivered[index] = 1
        highest = max(highest, offset)
    assert findings.delivered is not None
    findings.delivered += len(delivery.offsets)
    at = delivered.find(0)
    while at >= 0:
        findings.not_delivered.add(RecordPosition(number, log.offsets[at], log.sequences[at]))
        at = delivered.find(0, at + 1)
