"""Producing a stream of lines with bounded memory, and knowing at any moment what brokers have acknowledged.

A record is acknowledged, failed (a broker refused it: it is not in the log), or unknown (no answer in time: it may
be in the log). After the first that is not acknowledged nothing more is sent: the lines that follow would overtake it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.deadline import Deadline
from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed, UsageError
from kctl.records.codecs import prepare_codecs
from kctl.records.lines import BadLine, Line
from kctl.topics.configs import fetch_topic_configs
from kctl.topics.describe import describe_topics, known_topics

if TYPE_CHECKING:
    from kctl.client import ClusterClient

ACKS = ("all", "1", "0")
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588  # max.message.bytes
_RECORD_OVERHEAD = 512  # batch and record headers, far from exact on purpose
_WINDOW_RECORDS = 10_000
_WINDOW_BYTES = 16 * 1024 * 1024
_BATCH_BYTES = 64 * 1024
_INTERRUPTED_S = 5.0
_CONFIGS_S = 3.0  # the size limit is good to know, and no reason to wait


@dataclass(frozen=True, slots=True)
class ProduceOptions:
    """How to produce. partition: None lets the key decide (murmur2, as Kafka's own producers do).

    idempotent: no duplicates and no reordering after retries; needs acks=all. linger_ms: wait for fuller batches.
    """

    topic: str
    partition: int | None = None
    acks: str = "all"
    compression: str = "none"
    idempotent: bool = True
    linger_ms: int = 5
    timeout_s: float = 30.0


@dataclass
class ProduceResult:
    """What became of the lines. acknowledged is None with acks=0, where brokers acknowledge nothing.

    failed: refused by a broker; unknown: no answer, may be in the log; not_acknowledged: the numbers of both kinds
    of lines, in order. partitions: acknowledged records by partition. error: the first reason. bad_line: why the
    line after the last one sent could not be. interrupted: Ctrl-C.
    """

    topic: str
    acks: str
    sent: int = 0
    acknowledged: int | None = 0
    failed: int = 0
    unknown: int = 0
    not_acknowledged: list[int] = field(default_factory=list)
    bytes: int = 0
    duration_ms: int = 0
    partitions: dict[int, int] = field(default_factory=dict)
    error: str | None = None
    bad_line: str | None = None
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """All lines were sent, and all that were sent were acknowledged."""
        return not (self.not_acknowledged or self.bad_line or self.interrupted or self.error)


def check_topic(client: ClusterClient, options: ProduceOptions) -> int:
    """The largest record that the topic takes, in bytes, after checking that it and the partition exist.

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
        return DEFAULT_MAX_MESSAGE_BYTES  # not allowed to look: the broker will say
    value = next((entry.value for entry in configs if entry.name == "max.message.bytes"), None)
    return int(value) if value and value.isdigit() else DEFAULT_MAX_MESSAGE_BYTES


def open_producer(client: ClusterClient, options: ProduceOptions, *, max_record_bytes: int) -> Any:
    """kafka-python's producer for these options, ready to send.

    Raises NotSupported when a codec's library is missing, OperationFailed when no broker gives a producer id in time.
    """
    prepare_codecs()
    timeout_ms = int(options.timeout_s * 1000)
    try:
        producer = client.producer(
            acks=options.acks if options.acks == "all" else int(options.acks),
            enable_idempotence=options.idempotent,
            compression_type=None if options.compression == "none" else options.compression,
            linger_ms=options.linger_ms,
            batch_size=_BATCH_BYTES,
            max_request_size=max_record_bytes + _RECORD_OVERHEAD,
            max_block_ms=timeout_ms,
            request_timeout_ms=max(timeout_ms // 2, 1000),
            delivery_timeout_ms=max(timeout_ms, 2000) + options.linger_ms,
            allow_auto_create_topics=False,
        )
    except RuntimeError:  # «Libraries for … not found»
        raise NotSupported(
            f"the library for {options.compression} is not installed", hint="install kctl with its codecs: kctl[codecs]"
        ) from None
    if options.idempotent:
        _await_producer_id(producer, options.timeout_s)
    return producer


def _await_producer_id(producer: Any, timeout_s: float) -> None:
    """Wait for the id that idempotence needs (KIP-98), or close the producer.

    kafka-python waits for it without a limit: its delivery_timeout_ms counts only once there is one.
    """
    deadline = Deadline(timeout_s)
    manager = producer._transaction_manager  # noqa: SLF001 - no public name tells it
    try:
        while not manager.has_producer_id():
            if deadline.expired:
                raise OperationFailed(
                    f"the brokers gave no producer id within {timeout_s:g} s: nothing was sent",
                    hint="they need the controller, and it ZooKeeper, for a new one;"
                    " --no-idempotence does without, and may write duplicates",
                )
            time.sleep(0.002)
    except BaseException:
        producer.close(timeout=0)
        raise


def shortage(client: ClusterClient, topic: str) -> str | None:
    """Why brokers may be refusing acks=all just now, in a line: too few replicas in sync, or no leader.

    kafka-python keeps trying until time is up and does not tell what brokers answered.
    """
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


class _Pending(NamedTuple):
    number: int
    size: int
    future: Any


def produce(
    producer: Any,
    lines: Iterable[Line],
    options: ProduceOptions,
) -> ProduceResult:
    """Send `lines` until they end, one cannot be sent, one is not acknowledged, or Ctrl-C; then wait for the rest.

    Never raises for a record: everything is in the result. Closes the producer.
    """
    run = _Run(producer, options)
    started = time.monotonic()
    try:
        try:
            for line in lines:
                if not run.send(line):
                    break
        except BadLine as exc:
            run.result.bad_line = exc.message
        run.settle(everything=True)
    except KeyboardInterrupt:
        run.result.interrupted = True
        run.give_up()
    finally:
        run.close()
    run.result.duration_ms = round((time.monotonic() - started) * 1000)
    if options.acks == "0":
        run.result.acknowledged = None
    return run.result


class _Run:
    """The records under way, oldest first, and the result so far."""

    def __init__(self, producer: Any, options: ProduceOptions) -> None:
        self._producer = producer
        self._options = options
        self._pending: deque[_Pending] = deque()
        self._pending_bytes = 0
        self.result = ProduceResult(topic=options.topic, acks=options.acks)

    def send(self, line: Line) -> bool:
        """Hand one record over, after making room for it; False when nothing more should be sent."""
        from kafka.errors import KafkaError

        self.settle()
        if self.result.error:
            return False
        try:
            future = self._producer.send(
                self._options.topic, value=line.value, key=line.key, partition=self._options.partition
            )
        except (KafkaError, ValueError) as exc:  # ValueError: the partition is gone
            self._lost(line.number, exc)
            return False
        self.result.sent += 1
        self._pending.append(_Pending(line.number, line.size_bytes, future))
        self._pending_bytes += line.size_bytes
        return True

    def settle(self, *, everything: bool = False) -> None:
        """Count what is done; wait while too much is under way, or until all is."""
        while self._pending:
            full = len(self._pending) > _WINDOW_RECORDS or self._pending_bytes > _WINDOW_BYTES
            if not (self._pending[0].future.is_done or full or everything):
                return
            self._count(self._pending[0], self._options.timeout_s * 2)
            # Only now: an interrupt while waiting must not lose the record.
            self._pending_bytes -= self._pending.popleft().size

    def _count(self, record: _Pending, timeout_s: float) -> None:
        from kafka.errors import KafkaError

        try:
            metadata = record.future.get(timeout=timeout_s)
        except KafkaError as exc:
            self._lost(record.number, exc)
            return
        result = self.result
        assert result.acknowledged is not None
        result.acknowledged += 1
        result.bytes += record.size
        result.partitions[metadata.partition] = result.partitions.get(metadata.partition, 0) + 1

    def _lost(self, number: int, exc: Exception) -> None:
        self.result.not_acknowledged.append(number)
        if _refused(exc):
            self.result.failed += 1
        else:
            self.result.unknown += 1
        self.result.error = self.result.error or _reason(exc, self._options.topic)

    def give_up(self) -> None:
        """After Ctrl-C: a few seconds for what is under way, then the rest is unknown. Another Ctrl-C ends that."""
        deadline = time.monotonic() + _INTERRUPTED_S
        with suppress(KeyboardInterrupt):
            while self._pending and time.monotonic() < deadline:
                if self._pending[0].future.is_done:
                    self._count(self._pending[0], 0)
                    self._pending.popleft()
                else:
                    time.sleep(0.01)
        for record in self._pending:
            self.result.not_acknowledged.append(record.number)
            self.result.unknown += 1
        self._pending.clear()

    def close(self) -> None:
        """Close the producer without waiting for what has been given up."""
        from kafka.errors import KafkaError

        with suppress(KafkaError, KeyboardInterrupt):
            self._producer.close(timeout=0 if self.result.unknown else 5)


def _refused(exc: Exception) -> bool:
    """Whether the record is certainly not in the log: a broker's definite answer, or it never left."""
    from kafka import errors

    never_sent = (ValueError, errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
    if isinstance(exc, never_sent):
        return True
    retriable = isinstance(exc, errors.RetriableError)
    return isinstance(exc, errors.BrokerResponseError) and not retriable


def _reason(exc: Exception, topic: str) -> str:
    from kafka.errors import KafkaError

    from kctl.client import error_from

    if isinstance(exc, KafkaError):
        return error_from(exc, subject=f"topic {topic}").message
    return f"topic {topic}: {exc}"
