"""Rules about partitions. Kafka's tool counts the same way (TopicCommand.PartitionDescription)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kctl.base.text import counted
from kctl.errors import KctlError
from kctl.health.eligible import brokers_to_start
from kctl.health.model import Adding, Check, CheckStatus, Facts
from kctl.model import ClusterState, PartitionState


def expected_in_sync(p: PartitionState, adding: Collection[int] = ()) -> int:
    """Return how many replicas should be in sync, without those that a reassignment is still adding."""
    return len(p.replicas) - len(set(adding).intersection(p.replicas))


def under_replicated(p: PartitionState, adding: Collection[int] = ()) -> bool:
    """Return True if fewer replicas are in sync than expected."""
    return len(p.isr) < expected_in_sync(p, adding)


def effective_min_isr(p: PartitionState, min_isr: int) -> int:
    """Return the number of in-sync replicas that acks=all requires: at most the number of replicas."""
    return min(min_isr, len(p.replicas))


def under_min_isr(p: PartitionState, min_isr: int) -> bool:
    """Return True if acks=all is rejected because too few replicas are in sync."""
    return len(p.isr) < effective_min_isr(p, min_isr)


def at_min_isr(p: PartitionState, min_isr: int) -> bool:
    """Return True if acks=all is rejected after the loss of one more replica."""
    return len(p.isr) == effective_min_isr(p, min_isr)


def at_risk(partitions: Iterable[PartitionState], min_isr: Mapping[str, int | KctlError]) -> list[PartitionState]:
    """Return the partitions that have no leader, or may have fewer than min.insync.replicas replicas in sync."""

    def is_at_risk(p: PartitionState) -> bool:
        minimum = min_isr.get(p.topic)
        return p.offline or (p.under_replicated and not (isinstance(minimum, int) and not under_min_isr(p, minimum)))

    return [p for p in partitions if is_at_risk(p)]


def partitions_of(state: ClusterState) -> Iterable[PartitionState]:
    """Return all partitions, by topic."""
    return (p for name in sorted(state.topics) for p in state.topics[name].partitions)


def adding_of(p: PartitionState, adding: Adding) -> Collection[int]:
    """Return the replicas of a partition that a reassignment is still adding; none if unknown."""
    return adding.get(p.tp, ()) if isinstance(adding, Mapping) else ()


def adding_unknown(adding: Adding) -> str | None:
    """Return a message if reassignments are unknown: under-replicated partitions may then just be moving."""
    if not isinstance(adding, KctlError):
        return None
    return f"replicas that are not in sync may be part of a reassignment: {adding.message}"


def check_offline(facts: Facts) -> Check:
    """Check for partitions without a leader, which cannot be read or written."""
    offline = [p for p in partitions_of(facts.state) if p.offline]
    advice = brokers_to_start(facts.state, offline, facts.eligible)
    problem = f"without a leader; {advice}" if advice else "without a leader"
    reasons = (facts.eligible.message,) if offline and isinstance(facts.eligible, KctlError) else ()
    names = [str(p.tp) for p in offline]
    return _counted("offline_partitions", names, problem, "every partition has a leader", reasons=reasons)


def check_under_replicated(facts: Facts) -> Check:
    """Check for partitions with a replica that is not in sync."""
    rows = list(partitions_of(facts.state))
    names = [str(p.tp) for p in rows if under_replicated(p, adding_of(p, facts.adding))]
    copying = sum(1 for p in rows if adding_of(p, facts.adding))
    ok_summary = "all replicas are in sync"
    if copying:
        ok_summary += f", except those that {counted(copying, 'reassignment')} still adds"
    unknown = adding_unknown(facts.adding) if names else None
    reasons = (unknown,) if unknown else ()
    problem = "with a replica that is not in sync"
    return _counted("under_replicated_partitions", names, problem, ok_summary, reasons=reasons)


def check_under_min_isr(facts: Facts) -> Check:
    """Check for partitions that reject acks=all; count those at the minimum.

    Only under-replicated partitions are examined: one that is at the minimum with all replicas in sync was created
    that way.
    """
    names: list[str] = []
    reasons: dict[str, None] = {}
    at_minimum = 0
    for p in partitions_of(facts.state):
        if not p.under_replicated:
            continue
        minimum = facts.min_isr.get(p.topic)
        if isinstance(minimum, KctlError):
            reasons[minimum.message] = None
        elif minimum is not None and under_min_isr(p, minimum):
            names.append(str(p.tp))
        elif minimum is not None:
            at_minimum += at_min_isr(p, minimum)
    ok_summary = "every partition accepts acks=all"
    if at_minimum:
        ok_summary += f"; {counted(at_minimum, 'partition')} at the minimum: they reject it after one more loss"
    if reasons and not names:
        summary = f"min.insync.replicas of {counted(len(reasons), 'topic')} is not readable"
        return Check("under_min_isr_partitions", CheckStatus.UNKNOWN, summary, reasons=tuple(reasons))
    problem = "with fewer in-sync replicas than min.insync.replicas"
    if names and at_minimum:
        problem += f"; {at_minimum:,} more at the minimum"
    return _counted(
        "under_min_isr_partitions", names, problem, ok_summary,
        reasons=tuple(reasons), otherwise=CheckStatus.WARNING if at_minimum else CheckStatus.OK,
    )  # fmt: skip


def _counted(
    name: str,
    partitions: list[str],
    problem: str,
    ok_summary: str,
    *,
    reasons: tuple[str, ...] = (),
    otherwise: CheckStatus = CheckStatus.OK,
) -> Check:
    if not partitions:
        return Check(name, otherwise, ok_summary, reasons=reasons)
    summary = f"{counted(len(partitions), 'partition')} {problem}"
    return Check(name, CheckStatus.PROBLEM, summary, tuple(partitions), reasons)
