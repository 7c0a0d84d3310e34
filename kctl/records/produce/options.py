"""What is asked of a run that writes records, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.records.produce.batch import Compress
from kctl.records.produce.outgoing import Outgoing

ACKS = {"all": -1, "1": 1, "0": 0}


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """How to produce. partition: None lets the key decide (murmur2, as Kafka's own producers do).

    idempotent: no duplicates and no reordering after retries; needs acks=all. linger_ms: wait for fuller batches.
    timeout_s: how long a partition may take nothing. count: stop after so many lines. per_s: records a second at most.
    skip_bad_lines: go on behind a line that cannot be a record.
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
    """acks: −1 for all in-sync replicas, 1, 0. producer: id and epoch for idempotence. batch_bytes: the size when full.

    linger_s: how long a batch waits to be filled. timeout_s: how long a partition may make no progress. go_on: send on
    after a batch is lost. resend: without idempotence, send as producers with retries do: five batches under way, and
    again what got no answer. That duplicates and reorders.
    """

    topic: str
    acks: int
    producer: tuple[int, int] | None
    codec: str
    compress: Compress | None
    batch_bytes: int
    linger_s: float
    timeout_s: float
    go_on: bool = False
    resend: bool = False


@dataclass
class ProduceResult:
    """What became of the lines. acknowledged is None with acks=0, where brokers acknowledge nothing.

    sent: records taken from the input, each of them acknowledged, failed (not in the log) or unknown (perhaps in the
    log); not_acknowledged: the numbers of both kinds of lines, in order. skipped: lines that could not be a record.
    partitions: acknowledged records by partition. error: the first reason, also why no more could be read. bad_line:
    why the first line that could not be a record could not. interrupted: Ctrl-C. failed_file: where those not
    acknowledged were written.
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
        """Whether records are in the log, or may be; with acks=0 that is unknown of each record sent."""
        return bool(self.sent if self.acknowledged is None else self.acknowledged or self.unknown)

    @property
    def complete(self) -> bool:
        """All lines were sent (but those skipped as asked), and all that were sent were acknowledged."""
        return not (self.not_acknowledged or self.interrupted or self.error)


class Lost(NamedTuple):
    """A record that was not acknowledged, its line, and «failed» or «unknown»."""

    line: int
    record: Outgoing
    outcome: str
