"""What happened, as arrays by partition: what was sent, what the log has, what was delivered.

Memory for a record: 9 bytes sent, 16 in the log, 16 delivered. The journals' entries are checked against each other
here: what makes no sense is InvalidFile, never a finding about brokers.
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
    """states, offsets: by sequence; SENT is one without an outcome; an offset is −1 where the broker told none.

    acks: (moment in ns, records) of each acknowledgement. first_ns: when the first record was taken; −1 for none.
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
        """Raises ValueError for one that does not go with those before it."""
        begin, end = entry.sequence, entry.sequence + entry.records
        if entry.kind == SENT:
            if begin != self.count:
                raise ValueError(f"sequence {begin} follows {self.count - 1}")
            self.states.extend(bytes((SENT,)) * entry.records)
            self.offsets.extend(array("q", (-1,)) * entry.records)
            self.first_ns = entry.at_ns if self.first_ns < 0 else self.first_ns
            return
        if not 0 <= begin < end <= self.count or self.states[begin:end].strip(bytes((SENT,))):
            raise ValueError(f"an outcome of {begin} to {end - 1}, which were not sent or have one")
        self.states[begin:end] = bytes((entry.kind,)) * entry.records
        if entry.kind == ACKED:
            self.ack_ns.append(entry.at_ns)
            self.ack_counts.append(entry.records)
            if entry.offset >= 0:
                self.offsets[begin:end] = array("q", range(entry.offset, entry.offset + entry.records))


@dataclass
class Sent:
    """The producer's journal. stop_ns: when it was asked to stop, or had no parent any more; −1: never. ended: it came
    to an orderly end, so that nothing was sent that has no outcome."""

    partitions: dict[int, SentPartition] = field(default_factory=dict)
    stop_ns: int = -1
    ended: bool = False
    last_ns: int = -1


@dataclass
class DeliveredPartition:
    """In the order of delivery; sequences: FOREIGN for records of others."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    sequences: array[int] = field(default_factory=lambda: array("q"))

    def take(self, entry: Entry) -> None:
        self.offsets.extend(range(entry.offset, entry.offset + entry.records))
        if entry.sequence < 0:
            self.sequences.extend(array("q", (entry.sequence,)) * entry.records)
        else:
            self.sequences.extend(range(entry.sequence, entry.sequence + entry.records))


@dataclass
class Delivered:
    """The consumer's journal. ended: it came to an orderly end."""

    partitions: dict[int, DeliveredPartition] = field(default_factory=dict)
    ended: bool = False


@dataclass
class LogPartition:
    """What one partition's log has, read from its start to its end offset. sequences: FOREIGN for records of others."""

    start: int = 0
    end: int = 0
    offsets: array[int] = field(default_factory=lambda: array("q"))
    sequences: array[int] = field(default_factory=lambda: array("q"))

    def index_of(self, offset: int) -> int:
        """Where in the arrays an offset is; −1 when the log has no record there."""
        guess = offset - self.offsets[0] if self.offsets else -1
        if 0 <= guess < len(self.offsets) and self.offsets[guess] == offset:
            return guess
        index = bisect_left(self.offsets, offset)
        return index if index < len(self.offsets) and self.offsets[index] == offset else -1


Log = dict[int, LogPartition]


def sent_of(entries: Iterable[Entry], source: object = "the producer's journal") -> Sent:
    """source: which file it is, for errors. Raises InvalidFile."""
    sent = Sent()
    for entry in entries:
        sent.last_ns = entry.at_ns
        if entry.kind == STOPPING:
            sent.stop_ns = entry.at_ns if sent.stop_ns < 0 else sent.stop_ns
        elif entry.kind == ENDED:
            sent.ended = True
        elif entry.kind == SENT or entry.kind in OUTCOMES:
            try:
                sent.partitions.setdefault(entry.partition, SentPartition()).take(entry)
            except ValueError as exc:
                raise InvalidFile(f"{source}, partition {entry.partition}: {exc}") from None
        else:
            raise InvalidFile(f"{source} is not a producer's")
    return sent


def delivered_of(entries: Iterable[Entry], source: object = "the consumer's journal") -> Delivered:
    """source: which file it is, for errors. Raises InvalidFile."""
    delivered = Delivered()
    for entry in entries:
        if entry.kind == ENDED:
            delivered.ended = True
        elif entry.kind == READ:
            delivered.partitions.setdefault(entry.partition, DeliveredPartition()).take(entry)
        elif entry.kind != STOPPING:
            raise InvalidFile(f"{source} is not a consumer's")
    return delivered
