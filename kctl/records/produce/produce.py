"""Write a stream of records with bounded memory and a known outcome for each record.

A record is acknowledged, failed (not in the log: rejected or never received by a broker), or unknown (sent without a
response, so it may be in the log). After the first record that is not acknowledged, nothing new is sent: later records
would overtake it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import KctlError
from kctl.records.background import Background
from kctl.records.produce.batch import ClosedBatch, compressor, numbers_of
from kctl.records.produce.destination import Destination
from kctl.records.produce.fitting import Fitting, Parse
from kctl.records.produce.options import ACKS, ProduceOptions, ProduceResult, SenderOptions, UnacknowledgedRecord
from kctl.records.produce.outgoing import Unfit
from kctl.records.produce.pace import Pace
from kctl.records.produce.producer_id import producer_id
from kctl.records.produce.sender import ACKNOWLEDGED, FAILED, UNKNOWN, Sender

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.records.produce.input import Supply

_BATCH_BYTES = 128 * 1024
_UNKNOWN_LIMIT_BATCH_BYTES = 16 * 1024
_TAKE_RECORDS = 1000  # between two steps of the sender
_INTERRUPTED_S = 5.0
_PROGRESS_S = 0.2


class ProduceRun:
    """One run: `prepare`, then `run`. `interrupt` may be called during the run, even in a signal handler."""

    def __init__(
        self,
        client: ClusterClient,
        destination: Destination,
        options: ProduceOptions,
        supply: Supply,
        parse: Parse | None,
        *,
        progress: Callable[[ProduceResult], None] | None = None,
    ) -> None:
        """parse: see Fitting."""
        self._client, self._destination, self._options = client, destination, options
        self._supply, self._progress = supply, progress
        self._fitting = Fitting(destination, options, supply, parse)
        self._background = Background()
        self._pace = Pace(options.per_s)
        self._lost: list[tuple[ClosedBatch, str]] = []
        self._interrupted = self._input_failed = self._cut_short = False
        self._input_error: KctlError | None = None
        self.unexpected: Exception | None = None  # to be raised once the result is reported
        self._reported = 0.0
        self.result = ProduceResult(topic=options.topic, acks=options.acks)
        self._sender: Sender

    def interrupt(self) -> None:
        """End within a few seconds without reading more lines. A second call stops waiting for responses.

        It only sets flags: unacknowledged records must be reported in any case.
        """
        self._cut_short, self._interrupted = self._interrupted, True
        self._background.wake()

    def prepare(self) -> None:
        """Prepare the sender and connect.

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
        """Send lines until the end, an invalid line, an unacknowledged record or an interrupt; then wait for responses.

        Never raises: errors are in the result, unexpected ones in `unexpected`.
        """
        started = time.monotonic()
        result = self.result
        try:
            self._send_all()
        except Exception as exc:  # noqa: BLE001 - raised by the command, after the result
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
        """Return the first error, which stopped the run."""
        return self._sender.stopped

    def unacknowledged(self) -> Iterator[UnacknowledgedRecord]:
        """Yield the unacknowledged records, in input order."""

        def rows(batch: ClosedBatch, outcome: str) -> Iterator[UnacknowledgedRecord]:
            for number, record in batch.records():
                yield UnacknowledgedRecord(number, record, outcome)

        yield from heapq.merge(*(rows(batch, outcome) for batch, outcome in self._lost), key=lambda row: row.line)

    def _send_all(self) -> None:
        sender = self._sender
        while not self._interrupted:
            if not self._needs_input():
                sender.flushing = True
                if sender.idle:
                    return
            self._step()
            self._report()
        sender.flushing = True
        deadline = Deadline(min(_INTERRUPTED_S, self._options.timeout_s))
        while not (sender.idle or deadline.expired or self._cut_short):
            sender.step(min(0.1, deadline.left_s))

    def _needs_input(self) -> bool:
        complete = self._options.count is not None and self._line_count() >= self._options.count
        return not (complete or self._input_failed or self._sender.stopped or self._supply.ended)

    def _line_count(self) -> int:
        return self.result.sent + self.result.skipped

    def _step(self) -> None:
        """Take a few lines or wait for input, and let the sender work."""
        supply, sender = self._supply, self._sender
        wait_s, readable = 1.0, None
        if self._needs_input() and sender.has_room:
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
        except KctlError as exc:  # ends the input, like an invalid line
            self._input_error, self._input_failed = exc, True

    def _take(self, due: int) -> None:
        supply, result = self._supply, self.result
        count = min(due, len(supply.lines) - supply.at)
        if self._options.count is not None:
            count = min(count, self._options.count - self._line_count())
        if self._fitting.plain and self._fitting.all_fit(supply.at, supply.at + count):
            end = supply.at + count
            self._sender.add_values(supply.lines, supply.at, end, supply.number, self._options.partition)
            supply.at, supply.number = end, supply.number + count
            result.sent += count
            self._pace.took(count)
            return
        for _ in range(min(count, _TAKE_RECORDS)):
            line, number = supply.lines[supply.at], supply.number
            supply.at, supply.number = supply.at + 1, number + 1
            self._take_one(line, number)
            if self._input_failed or not self._sender.has_room:
                return

    def _take_one(self, line: bytes, number: int) -> None:
        try:
            record = self._fitting.record(line, number)
        except Unfit as exc:
            self.result.bad_line = self.result.bad_line or self._fitting.why(number, exc)
            if self._options.skip_bad_lines:
                self.result.skipped += 1
            else:
                self._input_failed = True
            return
        self._sender.add(record, number)
        self.result.sent += 1
        self._pace.took(1)

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

    def _report(self) -> None:
        now = time.monotonic()
        if self._progress is not None and now - self._reported >= _PROGRESS_S:
            self._reported = now
            self._progress(self.result)
