"""Numbers below which no plan can be, each with its proof: anyone can check a plan against them.

Notation: a plan gives each partition p a set T(p) of w(p) brokers; S(p) is what it has on brokers that do not leave. It
copies |T(p) ∖ S(p)| replicas. Broker b ends with l(b) replicas, least(b) ≤ l(b) ≤ most(b).
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.reassign.rules import Rules
from kctl.reassign.targets import Targets


def copies_needed(rules: Rules, targets: Targets) -> int:
    """The simple bound: the largest of three.

    1. Lack: b gets l(b) − |T ∩ S at b| ≥ least(b) − s(b) copies, s(b) what it holds: Σ max(0, least − s).
    2. Surplus: no more than min(s(b), most(b)) of b's replicas stay: Σ w(p) − Σ min(s, most).
    3. Forced: of p's replicas no more than w(p) stay, and in each rack no more than its limit: what is missing then
       has to be copied wherever it goes (brokers that leave, a higher replication factor, rack violations).
    """
    held = [0] * len(rules.racks)
    for replicas in rules.original:
        for node in replicas:
            held[node] += 1
    wanted = sum(map(len, rules.start))
    keep = [node for node in range(rules.vacant) if node not in rules.leaving]
    lack = sum(max(0, targets.least[node] - held[node]) for node in keep)
    surplus = wanted - sum(min(held[node], targets.most[node]) for node in keep)
    return max(lack, surplus, rules.forced)


def copies_proven(rules: Rules, targets: Targets, prices: Sequence[int]) -> int:
    """A bound from prices y(b) of a replica on broker b, any numbers at all:

    Σ over p of min over allowed T of Σ over b in T of ([b ∉ S(p)] − y(b))  +  Σ over b of min(y·least, y·most).

    Proof: for a plan, Σ over p, b in T(p) of −y(b) is −Σ y(b)·l(b); so its copies are the first sum at T(p) plus
    Σ y(b)·l(b), and both sums are at least their minima. (Lagrangian duality; with the distances that are left when no
    cycle of negative cost is, the bound equals the plan's copies.) The minimum over T is found by taking the cheapest
    brokers whose rack is not full: sets with a limit for each rack and one in all are a matroid.
    """
    total = 0
    for node in range(rules.vacant):
        if node not in rules.leaving:
            total += min(prices[node] * targets.least[node], prices[node] * targets.most[node])
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
