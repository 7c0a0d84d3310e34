"""A validation of one topic from start to end: workload, sampler, faults, verdict. Used by scenarios."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.protocol.target import Target
from kctl.validate.fault_log import note_fault
from kctl.validate.report.gaps import Fault
from kctl.validate.report.timeline import recoveries
from kctl.validate.report.verdict import Budgets, Evidence, Verdict, judge
from kctl.validate.sampler import Sampler
from kctl.validate.workload.processes import (
    ConsumerWorker,
    ProducerWorker,
    Worker,
    read_delivered,
    read_sent,
    start_consumer,
    start_producer,
)
from kctl.validate.workload.read_log import read_log, wait_quiet
from kctl.validate.workload.settings import ConsumerSettings, ProducerSettings

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass
class Experiment:
    """A running validation. `with` starts consumer, producer and sampler, and kills them at the end, even after Ctrl-C.

    folder: for the journals; must exist and be private to this user. doubts: passed on to the verdict. Starting
    raises the errors of `start_producer` and Sampler, after stopping everything.
    """

    target: Target
    settings: ProducerSettings
    folder: Path
    faults: list[Fault] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    producer: ProducerWorker = field(init=False)
    consumer: ConsumerWorker = field(init=False)
    sampler: Sampler = field(init=False)
    _workers: list[Worker] = field(init=False, default_factory=list)

    def __enter__(self) -> Experiment:
        settings = self.settings
        self.sampler = Sampler(self.target, settings.topic)
        self.sampler.start()
        try:
            consumer = ConsumerSettings(settings.topic, settings.run, settings.partitions)
            self.consumer = start_consumer(self.target, consumer, self.folder)
            self._workers.append(self.consumer)
            self.producer = start_producer(self.target, settings, self.folder)
            self._workers.append(self.producer)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self._end()

    def _end(self) -> None:
        for worker in self._workers:
            worker.kill()
        self.sampler.stop()

    def fault(self, name: str, *brokers: int) -> None:
        """Record a fault immediately before it is injected. brokers: brokers that it hits.

        Raises OperationFailed if it cannot be recorded; then do not inject it.
        """
        self.faults.append(Fault(name, time.monotonic_ns(), brokers))
        note_fault(self.folder, self.faults[-1])

    def wait_writes(self, more: int, timeout_s: float) -> None:
        """Wait for this many more acknowledged records per partition.

        Raises TimedOut, and OperationFailed if the producer has exited.
        """
        self.producer.wait_acked(more, timeout_s)

    def wait_recovered(self, timeout_s: float) -> None:
        """Wait until every broker reports a leader and a full ISR for each partition. Raises TimedOut."""
        self.sampler.wait_full_isr(timeout_s)

    def finish(
        self,
        client: ClusterClient,
        *,
        budgets: Budgets | None = None,
        tolerated: Collection[str] = (),
        timeout_s: float = 30.0,
    ) -> Verdict:
        """Stop writing, read the log, wait until the consumer has read it, and return the verdict.

        timeout_s: for the consumer, and for an unreadable partition. Raises the errors of `read_log` and Worker.stop.
        """
        self.producer.stop(self.settings.timeout_s + 30)
        wait_quiet(client, self.settings.topic, timeout_s=timeout_s)
        log = read_log(client, self.settings.topic, self.settings.run, timeout_s=timeout_s)
        selected = self.settings.partitions
        log = {number: records for number, records in log.items() if selected is None or number in selected}
        self.consumer.wait_for_log(log, timeout_s)
        self.consumer.stop()
        self.sampler.stop()
        measured_recoveries = recoveries(self.faults, self.sampler.samples, self.sampler.controllers)
        evidence = Evidence(
            read_sent(self.folder), log, read_delivered(self.folder), self.faults, measured_recoveries, self.doubts
        )
        return judge(self.settings.topic, self.settings.run, evidence, budgets=budgets, tolerated=tolerated)
