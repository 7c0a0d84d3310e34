"""Rules about brokers: missing ones, the controller, and the balance of leaders and replicas."""

from __future__ import annotations

from collections.abc import Mapping

from kctl.base.text import counted
from kctl.cluster.membership import BrokerView
from kctl.errors import KctlError
from kctl.health.leaders import leader_status
from kctl.health.model import Check, CheckStatus, Facts, HealthLimits
from kctl.health.partitions import partitions_of
from kctl.protocol.quorum import LAST_KNOWN, Quorum, QuorumReplica, silent_replicas

_FEW_REPLICAS = 10  # allowed deviation whatever the percentage: small clusters are never even
SILENT_VOTER_MS = 10_000  # a voter that cannot fetch for 2 s (controller.quorum.fetch.timeout.ms) starts an election


def missing_brokers(facts: Facts) -> list[int]:
    """Return brokers that host replicas or are registered, but are not live."""
    holding = {node for p in partitions_of(facts.state) for node in p.replicas}
    registered: set[int] = set() if isinstance(facts.fenced, KctlError) else set(facts.fenced)
    return sorted((holding | registered) - facts.state.brokers.keys())


def check_brokers(facts: Facts, limits: HealthLimits) -> Check:
    """Check for brokers that are down, do not respond, or list different live brokers."""
    live = facts.state.brokers
    down = missing_brokers(facts)
    silent = {node: view for node, view in facts.views.items() if isinstance(view, KctlError)}
    responding = {node: view for node, view in facts.views.items() if isinstance(view, BrokerView)}
    differing = sorted(node for node, view in responding.items() if set(view.brokers) != set(live))
    problems = []
    if down:
        problems.append(f"{_brokers(down)} down")
    if silent:
        problems.append(f"{_brokers(sorted(silent))} registered, but not responding")
    if differing:
        problems.append(f"{_brokers(differing)} with a different list of live brokers")
    if limits.brokers is not None and len(responding) < limits.brokers:
        problems.append(f"{counted(len(responding), 'broker')} of {limits.brokers}")
    reasons = [error.message for error in silent.values()]
    reasons += [facts.fenced.message] if isinstance(facts.fenced, KctlError) else []
    if problems:
        subjects = tuple(f"broker {node}" for node in sorted({*down, *silent, *differing}))
        return Check("brokers", CheckStatus.PROBLEM, "; ".join(problems), subjects, tuple(reasons))
    if reasons:
        return Check("brokers", CheckStatus.UNKNOWN, "the registered brokers are not readable", reasons=tuple(reasons))
    return Check("brokers", CheckStatus.OK, f"{counted(len(live), 'broker')} up")


def _brokers(ids: list[int]) -> str:
    return f"{'broker' if len(ids) == 1 else 'brokers'} {', '.join(map(str, ids))}"


def check_controller(facts: Facts) -> Check:
    """Check for one controller that all brokers name; with KRaft, for a leader and voters that fetch."""
    if facts.quorum is None:
        return _zookeeper_controller(facts.views)
    if isinstance(facts.quorum, KctlError):
        summary = "the metadata quorum is not readable"
        return Check("controller", CheckStatus.UNKNOWN, summary, reasons=(facts.quorum.message,))
    return _quorum(facts.quorum)


def _zookeeper_controller(views: Mapping[int, BrokerView | KctlError]) -> Check:
    responding = {node: view for node, view in views.items() if isinstance(view, BrokerView)}
    by_controller: dict[int | None, list[int]] = {}
    for node, view in responding.items():
        by_controller.setdefault(view.controller_id, []).append(node)
    if len(by_controller) > 1:
        parts = [
            f"{_brokers(sorted(nodes))}: {'none' if controller is None else controller}"
            for controller, nodes in by_controller.items()
        ]
        return Check("controller", CheckStatus.PROBLEM, f"brokers name different controllers ({'; '.join(parts)})")
    controller = next(iter(by_controller), None)
    if controller is None:
        return Check("controller", CheckStatus.PROBLEM, "there is no controller")
    if isinstance(views.get(controller), KctlError):
        summary = f"broker {controller}, which does not respond"
        return Check("controller", CheckStatus.PROBLEM, summary, (f"broker {controller}",))
    return Check("controller", CheckStatus.OK, f"broker {controller}")


def silent_voters(quorum: Quorum) -> list[QuorumReplica]:
    """Return voters that have not fetched from the leader recently, by its clock; none if not reported (before 3.3)."""
    return silent_replicas(quorum, quorum.voters, limit_ms=SILENT_VOTER_MS)


def _quorum(quorum: Quorum) -> Check:
    if quorum.no_controller is not None:
        return Check("controller", CheckStatus.PROBLEM, quorum.no_controller, reasons=(LAST_KNOWN,))
    silent = silent_voters(quorum)
    if silent:
        subjects = tuple(f"controller {replica.id}" for replica in silent)
        return Check(
            "controller",
            CheckStatus.PROBLEM,
            f"{quorum.leader_id}; {len(silent)} of {counted(len(quorum.voters), 'voter')} not fetching",
            subjects,
        )
    return Check(
        "controller", CheckStatus.OK, f"{quorum.leader_id}; {counted(len(quorum.voters), 'voter')} in the quorum"
    )


def check_leaders(facts: Facts, limits: HealthLimits) -> Check:
    """Check for brokers that lead too few of their preferred partitions, as the controller counts them.

    Brokers that are down are skipped: no election can give them leadership.
    """
    status = leader_status(facts.state)
    over = [row for row in status.over(limits.leader_imbalance_percent) if row.broker in facts.state.brokers]
    if not over:
        return Check(
            "preferred_leaders", CheckStatus.OK, f"{status.preferred_percent:g} % led by their preferred replica"
        )
    worst = max(over, key=lambda row: row.imbalance_percent)
    summary = f"broker {worst.broker} does not lead {worst.imbalance_percent:g} % of its preferred partitions"
    if len(over) > 1:
        summary = (
            f"{counted(len(over), 'broker')} lead too few of their preferred partitions, worst: broker {worst.broker}"
        )
    return Check("preferred_leaders", CheckStatus.WARNING, summary, tuple(f"broker {row.broker}" for row in over))


def check_replicas(facts: Facts, limits: HealthLimits) -> Check:
    """Check for brokers with far more or fewer replicas than the mean of the live brokers."""
    counts = dict.fromkeys(facts.state.brokers, 0)
    for p in partitions_of(facts.state):
        for node in p.replicas:
            if node in counts:
                counts[node] += 1
    mean = sum(counts.values()) / len(counts) if counts else 0.0
    allowed = max(mean * limits.replica_skew_percent / 100, _FEW_REPLICAS)
    uneven = sorted(node for node, count in counts.items() if abs(count - mean) > allowed)
    if not counts:
        return Check("replicas", CheckStatus.OK, "no brokers")
    low, high = min(counts.values()), max(counts.values())
    spread = f"{high:,} on each broker" if low == high else f"{low:,} to {high:,} per broker, {mean:,.4g} on average"
    if uneven:
        return Check("replicas", CheckStatus.WARNING, spread, tuple(f"broker {node}" for node in uneven))
    return Check("replicas", CheckStatus.OK, spread)
