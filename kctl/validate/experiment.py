"""One validation of a topic from beginning to end: workload, sampler, faults, verdict. For scenarios."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.protocol.target import Target
from kctl.validate.noted_faults import note_fault
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
    """`with` starts consumer, producer and sampler, and kills what is left of them at the end: also after Ctrl-C. The
    journals stay in `folder`, which exists and belongs to this user alone. doubts: go into the verdict.

    Starting raises what `start_producer` and Sampler raise; everything is stopped then.
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
        """Now, in this moment, something is done to the cluster. brokers: those that it hits.

        Raises OperationFailed when it cannot be noted: then it is not to be done.
        """
        self.faults.append(Fault(name, time.monotonic_ns(), brokers))
        note_fault(self.folder, self.faults[-1])

    def wait_writes(self, more: int, timeout_s: float) -> None:
        """Until so many more records are acknowledged in each partition. Raises TimedOut, and OperationFailed when the
        producer has ended."""
        self.producer.wait_acked(more, timeout_s)

    def wait_recovered(self, timeout_s: float) -> None:
        """Until all partitions have a leader and all replicas in sync, in the view of every broker. Raises TimedOut."""
        self.sampler.wait_full_isr(timeout_s)

    def finish(
        self,
        client: ClusterClient,
        *,
        budgets: Budgets | None = None,
        tolerated: Collection[str] = (),
        timeout_s: float = 30.0,
    ) -> Verdict:
        """Stop writing, read the log, let the consumer read to its end, and judge.

        timeout_s: for the consumer, and for a partition that cannot be read. Raises what `read_log` and Worker.stop do.
        """
        self.producer.stop(self.settings.timeout_s + 30)
        wait_quiet(client, self.settings.topic, timeout_s=timeout_s)
        log = read_log(client, self.settings.topic, self.settings.run, timeout_s=timeout_s)
        chosen = self.settings.partitions
        log = {number: found for number, found in log.items() if chosen is None or number in chosen}
        self.consumer.wait_for_log(log, timeout_s)
        self.consumer.stop()
        self.sampler.stop()
        found = recoveries(self.faults, self.sampler.samples, self.sampler.controllers)
        evidence = Evidence(read_sent(self.folder), log, read_delivered(self.folder), self.faults, found, self.doubts)
        return judge(self.settings.topic, self.settings.run, evidence, budgets=budgets, tolerated=tolerated)
