"""The verdict: what was proven about a cluster, in figures, and what it did not keep. Pure.

A verdict that nothing could have spoilt is no proof: it is not ok without acknowledged writes in each partition, also
behind the last fault, with a journal that has no orderly end, or when what a fault hit did not notice it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from kctl.validate.invariants import INVARIANTS, Findings, check
from kctl.validate.report.gaps import Fault, Gap, find_gaps
from kctl.validate.report.timeline import Recovery
from kctl.validate.workload.history import Delivered, Log, Sent

_NAMED = 20


@dataclass(frozen=True, slots=True)
class Budgets:
    """What may be lasted at most; None: no limit. Gaps before the first fault count, too."""

    max_gap_ms: int | None = None
    max_isr_ms: int | None = None
    max_leader_ms: int | None = None
    max_controller_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Breach:
    """A budget that was not kept. name: that of the budget. took_ms: None when it had not come at the end. partition:
    None for the cluster. fault: None for the time before the first one."""

    name: str
    fault: str | None
    partition: int | None
    took_ms: int | None
    limit_ms: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A budget that was asked. longest_ms: None when one had not come at the end, or none was measured. kept: None when
    none was measured: no fault took a leader, or the controller, away."""

    budget: str
    limit_ms: int
    longest_ms: int | None
    kept: bool | None


@dataclass(frozen=True)
class Verdict:
    """Of one run. gaps: of each partition in each window; recoveries: after each fault.

    violated: invariants that were not kept, without those that were tolerated; doubts: why it proves less than it
    should. indeterminate: sent, and neither acknowledged nor refused: they may be in the log, and some are.
    """

    topic: str
    run: str
    findings: Findings
    gaps: list[Gap]
    recoveries: list[Recovery]
    violated: list[str] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    budgets: list[Judged] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.violated or self.breaches or self.doubts)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run left. delivered: None without a consumer; doubts: reasons, seen during the run, why it proves less."""

    sent: Sent
    log: Log
    delivered: Delivered | None
    faults: Sequence[Fault] = ()
    recoveries: Sequence[Recovery] = ()
    doubts: Sequence[str] = ()


def judge(
    topic: str, run: str, evidence: Evidence, *, budgets: Budgets | None = None, tolerated: Collection[str] = ()
) -> Verdict:
    """Return the verdict on a run.

    tolerated: invariants that this set-up does not promise, such as duplicated and out_of_order without idempotence.
    Raises ValueError for an unknown invariant.
    """
    if set(tolerated) - set(INVARIANTS):
        raise ValueError(f"no such invariant: {', '.join(sorted(set(tolerated) - set(INVARIANTS)))}")
    findings = check(evidence.sent, evidence.log, evidence.delivered)
    gaps, recoveries = find_gaps(evidence.sent, evidence.faults), evidence.recoveries
    budgets = budgets or Budgets()
    return Verdict(
        topic=topic,
        run=run,
        findings=findings,
        gaps=gaps,
        recoveries=list(recoveries),
        violated=[name for name in INVARIANTS if name not in tolerated and getattr(findings, name)],
        breaches=breaches(gaps, recoveries, budgets),
        doubts=[*_doubts(evidence), *_unfelt(recoveries), *evidence.doubts],
        budgets=judged(gaps, recoveries, budgets),
    )


def _measures(
    gaps: Sequence[Gap], recoveries: Sequence[Recovery]
) -> Iterator[tuple[str, str | None, int | None, int | None]]:
    """All that budgets are of: the budget, the fault, the partition, and how long it took; None: it had not come."""
    for gap in gaps:
        yield "max_gap_ms", gap.after, gap.partition, gap.gap_ms
    for recovery in recoveries:
        yield "max_controller_ms", recovery.fault, None, recovery.to_new_controller_ms
        for number, took in recovery.to_new_leader_ms.items():
            yield "max_leader_ms", recovery.fault, number, took
        for number, took in recovery.to_full_isr_ms.items():
            yield "max_isr_ms", recovery.fault, number, took


def breaches(gaps: Sequence[Gap], recoveries: Sequence[Recovery], budgets: Budgets) -> list[Breach]:
    """Every partition and fault that is over a limit."""
    limits: dict[str, int | None] = asdict(budgets)
    return [
        Breach(name, fault, partition, took, limit)
        for name, fault, partition, took in _measures(gaps, recoveries)
        if (limit := limits[name]) is not None and (took is None or took > limit)
    ]


def judged(gaps: Sequence[Gap], recoveries: Sequence[Recovery], budgets: Budgets) -> list[Judged]:
    """Each budget that was asked, and what was measured of it."""
    limits: dict[str, int | None] = asdict(budgets)
    measured: dict[str, list[int | None]] = {name: [] for name in limits}
    for name, _, _, took in _measures(gaps, recoveries):
        if name != "max_controller_ms" or took != 0:  # it stayed: that says nothing of how soon there is another
            measured[name].append(took)
    found = []
    for name, limit in limits.items():
        if limit is None:
            continue
        come = [took for took in measured[name] if took is not None]
        longest = max(come) if come and len(come) == len(measured[name]) else None
        kept = None if not measured[name] else longest is not None and longest <= limit
        found.append(Judged(name, limit, longest, kept))
    return found


def _doubts(evidence: Evidence) -> list[str]:
    sent, log, delivered = evidence.sent, evidence.log, evidence.delivered
    found = []
    silent = [number for number in sorted(log) if number not in sent.partitions or not sent.partitions[number].ack_ns]
    if not log:
        found.append("there is no partition")
    if silent:
        found.append(f"no write was acknowledged in {_named(silent)}")
    for fault in evidence.faults[-1:]:
        dead = [n for n, each in sorted(sent.partitions.items()) if each.ack_ns and each.ack_ns[-1] <= fault.at_ns]
        if dead:
            found.append(f"no write was acknowledged behind «{fault.name}» in {_named(dead)}")
    if not sent.ended:
        found.append("the producer did not come to an orderly end")
    if delivered is not None and not delivered.ended:
        found.append("the consumer did not come to an orderly end")
    return found


def _unfelt(recoveries: Sequence[Recovery]) -> list[str]:
    """Faults that were none: a command that ended well need not have done anything."""
    return [
        f"«{each.fault}» had no effect: its broker led {_named(each.unmoved)} all the time"
        for each in recoveries
        if each.unmoved
    ]


def _named(partitions: Sequence[int]) -> str:
    if len(partitions) == 1:
        return f"partition {partitions[0]}"
    more = f" and {len(partitions) - _NAMED} more" if len(partitions) > _NAMED else ""
    return f"partitions {', '.join(map(str, partitions[:_NAMED]))}{more}"
