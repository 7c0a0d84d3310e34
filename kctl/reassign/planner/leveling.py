"""Bring loads to their targets by chains, or make them as even as possible if targets cannot all be met."""

from __future__ import annotations

from collections.abc import Collection

from kctl.reassign.planner.chains import Network, drain
from kctl.reassign.planner.targets import Targets

_REACH = 150  # nodes; with more, computing which brokers can exchange load takes too long
_ALL = 3  # above every cost: accept any edge


def settle(network: Network, targets: Targets, vacant: int) -> None:
    """Push load until each broker is between least and most and each group has its total, as far as chains allow."""
    loads, least, most, group = network.loads, targets.least, targets.most, targets.group
    nodes = network.nodes

    def surplus() -> list[int]:
        return [b for b in (vacant, *nodes) if loads[b] > most[b]]

    def lacking() -> list[int]:
        return [b for b in nodes if loads[b] < least[b]]

    def with_room() -> list[int]:
        return [b for b in nodes if loads[b] < most[b]]

    def of_groups(brokers: list[int], sign: int) -> list[int]:
        """Return the brokers whose group has more than its total (sign 1), or less (-1)."""
        over = [-total for total in targets.total]
        for b in nodes:
            if group[b] >= 0:
                over[group[b]] += loads[b]
        return [b for b in brokers if group[b] >= 0 and over[group[b]] * sign > 0]

    # A chain of cost 2 is no better than two of cost 1 through other brokers: try these before more expensive ones.
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


def targets_met(network: Network, targets: Targets) -> bool:
    """Return whether all targets are reached."""
    sums = [0] * len(targets.total)
    for b in network.nodes:
        if not targets.least[b] <= network.loads[b] <= targets.most[b]:
            return False
        if targets.group[b] >= 0:
            sums[targets.group[b]] += network.loads[b]
    return sums == targets.total


def level_out(network: Network, hosts: Collection[int], targets: Targets) -> Targets:
    """Make loads as even as possible if targets cannot all be met; return targets for all equally even loads.

    From the fullest down, a broker with load t gives to any broker within reach with t − 2 or less. When none can, the
    loads are as even as possible (decreasingly minimal; Frank and Murota 2022). Equally even loads differ only in which
    brokers within reach of each other have t and which have t − 1: these brokers are the groups of the targets.
    """
    loads, least, most = network.loads, targets.least, targets.most
    inside = sorted(hosts)
    for t in range(max((loads[b] for b in inside), default=0), 1, -1):
        if any(loads[b] == t for b in inside):
            _give(network, inside, targets, t)
    low, high = loads[:], loads[:]
    if len(network.nodes) > _REACH:  # the bound then covers every plan within these limits, even if less balanced
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
    """Push load from brokers with t or more to brokers with t − 2 or less, if one of the two is off its target."""
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
    """Return targets that fix only the sum over all hosts, at the sum of their current loads."""
    group = [-1] * len(loads)
    for b in hosts:
        group[b] = 0
    return Targets(least, most, group, [sum(loads[b] for b in hosts)])


def _reach(network: Network, start: int) -> set[int]:
    """Return the nodes that a unit of start's load can reach."""
    nodes, todo = {start}, [start]
    while todo:
        a = todo.pop()
        for b in network.nodes:
            if b not in nodes and network.edge(a, b, _ALL, frozenset()) is not None:
                nodes.add(b)
                todo.append(b)
    return nodes
