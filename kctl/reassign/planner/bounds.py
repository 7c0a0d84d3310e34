"""Lower bounds of a plan, each with its proof, so that anyone can check a plan.

Notation: a plan assigns each partition p to a set T(p) of w(p) brokers. S(p) is the set of its current brokers that are
not being removed, so the plan copies |T(p) ∖ S(p)| replicas. Broker b ends with l(b) replicas,
least(b) ≤ l(b) ≤ most(b).
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.reassign.planner.rules import Rules
from kctl.reassign.planner.targets import Targets


def copies_needed(rules: Rules, targets: Targets) -> int:
    """Return the simple lower bound of copies: the larger of two bounds. s(b): the current replicas of broker b.

    1. Deficit: b receives at least l(b) − s(b) copies. In each group the sum of max(0, l − s) is smallest when l is as
       close to s as least, most and the group's total allow: the larger of Σ max(0, least − s) and
       total − Σ min(s, most).
    2. Forced: at most w(p) replicas of p stay, and in each rack at most its limit. The missing replicas must be copied,
       whatever their new broker (removed brokers, a higher replication factor, rack violations).
    """
    current = [0] * len(rules.racks)
    for replicas in rules.original:
        for node in replicas:
            current[node] += 1
    return max(_gains(current, targets), rules.forced)


def _gains(current: Sequence[int], targets: Targets) -> int:
    """Return Σ over groups of the smallest Σ max(0, l − current)."""
    lack, rest = [0] * len(targets.total), list(targets.total)
    for node, group in enumerate(targets.group):
        if group >= 0:
            lack[group] += max(0, targets.least[node] - current[node])
            rest[group] -= min(current[node], targets.most[node])
    return sum(map(max, lack, rest))


def _price_of_loads(targets: Targets, prices: Sequence[int]) -> int:
    """Return the smallest Σ y·l over allowed loads: each broker's least, the rest of each group where cheapest."""
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
    """Return a lower bound of copies from prices y(b) of a replica on broker b. The prices may be any numbers.

    Σ over p of min over allowed T of Σ over b in T of ([b ∉ S(p)] − y(b))  +  min over allowed l of Σ y(b)·l(b).

    Proof: for a plan, Σ over p, b in T(p) of −y(b) is −Σ y(b)·l(b), so its copies are the first sum at T(p) plus
    Σ y(b)·l(b), and both sums are at least their minima. (Lagrangian duality: if the prices are the distances after all
    cycles of negative cost are canceled, the bound equals the plan's copies.) Taking the cheapest brokers whose rack is
    not full gives the minimum over T: sets with a limit per rack and a total limit form a matroid.
    """
    total = _price_of_loads(targets, prices)
    order = sorted(rules.hosts, key=lambda node: (-prices[node], node))
    for p, start in enumerate(rules.start):
        total += _cheapest(rules, p, len(start), order, prices)
    return total


def _cheapest(rules: Rules, p: int, factor: int, order: list[int], prices: Sequence[int]) -> int:
    """Return the smallest Σ ([b ∉ S] − y) over allowed sets: merge p's current brokers and the others by price."""
    current = [node for node in rules.original[p] if node not in rules.leaving]
    current.sort(key=lambda node: -prices[node])
    count: dict[int, int] = {}
    total = size = i = j = 0
    while size < factor and (i < len(current) or j < len(order)):
        if j < len(order) and order[j] in current:
            j += 1
            continue
        if i < len(current) and (j == len(order) or -prices[current[i]] <= 1 - prices[order[j]]):
            node, cost = current[i], -prices[current[i]]
            i += 1
        else:
            node, cost = order[j], 1 - prices[order[j]]
            j += 1
        rack = rules.racks[node]
        in_rack = count.get(rack, 0)
        if in_rack and in_rack >= rules.limit(p, rack):
            continue
        count[rack] = in_rack + 1
        total += cost
        size += 1
    return total


def leader_changes_needed(firsts: Sequence[int], targets: Targets, forced: int) -> int:
    """Return the simple lower bound of leader changes: each leader that a broker gains or that must change counts.

    firsts: the partitions per broker that may keep it as preferred leader. forced: partitions whose preferred leader
    must change.
    """
    return max(_gains(firsts, targets), forced)


def leader_changes_proven(
    choices: Sequence[Sequence[int]], firsts: Sequence[int], targets: Targets, prices: Sequence[int]
) -> int:
    """Return a lower bound like copies_proven: each partition takes one of its choices, and firsts[p] costs nothing."""
    return _price_of_loads(targets, prices) + sum(
        min((node != first) - prices[node] for node in row) for row, first in zip(choices, firsts, strict=True)
    )
