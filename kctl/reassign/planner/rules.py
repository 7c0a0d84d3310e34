"""The rules of one plan over broker indexes: the allowed placements, and the starting replicas of each partition.

Each partition p ends with `factor` replicas on different brokers, at most `limit` of them in one rack. In a cluster
without racks each broker counts as a rack: the only rule is then that no broker holds two replicas of a partition. A
missing replica is written as the broker VACANT = n: moving a replica "from VACANT" creates it. So removing brokers,
adding brokers and balancing are the same problem: replicas that change brokers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kctl.reassign.planner.cluster import PlanCluster
from kctl.reassign.planner.goals import Goals, Roles


@dataclass(slots=True)
class Rules:
    """The constraints on a placement.

    racks: rack number of each broker, VACANT's last (-1). caps: replication factor → replicas in one rack.

    looser: partitions that already exceed the cap and may stay so (without fix_racks): rack → limit.
    start: replicas that stay, VACANT for each that must be placed. original: current replicas.
    """

    cluster: PlanCluster
    hosts: tuple[int, ...]
    leaving: frozenset[int]
    racks: list[int]
    rack_sizes: dict[int, int]
    caps: dict[int, int]
    start: list[list[int]]
    looser: dict[int, dict[int, int]] = field(default_factory=dict)
    dropping: list[int] = field(default_factory=list)  # priority of brokers for removing surplus replicas: 2, 1, 0
    forced: int = 0  # replicas that must be placed regardless of balance

    @property
    def vacant(self) -> int:
        return len(self.racks) - 1

    @property
    def original(self) -> list[tuple[int, ...]]:
        return self.cluster.replicas

    def limit(self, partition: int, rack: int) -> int:
        """Return the number of replicas of the partition that the rack may hold."""
        cap = self.caps[len(self.start[partition])]
        return self.looser[partition].get(rack, cap) if partition in self.looser else cap


def make_rules(cluster: PlanCluster, goals: Goals, roles: Roles) -> Rules:
    """Return the rules of a plan. Goals are already checked (kctl.reassign.planner.goals.resolve)."""
    racks = _rack_numbers(cluster, roles.hosts)
    sizes: dict[int, int] = {}
    for node in roles.hosts:
        sizes[racks[node]] = sizes.get(racks[node], 0) + 1
    rules = Rules(cluster, roles.hosts, roles.leaving, racks, sizes, {}, [])
    hosts = set(roles.hosts)
    # Remove surplus replicas from brokers that are down first, from excluded brokers last. Among hosts, prefer the
    # fullest broker that does not lead (chains may choose again).
    rules.dropping = [2 if not b.alive else 1 if node in hosts else 0 for node, b in enumerate(cluster.brokers)]
    loads = [0] * len(racks)
    for replicas in cluster.replicas:
        for node in replicas:
            loads[node] += 1
    closed_brokers = set(range(len(cluster.brokers))) - hosts - roles.leaving
    for p, replicas in enumerate(cluster.replicas):
        factor = goals.replication_factor or len(replicas)
        if factor not in rules.caps:
            rules.caps[factor] = rack_cap(factor, sizes)
        _start(rules, p, replicas, factor, loads, goals.fix_racks)
        if closed_brokers and not closed_brokers.isdisjoint(replicas):
            _make_room(rules, p)
    return rules


def _rack_numbers(cluster: PlanCluster, hosts: tuple[int, ...]) -> list[int]:
    """Return a rack number per broker. Brokers that are down (or all, if a host has no rack) get racks of their own."""
    if any(cluster.brokers[node].rack is None for node in hosts):
        return [*range(len(cluster.brokers)), -1]
    numbers: dict[str, int] = {}
    racks = []
    for node, broker in enumerate(cluster.brokers):
        name = f"={broker.rack}" if broker.rack is not None else f"?{node}"
        racks.append(numbers.setdefault(name, len(numbers)))
    return [*racks, -1]


def rack_cap(factor: int, sizes: dict[int, int]) -> int:
    """Return ceil(factor ÷ racks), or the smallest cap with room for all replicas if racks are too small."""
    cap = -(-factor // len(sizes))
    while cap < factor and sum(min(cap, size) for size in sizes.values()) < factor:
        cap += 1
    return cap


def _start(rules: Rules, p: int, replicas: tuple[int, ...], factor: int, loads: list[int], fix_racks: bool) -> None:
    """Choose the replicas that stay: not those on leaving brokers, then not those above the rack cap or the factor."""
    racks, leaving, cap = rules.racks, rules.leaving, rules.caps[factor]
    stays = [node for node in replicas if node not in leaving] if leaving else list(replicas)
    count: dict[int, int] = {}
    for node in stays:
        count[racks[node]] = count.get(racks[node], 0) + 1
    over = len(count) < len(stays) and max(count.values()) > cap
    while len(stays) > factor or (over and fix_racks):
        crowded = [node for node in stays if count[racks[node]] > cap]
        if not crowded and len(stays) <= factor:
            break
        node = max(crowded or stays, key=lambda node: (rules.dropping[node], node != replicas[0], loads[node], node))
        stays.remove(node)
        loads[node] -= 1
        count[racks[node]] -= 1
    if over and not fix_racks and (worse := {rack: n for rack, n in count.items() if n > cap}):
        rules.looser[p] = worse
    missing = factor - len(stays)
    rules.forced += missing
    rules.start.append(stays + [rules.vacant] * missing)


def _make_room(rules: Rules, p: int) -> None:
    """Raise the cap of p if its replicas on brokers that receive no others leave too few places."""
    start = rules.start[p]
    cap = rules.caps[len(start)]
    while True:
        room = 0
        for rack, size in rules.rack_sizes.items():
            in_rack = sum(1 for node in start if rules.racks[node] == rack)
            on_hosts = sum(1 for node in start if rules.racks[node] == rack and node in rules.hosts)
            room += max(0, min(rules.limit(p, rack) - in_rack, size - on_hosts))
        if room >= start.count(rules.vacant) or cap >= len(start):
            return
        cap += 1
        looser = rules.looser.setdefault(p, {})
        for rack in rules.rack_sizes:
            looser[rack] = max(cap, looser.get(rack, 0))
