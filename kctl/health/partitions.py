"""When a partition is not as it should be. Kafka's own tool counts the same way (TopicCommand.PartitionDescription)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kctl.base.text import counted
from kctl.errors import KctlError
from kctl.health.model import Adding, Check, Facts, Status
from kctl.model import ClusterState, PartitionState


def wanted_in_sync(p: PartitionState, adding: Collection[int] = ()) -> int:
    """How many replicas should be in sync: those that a reassignment is still copying are not counted."""
    return len(p.replicas) - len(set(adding).intersection(p.replicas))


def under_replicated(p: PartitionState, adding: Collection[int] = ()) -> bool:
    """Fewer replicas in sync than there should be."""
    return len(p.isr) < wanted_in_sync(p, adding)


def effective_min_isr(p: PartitionState, min_isr: int) -> int:
    """A partition with fewer replicas than min.insync.replicas takes acks=all with all of them in sync."""
    return min(min_isr, len(p.replicas))


def under_min_isr(p: PartitionState, min_isr: int) -> bool:
    """Fewer in sync than needed: acks=all is refused."""
    return len(p.isr) < effective_min_isr(p, min_isr)


def at_min_isr(p: PartitionState, min_isr: int) -> bool:
    """Just as many in sync as needed: one loss, and acks=all is refused."""
    return len(p.isr) == effective_min_isr(p, min_isr)


def partitions_of(state: ClusterState) -> Iterable[PartitionState]:
    """All partitions, by topic."""
    return (p for name in sorted(state.topics) for p in state.topics[name].partitions)


def adding_of(p: PartitionState, adding: Adding) -> Collection[int]:
    """The replicas of a partition that a reassignment is still copying; none when that is not known."""
    return adding.get(p.tp, ()) if isinstance(adding, Mapping) else ()


def adding_unknown(adding: Adding) -> str | None:
    """What to say of partitions that are under-replicated when nobody told what is being reassigned."""
    if not isinstance(adding, KctlError):
        return None
    return f"whether a reassignment still copies replicas that are not in sync is not known: {adding.message}"


def check_offline(facts: Facts) -> Check:
    """Partitions without a leader: nobody can read or write them."""
    found = [str(p.tp) for p in partitions_of(facts.state) if p.offline]
    return _counted("offline_partitions", found, "without a leader", "every partition has a leader")


def check_under_replicated(facts: Facts) -> Check:
    """Partitions with a replica that is not in sync."""
    rows = list(partitions_of(facts.state))
    found = [str(p.tp) for p in rows if under_replicated(p, adding_of(p, facts.adding))]
    copying = sum(1 for p in rows if adding_of(p, facts.adding))
    fine = "all replicas are in sync"
    if copying:
        fine += f", but those that {counted(copying, 'reassignment')} still copies"
    unknown = adding_unknown(facts.adding) if found else None
    reasons = (unknown,) if unknown else ()
    return _counted("under_replicated_partitions", found, "with a replica that is not in sync", fine, reasons=reasons)


def check_under_min_isr(facts: Facts) -> Check:
    """Partitions that refuse acks=all; only what is under-replicated can be one. Of those it is told, too, which are at
    the minimum: with all replicas in sync, that is how the topic was made."""
    found: list[str] = []
    reasons: dict[str, None] = {}
    at_minimum = 0
    for p in partitions_of(facts.state):
        if not p.under_replicated:
            continue
        least = facts.min_isr.get(p.topic)
        if isinstance(least, KctlError):
            reasons[least.message] = None
        elif least is not None and under_min_isr(p, least):
            found.append(str(p.tp))
        elif least is not None:
            at_minimum += at_min_isr(p, least)
    fine = "acks=all is taken everywhere"
    if at_minimum:
        fine += f"; {counted(at_minimum, 'partition')} at the minimum: one more loss and it is not"
    if reasons and not found:
        summary = f"min.insync.replicas of {counted(len(reasons), 'topic')} could not be read"
        return Check("under_min_isr_partitions", Status.UNKNOWN, summary, reasons=tuple(reasons))
    what = "with fewer in sync than min.insync.replicas"
    if found and at_minimum:
        what += f"; {at_minimum:,} more at the minimum"
    return _counted(
        "under_min_isr_partitions", found, what, fine,
        reasons=tuple(reasons), otherwise=Status.WARNING if at_minimum else Status.OK,
    )  # fmt: skip


def _counted(
    name: str,
    found: list[str],
    what: str,
    fine: str,
    *,
    reasons: tuple[str, ...] = (),
    otherwise: Status = Status.OK,
) -> Check:
    if not found:
        return Check(name, otherwise, fine, reasons=reasons)
    return Check(name, Status.PROBLEM, f"{counted(len(found), 'partition')} {what}", tuple(found), reasons)
