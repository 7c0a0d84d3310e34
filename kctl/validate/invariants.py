"""What must hold between what was acknowledged, what the log has and what was delivered. Pure.

Each violation is one kind of finding, and no other:

    lost             acknowledged, and nowhere in the log
    misplaced        acknowledged at an offset where another record is, and in the log elsewhere
    duplicated       in the log once more, behind the first time
    out_of_order     in the log for the first time behind one that was sent later
    holes            offsets that the log does not have, from 0 to its end: the topic is the validation's own
    foreign          a record that the producer did not send to this partition
    not_delivered    in the log, and never given to the consumer
    delivered_again  given to the consumer a second time
    delivered_late   given to the consumer behind a higher offset of what the log has
    phantoms         given to the consumer, and not what the log has at that offset (any more)

Records that failed or have no outcome may be in the log or not: they are counted. Time: about 1 µs a record.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kctl.validate.workload.entries import ACKED, FAILED
from kctl.validate.workload.history import Delivered, DeliveredPartition, Log, LogPartition, Sent, SentPartition

LIMIT = 100  # findings of a kind that are named; all are counted
_Finding = TypeVar("_Finding")


@dataclass
class Listed(Generic[_Finding]):
    """How many there are, and the first of them."""

    count: int = 0
    first: list[_Finding] = field(default_factory=list)

    def add(self, finding: _Finding) -> None:
        self.count += 1
        if len(self.first) < LIMIT:
            self.first.append(finding)

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(frozen=True, slots=True)
class Lost:
    """offset: where it was acknowledged; −1 when the broker told none. delivered: whether the consumer got it before
    it was lost; None without a consumer."""

    partition: int
    offset: int
    sequence: int
    delivered: bool | None


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Acknowledged at `offset`, where the log has found_sequence (−1: another's record; None: nothing), and found at
    found_offset."""

    partition: int
    offset: int
    sequence: int
    found_offset: int
    found_sequence: int | None


