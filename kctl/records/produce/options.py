"""The options and the result of producing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.records.produce.batch import Compress
from kctl.records.produce.outgoing import Outgoing

ACKS = {"all": -1, "1": 1, "0": 0}


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """The options of producing.

    partition: None to partition by key (murmur2, as in Kafka's producers). idempotent: no duplicates and no reordering
    after retries; requires acks=all. linger_ms: wait for fuller batches. timeout_s: how long a partition may go
    without accepting a record. count: the maximum number of lines. per_s: the maximum number of records per second.
    skip_bad_lines: continue after an invalid line.
    """

    topic: str
    partition: int | None = None
    acks: str = "all"
    compression: str = "none"
    idempotent: bool = True
    linger_ms: int = 5
    timeout_s: float = 30.0
    count: int | None = None
    per_s: float | None = None
    skip_bad_lines: bool = False


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """The options of sending batches.

    acks: -1 for all in-sync replicas, 1, 0. producer: id and epoch for idempotence. batch_bytes: the size when full.
    linger_s: how long a batch waits to be filled. timeout_s: how long a partition may make no progress.
    continue_after_loss: keep sending after a lost batch. resend: without idempotence, behave like producers with
    retries: five batches in flight, and retries after lost responses, which may duplicate and reorder records.
    """

    topic: str
    acks: int
    producer: tuple[int, int] | None
    codec: str
    compress: Compress | None
    batch_bytes: int
    linger_s: float
    timeout_s: float
    continue_after_loss: bool = False
    resend: bool = False


@dataclass
class ProduceResult:
    """The outcome of all lines.

    acknowledged: None with acks=0, where brokers acknowledge nothing. sent: records from the input, each acknowledged,
    failed (not in the log) or unknown (may be in the log). not_acknowledged: the line numbers of failed and unknown
    records, in order. skipped: invalid lines. partitions: acknowledged records by partition. error: the first error, of
    a record or of reading the input. bad_line: why the first invalid line is invalid. interrupted: by Ctrl-C.
    failed_file: the file with the records that were not acknowledged.
    """

    topic: str
    acks: str
    sent: int = 0
    acknowledged: int | None = 0
    failed: int = 0
    unknown: int = 0
    not_acknowledged: list[int] = field(default_factory=list)
    skipped: int = 0
    bytes: int = 0
    duration_ms: int = 0
    partitions: dict[int, int] = field(default_factory=dict)
    error: str | None = None
    bad_line: str | None = None
    interrupted: bool = False
    failed_file: str | None = None

    @property
    def changed(self) -> bool:
        """Return True if records are or may be in the log, which with acks=0 is true of every record sent."""
        return bool(self.sent if self.acknowledged is None else self.acknowledged or self.unknown)

    @property
    def complete(self) -> bool:
        """Return True if all lines were sent, or skipped as requested, and all records were acknowledged."""
        return not (self.not_acknowledged or self.interrupted or self.error)


class UnacknowledgedRecord(NamedTuple):
    """A record that was not acknowledged, its line number, and the outcome: "failed" or "unknown"."""

    line: int
    record: Outgoing
    outcome: str
