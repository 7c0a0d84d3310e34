"""The number of replicas that each broker should hold: as even as the racks allow.

A rack set K can hold at most f(K) = Σ over partitions of min(factor, Σ over K of limit) replicas. f is submodular (a
truncated sum), so splitting gives the most even loads (Fujishige 1980; Groenevelt 1991): try one level for all racks.
If a set cannot hold its share, fill the set with the largest deficit to f(K), give the remainder to the other racks,
and split both separately. Each broker of a group then gets floor or ceil of the group's level; the moves decide which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, floor

from kctl.reassign.planner.rules import Rules

_ENUMERATE = 10  # racks; with more, examine only the sets of racks with the least room per broker

# (replicas to place, limit per rack in the order of the racks) → number of partitions
Classes = dict[tuple[int, tuple[int, ...]], int]


@dataclass(slots=True)
class Targets:
    """Replicas (or leaders) that each broker (index) may hold at the end: least and most; 0 and 0 for VACANT.

    group: brokers that share a total, which determines how many of them have more than their least; -1: in no group.
    """

    least: list[int]
    most: list[int]
    group: list[int]
    total: list[int]


def replica_targets(rules: Rules, tolerance: float, *, even: bool) -> Targets:
    """Return water-filled targets, widened by the tolerance.

    even: if False, no broker moves further from its target.
    """
    n = len(rules.racks)
    loads = [0] * n
    for replicas in rules.start:
        for node in replicas:
            loads[node] += 1
    least, most = loads[:], loads[:]
    least[rules.vacant] = most[rules.vacant] = 0
    level_of = _levels(rules)
    slack = Fraction(str(tolerance))
    # Levels between the same two whole numbers form one group: their distribution over racks does not change the
    # balance. At a whole number every broker has exactly that many.
    ranges = sorted({(floor(level), ceil(level)) for level in level_of.values()})
    group, total = [-1] * n, [Fraction(0)] * len(ranges)
    mean = sum(level_of[rules.racks[node]] for node in rules.hosts) / len(rules.hosts)
    for node in rules.hosts:
        level = level_of[rules.racks[node]]
        group[node] = ranges.index((floor(level), ceil(level)))
        total[group[node]] += level
        least[node] = min(floor(level), ceil(mean * (1 - slack))) if slack else floor(level)
        most[node] = max(ceil(level), floor(mean * (1 + slack))) if slack else ceil(level)
    if not even:
        current = [0] * n
        for row in rules.original:
            for node in row:
                current[node] += 1
        for node in rules.hosts:
            least[node], most[node] = min(least[node], loads[node]), max(most[node], current[node])
    if tolerance or not even:  # the totals per group are no longer fixed
        return Targets(least, most, [min(g, 0) for g in group], [int(sum(total))])
    return Targets(least, most, group, [int(count) for count in total])


def _levels(rules: Rules) -> dict[int, Fraction]:
    """Return rack number → replicas per host."""
    racks = sorted(rules.rack_sizes)
    classes = _classes(rules, racks)
    levels: dict[int, Fraction] = {}
    _split(racks, (), classes, racks, rules.rack_sizes, levels)
    return levels


def _classes(rules: Rules, racks: Sequence[int]) -> Classes:
    """Return the number of partitions per class, without replicas on brokers that receive none."""
    hosts, sizes = set(rules.hosts), rules.rack_sizes
    stuck = set(range(rules.vacant)) - hosts
    plain = {factor: (factor, tuple(min(cap, sizes[k]) for k in racks)) for factor, cap in rules.caps.items()}
    classes: Classes = {}
    for p, start in enumerate(rules.start):
        if p not in rules.looser and (not stuck or stuck.isdisjoint(start)):
            key = plain[len(start)]
        else:
            stuck_racks = [rules.racks[node] for node in start if node in stuck]
            room = [max(0, min(rules.limit(p, k) - stuck_racks.count(k), sizes[k])) for k in racks]
            key = (len(start) - len(stuck_racks), tuple(room))
        classes[key] = classes.get(key, 0) + 1
    return classes


def _capacity(classes: Classes, places: Iterable[int]) -> int:
    """Return f(K) of the module docstring; places: positions of K's racks."""
    positions = list(places)
    return sum(count * min(missing, sum(limits[i] for i in positions)) for (missing, limits), count in classes.items())


def _split(
    group: list[int], full: tuple[int, ...], classes: Classes, racks: list[int], sizes: dict[int, int],
    levels: dict[int, Fraction],
) -> None:  # fmt: skip
    """Set the levels of the group's racks, given that the racks in `full` hold as much as they can."""
    place = {rack: i for i, rack in enumerate(racks)}
    full_places = [place[rack] for rack in full]
    below = _capacity(classes, full_places)
    total = _capacity(classes, [*full_places, *(place[rack] for rack in group)]) - below
    hosts = sum(sizes[rack] for rack in group)
    worst, lacks = None, 0
    for subset in _subsets(group, sizes, classes, place):
        room = _capacity(classes, [*full_places, *(place[rack] for rack in subset)]) - below
        lack = total * sum(sizes[rack] for rack in subset) - room * hosts
        if lack > lacks:
            worst, lacks = subset, lack
    if worst is None:
        for rack in group:
            levels[rack] = Fraction(total, hosts)
        return
    _split(list(worst), full, classes, racks, sizes, levels)
    _split([rack for rack in group if rack not in worst], (*full, *worst), classes, racks, sizes, levels)


def _subsets(
    group: list[int], sizes: dict[int, int], classes: Classes, place: dict[int, int]
) -> Iterable[tuple[int, ...]]:
    """Return the proper subsets that may lack room. For identical racks only the number of racks matters."""
    alike = all(len({limits[place[rack]] for rack in group}) == 1 for _, limits in classes)
    if alike and len({sizes[rack] for rack in group}) == 1:
        return ()  # f is concave in the number of racks: no set can lack room
    if len(group) <= _ENUMERATE:
        return (subset for size in range(1, len(group)) for subset in combinations(group, size))
    room = {rack: sum(count * limits[place[rack]] for (_, limits), count in classes.items()) for rack in group}
    ordered = sorted(group, key=lambda rack: (room[rack] / sizes[rack], rack))
    return (tuple(ordered[:size]) for size in range(1, len(group)))
