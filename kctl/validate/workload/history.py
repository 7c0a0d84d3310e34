"""The history of a run, as arrays per partition: records sent, in the log, and delivered.

Memory per record: 9 bytes sent, 16 in the log, 16 delivered. Journal entries are checked against each other here: an
inconsistent journal raises InvalidFile, so it never becomes a finding about brokers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from kctl.errors import InvalidFile
from kctl.validate.workload.entries import ACKED, ENDED, FAILED, READ, SENT, STOPPING, UNKNOWN, Entry

OUTCOMES = frozenset({ACKED, FAILED, UNKNOWN})


@dataclass
class SentPartition:
    """Records sent to a partition. states, offsets: by sequence; SENT: no outcome; offset -1: the broker reported none.

    ack_ns, ack_counts: time and records of each acknowledgment. first_ns: time of the first record, -1 for none.
    """

    states: bytearray = field(default_factory=bytearray)
    offsets: array[int] = field(default_factory=lambda: array("q"))
    ack_ns: array[int] = field(default_factory=lambda: array("q"))
    ack_counts: array[int] = field(default_factory=lambda: array("q"))
    first_ns: int = -1

    @property
    def count(self) -> int:
        return len(self.states)

    def take(self, entry: Entry) -> None:
        """Add an entry. Raises ValueError if it contradicts earlier entries."""
        begin, end = entry.sequence, entry.sequence + entry.records
        if entry.kind == SENT:
            if begin != self.count:
                raise ValueError(f"sequence {begin} follows {self.count - 1}")
            self.states.extend(bytes((SENT,)) * entry.records)
            self.offsets.extend(array("q", (-1,)) * entry.records)
            self.first_ns = entry.at_ns if self.first_ns < 0 else self.first_ns
            return
        if not 0 <= begin < end <= self.count or self.states[begin:end].strip(bytes((SENT,))):
            raise ValueError(f"outcome of {begin} to {end - 1}, which were not sent or already have an outcome")
        self.states[begin:end] = bytes((entry.kind,)) * entry.records
        if entry.kind == ACKED:
            self.ack_ns.append(entry.at_ns)
            self.ack_counts.append(entry.records)
            if entry.offset >= 0:
                self.offsets[begin:end] = array("q", range(entry.offset, entry.offset + entry.records))


@dataclass
class SentRecords:
    """The producer's journal.

    stop_ns: time of the stop request, or of its parent's exit; -1: none. ended: clean exit, so every record has an
    outcome.
    """

    partitions: dict[int, SentPartition] = field(default_factory=dict)
    stop_ns: int = -1
    ended: bool = False
    last_ns: int = -1


@dataclass
class DeliveredPartition:
    """Records delivered from a partition, in order. sequences: FOREIGN for foreign records."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    sequences: array[int] = field(default_factory=lambda: array("q"))

    def take(self, entry: Entry) -> None:
        self.offsets.extend(range(entry.offset, entry.offset + entry.records))
        if entry.sequence < 0:
            self.sequences.extend(array("q", (entry.sequence,)) * entry.records)
        else:
            self.sequences.extend(range(entry.sequence, entry.sequence + entry.records))


@dataclass
class DeliveredRecords:
    """The consumer's journal. ended: clean exit."""

    partitions: dict[int, DeliveredPartition] = field(default_factory=dict)
    ended: bool = False


@dataclass
class LogPartition:
    """The log of a partition, from its start to its end offset. sequences: FOREIGN for foreign records."""

    start: int = 0
    end: int = 0
    offsets: array[int] = field(default_factory=lambda: array("q"))
    sequences: array[int] = field(default_factory=lambda: array("q"))

    def index_of(self, offset: int) -> int:
        """Return the array index of an offset, -1 if the log has no record there."""
        likely_index = offset - self.offsets[0] if self.offsets else -1
        if 0 <= likely_index < len(self.offsets) and self.offsets[likely_index] == offset:
            return likely_index
        index = bisect_left(self.offsets, offset)
        return index if index < len(self.offsets) and self.offsets[index] == offset else -1


Log = dict[int, LogPartition]


def sent_of(entries: Iterable[Entry], source: object = "the producer's journal") -> SentRecords:
    """Return the sent records in a journal. source: for messages. Raises InvalidFile."""
    journal = SentRecords()
    for entry in entries:
        journal.last_ns = entry.at_ns
        if entry.kind == STOPPING:
            journal.stop_ns = entry.at_ns if journal.stop_ns < 0 else journal.stop_ns
        elif entry.kind == ENDED:
            journal.ended = True
        elif entry.kind == SENT or entry.kind in OUTCOMES:
            try:
                journal.partitions.setdefault(entry.partition, SentPartition()).take(entry)
            except ValueError as exc:
                raise InvalidFile(f"{source}, partition {entry.partition}: {exc}") from None
        else:
            raise InvalidFile(f"{source} is not a producer journal")
    return journal


def delivered_of(entries: Iterable[Entry], source: object = "the consumer's journal") -> DeliveredRecords:
    """Return the delivered records in a journal. source: for messages. Raises InvalidFile."""
    delivered = DeliveredRecords()
    for entry in entries:
        if entry.kind == ENDED:
            delivered.ended = True
        elif entry.kind == READ:
            delivered.partitions.setdefault(entry.partition, DeliveredPartition()).take(entry)
        elif entry.kind != STOPPING:
            raise InvalidFile(f"{source} is not a consumer journal")
    return delivered