@dataclass(frozen=True, slots=True)
class Duplicated:
    """first_offset: where it is for the first time."""

    partition: int
    offset: int
    sequence: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class OutOfOrder:
    """behind_sequence: the latest that is in front of it."""

    partition: int
    offset: int
    sequence: int
    behind_sequence: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Both offsets are missing, and all between them."""

    partition: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class At:
    """One record. sequence: −1 for one of others."""

    partition: int
    offset: int
    sequence: int


@dataclass
class Findings:
    """See the module. Counts are of records; missing_offsets: of all holes together."""

    sent: int = 0
    acked: int = 0
    failed: int = 0
    indeterminate: int = 0
    failed_in_log: int = 0
    indeterminate_in_log: int = 0
    log_records: int = 0
    delivered: int | None = None
    missing_offsets: int = 0
    lost: Listed[Lost] = field(default_factory=Listed)
    misplaced: Listed[Misplaced] = field(default_factory=Listed)
    duplicated: Listed[Duplicated] = field(default_factory=Listed)
    out_of_order: Listed[OutOfOrder] = field(default_factory=Listed)
    holes: Listed[Hole] = field(default_factory=Listed)
    foreign: Listed[At] = field(default_factory=Listed)
    not_delivered: Listed[At] = field(default_factory=Listed)
    delivered_again: Listed[At] = field(default_factory=Listed)
    delivered_late: Listed[At] = field(default_factory=Listed)
    phantoms: Listed[At] = field(default_factory=Listed)


INVARIANTS = (
    "lost", "misplaced", "duplicated", "out_of_order", "holes", "foreign", "not_delivered", "delivered_again",
    "delivered_late", "phantoms",
)  # fmt: skip


def check(sent: Sent, log: Log, delivered: Delivered | None) -> Findings:
    """delivered: None when there was no consumer."""
    findings = Findings(delivered=None if delivered is None else 0)
    partitions = {*sent.partitions, *log, *(delivered.partitions if delivered else ())}
    for number in sorted(partitions):
        given = None if delivered is None else delivered.partitions.get(number, DeliveredPartition())
        one_sent, one_log = sent.partitions.get(number, SentPartition()), log.get(number, LogPartition())
        where = _check_log(number, one_sent, one_log, findings)
        if given is not None:
            _check_delivered(number, one_log, given, findings)
        _check_outcomes(number, one_sent, one_log, where, given, findings)
    return findings


def _check_log(number: int, sent: SentPartition, log: LogPartition, findings: Findings) -> array[int]:
    """What the log shows by itself; for each sequence that was sent, the offset where it is first, −1 for nowhere."""
    where = array("q", (-1,)) * sent.count
    count, expected, highest = sent.count, 0, -1
    for offset, sequence in zip(log.offsets, log.sequences, strict=True):
        if offset != expected:
            _hole(number, expected, offset, findings)
        expected = offset + 1
        if not 0 <= sequence < count:
            findings.foreign.add(At(number, offset, sequence))
        elif where[sequence] >= 0:
            findings.duplicated.add(Duplicated(number, offset, sequence, where[sequence]))
        else:
            where[sequence] = offset
            if sequence < highest:
                findings.out_of_order.add(OutOfOrder(number, offset, sequence, highest))
            else:
                highest = sequence
    if expected < log.end:
        _hole(number, expected, log.end, findings)
    findings.log_records += len(log.offsets)
    return where


def _hole(number: int, first: int, behind: int, findings: Findings) -> None:
    findings.holes.add(Hole(number, first, behind - 1))
    findings.missing_offsets += behind - first


def _check_outcomes(
    number: int,
    sent: SentPartition,
    log: LogPartition,
    where: array[int],
    given: DeliveredPartition | None,
    findings: Findings,
) -> None:
    states = Counter(sent.states)
    findings.sent += sent.count
    findings.acked += states[ACKED]
    findings.failed += states[FAILED]
    findings.indeterminate += sent.count - states[ACKED] - states[FAILED]
    reached: bytearray | None = None  # by sequence: was it delivered; made when something is lost
    for sequence, (state, offset, found) in enumerate(zip(sent.states, sent.offsets, where, strict=True)):
        if state == ACKED:
            if found < 0:
                if reached is None and given is not None:
                    reached = _reached(given, sent.count)
                findings.lost.add(Lost(number, offset, sequence, None if reached is None else reached[sequence] > 0))
            elif offset not in (found, -1):
                _check_place(number, sequence, offset, found, log, findings)
        elif found >= 0:
            if state == FAILED:
                findings.failed_in_log += 1
            else:
                findings.indeterminate_in_log += 1


def _reached(given: DeliveredPartition, count: int) -> bytearray:
    reached = bytearray(count)
    for sequence in given.sequences:
        if 0 <= sequence < count:
            reached[sequence] = 1
    return reached


def _check_place(number: int, sequence: int, offset: int, found: int, log: LogPartition, findings: Findings) -> None:
    """It is not at the acknowledged offset for the first time; without idempotence it may be there once more."""
    index = log.index_of(offset)
    there = None if index < 0 else log.sequences[index]
    if there != sequence:
        findings.misplaced.add(Misplaced(number, offset, sequence, found, there))


def _check_delivered(number: int, log: LogPartition, given: DeliveredPartition, findings: Findings) -> None:
    seen = bytearray(len(log.offsets))
    highest = -1
    for offset, sequence in zip(given.offsets, given.sequences, strict=True):
        index = log.index_of(offset)
        if index < 0 or log.sequences[index] != sequence:
            findings.phantoms.add(At(number, offset, sequence))
            continue
        if seen[index]:
            findings.delivered_again.add(At(number, offset, sequence))
        elif offset < highest:
            findings.delivered_late.add(At(number, offset, sequence))
        seen[index] = 1
        highest = max(highest, offset)
    assert findings.delivered is not None
    findings.delivered += len(given.offsets)
    at = seen.find(0)
    while at >= 0:
        findings.not_delivered.add(At(number, log.offsets[at], log.sequences[at]))
        at = seen.find(0, at + 1)
