"""Starting the producer and the consumer of a validation, watching them by their journals, and stopping them.

They are processes of their own, so that nothing that kctl does meanwhile makes a gap, and so that what they have seen
is on the disk whatever becomes of kctl. When kctl goes away they end by themselves within a second.
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
from kctl.validate.workload.history import Delivered, Log, Sent, delivered_of, sent_of
from kctl.validate.workload.read_journal import JournalReader, read_entries
from kctl.validate.workload.settings import ConsumerSettings, ProducerSettings, write_task

_POLL_S = 0.05
_START_S = 60.0
_KILLED_S = 10.0


class Worker:
    """A process and its journal. Made by `start_producer` and `start_consumer`; `stop` it.

    records: by kind of entry and partition, as of the last `look`; positions: by partition, where the consumer is now:
    it goes back where the log was cut off.
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

    def look(self) -> None:
        """Take what has come in the journal. Raises InvalidFile for a damaged one."""
        try:
            for entry in self._reader.read():
                self.records[entry.kind, entry.partition] += entry.records
                if entry.kind == READ:
                    self.positions[entry.partition] = entry.offset + entry.records
        except NotFound:  # it has not begun
            pass

    def wait(self, met: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Look until it is so. Raises TimedOut, and OperationFailed when the process ends before."""
        deadline = Deadline(timeout_s)
        while True:
            running = self.running
            self.look()
            if met():
                return
            if not running:
                raise self._ended()
            if deadline.expired:
                raise TimedOut(f"after {timeout_s:g} s still not: {what}")
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise OperationFailed, with what it said, when it has ended."""
        if not self.running:
            raise self._ended()

    def stop(self, timeout_s: float = 150.0) -> None:
        """Ask it to end, and wait: the producer waits for what is under way. Raises OperationFailed when it failed,
        TimedOut when it had to be killed: its journal has no orderly end then."""
        if not send_signal(self.identity, signal.SIGTERM):
            raise self._ended()
        deadline = Deadline(timeout_s)
        while self.running:
            if deadline.expired:
                self.kill()
                raise TimedOut(f"the {self.name} did not end within {timeout_s:g} s and was killed")
            time.sleep(_POLL_S)
        self.look()

    def kill(self) -> None:
        """End it at once; harmless when it has ended."""
        self._task.unlink(missing_ok=True)
        deadline = Deadline(_KILLED_S)
        send_signal(self.identity, signal.SIGKILL)
        while self.running and not deadline.expired:
            time.sleep(_POLL_S)

    def _ended(self) -> OperationFailed:
        self._task.unlink(missing_ok=True)
        try:
            said = self._output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        except OSError:
            said = []
        return OperationFailed(f"the {self.name} ended by itself: {said[0] if said else 'it said nothing'}")


class ProducerWorker(Worker):
    """See Worker."""

    def acked(self) -> dict[int, int]:
        """Acknowledged records by partition, of those that were written to, as of the last look."""
        written = {number for kind, number in self.records if kind == SENT}
        return {number: self.records[ACKED, number] for number in sorted(written)}

    def wait_acked(self, more: int, timeout_s: float) -> None:
        """Until so many more records than now are acknowledged in each partition. Raises what `wait` raises."""
        self.look()
        before = self.acked()

        def met() -> bool:
            now = self.acked()
            return bool(now) and all(count >= before.get(number, 0) + more for number, count in now.items())

        self.wait(met, timeout_s, f"{more} more records acknowledged in each partition")


class ConsumerWorker(Worker):
    """See Worker."""

    def wait_until(self, ends: Mapping[int, int], timeout_s: float) -> None:
        """Until it was given all before these offsets. Raises what `wait` raises."""

        def met() -> bool:
            return all(self.positions.get(number, 0) >= end for number, end in ends.items())

        self.wait(met, timeout_s, "the consumer has read everything")

    def wait_for_log(self, log: Log, timeout_s: float) -> bool:
        """Whether it was given everything in time: what it was not is a finding, not an error. Raises OperationFailed
        when it has ended."""
        ends = {number: log[number].offsets[-1] + 1 for number in log if log[number].offsets}
        try:
            self.wait_until(ends, timeout_s)
        except TimedOut:
            return False
        return True


def start_producer(target: Target, settings: ProducerSettings, folder: Path) -> ProducerWorker:
    """Return when it has connected. folder: of this user, exists; takes the journal producer.journal.

    Raises OperationFailed with what it said when it cannot begin, TimedOut.
    """
    worker = ProducerWorker(*_spawn("producer", target, settings, folder))
    _await_begin(worker)
    return worker


def start_consumer(target: Target, settings: ConsumerSettings, folder: Path) -> ConsumerWorker:
    """As `start_producer`, with the journal consumer.journal."""
    worker = ConsumerWorker(*_spawn("consumer", target, settings, folder))
    _await_begin(worker)
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


def _await_begin(worker: Worker) -> None:
    try:
        worker.wait(worker.journal.exists, _START_S, f"the {worker.name} has begun")
    except BaseException:  # Ctrl-C, too
        worker.kill()
        raise


def read_sent(folder: Path) -> Sent:
    """What the producer's journal says. Raises NotFound, InvalidFile."""
    path = folder / "producer.journal"
    return sent_of(read_entries(path), path)


def read_delivered(folder: Path) -> Delivered:
    """What the consumer's journal says. Raises NotFound, InvalidFile."""
    path = folder / "consumer.journal"
    return delivered_of(read_entries(path), path)
