"""Start the producer and the consumer of a validation, watch them through their journals, and stop them.

They are separate processes, so that kctl's own work causes no gap, and their journals survive if kctl is killed. They
exit within a second after kctl.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from kctl.base.deadline import Deadline
from kctl.base.own_python import child_environment
from kctl.deploy.process import ProcessIdentity, is_running, send_signal, spawn
from kctl.errors import NotFound, OperationFailed, TimedOut
from kctl.protocol.target import Target
from kctl.validate.workload.entries import ACKED, READ, SENT
from kctl.validate.workload.history import DeliveredRecords, Log, SentRecords, delivered_of, sent_of
from kctl.validate.workload.read_journal import JournalReader, read_entries
from kctl.validate.workload.settings import ConsumerSettings, ProducerSettings, write_task

_POLL_S = 0.05
_START_S = 60.0
_KILL_S = 10.0


class Worker:
    """A process and its journal, from `start_producer` or `start_consumer`.

    records: (kind of entry, partition) → count, as of the last `poll`. positions: partition → position of the consumer,
    which goes back if the log is truncated.
    """

    def __init__(self, name: str, identity: ProcessIdentity, journal: Path, output: Path, task: Path) -> None:
        self.name, self.identity, self.journal = name, identity, journal
        self._output, self._task = output, task
        self._reader = JournalReader(journal)
        self.records: Counter[tuple[int, int]] = Counter()
        self.positions: dict[int, int] = {}

    @property
    def running(self) -> bool:
        return is_running(self.identity)

    def poll(self) -> None:
        """Read new journal entries. Raises InvalidFile for a damaged journal."""
        try:
            for entry in self._reader.read():
                self.records[entry.kind, entry.partition] += entry.records
                if entry.kind == READ:
                    self.positions[entry.partition] = entry.offset + entry.records
        except NotFound:  # not started yet
            pass

    def wait(self, holds: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait until a condition holds. Raises TimedOut, and OperationFailed if the process exits first."""
        deadline = Deadline(timeout_s)
        while True:
            running = self.running
            self.poll()
            if holds():
                return
            if not running:
                raise self._exit_error()
            if deadline.expired:
                raise TimedOut(f"timed out after {timeout_s:g} s waiting for {what}")
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise OperationFailed, with its last output, if the process has exited."""
        if not self.running:
            raise self._exit_error()

    def stop(self, timeout_s: float = 150.0) -> None:
        """Request a clean exit and wait; the producer waits for requests in flight.

        Raises OperationFailed if it has already exited, TimedOut if it had to be killed: its journal then has no ENDED.
        """
        if not send_signal(self.identity, signal.SIGTERM):
            raise self._exit_error()
        deadline = Deadline(timeout_s)
        while self.running:
            if deadline.expired:
                self.kill()
                raise TimedOut(f"the {self.name} did not exit within {timeout_s:g} s and was killed")
            time.sleep(_POLL_S)
        self.poll()

    def kill(self) -> None:
        """Kill the process. Does nothing if it has exited."""
        self._task.unlink(missing_ok=True)
        deadline = Deadline(_KILL_S)
        send_signal(self.identity, signal.SIGKILL)
        while self.running and not deadline.expired:
            time.sleep(_POLL_S)

    def _exit_error(self) -> OperationFailed:
        self._task.unlink(missing_ok=True)
        try:
            lines = self._output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        except OSError:
            lines = []
        return OperationFailed(f"the {self.name} exited: {lines[0] if lines else 'no output'}")


class ProducerWorker(Worker):
    """The producer process."""

    def acked(self) -> dict[int, int]:
        """Return partition → acknowledged records, for partitions with writes, as of the last poll."""
        written_partitions = {number for kind, number in self.records if kind == SENT}
        return {number: self.records[ACKED, number] for number in sorted(written_partitions)}

    def wait_acked(self, more: int, timeout_s: float) -> None:
        """Wait for this many more acknowledged records in each partition. Raises like `wait`."""
        self.poll()
        before = self.acked()

        def enough() -> bool:
            now = self.acked()
            return bool(now) and all(count >= before.get(number, 0) + more for number, count in now.items())

        self.wait(enough, timeout_s, f"{more} more records acknowledged in each partition")


class ConsumerWorker(Worker):
    """The consumer process."""

    def wait_until(self, ends: Mapping[int, int], timeout_s: float) -> None:
        """Wait until all records before these offsets are delivered. Raises like `wait`."""

        def delivered() -> bool:
            return all(self.positions.get(number, 0) >= end for number, end in ends.items())

        self.wait(delivered, timeout_s, "the consumer to read everything")

    def wait_for_log(self, log: Log, timeout_s: float) -> bool:
        """Return True if everything was delivered in time; missing records are a finding, not an error.

        Raises OperationFailed if the consumer has exited.
        """
        ends = {number: log[number].offsets[-1] + 1 for number in log if log[number].offsets}
        try:
            self.wait_until(ends, timeout_s)
        except TimedOut:
            return False
        return True


def start_producer(target: Target, settings: ProducerSettings, folder: Path) -> ProducerWorker:
    """Start the producer and wait until it is connected. folder: for producer.journal; private to this user.

    Raises TimedOut, and OperationFailed with its output if it cannot start.
    """
    worker = ProducerWorker(*_spawn("producer", target, settings, folder))
    _wait_started(worker)
    return worker


def start_consumer(target: Target, settings: ConsumerSettings, folder: Path) -> ConsumerWorker:
    """Start the consumer, like `start_producer`; its journal is consumer.journal."""
    worker = ConsumerWorker(*_spawn("consumer", target, settings, folder))
    _wait_started(worker)
    return worker


def _spawn(
    name: str, target: Target, settings: ProducerSettings | ConsumerSettings, folder: Path
) -> tuple[str, ProcessIdentity, Path, Path, Path]:
    task, output, journal = (folder / f"{name}.{ending}" for ending in ("task", "output", "journal"))
    write_task(task, target, settings, journal)
    argv = [sys.executable, "-m", f"kctl.validate.workload.{name}_process", str(task.absolute())]
    try:
        identity = spawn(argv, cwd=folder, env=child_environment(os.environ), output=output)
    except BaseException:
        task.unlink(missing_ok=True)
        raise
    return name, identity, journal, output, task


def _wait_started(worker: Worker) -> None:
    try:
        worker.wait(worker.journal.exists, _START_S, f"the start of the {worker.name}")
    except BaseException:  # including Ctrl-C
        worker.kill()
        raise


def read_sent(folder: Path) -> SentRecords:
    """Return the records of the producer's journal. Raises NotFound, InvalidFile."""
    path = folder / "producer.journal"
    return sent_of(read_entries(path), path)


def read_delivered(folder: Path) -> DeliveredRecords:
    """Return the records of the consumer's journal. Raises NotFound, InvalidFile."""
    path = folder / "consumer.journal"
    return delivered_of(read_entries(path), path)
