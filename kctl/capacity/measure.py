"""Measure the write and read rate of one partition: write to a dedicated topic for a few seconds, then read it.

The result is the rate of one kctl producer and one kctl consumer on this machine. A faster client, or one closer to the
brokers, may reach more. The records were just written, so brokers serve them from memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.cluster.log_offsets import read_log_offsets
from kctl.errors import KctlError, OperationFailed
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.records.background import Background
from kctl.records.consume.batches import decode
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.records.produce.batch import ClosedBatch, compressor
from kctl.records.produce.options import ACKS, SenderOptions
from kctl.records.produce.producer_id import producer_id
from kctl.records.produce.sender import ACKNOWLEDGED, Sender

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MAX_RECORD_BYTES = 1_000_000  # below the brokers' default batch limit of 1,048,588 bytes
_BATCH_BYTES = 128 * 1024
_POOL_BYTES, _POOL_RECORDS = 4 << 20, 1000
_LINGER_S = 0.005
_POLL_S = 0.05
_WARM_UP_SHARE, _MAX_WARM_UP_S = 0.2, 2.0  # start of the measurement that is not counted
_PROGRESS_S = 0.2

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options of a measurement.

    duration_s: maximum time for writing, and for reading. max_bytes: maximum bytes to write. acks: "all" or "1".
    """

    topic: str
    replication_factor: int
    min_insync_replicas: int
    record_bytes: int
    duration_s: float
    max_bytes: int
    acks: str = "all"
    compression: str = "none"
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """The rate of one partition.

    records, bytes: totals, warm-up included; bytes of values before compression. bytes_per_s: the rate after the
    warm-up. duration_ms: the time that was counted.
    """

    records: int
    bytes: int
    duration_ms: int
    bytes_per_s: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The rates of one kctl producer and one kctl consumer on one partition, from this machine."""

    topic: str
    replication_factor: int
    min_insync_replicas: int
    acks: str
    compression: str
    record_bytes: int
    producer: MeasuredRate
    consumer: MeasuredRate


class RateMeter:
    """A meter of bytes per second. The first `warm_up_s` seconds are not counted, unless everything arrives in them."""

    def __init__(self, warm_up_s: float, now: float) -> None:
        self._warm_up_s, self._last = warm_up_s, now
        self._starts = [(now, 0)]  # (time, bytes so far) to count from; the last usable one is the best
        self._is_warm = False
        self.bytes = 0

    def add(self, size: int, now: float) -> None:
        """Count bytes that arrived at `now`."""
        self.bytes += size
        self._last = now
        if not self._is_warm and now - self._starts[-1][0] >= self._warm_up_s:
            self._is_warm = True
            self._starts.append((now, self.bytes))

    def restart(self, now: float) -> None:
        """Start counting at `now`. Earlier bytes count only if no later ones arrive."""
        self._starts.append((now, self.bytes))
        self._is_warm = False

    def rate(self) -> tuple[float, int]:
        """Return the counted seconds and the bytes per second. Raises OperationFailed if no bytes arrived."""
        for start, before in reversed(self._starts):
            seconds = self._last - start
            if self.bytes > before and seconds > 0:
                return seconds, round((self.bytes - before) / seconds)
        raise OperationFailed("no data was transferred in time", hint="raise --duration")


def warm_up_s(duration_s: float) -> float:
    """Return the seconds at the start that are not counted."""
    return min(duration_s * _WARM_UP_SHARE, _MAX_WARM_UP_S)


def measure(
    client: ClusterClient, options: MeasureOptions, state: ClusterState, *, progress: Progress | None = None
) -> Measurement:
    """Write to the topic, then read it. state: metadata with the topic, which is empty and has one partition.

    Raises OperationFailed if a record is not acknowledged, the errors of Sender and Fetcher, and KeyboardInterrupt.
    """
    producer_rate = _produce(client, options, state, progress)
    consumer_rate = _consume(client, options, progress)
    return Measurement(
        options.topic, options.replication_factor, options.min_insync_replicas, options.acks, options.compression,
        options.record_bytes, producer_rate, consumer_rate,
    )  # fmt: skip


def payloads(record_bytes: int) -> list[bytes]:
    """Return random values, which no codec can compress, to write repeatedly."""
    count = max(1, min(_POOL_RECORDS, _POOL_BYTES // record_bytes))
    data = os.urandom(count * record_bytes)
    return [data[start : start + record_bytes] for start in range(0, len(data), record_bytes)]


class _MeasuringClock:
    """A clock that starts at the first response.

    Before that, kctl finds and connects to the leader, which may not know the new topic yet.
    """

    def __init__(self, options: MeasureOptions) -> None:
        self._duration_s = options.duration_s
        self.meter = RateMeter(warm_up_s(options.duration_s), time.monotonic())
        self.deadline = Deadline(options.duration_s + options.timeout_s)
        self.started = False

    def start(self) -> None:
        """Start the clock at the first response."""
        if not self.started:
            self.started = True
            self.meter.restart(time.monotonic())
            self.deadline = Deadline(self._duration_s)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return self._duration_s - self.deadline.left_s if self.started else 0.0


# --- writing ------------------------------------------------------------------------------------------------------


def _produce(
    client: ClusterClient, options: MeasureOptions, state: ClusterState, progress: Progress | None
) -> MeasuredRate:
    compress = compressor(options.compression)
    producer = producer_id(client, options.timeout_s) if options.acks == "all" else None
    run = WriteRun(options)
    sender_options = SenderOptions(
        topic=options.topic, acks=ACKS[options.acks], producer=producer, codec=options.compression, compress=compress,
        batch_bytes=_BATCH_BYTES, linger_s=_LINGER_S, timeout_s=options.timeout_s,
    )  # fmt: skip
    sender = Sender(client, sender_options, state, run.on_batch, Background())
    try:
        sender.connect()
        run.run(sender, progress)
    finally:
        sender.abandon()
        sender.close(at_once=True)
    seconds, rate = run.clock.meter.rate()
    return MeasuredRate(run.records, run.clock.meter.bytes, round(seconds * 1000), rate)


class WriteRun:
    """A run that writes records and counts the acknowledged ones."""

    def __init__(self, options: MeasureOptions) -> None:
        self._options = options
        self._values = payloads(options.record_bytes)
        self.records = 0
        self.clock = _MeasuringClock(options)
        self._error: KctlError | None = None

    def on_batch(self, batch: ClosedBatch, outcome: str, error: KctlError | None) -> None:
        """Count an acknowledged batch; keep the first error otherwise."""
        if outcome == ACKNOWLEDGED:
            self.records += batch.count
            self.clock.meter.add(batch.content_bytes, time.monotonic())
            self.clock.start()
        elif self._error is None:
            self._error = error

    def run(self, sender: Sender, progress: Progress | None) -> None:
        """Write until the time or max_bytes is reached. Raises OperationFailed."""
        options, values, clock, number, reported_s = self._options, self._values, self.clock, 0, 0.0
        max_records = max(1, options.max_bytes // options.record_bytes)
        while not clock.deadline.expired and sender.stopped is None and (number < max_records or not sender.idle):
            if number < max_records and sender.has_room:
                count = min(len(values), max_records - number)
                sender.add_values(values, 0, count, number, 0)
                number += count
            sender.flushing = number >= max_records
            sender.step(0 if number < max_records and sender.has_room else min(_POLL_S, clock.deadline.left_s))
            if progress and clock.elapsed_s - reported_s > _PROGRESS_S:
                reported_s = clock.elapsed_s
                progress("writing", reported_s, options.duration_s)
        if sender.stopped is not None:
            raise OperationFailed(
                f"cannot write to {options.topic}: {(self._error or sender.stopped).message}", hint=sender.stopped.hint
            )
        if not clock.started:
            raise OperationFailed(f"no record of {options.topic} was acknowledged within {clock.deadline.seconds:g} s")


# --- reading ------------------------------------------------------------------------------------------------------


def _consume(client: ClusterClient, options: MeasureOptions, progress: Progress | None) -> MeasuredRate:
    """Read the written records until the end of the log or until the time is up."""
    partition = TopicPartition(options.topic, 0)
    logs, _, errors = read_log_offsets(client, [partition])
    if partition in errors:
        raise errors[partition]
    if partition not in logs:
        raise OperationFailed(f"{partition} does not exist: the topic was deleted during the measurement")
    start, end = logs[partition].start, logs[partition].end
    fetcher = Fetcher(
        client, {partition: start}, read_committed=False, warn=_ignore, timeout_s=options.timeout_s, follow=False
    )
    run = _ReadRun(options, partition, start)
    try:
        while run.position < end and not run.clock.deadline.expired:
            for fetched in fetcher.poll(_POLL_S * 2):
                run.add(fetched)
            if progress and run.clock.started:
                progress("reading", run.clock.elapsed_s, options.duration_s)
    finally:
        fetcher.close()
    if not run.clock.started:
        raise OperationFailed(f"no record of {partition} was read within {run.clock.deadline.seconds:g} s")
    seconds, rate = run.clock.meter.rate()
    return MeasuredRate(run.records, run.clock.meter.bytes, round(seconds * 1000), rate)


class _ReadRun:
    """A run that reads records and counts them."""

    def __init__(self, options: MeasureOptions, partition: TopicPartition, position: int) -> None:
        self._partition = partition
        self.position, self.records = position, 0
        self.clock = _MeasuringClock(options)

    def add(self, fetched: Fetched) -> None:
        """Count the records of a fetch response."""
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OperationFailed(f"{self._partition} was truncated while it was read")
        for chunk, next_offset in decode(self._partition, fetched.data, self.position):
            self.position = next_offset
            if chunk is not None:
                self.records += chunk.size
                self.clock.meter.add(chunk.size_bytes, time.monotonic())
        self.clock.start()


def _ignore(_line: str) -> None:
    """Ignore progress messages; a lasting problem raises an error."""
