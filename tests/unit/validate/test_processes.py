"""The processes of a validation as programs: what they say and how they end when there is nothing to do for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from array import array
from pathlib import Path
from unittest import mock

import pytest

from kctl.deploy.process import ProcessIdentity, boot_id, identify
from kctl.errors import OperationFailed, UsageError
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.validate.workload.entries import READ, Entry
from kctl.validate.workload.history import LogPartition
from kctl.validate.workload.processes import ConsumerWorker, start_consumer
from kctl.validate.workload.settings import ConsumerSettings, ProducerSettings, write_task
from kctl.validate.workload.shutdown import ShutdownRequest
from kctl_testing import free_ports

RUN = "0" * 16


def program(name: str, *args: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", f"kctl.validate.workload.{name}_process", *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_what_is_no_task(tmp_path: Path) -> None:
    assert program("producer") == (2, "", "requires one argument: the task file written by kctl\n")
    code, out, said = program("consumer", str(tmp_path / "none"))
    assert (code, out) == (4, "")
    assert "does not exist; a task file is read only once" in said
    write_task(tmp_path / "task", Target("c", ("h:1",)), ConsumerSettings("t", RUN), tmp_path / "journal")
    assert program("producer", str(tmp_path / "task")) == (2, "", "the task file is for another process\n")


def test_why_it_ended_is_told_without_a_secret(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    security = Security("SASL_PLAINTEXT", "PLAIN", "ops", "hunter2")
    target = Target("c", (f"127.0.0.1:{port}",), None, security)
    with pytest.raises(OperationFailed, match=rf"^the consumer exited: .*127\.0\.0\.1:{port}") as told:
        start_consumer(target, ConsumerSettings("t", RUN), tmp_path)
    assert "hunter2" not in told.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["consumer.output"]
    assert b"hunter2" not in (tmp_path / "consumer.output").read_bytes()
    with pytest.raises(OperationFailed, match="cannot write"):
        start_consumer(target, ConsumerSettings("t", RUN), tmp_path / "no folder")


def test_when_a_process_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        here = identify(os.getpid())
        assert here is not None
        shutdown = ShutdownRequest(here)
        monkeypatch.setattr("kctl.validate.workload.shutdown._CHECK_S", -1.0)
        assert not shutdown
        os.kill(os.getpid(), signal.SIGTERM)
        assert shutdown
        assert not shutdown.alone
        gone = ShutdownRequest(
            ProcessIdentity(os.getpid(), here.start_ticks - 1, boot_id())
        )  # its pid is another's now
        assert gone
        assert gone.alone
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def test_sigterm_while_the_parent_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that the parent runs does not undo a signal that came before the answer."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def running(_parent: ProcessIdentity) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    try:
        here = identify(os.getpid())
        assert here is not None
        shutdown = ShutdownRequest(here)
        monkeypatch.setattr("kctl.validate.workload.shutdown._CHECK_S", -1.0)
        monkeypatch.setattr("kctl.validate.workload.shutdown.is_running", running)
        assert shutdown
        assert shutdown
        assert not shutdown.alone
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_where_a_consumer_is_after_the_log_was_cut_off(tmp_path: Path) -> None:
    """It had read up to 100; then there were 80, of which it was given 50 to 59 again."""
    here = identify(os.getpid())
    assert here is not None
    worker = ConsumerWorker("consumer", here, *(tmp_path / name for name in ("journal", "output", "task")))
    given = [Entry(READ, 0, 100, 0, 0, 1), Entry(READ, 3, 7, 0, 0, 1)]
    with mock.patch.object(worker, "_reader") as reader:
        reader.read.return_value = given
        worker.poll()
        assert worker.positions == {0: 100, 3: 7}
        reader.read.return_value = [Entry(READ, 0, 10, 50, 50, 1)]
        worker.poll()
        assert worker.positions == {0: 60, 3: 7}
        reader.read.return_value = []
        log = {0: LogPartition(0, 80, array("q", range(80)), array("q", range(80)))}
        assert not worker.wait_for_log(log, 0.0)
        reader.read.return_value = [Entry(READ, 0, 20, 60, 60, 1)]
        assert worker.wait_for_log(log, 0.0)


@pytest.mark.parametrize(("acks", "resend"), [("1", False), ("0", False), ("all", True)])
def test_settings_that_exclude_each_other(acks: str, resend: bool) -> None:
    ProducerSettings("t", RUN, acks=acks, resend=resend, idempotent=False)
    with pytest.raises(UsageError, match="idempotence needs acks=all"):
        ProducerSettings("t", RUN, acks=acks, resend=resend)
