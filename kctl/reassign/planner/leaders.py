"""Preferred leaders: change the first replica of as few partitions as possible, until every broker leads its share.

No data moves. The graph of brokers is the same as for replicas: if broker a leads a partition that has a replica on
broker b, there is an edge a → b with cost +1 (the leader changes), -1 (the original leader returns) or 0. Starting with
no change and pushing along the cheapest chains gives the fewest changes (kctl.reassign.planner.chains).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, floor

from kctl.reassign.planner.bounds import leader_changes_needed, leader_changes_proven
from kctl.reassign.planner.chains import cancel_cycles, drain
from kctl.reassign.planner.leveling import level_out, settle, targets_met
from kctl.reassign.planner.targets import Targets

_PAIRS = 40_000_000


@dataclass(frozen=True, slots=True)
class LeaderAssignment:
    """The planned leaders.

    first: the leader of each partition (broker index). lower_bound: changes that any equally even plan needs.
    """

    first: list[int]
    changes: int
    lower_bound: int


class _LeaderPlacement:
    """The leader of each partition, VACANT (n − 1) if its first replica is removed."""

    def __init__(self, rows: Sequence[Sequence[int]], before: Sequence[int], nodes: Sequence[int], n: int) -> None:
        """Store rows (brokers that may lead each partition) and before (its current leader, VACANT if removed)."""
        self.rows, self.before, self.lead = rows, before, list(before)
        self.nodes = list(nodes)
        self.n = n
        self.loads = [0] * n
        self.changes = 0
        # a·n + b → partitions that a leads and b could lead, by original leader: b (cost -1), another (0), a (+1)
        self.buckets: tuple[dict[int, list[int]], ...] = ({}, {}, {})
        for p, a in enumerate(self.lead):
            self.loads[a] += 1
            self._note(p, a)

    def _note(self, p: int, a: int) -> None:
        was, vacant = self.before[p], self.n - 1
        for b in self.rows[p]:
            if b != a:
                kind = 2 if a in {was, vacant} else 0 if b == was else 1
                self.buckets[kind].setdefault(a * self.n + b, []).append(p)

    def edge(self, a: int, b: int, below: int, avoid: frozenset[int]) -> tuple[int, int] | None:
        """Return the cheapest partition that b can lead instead of a, and its cost, if the cost is less than below."""
        key = a * self.n + b
        for cost in range(-1, min(2, below)):
            bucket = self.buckets[cost + 1].get(key)
            while bucket and self.lead[bucket[-1]] != a:
                bucket.pop()
            for p in reversed(bucket or ()):
                if self.lead[p] == a and p not in avoid:
                    return p, cost
        return None

    def legal(self, p: int, a: int, b: int) -> bool:
        return self.lead[p] == a and b in self.rows[p]

    def swap(self, p: int, a: int, b: int) -> None:
        self.loads[a] -= 1
        self.loads[b] += 1
        self.lead[p] = b
        was, vacant = self.before[p], self.n - 1
        self.changes += (b not in {was, vacant}) - (a not in {was, vacant})
        self._note(p, a=b)


def plan_leaders(
    rows: Sequence[Sequence[int]],
    before: Sequence[int],
    hosts: Collection[int],
    brokers: int,
    *,
    tolerance: float = 0.0,
    even: bool = True,
) -> LeaderAssignment:
    """Choose a leader for each partition.

    rows: the planned replicas of each partition; before: its current first replica. hosts: brokers that may become
    leader. even: if False, change only partitions whose first replica is removed, as evenly as they allow.
    """
    n, vacant, allowed = brokers + 1, brokers, frozenset(hosts)
    choices = [_choices(row, first, allowed) for row, first in zip(rows, before, strict=True)]
    firsts = [first if first in row else vacant for row, first in zip(choices, before, strict=True)]
    targets = _targets(choices, firsts, sorted(allowed), n, tolerance)
    if not even:
        return _only_vacant(choices, firsts, targets, n)
    nodes = sorted({node for row in choices for node in row})
    placement = _LeaderPlacement(choices, firsts, nodes, n)
    _level(placement, targets)
    if not targets_met(placement, targets):
        targets = level_out(placement, [node for node in nodes if node in allowed], targets)
    bound = leader_changes_needed(_count(firsts, n), targets, firsts.count(vacant))
    if placement.changes > bound:
        bound = max(bound, _prove(placement, targets))
    return LeaderAssignment(placement.lead, placement.changes, bound)


def _choices(row: Sequence[int], first: int, allowed: frozenset[int]) -> tuple[int, ...]:
    """Return the possible leaders: hosts and the current leader; all replicas if there are none."""
    return tuple(node for node in row if node in allowed or node == first) or tuple(row)


def _count(firsts: Sequence[int], n: int) -> list[int]:
    counts = [0] * n
    for node in firsts:
        counts[node] += 1
    counts[n - 1] = 0
    return counts


def _targets(
    choices: Sequence[Sequence[int]], firsts: Sequence[int], hosts: list[int], n: int, tolerance: float
) -> Targets:
    """Return the floor and ceiling of the mean as targets of the hosts.

    A host with fewer replicas than that leads all of them; brokers that are not hosts keep their leaders.
    """
    least = _count(firsts, n)
    most = least[:]
    room = [0] * n
    for row in choices:
        for node in row:
            room[node] += 1
    total = len(choices) - sum(least[node] for node in range(n - 1) if node not in set(hosts))
    open_hosts = sorted(hosts, key=lambda node: (-room[node], node))
    while open_hosts and room[open_hosts[-1]] < total // len(open_hosts):
        node = open_hosts.pop()
        least[node] = most[node] = room[node]
        total -= room[node]
    even = even_targets(total, open_hosts, n, tolerance)
    for node in open_hosts:
        least[node], most[node] = even.least[node], even.most[node]
    return Targets(least, most, even.group, even.total)


def even_targets(total: int, hosts: Collection[int], n: int, tolerance: float) -> Targets:
    """Return the floor and ceiling of the mean, widened by the tolerance, for hosts that lead `total`; 0 for others."""
    least, most, group = [0] * n, [0] * n, [-1] * n
    for node in hosts:
        level = total / len(hosts)
        least[node] = min(floor(level), ceil(level * (1 - tolerance)))
        most[node] = max(ceil(level), floor(level * (1 + tolerance)))
        group[node] = 0
    return Targets(least, most, group, [total])


def _level(placement: _LeaderPlacement, targets: Targets) -> None:
    loads, vacant = placement.loads, placement.n - 1
    _place_directly(placement, targets.least)
    _move_directly(placement, targets)
    settle(placement, targets, vacant)
    drain(placement, lambda: [vacant] if loads[vacant] else [], lambda: placement.nodes)


def _move_directly(placement: _LeaderPlacement, targets: Targets) -> None:
    """Move surplus directly to brokers below their target."""
    loads, least, most = placement.loads, targets.least, targets.most
    for a in placement.nodes:
        for b in placement.nodes:
            while loads[a] > most[a] and loads[b] < least[b]:
                edge = placement.edge(a, b, 2, frozenset())
                if edge is None:
                    break
                placement.swap(edge[0], a, b)


def _prove(placement: _LeaderPlacement, targets: Targets) -> int:
    prices = cancel_cycles(placement, targets, rounds=_PAIRS // len(placement.nodes) ** 2)
    return 0 if prices is None else leader_changes_proven(placement.rows, placement.before, targets, prices)


def _only_vacant(choices: Sequence[Sequence[int]], firsts: Sequence[int], targets: Targets, n: int) -> LeaderAssignment:
    """Choose leaders only for the partitions that lose theirs: these change in any plan."""
    vacant = n - 1
    vacated = [p for p, first in enumerate(firsts) if first == vacant]
    lead = list(firsts)
    if vacated:
        rows = [choices[p] for p in vacated]
        placement = _LeaderPlacement(rows, [vacant] * len(vacated), sorted({node for row in rows for node in row}), n)
        for node, count in enumerate(_count(firsts, n)[:vacant]):
            placement.loads[node] += count
        for limit in (targets.least, targets.most, [len(choices) + 1] * n):
            _place(placement, limit)
        for p, node in zip(vacated, placement.lead, strict=True):
            lead[p] = node
    return LeaderAssignment(lead, len(vacated), len(vacated))


def _place(placement: _LeaderPlacement, limit: Sequence[int]) -> None:
    """Choose leaders for the partitions that VACANT leads, while brokers are below their limit."""
    loads, vacant = placement.loads, placement.n - 1
    _place_directly(placement, limit)
    drain(
        placement,
        lambda: [vacant] if loads[vacant] else [],
        lambda: [b for b in placement.nodes if loads[b] < limit[b]],
    )


def _place_directly(placement: _LeaderPlacement, limit: Sequence[int]) -> None:
    """Choose for each partition the replica that is furthest below its limit."""
    loads, vacant = placement.loads, placement.n - 1
    for p, node in enumerate(placement.lead):
        if node == vacant:
            best = min(placement.rows[p], key=lambda b: (loads[b] - limit[b], b))
            if loads[best] < limit[best]:
                placement.swap(p, vacant, best)
