"""A set-up that loses records on purpose: acks=1, and a leader that lacks them is elected. The validator sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.validate.experiment import Experiment
from kctl.validate.fault_log import read_faults
from kctl.validate.report.verdict import Budgets
from kctl.validate.workload.records import new_run
from kctl.validate.workload.settings import ProducerSettings
from kctl_testing import Kctl, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_an_unclean_election_with_acks_1_is_caught(own_kctl: Kctl, tmp_path: Path) -> None:
    own_kctl.ok("cluster", "create", "lossy", "--use", "--layout", "pseudo-distributed", "--brokers", "2", timeout=180)
    folder = tmp_path / "evidence"
    folder.mkdir(mode=0o700)
    try:
        context = own_kctl.json("context", "show", "lossy")
        own_kctl.ok(
            "topic", "create", "lossy", "--replica-assignment", "1:2", "--config", "min.insync.replicas=1",
            "--config", "unclean.leader.election.enable=true",
        )  # fmt: skip
        target = Target("lossy", tuple(context["bootstrap_servers"]), context["zookeeper"])
        settings = ProducerSettings("lossy", new_run(), acks="1", idempotent=False, per_s=500)
        with connect(target) as client, Experiment(target, settings, folder) as experiment:
            experiment.wait_writes(100, within(60))
            experiment.fault("pause of the follower", 2)
            own_kctl.ok("cluster", "pause", "lossy", "2", "--yes")
            eventually(
                lambda: client.metadata(["lossy"]).topics["lossy"].partitions[0].isr == (1,),
                seconds=within(90), what="the follower is out of the ISR",
            )  # fmt: skip
            experiment.wait_writes(500, within(60))
            experiment.fault("kill -9 of the leader", 1)
            own_kctl.ok("cluster", "kill", "lossy", "1", "--yes")
            own_kctl.ok("cluster", "unpause", "lossy", "2", "--yes")
            experiment.wait_writes(100, within(120))
            own_kctl.ok("cluster", "start", "lossy", timeout=180)
            experiment.wait_recovered(within(120))
            verdict = experiment.finish(client, budgets=Budgets(max_gap_ms=1), timeout_s=within(60))
    finally:
        own_kctl("cluster", "destroy", "lossy", "--yes", "--confirm-cluster", "lossy", timeout=180)
    found = verdict.findings
    assert not verdict.ok
    assert "lost" in verdict.violated
    assert found.lost.count >= 400  # what was written while the follower stood still, but for what was on its way
    assert {"duplicated", "out_of_order", "holes", "foreign"} & set(verdict.violated) == set()
    lost = [(each.partition, each.offset - each.sequence) for each in found.lost.first]
    assert lost == [(0, 0)] * len(lost)  # nothing had failed before, so each was acknowledged where its number says
    assert found.lost.first[0].delivered  # the consumer got it, before it was lost
    assert found.phantoms.count >= found.lost.first[-1].offset - found.lost.first[0].offset
    assert [breach.name for breach in verdict.breaches] == ["max_gap_ms"] * 3
    _, recovery = verdict.recoveries
    assert recovery.to_new_leader_ms[0] is not None
    assert recovery.to_full_isr_ms[0] is not None
    assert read_faults(folder) == experiment.faults
    assert not list(folder.glob("*.task"))
