"""The producer of a validation: `python -m kctl.validate.workload.producer_process FILE`.

Sends numbered records to each partition in turn. Writes a record to its journal before sending it, and an
acknowledgment before processing it, so kill -9 can leave records without an outcome, but no wrong outcome. A failed
batch is an outcome too: the producer continues until shutdown, then waits for batches in flight.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.cluster.topics import known_topics
from kctl.errors import KctlError, NotFound
from kctl.protocol.client import connect
from kctl.records.background import Background
from kctl.records.produce.batch import ClosedBatch, compressor
from kctl.records.produce.options import ACKS, SenderOptions
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.pace import Pace
from kctl.records.produce.producer_id import producer_id
from kctl.records.produce.sender import ACKNOWLEDGED, Sender
from kctl.records.produce.sender import FAILED as REFUSED
from kctl.validate.workload.entries import ACKED, ENDED, FAILED, SENT, STOPPING, UNKNOWN
from kctl.validate.workload.records import key_of, value_of
from kctl.validate.workload.settings import ProducerSettings, Task
from kctl.validate.workload.shutdown import ShutdownRequest, main
from kctl.validate.workload.write_journal import JournalWriter

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_BATCH_BYTES = 16 * 1024  # like Java's producer
_AT_ONCE = 500  # records between two polls of the brokers
_START_S = 30.0
_ALONE_S = 5.0  # wait for batches in flight if the parent has exited
_OUTCOMES = {ACKNOWLEDGED: ACKED, REFUSED: FAILED}


def produce(task: Task, shutdown: ShutdownRequest) -> None:
    """Produce until shutdown. Raises KctlError if it cannot start or continue (topic deleted, disk full)."""
    settings = task.settings
    assert isinstance(settings, ProducerSettings)
    with connect(task.target) as client:
        producer = Producer(client, settings)
        with JournalWriter(task.journal, settings.run) as journal:
            producer.run(journal, shutdown)


class Producer:
    """The producer; connects on creation. Raises NotFound for an unknown topic or partition."""

    def __init__(self, client: ClusterClient, settings: ProducerSettings) -> None:
        self._settings = settings
        state = known_topics(client, [settings.topic])
        count = len(state.topics[settings.topic].partitions)
        self._partitions = settings.partitions or tuple(range(count))
        if unknown := [number for number in self._partitions if number >= count]:
            raise NotFound(f"topic {settings.topic} has no partition {unknown[0]}")
        self._next = dict.fromkeys(self._partitions, 0)
        self._turn = 0
        self._pace = Pace(settings.per_s)
        self._journal: JournalWriter
        self._sender = Sender(
            client,
            SenderOptions(
                topic=settings.topic, acks=ACKS[settings.acks],
                producer=producer_id(client, _START_S) if settings.idempotent else None,
                codec=settings.compression, compress=compressor(settings.compression), batch_bytes=_BATCH_BYTES,
                linger_s=settings.linger_ms / 1000, timeout_s=settings.timeout_s,
                continue_after_loss=True, resend=settings.resend,
            ),
            state,
            self._done,
            Background(),
        )  # fmt: skip
        self._sender.connect()

    def run(self, journal: JournalWriter, shutdown: ShutdownRequest) -> None:
        """Send until shutdown. Raises the error that stopped the sender earlier."""
        self._journal = journal
        sender, pace = self._sender, self._pace
        try:
            while not shutdown and sender.stopped is None:
                due = pace.due() if sender.has_room else 0
                self._send(min(due, _AT_ONCE))
                sender.step(0.0 if due > _AT_ONCE else min(0.1, max(0.001, pace.wait_s())))
                journal.write()
            self._finish(_ALONE_S if shutdown.alone else self._settings.timeout_s + 1)
        finally:
            sender.close(at_once=True)
        if sender.stopped is not None:
            raise sender.stopped
        journal.add(ENDED)
        journal.write()

    def _send(self, count: int) -> None:
        """Send the next records to each partition in turn: first to the journal, then to the sender."""
        if not count:
            return
        settings, first, size = self._settings, dict(self._next), len(self._partitions)
        targets = [self._partitions[(self._turn + index) % size] for index in range(count)]
        self._turn = (self._turn + count) % size
        for partition in targets:
            self._next[partition] += 1
        for partition, begin in first.items():
            if self._next[partition] > begin:
                self._journal.add(SENT, partition, self._next[partition] - begin, begin)
        self._journal.write()
        value = value_of(time.time_ns() // 1000, settings.value_bytes)
        for partition in targets:
            sequence = first[partition]
            first[partition] += 1
            key = key_of(settings.run, partition, sequence)
            self._sender.add(Outgoing(key, value, partition=partition), sequence)
        self._pace.took(count)

    def _done(self, batch: ClosedBatch, outcome: str, _error: KctlError | None) -> None:
        kind = _OUTCOMES.get(outcome, UNKNOWN)
        self._journal.add(kind, batch.partition, batch.count, batch.numbers[0], batch.base_offset)

    def _finish(self, limit_s: float) -> None:
        """Wait for batches in flight; those that remain have no outcome."""
        sender = self._sender
        self._journal.add(STOPPING)
        self._journal.write()
        sender.flushing = True
        deadline = Deadline(limit_s)
        while not (sender.idle or deadline.expired):
            sender.step(min(0.1, deadline.left_s))
            self._journal.write()
        sender.abandon()
        self._journal.write()


if __name__ == "__main__":
    sys.exit(main(produce, ProducerSettings))
