"""A validation's processes on a real cluster: a clean run is clean, and what is not is caught from end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

from kctl.deploy.process import identify, is_running
from kctl.errors import OperationFailed
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.validate.experiment import Experiment
from kctl.validate.invariants import INVARIANTS, DuplicateRecord
from kctl.validate.report.gaps import worst
from kctl.validate.report.verdict import Budgets, Evidence, judge
from kctl.validate.workload.entries import ACKED, SENT, Entry, encode
from kctl.validate.workload.processes import read_delivered, read_sent
from kctl.validate.workload.read_log import read_log, wait_quiet
from kctl.validate.workload.records import key_of, new_run, value_of
from kctl.validate.workload.settings import ProducerSettings
from kctl_testing import TestCluster, eventually, within

PARTITIONS = 3


@pytest.fixture
def target(cluster: TestCluster) -> Target:
    return Target(cluster.name, tuple(cluster.bootstrap.split(",")), cluster.zookeeper)


def test_a_clean_run_is_clean(target: Target, topic: Callable[..., str], tmp_path: Path) -> None:
    name = topic(PARTITIONS, 3, min_insync_replicas="2")
    settings = ProducerSettings(name, new_run(), per_s=300, value_bytes=100, compression="gzip")
    with connect(target) as client, Experiment(target, settings, tmp_path) as experiment:
        experiment.wait_writes(50, timeout_s=within(30))
        experiment.fault("nothing")
        experiment.wait_writes(100, timeout_s=within(30))
        experiment.wait_recovered(timeout_s=within(30))
        assert not list(tmp_path.glob("*.task"))  # it has the login's secrets
        verdict = experiment.finish(client, budgets=Budgets(max_gap_ms=20_000, max_isr_ms=0), timeout_s=within(30))
    found = verdict.findings
    assert verdict.ok, verdict
    assert found.sent == found.acked == found.log_records == found.delivered
    assert found.acked >= 150 * PARTITIONS
    assert (found.failed, found.indeterminate) == (0, 0)
    assert list(worst(verdict.gaps)) == [None, "nothing"]
    assert len(verdict.gaps) == 2 * PARTITIONS
    assert all(0 < gap.gap_ms < 20_000 for gap in verdict.gaps)
    (recovery,) = verdict.recoveries
    assert (recovery.to_new_controller_ms, recovery.to_new_leader_ms) == (0, {})
    assert recovery.to_full_isr_ms == dict.fromkeys(range(PARTITIONS), 0)
    assert [sample.node for sample in experiment.sampler.samples[:3]] != []
    assert {worker.running for worker in (experiment.producer, experiment.consumer)} == {False}


def test_an_injected_ack_a_duplicate_and_a_stranger_are_caught(
    target: Target, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic(1, 3)
    settings = ProducerSettings(name, new_run(), acks="1", idempotent=False, per_s=200)
    with connect(target) as client, Experiment(target, settings, tmp_path) as experiment:
        experiment.wait_writes(50, timeout_s=within(30))
        experiment.producer.stop(within(30))
        sent = experiment.producer.acked()[0]
        other = KafkaProducer(bootstrap_servers=list(target.bootstrap_servers))
        try:
            for key in (key_of(settings.run, 0, 7), b"a stranger"):
                other.send(name, key=key, value=value_of(0, 16), partition=0).get(timeout=within(30))
        finally:
            other.close()
        log = read_log(client, name, settings.run)
        assert experiment.consumer.wait_for_log(log, within(30))
        experiment.consumer.stop(within(30))
    with (tmp_path / "producer.journal").open("ab") as journal:  # a record that no broker ever got
        journal.write(encode(Entry(SENT, 0, 1, sent, -1, time.monotonic_ns())))
        journal.write(encode(Entry(ACKED, 0, 1, sent, sent + 1, time.monotonic_ns())))
    verdict = judge(name, settings.run, Evidence(read_sent(tmp_path), log, read_delivered(tmp_path)))
    found = verdict.findings
    assert verdict.violated == ["lost", "duplicated", "foreign"]
    assert {kind: getattr(found, kind).count for kind in INVARIANTS if getattr(found, kind)} == {
        "lost": 1, "duplicated": 1, "foreign": 1,
    }  # fmt: skip
    assert (found.lost.first[0].offset, found.lost.first[0].sequence) == (sent + 1, sent)
    assert found.duplicated.first == [DuplicateRecord(0, sent, 7, 7)]
    assert (found.foreign.first[0].offset, found.delivered) == (sent + 1, sent + 2)


def test_kill_9_of_the_producer(target: Target, topic: Callable[..., str], tmp_path: Path) -> None:
    """What the journal has of a killed producer is enough: nothing acknowledged is lost, and no record is unknown."""
    name = topic(2, 3)
    settings = ProducerSettings(name, new_run(), per_s=None)
    with connect(target) as client, Experiment(target, settings, tmp_path) as experiment:
        experiment.wait_writes(500, timeout_s=within(30))
        os.kill(experiment.producer.identity.pid, signal.SIGKILL)
        with pytest.raises(OperationFailed, match="the producer exited"):
            experiment.wait_writes(10**9, timeout_s=within(30))
        wait_quiet(client, name, timeout_s=within(30))
        log = read_log(client, name, settings.run)
        assert experiment.consumer.wait_for_log(log, within(30))
        experiment.consumer.stop(within(30))
    verdict = judge(name, settings.run, Evidence(read_sent(tmp_path), log, read_delivered(tmp_path)))
    assert verdict.violated == []
    assert verdict.doubts == ["the producer did not exit cleanly"]
    assert verdict.findings.acked >= 1000
    assert verdict.findings.indeterminate == verdict.findings.sent - verdict.findings.acked


PARENT = """
import sys, time
from pathlib import Path
from kctl.contexts.choose import Target
from kctl.validate.workload.processes import start_producer
from kctl.validate.workload.settings import ProducerSettings
worker = start_producer(Target("t", (sys.argv[1],)), ProducerSettings(sys.argv[2], "0" * 16), Path(sys.argv[3]))
worker.wait_acked(10, 60)
print(worker.identity.pid, flush=True)
time.sleep(600)
"""


def test_the_producer_ends_in_order_when_its_parent_is_killed(
    target: Target, topic: Callable[..., str], tmp_path: Path
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, target.bootstrap_servers[0], topic(), str(tmp_path)], stdout=subprocess.PIPE
    )
    assert parent.stdout
    child = identify(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert child is not None
    eventually(lambda: not is_running(child), seconds=within(20), what="the producer without its parent has ended")
    sent = read_sent(tmp_path)
    assert sent.ended
    assert sent.stop_ns > 0
    assert set(sent.partitions[0].states) == {ACKED}
