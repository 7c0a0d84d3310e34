"""The rates of one partition, of the cluster itself: a topic of its own is written to for some seconds, then read.

What is measured is kctl's own sender and fetcher on this machine, one of each: a faster client, or one nearer to the
brokers, may get more. What is read was just written, so that brokers have it in memory.
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

MOST_RECORD_BYTES = 1_000_000  # brokers take batches of 1,048,588 bytes unless they are told otherwise
_BATCH_BYTES = 128 * 1024
_POOL_BYTES, _POOL_RECORDS = 4 << 20, 1000
_LINGER_S = 0.005
_STEP_S = 0.05
_WARM_SHARE, _MOST_WARM_S = 0.2, 2.0  # of the time, at its beginning: not counted
_TELL_S = 0.2

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """What to measure. duration_s: of each way, at most; max_bytes: to write, at most. acks: «all» or «1»."""

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
    """What went through one partition. records, bytes: all of them, of values, before compression. bytes_per_s: of the
    time behind the warm-up; duration_ms: that time."""

    records: int
    bytes: int
    duration_ms: int
    bytes_per_s: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The rates of one partition, as one producer and one consumer of kctl have them from this machine."""

    topic: str
    replication_factor: int
    min_insync_replicas: int
    acks: str
    compression: str
    record_bytes: int
    producer: MeasuredRate
    consumer: MeasuredRate


class Meter:
    """Bytes over time. The first `warm_s` seconds are left out, unless all comes within them."""

    def __init__(self, warm_s: float, now: float) -> None:
        self._warm_s, self._last = warm_s, now
        self._starts = [(now, 0)]  # from where on it may be counted; the last one is the best
        self._warm = False
        self.bytes = 0

    def add(self, size: int, now: float) -> None:
        """So many bytes more are through at `now`."""
        self.bytes += size
        self._last = now
        if not self._warm and now - self._starts[-1][0] >= self._warm_s:
            self._warm = True
            self._starts.append((now, self.bytes))

    def restart(self, now: float) -> None:
        """Only now it has begun; what came before counts when nothing comes behind it."""
        self._starts.append((now, self.bytes))
        self._warm = False

    def rate(self) -> tuple[float, int]:
        """Seconds that count, and bytes a second in them. Raises OperationFailed when nothing came through."""
        for at, before in reversed(self._starts):
            seconds = self._last - at
            if self.bytes > before and seconds > 0:
                return seconds, round((self.bytes - before) / seconds)
        raise OperationFailed("nothing came through in time", hint="--duration measures for longer")


def warm_s(duration_s: float) -> float:
    """How long is left out."""
    return min(duration_s * _WARM_SHARE, _MOST_WARM_S)


def measure(
    client: ClusterClient, options: MeasureOptions, state: ClusterState, *, progress: Progress | None = None
) -> Measurement:
    """Write to the topic, then read it. state: metadata with the topic, which has one partition and is empty.

    Raises OperationFailed when a record is not acknowledged, what Sender and Fetcher raise, KeyboardInterrupt.
    """
    written = _produce(client, options, state, progress)
    read = _consume(client, options, progress)
    return Measurement(
        options.topic, options.replication_factor, options.min_insync_replicas, options.acks, options.compression,
        options.record_bytes, written, read,
    )  # fmt: skip


