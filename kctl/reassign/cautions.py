"""What keeps a plan from being made or from being whole, and what should be known before it is carried out."""

from __future__ import annotations

from kctl.errors import Refused
from kctl.reassign.cluster import NONE, PlanCluster
from kctl.reassign.goals import Goals, Roles
from kctl.topics.names import is_internal


def refuse_moving(cluster: PlanCluster) -> None:
    if cluster.moving:
        names = ", ".join(str(cluster.tp(p)) for p in sorted(cluster.moving)[:3])
        count = len(cluster.moving)
        raise Refused(
            f"{_partitions(count)} being reassigned already: {names}{' …' if count > 3 else ''}",
            hint="wait until that has ended (`kctl topic reassign status`), or plan other topics",
        )


def _partitions(count: int) -> str:
    return "1 partition is" if count == 1 else f"{count:,} partitions are"


def without_leader(cluster: PlanCluster) -> frozenset[int]:
    """Partitions that nobody can copy: they have no leader, or all their replicas are on brokers that are down."""
    dead = {node for node, broker in enumerate(cluster.brokers) if not broker.alive}
    lost = {row for row in set(cluster.replicas) if dead.issuperset(row)} if dead else set()
    return frozenset(
        p
        for p, (row, leader) in enumerate(zip(cluster.replicas, cluster.leader, strict=True))
        if leader == NONE or row in lost
    )


def about_stuck(cluster: PlanCluster, goals: Goals, roles: Roles, stuck: frozenset[int]) -> tuple[list[str], list[str]]:
    """What the goals cannot have of these, and what is only to be known."""
    if not stuck:
        return [], []
    factor = goals.replication_factor
    wanted = [
        p
        for p in sorted(stuck)
        if not roles.leaving.isdisjoint(cluster.replicas[p]) or factor not in (None, len(cluster.replicas[p]))
    ]
    text = "no leader and cannot be copied: they stay as they are: "
    unmet: list[str] = []
    warnings: list[str] = []
    for found, said in ((wanted, unmet), (sorted(stuck.difference(wanted)), warnings)):
        if found:
            names = ", ".join(str(cluster.tp(p)) for p in found[:3])
            said.append(f"partitions with {text}{names}{f' and {len(found) - 3} more' if len(found) > 3 else ''}")
    return unmet, warnings


def warnings_of(cluster: PlanCluster, goals: Goals, roles: Roles) -> list[str]:
    found = []
    without = [node for node in roles.hosts if cluster.brokers[node].rack is None]
    if without and len(without) < len(roles.hosts):
        names = ", ".join(map(str, cluster.ids(without[:5])))
        found.append(f"racks are not looked at, because some brokers have none: {names}")
    factor = goals.replication_factor or 0
    lowered = {
        cluster.topics[cluster.topic_of[p]]
        for p, row in enumerate(cluster.replicas)
        if 0 < factor < len(row) and is_internal(cluster.topics[cluster.topic_of[p]])
    }
    if lowered:
        found.append(f"fewer replicas of Kafka's own {', '.join(sorted(lowered))}: --topic-regex leaves them out")
    return found
