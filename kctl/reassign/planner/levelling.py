"""Bringing loads to their targets by chains, and what is the most even where targets cannot all be met."""

from __future__ import annotations

from collections.abc import Collection

from kctl.reassign.planner.chains import Network, drain
from kctl.reassign.planner.targets import Targets

_REACH = 150  # nodes; with more, who could swap loads with whom takes too long to find out
_ALL = 3  # above every cost: any edge will do


def settle(network: Network, targets: Targets, vacant: int) -> None:
    """Push until every broker is between its least and most, and each group has its total, as far as there are ways."""
    loads, least, most, group = network.loads, targets.least, targets.most, targets.group
    nodes = network.nodes

    def surplus() -> list[int]:
        return [b for b in (vacant, *nodes) if loads[b] > most[b]]

    def lacking() -> list[int]:
        return [b for b in nodes if loads[b] < least[b]]

    def with_room() -> list[int]:
        return [b for b in nodes if loads[b] < most[b]]

    def of_groups(brokers: list[int], sign: int) -> list[int]:
        """Return the brokers whose group has more than its total (sign 1), or less (−1)."""
        over = [-total for total in targets.total]
        for b in nodes:
            if group[b] >= 0:
                over[group[b]] += loads[b]
        return [b for b in brokers if group[b] >= 0 and over[group[b]] * sign > 0]

    # A way that costs 2 is no better than two of 1 by brokers in between: those are tried before dearer ones.
    drain(network, surplus, lacking, up_to=2)
    drain(network, surplus, lambda: of_groups(with_room(), -1))
    drain(network, surplus, with_room)
    drain(network, lambda: of_groups([b for b in nodes if loads[b] > least[b]], 1), lacking)
    drain(network, lambda: [b for b in nodes if loads[b] > least[b]], lacking)
    drain(
        network,
        lambda: of_groups([b for b in nodes if loads[b] > least[b]], 1),
        lambda: of_groups(with_room(), -1),
    )


def met(network: Network, targets: Targets) -> bool:
    """Return whether all targets are reached."""
    sums = [0] * len(targets.total)
    for b in network.nodes:
        if not targets.least[b] <= network.loads[b] <= targets.most[b]:
            return False
        if targets.group[b] >= 0:
            sums[targets.group[b]] += network.loads[b]
    return sums == targets.total


def level_out(network: Network, hosts: Collection[int], targets: Targets) -> Targets:
    """For targets that cannot all be met: make loads as even as they can be, and say what else would be as even.

    From the fullest down, a load t gives to any it can reach of t − 2 or less: when none can, the loads are the most
    even there are (decreasingly minimal; Frank and Murota 2022). Others as even differ in who has t and who t − 1,
    among brokers that reach each other: these are the groups of the targets that are returned.
    """
    loads, least, most = network.loads, targets.least, targets.most
    inside = sorted(hosts)
    for t in range(max((loads[b] for b in inside), default=0), 1, -1):
        if any(loads[b] == t for b in inside):
            _give(network, inside, targets, t)
    low, high = loads[:], loads[:]
    if len(network.nodes) > _REACH:  # the bound is then for plans within these limits, even or not
        low = [min(pair) for pair in zip(loads, least, strict=True)]
        high = [max(pair) for pair in zip(loads, most, strict=True)]
        return one_group(low, high, loads, inside)
    for a in inside:
        for b in _reach(network, a).intersection(inside):
            if loads[b] == loads[a] - 1:
                low[a], high[b] = loads[b], loads[a]
    ranges = sorted({(low[b], high[b]) for b in inside})
    group = [-1] * len(loads)
    total = [0] * len(ranges)
    for b in inside:
        group[b] = ranges.index((low[b], high[b]))
        total[group[b]] += loads[b]
    return Targets(low, high, group, total)


def _give(network: Network, inside: list[int], targets: Targets, t: int) -> None:
    """From loads of t and more to those of t − 2 and less, where one of the two is off its target."""
    loads, least, most = network.loads, targets.least, targets.most
    drain(
        network,
        lambda: [b for b in inside if loads[b] >= t and loads[b] > most[b]],
        lambda: [b for b in inside if loads[b] <= t - 2],
    )
    drain(
        network,
        lambda: [b for b in inside if loads[b] >= t],
        lambda: [b for b in inside if loads[b] <= min(t - 2, least[b] - 1)],
    )


def one_group(least: list[int], most: list[int], loads: list[int], hosts: Collection[int]) -> Targets:
    """Return targets that fix only the sum over all hosts, as the current loads have it."""
    group = [-1] * len(loads)
    for b in hosts:
        group[b] = 0
    return Targets(least, most, group, [sum(loads[b] for b in hosts)])


def _reach(network: Network, start: int) -> set[int]:
    """Return the nodes that a unit of start's load can reach."""
    found, todo = {start}, [start]
    while todo:
        a = todo.pop()
        for b in network.nodes:
            if b not in found and network.edge(a, b, _ALL, frozenset()) is not None:
                found.add(b)
                todo.append(b)
    return found
