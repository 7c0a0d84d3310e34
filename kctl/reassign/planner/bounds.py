"""Lower bounds of a plan, each with its proof, so that anyone can check a plan.

Notation: a plan gives each partition p a set T(p) of w(p) brokers; S(p) is what it has on brokers that do not leave. It
copies |T(p) ∖ S(p)| replicas. Broker b ends with l(b) replicas, least(b) ≤ l(b) ≤ most(b).
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.reassign.planner.rules import Rules
from kctl.reassign.planner.targets import Targets


def copies_needed(rules: Rules, targets: Targets) -> int:
    """The simple bound: the larger of two. s(b) is what broker b holds.

    1. Lack: b gets at least l(b) − s(b) copies. In each group the sum of max(0, l − s) is least when l is as near to s
       as least, most and the group's total allow: the larger of Σ max(0, least − s) and total − Σ min(s, most).
    2. Forced: of p's replicas no more than w(p) stay, and in each rack no more than its limit: what is missing then
       has to be copied wherever it goes (brokers that leave, a higher replication factor, rack violations).
    """
    held = [0] * len(rules.racks)
    for replicas in rules.original:
        for node in replicas:
            held[node] += 1
    return max(_gains(held, targets), rules.forced)


def _gains(held: Sequence[int], targets: Targets) -> int:
    """Σ over groups of the least Σ max(0, l − held)."""
    lack, rest = [0] * len(targets.total), list(targets.total)
    for node, group in enumerate(targets.group):
        if group >= 0:
            lack[group] += max(0, targets.least[node] - held[node])
            rest[group] -= min(held[node], targets.most[node])
    return sum(map(max, lack, rest))


def _price_of_loads(targets: Targets, prices: Sequence[int]) -> int:
    """The least Σ y·l over allowed loads: each broker's least, and what a group has above that where it is cheapest."""
    total = 0
    rest = list(targets.total)
    for node, price in enumerate(prices):
        total += price * targets.least[node]
        if targets.group[node] >= 0:
            rest[targets.group[node]] -= targets.least[node]
    for node in sorted(range(len(prices)), key=lambda node: prices[node]):
        group = targets.group[node]
        if group >= 0:
            more = min(rest[group], targets.most[node] - targets.least[node])
            total += prices[node] * more
            rest[group] -= more
    return total


def copies_proven(rules: Rules, targets: Targets, prices: Sequence[int]) -> int:
    """A bound from prices y(b) of a replica on broker b, any numbers at all:

    Σ over p of min over allowed T of Σ over b in T of ([b ∉ S(p)] − y(b))  +  min over allowed l of Σ y(b)·l(b).

    Proof: for a plan, Σ over p, b in T(p) of −y(b) is −Σ y(b)·l(b); so its copies are the first sum at T(p) plus
    Σ y(b)·l(b), and both sums are at least their minima. (Lagrangian duality; with the distances that are left when no
    cycle of negative cost is, the bound equals the plan's copies.) The minimum over T is found by taking the cheapest
    brokers whose rack is not full: sets with a limit for each rack and one in all are a matroid.
    """
    total = _price_of_loads(targets, prices)
    order = sorted(rules.hosts, key=lambda node: (-prices[node], node))
    for p, start in enumerate(rules.start):
        total += _cheapest(rules, p, len(start), order, prices)
    return total


def _cheapest(rules: Rules, p: int, wanted: int, order: list[int], prices: Sequence[int]) -> int:
    """The least Σ ([b ∉ S] − y) over allowed sets: p's own brokers and the others, each by price, merged."""
    own = [node for node in rules.original[p] if node not in rules.leaving]
    own.sort(key=lambda node: -prices[node])
    count: dict[int, int] = {}
    total = taken = i = j = 0
    while taken < wanted and (i < len(own) or j < len(order)):
        if j < len(order) and order[j] in own:
            j += 1
            continue
        if i < len(own) and (j == len(order) or -prices[own[i]] <= 1 - prices[order[j]]):
            node, cost = own[i], -prices[own[i]]
            i += 1
        else:
            node, cost = order[j], 1 - prices[order[j]]
            j += 1
        rack = rules.racks[node]
        held = count.get(rack, 0)
        if held and held >= rules.limit(p, rack):
            continue
        count[rack] = held + 1
        total += cost
        taken += 1
    return total


def leader_changes_needed(firsts: Sequence[int], targets: Targets, lost: int) -> int:
    """firsts: of how many partitions each broker is the preferred leader and may remain it; lost: of how many none may.

    As copies_needed: each leader that a broker gains is a change, and so is each that is lost.
    """
    return max(_gains(firsts, targets), lost)


def leader_changes_proven(
    choices: Sequence[Sequence[int]], firsts: Sequence[int], targets: Targets, prices: Sequence[int]
) -> int:
    """As copies_proven, where each partition takes one of its choices, and firsts[p] costs nothing."""
    return _price_of_loads(targets, prices) + sum(
        min((node != first) - prices[node] for node in row) for row, first in zip(choices, firsts, strict=True)
    )