def payloads(record_bytes: int) -> list[bytes]:
    """Random values, which no codec makes smaller; written again and again."""
    count = max(1, min(_POOL_RECORDS, _POOL_BYTES // record_bytes))
    data = os.urandom(count * record_bytes)
    return [data[at : at + record_bytes] for at in range(0, len(data), record_bytes)]


class _Clock:
    """The time that is measured begins behind the first answer: before it the leader has to be found and dialled, and
    may not know a new topic yet."""

    def __init__(self, options: MeasureOptions) -> None:
        self._duration_s = options.duration_s
        self.meter = Meter(warm_s(options.duration_s), time.monotonic())
        self.deadline = Deadline(options.duration_s + options.timeout_s)
        self.begun = False

    def begin(self) -> None:
        """There is an answer."""
        if not self.begun:
            self.begun = True
            self.meter.restart(time.monotonic())
            self.deadline = Deadline(self._duration_s)

    @property
    def passed_s(self) -> float:
        """Seconds since it began."""
        return self._duration_s - self.deadline.left_s if self.begun else 0.0


# --- writing ------------------------------------------------------------------------------------------------------


def _produce(
    client: ClusterClient, options: MeasureOptions, state: ClusterState, progress: Progress | None
) -> MeasuredRate:
    compress = compressor(options.compression)
    producer = producer_id(client, options.timeout_s) if options.acks == "all" else None
    run = Writing(options)
    sender_options = SenderOptions(
        topic=options.topic, acks=ACKS[options.acks], producer=producer, codec=options.compression, compress=compress,
        batch_bytes=_BATCH_BYTES, linger_s=_LINGER_S, timeout_s=options.timeout_s,
    )  # fmt: skip
    sender = Sender(client, sender_options, state, run.done, Background())
    try:
        sender.connect()
        run.go(sender, progress)
    finally:
        sender.abandon()
        sender.close(at_once=True)
    seconds, rate = run.clock.meter.rate()
    return MeasuredRate(run.records, run.clock.meter.bytes, round(seconds * 1000), rate)


class Writing:
    """What is sent, and what of it is acknowledged."""

    def __init__(self, options: MeasureOptions) -> None:
        self._options = options
        self._values = payloads(options.record_bytes)
        self.records = 0
        self.clock = _Clock(options)
        self._lost: KctlError | None = None

    def done(self, batch: ClosedBatch, outcome: str, error: KctlError | None) -> None:
        if outcome == ACKNOWLEDGED:
            self.records += batch.count
            self.clock.meter.add(batch.content_bytes, time.monotonic())
            self.clock.begin()
        elif self._lost is None:
            self._lost = error

    def go(self, sender: Sender, progress: Progress | None) -> None:
        """As much as gets through in the time."""
        options, values, clock, number, told = self._options, self._values, self.clock, 0, 0.0
        most = max(1, options.max_bytes // options.record_bytes)
        while not clock.deadline.expired and sender.stopped is None and (number < most or not sender.idle):
            if number < most and sender.has_room:
                count = min(len(values), most - number)
                sender.add_values(values, 0, count, number, 0)
                number += count
            sender.flushing = number >= most
            sender.step(0 if number < most and sender.has_room else min(_STEP_S, clock.deadline.left_s))
            if progress and clock.passed_s - told > _TELL_S:
                told = clock.passed_s
                progress("writing", told, options.duration_s)
        if sender.stopped is not None:
            raise OperationFailed(
                f"writing to {options.topic} ended: {(self._lost or sender.stopped).message}", hint=sender.stopped.hint
            )
        if not clock.begun:
            raise OperationFailed(f"nothing for {options.topic} was acknowledged within {clock.deadline.seconds:g} s")


# --- reading ------------------------------------------------------------------------------------------------------


def _consume(client: ClusterClient, options: MeasureOptions, progress: Progress | None) -> MeasuredRate:
    """Until the end of what was written, or of the time."""
    partition = TopicPartition(options.topic, 0)
    logs, _, failed = read_log_offsets(client, [partition])
    if partition in failed:
        raise failed[partition]
    if partition not in logs:
        raise OperationFailed(f"{partition} is gone: somebody has deleted the topic meanwhile")
    start, end = logs[partition].start, logs[partition].end
    fetcher = Fetcher(
        client, {partition: start}, read_committed=False, tell=_say_nothing, timeout_s=options.timeout_s, follow=False
    )
    reading = _Reading(options, partition, start)
    try:
        while reading.position < end and not reading.clock.deadline.expired:
            for fetched in fetcher.poll(_STEP_S * 2):
                reading.take(fetched)
            if progress and reading.clock.begun:
                progress("reading", reading.clock.passed_s, options.duration_s)
    finally:
        fetcher.close()
    if not reading.clock.begun:
        raise OperationFailed(f"nothing of {partition} could be read within {reading.clock.deadline.seconds:g} s")
    seconds, rate = reading.clock.meter.rate()
    return MeasuredRate(reading.records, reading.clock.meter.bytes, round(seconds * 1000), rate)


class _Reading:
    def __init__(self, options: MeasureOptions, partition: TopicPartition, position: int) -> None:
        self._partition = partition
        self.position, self.records = position, 0
        self.clock = _Clock(options)

    def take(self, fetched: Fetched) -> None:
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OperationFailed(f"{self._partition} was cut while it was read")
        for chunk, following in decode(self._partition, fetched.data, self.position):
            self.position = following
            if chunk is not None:
                self.records += chunk.size
                self.clock.meter.add(chunk.size_bytes, time.monotonic())
        self.clock.begin()


def _say_nothing(_line: str) -> None:
    """What keeps the fetcher waiting is told by its error, if it lasts."""
