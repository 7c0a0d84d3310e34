"""Writing a stream of records with bounded memory, and knowing at the end what became of each.

A record is acknowledged, failed (it is not in the log: a broker refused it, or none got it), or unknown (it was sent
and no answer came: it may be in the log). After the first that is not acknowledged nothing new is sent: the records
that follow would overtake it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kctl.deadline import Deadline
from kctl.errors import (
    ConnectionFailed,
    KctlError,
    NotAuthorized,
    NotFound,
    OperationFailed,
    OutcomeUnknown,
    UsageError,
)
from kctl.protocol_errors import RETRIABLE, error_for
from kctl.records.background import Background
from kctl.records.outgoing import Outgoing, Unfit
from kctl.records.pace import Pace
from kctl.records.produce_batch import ClosedBatch, compressor, numbers_of, record_room, smallest_batch
from kctl.records.produce_sender import ACKNOWLEDGED, FAILED, UNKNOWN, Sender, SenderOptions
from kctl.topics.configs import fetch_topic_configs
from kctl.topics.describe import describe_topics, known_topics

if TYPE_CHECKING:
    from kctl.client import ClusterClient
    from kctl.model import ClusterState
    from kctl.records.produce_input import Supply

ACKS = {"all": -1, "1": 1, "0": 0}
MAX_RECORD_BYTES = 64 << 20  # where a topic's limit does not say less
_ENCODED = 6  # bytes of JSON for a byte of a record at most (\\u0000)
_LINE_BESIDE = 64 * 1024  # JSON's other fields
_BATCH_BYTES = 128 * 1024
_UNKNOWN_LIMIT_BATCH_BYTES = 16 * 1024
_NEAR = 512  # from here on a record is measured exactly
_AT_ONCE = 1000  # records without looking at the brokers
_INTERRUPTED_S = 5.0
_CONFIGS_S = 3.0  # the size limit is good to know, and no reason to wait
_TELL_S = 0.2
_COORDINATOR_POLL_S = 0.1
_CLUSTER_AUTHORIZATION_FAILED = 31


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
    def complete(self) -> bool:
        """All lines were sent (but those skipped as asked), and all that were sent were acknowledged."""
        return not (self.not_acknowledged or self.interrupted or self.error)


class Destination(NamedTuple):
    """The topic that is written to. max_batch_bytes: the largest batch that it takes, of which limit_name is the
    config; None when it may not be read."""

    state: ClusterState
    max_batch_bytes: int | None
    limit_name: str = "max.message.bytes"


class Lost(NamedTuple):
    """A record that was not acknowledged, its line, and «failed» or «unknown»."""

    line: int
    record: Outgoing
    outcome: str


def check_topic(client: ClusterClient, options: ProduceOptions) -> Destination:
    """The topic with its limit, after checking that it and the partition exist.

    Raises NotFound for an unknown topic or partition, UsageError for options that exclude each other.
    """
    if options.idempotent and options.acks != "all":
        raise UsageError("idempotence needs --acks all", hint="add --no-idempotence, or leave --acks out")
    state = known_topics(client, [options.topic])
    count = len(state.topics[options.topic].partitions)
    if options.partition is not None and options.partition >= count:
        raise NotFound(f"topic {options.topic} has no partition {options.partition}", hint=f"it has 0 to {count - 1}")
    configs = fetch_topic_configs(client, [options.topic], state.brokers, limit_s=_CONFIGS_S)[options.topic]
    if isinstance(configs, KctlError):
        return Destination(state, None)  # not allowed to look: the broker will say
    # A batch has to fit into a segment, too (UnifiedLog.append: RecordBatchTooLargeException).
    limits = [
        (int(entry.value), entry.name)
        for entry in configs
        if entry.name in {"max.message.bytes", "segment.bytes"} and entry.value and entry.value.isdigit()
    ]
    return Destination(state, *min(limits)) if limits else Destination(state, None)


def longest_line(destination: Destination, options: ProduceOptions, *, encoded: bool) -> int:
    """The most bytes that a line can have and still be a record. encoded: as JSON, hex or base64."""
    limit = destination.max_batch_bytes
    if limit is None or options.compression != "none":
        limit = MAX_RECORD_BYTES
    return min(limit * _ENCODED + _LINE_BESIDE, MAX_RECORD_BYTES * 2) if encoded else limit


def producer_id(client: ClusterClient, timeout_s: float) -> tuple[int, int]:
    """A new producer id and its epoch, which idempotence needs (KIP-98).

    Raises OperationFailed when no broker gives one in time, NotAuthorized.
    """
    from kafka.protocol.producer import InitProducerIdRequest

    deadline = Deadline(timeout_s)
    while True:
        why: KctlError
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        try:
            answer = client.send(request, timeout_s=max(0.1, deadline.left_s))
        except (ConnectionFailed, OutcomeUnknown) as exc:  # an id that nobody uses does no harm
            why = exc
        else:
            if not answer.error_code:
                return answer.producer_id, answer.producer_epoch
            why = error_for(answer.error_code, None, subject="producer id")
            if answer.error_code == _CLUSTER_AUTHORIZATION_FAILED:
                raise NotAuthorized(
                    "not authorized to write with idempotence (CLUSTER_AUTHORIZATION_FAILED)",
                    hint="ask for the ACL operation Write on the topic (before 2.8: IdempotentWrite on the cluster);"
                    " --no-idempotence does without",
                )
            if answer.error_code not in RETRIABLE:
                raise why
        if deadline.expired:
            raise OperationFailed(
                f"the brokers gave no producer id within {timeout_s:g} s: nothing was sent ({why.message})",
                hint="they need the controller, and it ZooKeeper, for a new one;"
                " --no-idempotence does without, and stops at the first answer that is lost",
            )
        time.sleep(min(_COORDINATOR_POLL_S, deadline.left_s))


def shortage(client: ClusterClient, topic: str) -> str | None:
    """Why brokers may be refusing acks=all just now, in a line: too few replicas in sync, or no leader."""
    try:
        (found,) = describe_topics(client, [topic])
    except KctlError:
        return None
    offline = [str(p.partition) for p in found.partitions if p.offline]
    short = [str(p.partition) for p in found.partitions if p.under_min_isr and not p.offline]
    if offline:
        return f"partitions without a leader: {', '.join(offline)}"
    if short:
        return f"partitions with fewer replicas in sync than min.insync.replicas: {', '.join(short)}"
    return None


class Producing:
    """One run: `prepare`, then `run`. `interrupt` may be called meanwhile, also in a signal handler."""

    def __init__(
        self,
        client: ClusterClient,
        destination: Destination,
        options: ProduceOptions,
        supply: Supply,
        parse: Callable[[bytes, int], Outgoing] | None,
        *,
        progress: Callable[[ProduceResult], None] | None = None,
    ) -> None:
        """parse: makes a record of a line and its number, or raises Unfit; None: the line is the value."""
        self._client, self._destination, self._options = client, destination, options
        self._supply, self._parse, self._progress = supply, parse, progress
        self._background = Background()
        self._pace = Pace(options.per_s)
        self._lost: list[tuple[ClosedBatch, str]] = []
        self._interrupted = self._bad = self._cut_short = False
        self._input_error: KctlError | None = None
        self.unexpected: Exception | None = None  # what ended it that nobody foresaw; to be raised when all is told
        self._told = 0.0
        self.result = ProduceResult(topic=options.topic, acks=options.acks)
        self._sender: Sender

    def interrupt(self) -> None:
        """Take nothing more, and end within a few seconds; the second time, wait no longer for answers.

        It only sets flags: what is lost has to be told, whatever is pressed.
        """
        self._cut_short, self._interrupted = self._interrupted, True
        self._background.wake()

    def prepare(self) -> None:
        """Get ready to send.

        Raises NotSupported for a codec, OperationFailed without a producer id, ConnectionFailed.
        """
        options, limit = self._options, self._destination.max_batch_bytes
        compress = compressor(options.compression)
        batch_bytes = _UNKNOWN_LIMIT_BATCH_BYTES if limit is None else min(_BATCH_BYTES, limit)
        producer = producer_id(self._client, options.timeout_s) if options.idempotent else None
        self._sender = Sender(
            self._client,
            SenderOptions(
                topic=options.topic, acks=ACKS[options.acks], producer=producer, codec=options.compression,
                compress=compress, batch_bytes=batch_bytes, linger_s=options.linger_ms / 1000,
                timeout_s=options.timeout_s,
            ),
            self._destination.state,
            self._done,
            self._background,
        )  # fmt: skip
        self._sender.connect()

    def run(self) -> ProduceResult:
        """Send lines until they end, one cannot be a record, one is not acknowledged, or it is interrupted; then wait
        for the rest. Never raises: everything is in the result, and what nobody foresaw in `unexpected`."""
        started = time.monotonic()
        result = self.result
        try:
            self._send_all()
        except Exception as exc:  # noqa: BLE001 - raised by the command, behind the account of what was sent
            self.unexpected = exc
            result.error = result.error or f"unexpected error: {exc!r}"
        self._sender.abandon()
        self._supply.close()
        self._sender.close(at_once=self._interrupted)
        result.interrupted = self._interrupted
        result.not_acknowledged = numbers_of(batch for batch, _ in self._lost)
        if result.error is None and self._sender.stopped is not None:
            result.error = self._sender.stopped.message
        if result.error is None and self._input_error is not None:
            result.error = self._input_error.message
        result.duration_ms = round((time.monotonic() - started) * 1000)
        if self._options.acks == "0":
            result.acknowledged = None
        return result

    @property
    def cause(self) -> KctlError | None:
        """The first error, which stopped the sending."""
        return self._sender.stopped

    def lost(self) -> Iterator[Lost]:
        """What was not acknowledged, in the order of the input."""

        def rows(batch: ClosedBatch, outcome: str) -> Iterator[Lost]:
            for number, record in batch.records():
                yield Lost(number, record, outcome)

        yield from heapq.merge(*(rows(batch, outcome) for batch, outcome in self._lost), key=lambda row: row.line)

    def _send_all(self) -> None:
        sender = self._sender
        while not self._interrupted:
            if not self._more_wanted():
                sender.flushing = True
                if sender.idle:
                    return
            self._turn()
            self._tell()
        sender.flushing = True
        deadline = Deadline(min(_INTERRUPTED_S, self._options.timeout_s))
        while not (sender.idle or deadline.expired or self._cut_short):
            sender.step(min(0.1, deadline.left_s))

    def _more_wanted(self) -> bool:
        enough = self._options.count is not None and self._supply_taken() >= self._options.count
        return not (enough or self._bad or self._sender.stopped or self._supply.ended)

    def _supply_taken(self) -> int:
        return self.result.sent + self.result.skipped

    def _turn(self) -> None:
        """Take some lines, or wait for them; let the sender work."""
        supply, sender = self._supply, self._sender
        wait_s, readable = 1.0, None
        if self._more_wanted() and sender.has_room:
            due = self._pace.due()
            if not due:
                wait_s = self._pace.wait_s()
            elif supply.at < len(supply.lines):
                self._take(due)
                wait_s = 0
            elif supply.fd is None:
                self._fill()
                wait_s = 0
            else:
                readable = supply.fd
        if sender.step(wait_s, readable):
            self._fill()

    def _fill(self) -> None:
        try:
            self._supply.fill()
        except KctlError as exc:  # ends the input, as a bad line does
            self._input_error, self._bad = exc, True

    def _take(self, due: int) -> None:
        supply, result = self._supply, self.result
        count = min(due, len(supply.lines) - supply.at)
        if self._options.count is not None:
            count = min(count, self._options.count - self._supply_taken())
        if self._parse is None and self._all_fit(supply.at, supply.at + count):
            end = supply.at + count
            self._sender.add_values(supply.lines, supply.at, end, supply.number, self._options.partition)
            supply.at, supply.number = end, supply.number + count
            result.sent += count
            self._pace.took(count)
            return
        for _ in range(min(count, _AT_ONCE)):
            line, number = supply.lines[supply.at], supply.number
            supply.at, supply.number = supply.at + 1, number + 1
            self._take_one(line, number)
            if self._bad or not self._sender.has_room:
                return

    def _take_one(self, line: bytes, number: int) -> None:
        try:
            if len(line) > self._supply.max_bytes:
                raise Unfit(f"is too large: it has more than {self._supply.max_bytes} bytes")
            record = Outgoing(None, line, partition=self._options.partition)
            if self._parse is not None:
                record = self._parse(line, number)
            self._check(record)
        except Unfit as exc:
            why = f"{exc.reason}; {exc.hint}" if exc.hint else exc.reason
            self.result.bad_line = self.result.bad_line or f"{self._supply.where(number)} {why}"
            if self._options.skip_bad_lines:
                self.result.skipped += 1
            else:
                self._bad = True
            return
        self._sender.add(record, number)
        self.result.sent += 1
        self._pace.took(1)

    def _all_fit(self, start: int, end: int) -> bool:
        limit = self._limit()
        room = self._supply.max_bytes if limit is None else min(limit - _NEAR, self._supply.max_bytes)
        return max(map(len, self._supply.lines[start:end])) <= room

    def _limit(self) -> int | None:
        """The largest batch, as long as it is not compressed: what it will be then nobody knows before."""
        return self._destination.max_batch_bytes if self._options.compression == "none" else None

    def _check(self, record: Outgoing) -> None:
        limit = self._limit()
        if limit is not None and record_room(record) + _NEAR > limit:
            size = smallest_batch(record)
            if size > limit:
                raise Unfit(
                    f"is too large: at least {size} bytes as a batch,"
                    f" and the topic takes {limit} ({self._destination.limit_name})"
                )
        partitions = self._sender.partitions
        if record.partition is not None and record.partition >= partitions:
            raise Unfit(
                f"names partition {record.partition}, and topic {self._options.topic} has 0 to {partitions - 1}",
                hint="--repartition lets the keys decide",
            )

    def _done(self, batch: ClosedBatch, outcome: str, error: KctlError | None) -> None:
        result = self.result
        if outcome == ACKNOWLEDGED:
            assert result.acknowledged is not None
            result.acknowledged += batch.count
            result.bytes += batch.content_bytes
            result.partitions[batch.partition] = result.partitions.get(batch.partition, 0) + batch.count
            return
        self._lost.append((batch, outcome))
        if outcome == FAILED:
            result.failed += batch.count
        else:
            assert outcome == UNKNOWN
            result.unknown += batch.count
        if result.error is None and error is not None:
            result.error = error.message

    def _tell(self) -> None:
        now = time.monotonic()
        if self._progress is not None and now - self._told >= _TELL_S:
            self._told = now
            self._progress(self.result)
