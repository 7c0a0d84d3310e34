"""The number of replicas that each broker should hold: as even as the racks allow.

The loads that racks can take are those where, for each set K of racks, no more than f(K) = Σ over partitions of
min(wanted, Σ over K of limit) replicas lie in K. f is submodular (a truncated sum), so the most even loads come from
splitting (Fujishige 1980; Groenevelt 1991): try one level for all; if some set cannot take its share, the set that
lacks most is filled to f(K), the rest gets the remainder, and both are split separately. Within the result each broker
of a group gets floor or ceil of the group's level; which of the two is left to the moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, floor

from kctl.reassign.planner.rules import Rules

_ENUMERATE = 10  # racks; with more, only sets of those with the least room for a broker are looked at

# (replicas to place, limit per rack in the order of the racks) → partitions that are like that
Classes = dict[tuple[int, tuple[int, ...]], int]


@dataclass(slots=True)
class Targets:
    """Replicas (or leaders) that each broker (index) may hold at the end: least and most; 0 and 0 for VACANT.

    group: brokers that share a total, which determines how many of them have more than their least; −1: in no group.
    """

    least: list[int]
    most: list[int]
    group: list[int]
    total: list[int]


def replica_targets(rules: Rules, tolerance: float, *, even: bool) -> Targets:
    """Water-filled targets; a tolerance widens them. Not even: no broker gets further from its target than it is."""
    n = len(rules.racks)
    loads = [0] * n
    for replicas in rules.start:
        for node in replicas:
            loads[node] += 1
    least, most = loads[:], loads[:]
    least[rules.vacant] = most[rules.vacant] = 0
    level_of = _levels(rules)
    slack = Fraction(str(tolerance))
    # Levels between the same two whole numbers are one group: which rack has how many there does not change how even
    # it is. At a whole number every broker has just that.
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
    if tolerance or not even:  # what the racks leave to each other is no longer given
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
    """Return partitions by what their racks can hold, without replicas on brokers that receive nothing."""
    hosts, sizes = set(rules.hosts), rules.rack_sizes
    stuck = set(range(rules.vacant)) - hosts
    plain = {wanted: (wanted, tuple(min(cap, sizes[k]) for k in racks)) for wanted, cap in rules.caps.items()}
    classes: Classes = {}
    for p, start in enumerate(rules.start):
        if p not in rules.looser and (not stuck or stuck.isdisjoint(start)):
            key = plain[len(start)]
        else:
            held = [rules.racks[node] for node in start if node in stuck]
            room = [max(0, min(rules.limit(p, k) - held.count(k), sizes[k])) for k in racks]
            key = (len(start) - len(held), tuple(room))
        classes[key] = classes.get(key, 0) + 1
    return classes


def _capacity(classes: Classes, places: Iterable[int]) -> int:
    """Return f(K) of the module's docstring; places: positions of K's racks."""
    chosen = list(places)
    return sum(count * min(wanted, sum(limits[i] for i in chosen)) for (wanted, limits), count in classes.items())


def _split(
    group: list[int], full: tuple[int, ...], classes: Classes, racks: list[int], sizes: dict[int, int],
    levels: dict[int, Fraction],
) -> None:  # fmt: skip
    """Level the group's racks, those in full having taken all they can before."""
    place = {rack: i for i, rack in enumerate(racks)}
    taken = [place[rack] for rack in full]
    below = _capacity(classes, taken)
    total = _capacity(classes, [*taken, *(place[rack] for rack in group)]) - below
    hosts = sum(sizes[rack] for rack in group)
    worst, lacks = None, 0
    for subset in _subsets(group, sizes, classes, place):
        room = _capacity(classes, [*taken, *(place[rack] for rack in subset)]) - below
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
    """Proper subsets that may lack room. Among racks that are alike only how many counts."""
    alike = all(len({limits[place[rack]] for rack in group}) == 1 for _, limits in classes)
    if alike and len({sizes[rack] for rack in group}) == 1:
        return ()  # f is concave in the number of racks: no set can lack room
    if len(group) <= _ENUMERATE:
        return (subset for size in range(1, len(group)) for subset in combinations(group, size))
    room = {rack: sum(count * limits[place[rack]] for (_, limits), count in classes.items()) for rack in group}
    ordered = sorted(group, key=lambda rack: (room[rack] / sizes[rack], rack))
    return (tuple(ordered[:size]) for size in range(1, len(group)))
