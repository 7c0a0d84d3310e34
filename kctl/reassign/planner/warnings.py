"""What keeps a plan from being made or from being whole, and what should be known before it is carried out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kctl.base.text import counted
from kctl.cluster.topic_names import is_internal
from kctl.errors import KctlError, Refused
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.cluster import NONE, PlanCluster
from kctl.reassign.planner.goals import Goals, Roles
from kctl.reassign.planner.loads import BrokerLoad, Change


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
    return _why_stuck(cluster, wanted), _why_stuck(cluster, sorted(stuck.difference(wanted)))


def _why_stuck(cluster: PlanCluster, stuck: Sequence[int]) -> list[str]:
    """A line for those that are nowhere else, and one for those that have replicas but no leader."""
    dead = {node for node, broker in enumerate(cluster.brokers) if not broker.alive}
    lost = [p for p in stuck if dead.issuperset(cluster.replicas[p])]
    rest = [p for p in stuck if not dead.issuperset(cluster.replicas[p])]
    found = []
    if lost:
        nodes = cluster.ids(sorted({node for p in lost for node in cluster.replicas[p]}))
        one = len(nodes) == 1
        where = f"broker {nodes[0]}, which is down" if one else f"brokers that are down ({_few(nodes)})"
        whose, what = ("its", "the topic") if len(lost) == 1 else ("their", "the topics")
        found.append(
            f"{_names(cluster, lost)} {'is' if len(lost) == 1 else 'are'} only on {where}: {whose} records come back "
            f"only with {'the broker' if one else 'these'}; else delete {what} and create {what} again"
        )
    if rest:
        one = len(rest) == 1
        found.append(
            f"{_names(cluster, rest)} {'has' if one else 'have'} no leader and cannot be copied: "
            f"{'it stays as it is' if one else 'they stay as they are'}; "
            "`kctl leader elect --unclean` gives a leader, and tells what could be lost"
        )
    return found


def _names(cluster: PlanCluster, partitions: Sequence[int]) -> str:
    return _few([str(cluster.tp(p)) for p in partitions])


def _few(values: Sequence[object], most: int = 3) -> str:
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(map(str, values[:most])) + more


def about_unnamed(plan_brokers: Collection[int], goals: Goals, unnamed: Mapping[int, int]) -> list[str]:
    """Brokers that are to end empty, and keep replicas of topics that were not named. unnamed: broker id → how many."""
    leaving = set(goals.remove_brokers)
    if goals.brokers is not None:
        leaving |= set(plan_brokers) - goals.brokers - goals.add_brokers - goals.exclude_brokers
    return [
        f"broker {node} keeps {counted(unnamed[node], 'replica')} of topics that were not named"
        for node in sorted(leaving & unnamed.keys())
    ]


def about_leaders(after: Sequence[BrokerLoad], hosts: Collection[int], goals: Goals) -> list[str]:
    """Brokers (ids) that may receive and are preferred leader of less than half their share, where nobody asked for it.

    after: loads as the plan leaves them.
    """
    if goals.even_leaders or not hosts:
        return []
    rows = [load for load in after if load.broker in hosts]
    share = sum(load.leaders for load in rows) / len(rows)
    few = [load for load in rows if load.replicas and 2 * load.leaders < share]
    if not few:
        return []
    named = f"broker {few[0].broker}" if len(few) == 1 else f"brokers {_few([load.broker for load in few], 5)}"
    much = "nothing" if not any(load.leaders for load in few) else "less than half a share"
    gets = "it its share" if len(few) == 1 else "them their share"
    return [f"{named} will lead {much}: --balance leaders gives {gets}, without a copy more"]


_UNEVEN = 1.75  # times an even share; one more rack of two brokers beside one of three is no surprise


def about_racks(
    cluster: PlanCluster,
    hosts: Collection[int],
    before: Sequence[BrokerLoad],
    after: Sequence[BrokerLoad],
) -> list[str]:
    """Return a warning for racks with so few brokers that each broker gets far more than an even share.

    hosts: brokers (ids) that may receive. before, after: loads as they are and as the plan leaves them.
    """
    racks: dict[str | None, list[int]] = {}
    for broker in cluster.brokers:
        if broker.id in hosts:
            racks.setdefault(broker.rack, []).append(broker.id)
    held = {load.broker: load.replicas for load in after}
    had = {load.broker: load.replicas for load in before}
    total = sum(held.get(node, 0) for node in hosts)
    if len(racks) < 2 or None in racks or not total:
        return []
    share, largest = total / len(hosts), max(map(len, racks.values()))
    lines = []
    for rack, nodes in sorted(racks.items(), key=lambda row: (len(row[1]), row[0] or "")):
        full = [node for node in nodes if held.get(node, 0) >= _UNEVEN * share and held[node] > had.get(node, 0)]
        if full and len(nodes) < largest:
            most = max(full, key=lambda node: held[node])
            few = "only 1 broker" if len(nodes) == 1 else f"only {len(nodes)} brokers"
            lines.append(
                f"rack {rack} has {few}, the largest rack {largest}: broker {most} will hold {held[most]:,} of "
                f"{total:,} replicas, and {share:,.1f} is an even share; more brokers in that rack, or "
                "--exclude-broker, avoid that"
            )
    return lines


def about_one_replica(lowered: Mapping[str, int]) -> list[str]:
    """Topics whose partitions will be on one broker only. lowered: topic → its replicas afterwards."""
    alone = sorted(topic for topic, replicas in lowered.items() if replicas == 1)
    if not alone:
        return []
    names, its = _few(alone), "its" if len(alone) == 1 else "their"
    loss = f"while its broker is down a partition cannot be written or read, and a lost disk loses {its} records"
    return [f"{names} will have 1 replica: {loss}"]


def about_lower_factor(cluster: PlanCluster, goals: Goals, changes: Sequence[Change], forced: int) -> list[str]:
    """Why a plan copies although fewer replicas need no copy."""
    factor = goals.replication_factor
    receiving = sorted({node for change in changes for node in set(change.after).difference(change.before)})
    if factor is None or not receiving or forced or not any(len(row) > factor for row in set(cluster.replicas)):
        return []
    moves = sum(len(set(change.after).difference(change.before)) for change in changes)
    made = f"fewer replicas need no copy: {counted(moves, 'move')} only to even out the brokers"
    ids = ",".join(map(str, receiving))
    avoid = f"--exclude-broker {ids}, or a larger --tolerance," if len(receiving) <= 5 else "a larger --tolerance"
    return [f"{made}; {avoid} needs fewer"]


def lowered_topics(topics: Sequence[str], topic_of: Sequence[int], changes: Sequence[Change]) -> dict[str, int]:
    """Topics that have fewer replicas afterwards → how many their partitions have at least."""
    found: dict[str, int] = {}
    for change in changes:
        if change.fewer:
            name = topics[topic_of[change.partition]]
            found[name] = min(len(change.after), found.get(name, len(change.after)))
    return found


def lowered_by(rows: Iterable[Reassignment]) -> dict[str, int]:
    """The same of a plan's file."""
    found: dict[str, int] = {}
    for r in rows:
        if r.before is not None and len(r.after) < len(r.before):
            found[r.topic] = min(len(r.after), found.get(r.topic, len(r.after)))
    return found


