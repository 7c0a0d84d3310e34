"""Reasons why a plan is impossible or incomplete, and warnings to read before it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kctl.base.text import counted
from kctl.cluster.topic_names import is_internal
from kctl.errors import KctlError, Reason, Refused
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.cluster import NONE, PlanCluster
from kctl.reassign.planner.goals import Goals, Roles
from kctl.reassign.planner.loads import BrokerLoad, PartitionChange


def refuse_moving(cluster: PlanCluster) -> None:
    if cluster.moving:
        names = ", ".join(str(cluster.tp(p)) for p in sorted(cluster.moving)[:3])
        count = len(cluster.moving)
        raise Refused(
            f"{_partitions(count)} already being reassigned: {names}{' …' if count > 3 else ''}",
            hint="wait for the reassignment to end (`kctl topic reassign status`), or plan other topics",
            reason=Reason.RUN_STATE,
        )


def _partitions(count: int) -> str:
    return "1 partition is" if count == 1 else f"{count:,} partitions are"


def without_leader(cluster: PlanCluster) -> frozenset[int]:
    """Return partitions that cannot be copied: without a leader, or with all replicas on brokers that are down."""
    dead = {node for node, broker in enumerate(cluster.brokers) if not broker.alive}
    all_down = {row for row in set(cluster.replicas) if dead.issuperset(row)} if dead else set()
    return frozenset(
        p
        for p, (row, leader) in enumerate(zip(cluster.replicas, cluster.leader, strict=True))
        if leader == NONE or row in all_down
    )


def about_stuck(cluster: PlanCluster, goals: Goals, roles: Roles, stuck: frozenset[int]) -> tuple[list[str], list[str]]:
    """Return the unmet goals due to partitions without a leader, and warnings about the other such partitions."""
    if not stuck:
        return [], []
    factor = goals.replication_factor
    blocked_partitions = [
        p
        for p in sorted(stuck)
        if not roles.leaving.isdisjoint(cluster.replicas[p]) or factor not in (None, len(cluster.replicas[p]))
    ]
    return _why_stuck(cluster, blocked_partitions), _why_stuck(cluster, sorted(stuck.difference(blocked_partitions)))


def _why_stuck(cluster: PlanCluster, stuck: Sequence[int]) -> list[str]:
    """Return a line for partitions only on brokers that are down, and one for those that only lack a leader."""
    dead = {node for node, broker in enumerate(cluster.brokers) if not broker.alive}
    down = [p for p in stuck if dead.issuperset(cluster.replicas[p])]
    rest = [p for p in stuck if not dead.issuperset(cluster.replicas[p])]
    lines = []
    if down:
        nodes = cluster.ids(sorted({node for p in down for node in cluster.replicas[p]}))
        one = len(nodes) == 1
        where = f"broker {nodes[0]}, which is down" if one else f"brokers that are down ({_few(nodes)})"
        whose, what = ("its", "the topic") if len(down) == 1 else ("their", "the topics")
        lines.append(
            f"{_names(cluster, down)} {'is' if len(down) == 1 else 'are'} only on {where}: {whose} records return "
            f"only with {'the broker' if one else 'these brokers'}; otherwise delete and recreate {what}"
        )
    if rest:
        one = len(rest) == 1
        lines.append(
            f"{_names(cluster, rest)} {'has' if one else 'have'} no leader and cannot be copied: "
            f"{'it stays as it is' if one else 'they stay as they are'}; "
            "`kctl leader elect --unclean` elects a leader, and reports what would be lost"
        )
    return lines


def _names(cluster: PlanCluster, partitions: Sequence[int]) -> str:
    return _few([str(cluster.tp(p)) for p in partitions])


def _few(values: Sequence[object], limit: int = 3) -> str:
    more = f" and {len(values) - limit:,} more" if len(values) > limit else ""
    return ", ".join(map(str, values[:limit])) + more


def about_unnamed(plan_brokers: Collection[int], goals: Goals, unnamed: Mapping[int, int]) -> list[str]:
    """Return a warning for each broker to be emptied that keeps replicas of other topics. unnamed: id → count."""
    leaving = set(goals.remove_brokers)
    if goals.brokers is not None:
        leaving |= set(plan_brokers) - goals.brokers - goals.add_brokers - goals.exclude_brokers
    return [
        f"broker {node} keeps {counted(unnamed[node], 'replica')} of topics that are not in the plan"
        for node in sorted(leaving & unnamed.keys())
    ]


def about_leaders(after: Sequence[BrokerLoad], hosts: Collection[int], goals: Goals) -> list[str]:
    """Return a warning for brokers that will lead less than half their share, unless leaders are a goal.

    hosts: brokers (ids) that may receive replicas. after: loads after the plan.
    """
    if goals.even_leaders or not hosts:
        return []
    rows = [load for load in after if load.broker in hosts]
    share = sum(load.leaders for load in rows) / len(rows)
    few = [load for load in rows if load.replicas and 2 * load.leaders < share]
    if not few:
        return []
    named = f"broker {few[0].broker}" if len(few) == 1 else f"brokers {_few([load.broker for load in few], 5)}"
    share_led = "nothing" if not any(load.leaders for load in few) else "less than half of an even share"
    gets = "it its share" if len(few) == 1 else "them their share"
    return [f"{named} will lead {share_led}: --balance leaders gives {gets}, without more copies"]


_UNEVEN = 1.75  # times an even share; racks of two and three brokers are not worth a warning


def about_racks(
    cluster: PlanCluster,
    hosts: Collection[int],
    before: Sequence[BrokerLoad],
    after: Sequence[BrokerLoad],
) -> list[str]:
    """Return a warning for racks with so few brokers that each broker gets far more than an even share.

    hosts: brokers (ids) that may receive replicas. before, after: loads before and after the plan.
    """
    racks: dict[str | None, list[int]] = {}
    for broker in cluster.brokers:
        if broker.id in hosts:
            racks.setdefault(broker.rack, []).append(broker.id)
    counts = {load.broker: load.replicas for load in after}
    counts_before = {load.broker: load.replicas for load in before}
    total = sum(counts.get(node, 0) for node in hosts)
    if len(racks) < 2 or None in racks or not total:
        return []
    share, largest = total / len(hosts), max(map(len, racks.values()))
    lines = []
    for rack, nodes in sorted(racks.items(), key=lambda row: (len(row[1]), row[0] or "")):
        growing = [node for node in nodes if counts.get(node, 0) > counts_before.get(node, 0)]
        full = [node for node in growing if counts[node] >= _UNEVEN * share]
        if full and len(nodes) < largest:
            most = max(full, key=lambda node: counts[node])
            few = "only 1 broker" if len(nodes) == 1 else f"only {len(nodes)} brokers"
            lines.append(
                f"rack {rack} has {few}, the largest rack {largest}: broker {most} will hold {counts[most]:,} of "
                f"{total:,} replicas, while an even share is {share:,.1f}; add brokers to that rack, or use "
                "--exclude-broker, to avoid that"
            )
    return lines


def about_one_replica(lowered: Mapping[str, int]) -> list[str]:
    """Return a warning for topics that will have one replica. lowered: topic → its replicas after the plan."""
    single_replica_topics = sorted(topic for topic, replicas in lowered.items() if replicas == 1)
    if not single_replica_topics:
        return []
    names, its = _few(single_replica_topics), "its" if len(single_replica_topics) == 1 else "their"
    loss = f"while its broker is down, a partition is unavailable, and a lost disk loses {its} records"
    return [f"{names} will have 1 replica: {loss}"]


def about_lower_factor(
    cluster: PlanCluster, goals: Goals, changes: Sequence[PartitionChange], forced: int
) -> list[str]:
    """Return why a plan copies replicas although lowering the replication factor needs no copy."""
    factor = goals.replication_factor
    receiving = sorted({node for change in changes for node in set(change.after).difference(change.before)})
    if factor is None or not receiving or forced or not any(len(row) > factor for row in set(cluster.replicas)):
        return []
    moves = sum(len(set(change.after).difference(change.before)) for change in changes)
    reason = f"lowering the replication factor needs no copy: {counted(moves, 'move')} only to balance the brokers"
    ids = ",".join(map(str, receiving))
    avoid = f"--exclude-broker {ids}, or a larger --tolerance," if len(receiving) <= 5 else "a larger --tolerance"
    return [f"{reason}; {avoid} needs fewer"]


def lowered_topics(
    topics: Sequence[str], topic_of: Sequence[int], changes: Sequence[PartitionChange]
) -> dict[str, int]:
    """Return topics that get fewer replicas → the smallest number of replicas of their partitions."""
    factors: dict[str, int] = {}
    for change in changes:
        if change.fewer:
            name = topics[topic_of[change.partition]]
            factors[name] = min(len(change.after), factors.get(name, len(change.after)))
    return factors


def lowered_by(rows: Iterable[Reassignment]) -> dict[str, int]:
    """Return lowered_topics for the reassignments of a plan file."""
    factors: dict[str, int] = {}
    for r in rows:
        if r.before is not None and len(r.after) < len(r.before):
            factors[r.topic] = min(len(r.after), factors.get(r.topic, len(r.after)))
    return factors


def about_min_isr(lowered: Mapping[str, int], min_isr: Mapping[str, int | KctlError]) -> list[str]:
    """Return a warning for topics that will accept acks=all only while all their replicas are in sync.

    lowered: topic → its replicas after the plan; min_isr: its min.insync.replicas, or why it is unreadable. Topics with
    the same figures share a line.
    """
    topics: dict[tuple[int, int], list[str]] = {}
    unreadable: dict[str, KctlError] = {}
    for topic, replicas in sorted(lowered.items()):
        limit = min_isr.get(topic)
        if isinstance(limit, KctlError):
            unreadable[topic] = limit
        elif limit is not None and limit > 1 and limit >= replicas:
            topics.setdefault((replicas, limit), []).append(topic)
    lines = []
    for (replicas, limit), names in topics.items():
        effect = "acks=all is rejected while one of these brokers is down"
        if limit > replicas:  # Partition.effectiveMinIsr, KIP-966: the number of replicas is the limit
            before = f"which counts as {replicas} since Kafka 3.7; before 3.7, acks=all is always rejected"
            effect = before if replicas == 1 else f"{before}; {effect}"
        sign = "," if limit > replicas else ":"
        figures = f"{counted(replicas, 'replica')} and min.insync.replicas={limit}"
        lines.append(f"{_topic_names(names)} will have {figures}{sign} {effect}")
    if unreadable:
        error = next(iter(unreadable.values())).message
        lines.append(f"cannot check min.insync.replicas of {_topic_names(list(unreadable))}: {error}")
    return lines


def _topic_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} topics ({_few(names)})"


def warnings_of(cluster: PlanCluster, goals: Goals, roles: Roles) -> list[str]:
    lines = []
    without = [node for node in roles.hosts if cluster.brokers[node].rack is None]
    if without and len(without) < len(roles.hosts):
        names = ", ".join(map(str, cluster.ids(without[:5])))
        lines.append(f"racks are ignored, because some brokers have none: {names}")
    cordoned = [broker.id for broker in cluster.brokers if broker.cordoned]
    if cordoned and goals.moves_data:
        whose = f"broker {cordoned[0]} receives" if len(cordoned) == 1 else f"brokers {_few(cordoned, 5)} receive"
        lines.append(f"{whose} nothing: all log dirs there are cordoned")
    factor = goals.replication_factor or 0
    lowered = {
        cluster.topics[cluster.topic_of[p]]
        for p, row in enumerate(cluster.replicas)
        if 0 < factor < len(row) and is_internal(cluster.topics[cluster.topic_of[p]])
    }
    if lowered:
        lines.append(f"fewer replicas of the internal topics {', '.join(sorted(lowered))}: exclude them with --match")
    return lines
