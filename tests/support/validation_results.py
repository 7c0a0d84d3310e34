"""Results of validations, from the histories of a run: records sent, in the log, and delivered."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from kctl.validate.evidence import find_missing
from kctl.validate.plan import PlannedScenario, ValidationPlan
from kctl.validate.report.gaps import Fault
from kctl.validate.report.plot import plot_of
from kctl.validate.report.timeline import Recovery
from kctl.validate.report.verdict import Budgets, Evidence, judge
from kctl.validate.run import ScenarioResult, Trial
from kctl.validate.workload.entries import ACKED
from kctl.validate.workload.history import (
    DeliveredPartition,
    DeliveredRecords,
    Log,
    LogPartition,
    SentPartition,
    SentRecords,
)

SECOND = 1_000_000_000
RUN = "0123456789abcdef"
KILL = Fault("kill -9 of broker 2, leader of partition 1", 3 * SECOND, (2,))
RECOVERY = Recovery(KILL.name, 0, {1: 2_500}, {0: 0, 1: 9_000})
PLANNED = PlannedScenario("leader-election", "kill -9 of a leader", "others take over", ((1, 2, 3), (2, 3, 1)), 2)


def sent(partitions: int = 2, *, pause: int = 3) -> SentRecords:
    """Return ten records a second per partition for 12 s, with none for `pause` seconds after the fault."""
    found = SentRecords(stop_ns=12 * SECOND, ended=True, last_ns=12 * SECOND)
    for number in range(partitions):
        at = [n for n in range(120) if not 30 < n <= 30 + 10 * pause]
        partition = SentPartition(bytearray((ACKED,)) * len(at), array("q", range(len(at))), first_ns=0)
        partition.ack_ns = array("q", [n * SECOND // 10 for n in at])
        partition.ack_counts = array("q", [1] * len(at))
        found.partitions[number] = partition
    return found


def result(
    *,
    scenario: str = "leader-election",
    lost: Sequence[int] = (),
    unread: Sequence[int] = (),
    budgets: Budgets | None = None,
    folder: Path = Path("/evidence/leader-election"),
    acks: str = "all",
    faults: Sequence[Fault] = (KILL,),
) -> ScenarioResult:
    """Return a result. lost: sequences missing in the log of partition 1, which ends there; unread: sequences of
    partition 0 that the consumer did not receive."""
    history = sent()
    log: Log = {}
    given = DeliveredRecords(ended=True)
    for number, partition in history.partitions.items():
        sequences = [n for n in range(partition.count) if number != 1 or n not in lost]
        there = array("q", sequences)
        log[number] = LogPartition(0, len(sequences), array("q", range(len(sequences))), there)
        read = [(at, n) for at, n in enumerate(sequences) if number != 0 or n not in unread]
        given.partitions[number] = DeliveredPartition(
            array("q", [at for at, _ in read]), array("q", [n for _, n in read])
        )
    recoveries = [RECOVERY][: len(faults)]
    topic = f"kctl-validate-12345678-{scenario}"
    verdict = judge(topic, RUN, Evidence(history, log, given, faults, recoveries), budgets=budgets)
    trial = Trial(topic, RUN, acks, acks == "all", 2, PLANNED.assignment, unclean=False)
    missing = find_missing(verdict.findings, RUN, {})
    return ScenarioResult(scenario, trial, verdict, missing, plot_of(history, faults), folder, 31_000)


def plan(*scenarios: PlannedScenario) -> ValidationPlan:
    return ValidationPlan(
        "prod", "cluster-id-1", (1, 2, 3), "by the commands of hooks.yaml", scenarios or (PLANNED,), ()
    )