def about_min_isr(lowered: Mapping[str, int], min_isr: Mapping[str, int | KctlError]) -> list[str]:
    """Topics that take acks=all only while all of the replicas that they will have are in sync.

    lowered: topic → its replicas afterwards; min_isr: its min.insync.replicas, or why it could not be read.
    """
    lines = []
    for topic, replicas in sorted(lowered.items()):
        least = min_isr.get(topic)
        if isinstance(least, KctlError):
            lines.append(
                f"whether {topic} has enough replicas for its min.insync.replicas is not known: {least.message}"
            )
        elif least is not None and least > replicas:
            # Partition.effectiveMinIsr, of KIP-966: no more are asked for than there are
            lines.append(
                f"{topic} will have {counted(replicas, 'replica')} and min.insync.replicas={least}, which counts as "
                f"{replicas} since Kafka 3.7; before, acks=all is always refused"
                + ("" if replicas == 1 else "; while one broker of them is down, acks=all is refused")
            )
        elif least is not None and 1 < least == replicas:
            with_ = f"{counted(replicas, 'replica')} and min.insync.replicas={least}"
            lines.append(f"{topic} will have {with_}: while one broker of them is down, acks=all is refused")
    return lines


def warnings_of(cluster: PlanCluster, goals: Goals, roles: Roles) -> list[str]:
    found = []
    without = [node for node in roles.hosts if cluster.brokers[node].rack is None]
    if without and len(without) < len(roles.hosts):
        names = ", ".join(map(str, cluster.ids(without[:5])))
        found.append(f"racks are not looked at, because some brokers have none: {names}")
    cordoned = [broker.id for broker in cluster.brokers if broker.cordoned]
    if cordoned and goals.moves_data:
        whose = f"broker {cordoned[0]} receives" if len(cordoned) == 1 else f"brokers {_few(cordoned, 5)} receive"
        found.append(f"{whose} nothing: all log dirs there are cordoned")
    factor = goals.replication_factor or 0
    lowered = {
        cluster.topics[cluster.topic_of[p]]
        for p, row in enumerate(cluster.replicas)
        if 0 < factor < len(row) and is_internal(cluster.topics[cluster.topic_of[p]])
    }
    if lowered:
        found.append(f"fewer replicas of Kafka's own {', '.join(sorted(lowered))}: --match leaves them out")
    return found
