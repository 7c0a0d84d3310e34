"""Which brokers there should be, which of them answer, who the controller is, and how evenly work is spread."""

from __future__ import annotations

from collections.abc import Mapping

from kctl.base.text import counted
from kctl.cluster.membership import BrokerView
from kctl.cluster.quorum import Quorum, QuorumReplica
from kctl.errors import KctlError
from kctl.health.leaders import leader_status
from kctl.health.model import Check, Facts, Limits, Status
from kctl.health.partitions import partitions_of

_FEW_REPLICAS = 10  # that a broker may have more or fewer, whatever the percentage: small clusters are never even
_SILENT_VOTER_MS = 10_000  # a voter that cannot fetch for 2 s (controller.quorum.fetch.timeout.ms) calls an election


def missing_brokers(facts: Facts) -> list[int]:
    """Brokers that have replicas, or are registered, and are not alive."""
    holding = {node for p in partitions_of(facts.state) for node in p.replicas}
    registered: set[int] = set() if isinstance(facts.fenced, KctlError) else set(facts.fenced)
    return sorted((holding | registered) - facts.state.brokers.keys())


def check_brokers(facts: Facts, limits: Limits) -> Check:
    """Brokers that are gone, do not answer, or see other brokers than the rest."""
    alive = facts.state.brokers
    gone = missing_brokers(facts)
    silent = {node: view for node, view in facts.views.items() if isinstance(view, KctlError)}
    answered = {node: view for node, view in facts.views.items() if isinstance(view, BrokerView)}
    apart = sorted(node for node, view in answered.items() if set(view.brokers) != set(alive))
    said = []
    if gone:
        said.append(f"{_brokers(gone)} down")
    if silent:
        said.append(f"{_brokers(sorted(silent))} registered, but without an answer")
    if apart:
        said.append(f"{_brokers(apart)} with another list of brokers than the rest")
    if limits.brokers is not None and len(answered) < limits.brokers:
        said.append(f"{counted(len(answered), 'broker')} of {limits.brokers}")
    reasons = [error.message for error in silent.values()]
    reasons += [facts.fenced.message] if isinstance(facts.fenced, KctlError) else []
    if said:
        subjects = tuple(f"broker {node}" for node in sorted({*gone, *silent, *apart}))
        return Check("brokers", Status.PROBLEM, "; ".join(said), subjects, tuple(reasons))
    if reasons:
        return Check("brokers", Status.UNKNOWN, "which are registered could not be read", reasons=tuple(reasons))
    return Check("brokers", Status.OK, f"{counted(len(alive), 'broker')} up")


def _brokers(ids: list[int]) -> str:
    return f"{'broker' if len(ids) == 1 else 'brokers'} {', '.join(map(str, ids))}"


def check_controller(facts: Facts) -> Check:
    """One controller, known to all; with KRaft a quorum whose voters follow."""
    if facts.quorum is None:
        return _zookeeper_controller(facts.views)
    if isinstance(facts.quorum, KctlError):
        summary = "the metadata quorum could not be described"
        return Check("controller", Status.UNKNOWN, summary, reasons=(facts.quorum.message,))
    return _quorum(facts.quorum)


def _zookeeper_controller(views: Mapping[int, BrokerView | KctlError]) -> Check:
    answered = {node: view for node, view in views.items() if isinstance(view, BrokerView)}
    named: dict[int | None, list[int]] = {}
    for node, view in answered.items():
        named.setdefault(view.controller_id, []).append(node)
    if len(named) > 1:
        parts = [
            f"{_brokers(sorted(nodes))}: {'none' if controller is None else controller}"
            for controller, nodes in named.items()
        ]
        return Check("controller", Status.PROBLEM, f"brokers name different controllers ({'; '.join(parts)})")
    controller = next(iter(named), None)
    if controller is None:
        return Check("controller", Status.PROBLEM, "there is no controller")
    if isinstance(views.get(controller), KctlError):
        named_so = f"broker {controller}, which does not answer"
        return Check("controller", Status.PROBLEM, named_so, (f"broker {controller}",))
    return Check("controller", Status.OK, f"broker {controller}")


def silent_voters(quorum: Quorum) -> list[QuorumReplica]:
    """Voters that have not fetched from the leader lately, by its clock; none where it does not tell (before 3.3)."""
    now_ms = max((r.last_caught_up_timestamp_ms or 0 for r in quorum.voters if r.id == quorum.leader_id), default=0)
    return [
        voter
        for voter in quorum.voters
        if voter.id != quorum.leader_id and now_ms - (voter.last_fetch_timestamp_ms or 0) > _SILENT_VOTER_MS
    ]


def _quorum(quorum: Quorum) -> Check:
    if quorum.leader_id is None:
        return Check("controller", Status.PROBLEM, "the metadata quorum has no leader")
    silent = silent_voters(quorum)
    if silent:
        subjects = tuple(f"controller {replica.id}" for replica in silent)
        return Check(
            "controller",
            Status.PROBLEM,
            f"{quorum.leader_id}; {len(silent)} of {counted(len(quorum.voters), 'voter')} not fetching",
            subjects,
        )
    return Check("controller", Status.OK, f"{quorum.leader_id}; {counted(len(quorum.voters), 'voter')} in the quorum")


def check_leaders(facts: Facts, limits: Limits) -> Check:
    """Brokers that lead fewer partitions than they should, as the controller counts them. One that is down is not
    among them: no election gives it anything."""
    found = leader_status(facts.state)
    over = [row for row in found.over(limits.leader_imbalance_percent) if row.broker in facts.state.brokers]
    if not over:
        return Check("preferred_leaders", Status.OK, f"{found.preferred_percent:g} % led by their preferred replica")
    worst = max(over, key=lambda row: row.imbalance_percent)
    summary = f"broker {worst.broker} does not lead {worst.imbalance_percent:g} % of what it should"
    if len(over) > 1:
        summary = f"{counted(len(over), 'broker')} do not lead what they should, broker {worst.broker} least of all"
    return Check("preferred_leaders", Status.WARNING, summary, tuple(f"broker {row.broker}" for row in over))


def check_replicas(facts: Facts, limits: Limits) -> Check:
    """Brokers with far more or fewer replicas than the mean of those that are up."""
    counts = dict.fromkeys(facts.state.brokers, 0)
    for p in partitions_of(facts.state):
        for node in p.replicas:
            if node in counts:
                counts[node] += 1
    mean = sum(counts.values()) / len(counts) if counts else 0.0
    allowed = max(mean * limits.replica_skew_percent / 100, _FEW_REPLICAS)
    off = sorted(node for node, count in counts.items() if abs(count - mean) > allowed)
    if not counts:
        return Check("replicas", Status.OK, "no brokers")
    least, most = min(counts.values()), max(counts.values())
    spread = (
        f"{most:,} on each broker" if least == most else f"{least:,} to {most:,} on a broker, {mean:,.4g} on average"
    )
    if off:
        return Check("replicas", Status.WARNING, spread, tuple(f"broker {node}" for node in off))
    return Check("replicas", Status.OK, spread)
