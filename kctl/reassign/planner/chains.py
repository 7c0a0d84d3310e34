"""Cheapest chains of swaps over a graph of brokers, for replicas and leaders alike.

A swap a → b moves one unit of load from a to b. With costs -1, 0 and 1 and no cycle of negative cost, pushing along
cheapest paths keeps the plan the cheapest for its loads (successive shortest paths; Ahuja, Magnanti, Orlin: Network
Flows, ch. 9), and a plan without a negative cycle is the cheapest of all (ch. 3, negative cycle optimality).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from kctl.reassign.planner.targets import Targets

_FAR = 1 << 30
_NOTHING: frozenset[int] = frozenset()


class Network(Protocol):
    """Brokers, and the units of load that can be swapped between them."""

    nodes: list[int]
    loads: list[int]

    def edge(self, a: int, b: int, below: int, avoid: frozenset[int]) -> tuple[int, int] | None: ...
    def legal(self, p: int, a: int, b: int) -> bool: ...
    def swap(self, p: int, a: int, b: int) -> None: ...


class Swap(NamedTuple):
    """A move of partition p's unit from a to b."""

    p: int
    a: int
    b: int


def drain(
    network: Network, sources: Callable[[], list[int]], sinks: Callable[[], Collection[int]], *, up_to: int = _FAR
) -> None:
    """Push units from sources to sinks along cheapest chains, while a chain costs up_to or less.

    sources and sinks are called again before each chain.
    """
    level, avoid = 0, _NOTHING
    while (full := sources()) and (ends := frozenset(sinks())):
        chain = cheapest_chain(network, full, ends, level, level, avoid)
        if chain is None:
            chain = cheapest_chain(network, full, ends, level, _FAR, avoid)
        if chain is None or chain[0] > up_to:
            return
        level = max(level, chain[0])
        failed = apply_chain(network, chain[1])
        avoid = _NOTHING if failed is None else avoid | {failed}


def cheapest_chain(
    network: Network,
    sources: Collection[int],
    sinks: Collection[int],
    level: int,
    prune: int,
    avoid: frozenset[int],
) -> tuple[int, list[Swap]] | None:
    """Return the cost and steps of a cheapest path from a source to a sink; None if there is none.

    level: no path is cheaper, so the first path of that cost is enough. prune: ignore nodes further away.
    """
    distance = [_FAR] * (max((*network.nodes, *sources)) + 1)
    swap_to: dict[int, Swap] = {}
    for node in sources:
        distance[node] = 0
    queue = deque(sources)
    waiting = set(sources)
    budget = 50 * len(distance)  # full disks can cause a negative cycle, which must not loop forever
    best = -1
    while queue and budget:
        budget -= 1
        a = queue.popleft()
        waiting.discard(a)
        cost_to_a = distance[a]
        for b in network.nodes:
            below = min(distance[b], prune + 1) - cost_to_a
            if below < 0 or b == a:
                continue
            edge = network.edge(a, b, below, avoid)
            if edge is None:
                continue
            distance[b] = cost_to_a + edge[1]
            swap_to[b] = Swap(edge[0], a, b)
            if b in sinks and (best < 0 or distance[b] < distance[best] or best == b):
                best = b
                if distance[b] <= level and (steps := _path(swap_to, b, sources)):
                    return distance[b], steps
            if b not in waiting:
                waiting.add(b)
                queue.append(b)
    if best < 0:
        return None
    steps = _path(swap_to, best, sources)
    return (distance[best], steps) if steps else None


def _path(swap_to: dict[int, Swap], node: int, sources: Collection[int]) -> list[Swap]:
    """Return the swaps from a source to node; empty if they form a cycle."""
    steps: list[Swap] = []
    while node in swap_to and len(steps) <= len(swap_to):
        steps.append(swap_to[node])
        node = swap_to[node].a
    return steps[::-1] if node in sources and len(steps) <= len(swap_to) else []


def apply_chain(network: Network, steps: list[Swap]) -> int | None:
    """Apply all swaps. If two swaps of one partition conflict, undo all and return the partition."""
    done: list[Swap] = []
    for step in steps:
        if not network.legal(step.p, step.a, step.b):
            for p, a, b in reversed(done):
                network.swap(p, b, a)
            return step.p
        network.swap(*step)
        done.append(step)
    return None


def cancel_cycles(network: Network, targets: Targets, *, rounds: int) -> list[int] | None:
    """Cancel all cycles of negative cost; return the distances that prove it (see kctl.reassign.planner.bounds).

    A chain from a broker whose load may decrease to a broker of its group whose load may increase is closed to a cycle
    by an extra node for the group. rounds: the maximum number of passes over all pairs of brokers. Return None if they
    were not enough.
    """
    avoid = _NOTHING
    while True:
        size = max(network.nodes) + 1
        distance = [0] * (size + len(targets.total))
        swap_to: dict[int, Swap] = {}
        cycle: list[Swap] = []
        while not cycle:
            rounds -= 1
            if rounds < 0:
                return None
            if not _relax(network, targets, distance, swap_to, size, avoid):
                return distance[:size] if not avoid else None
            cycle = _cycle(swap_to)
        failed = apply_chain(network, [step for step in cycle if step.p >= 0])
        avoid = _NOTHING if failed is None else avoid | {failed}


def _relax(
    network: Network, targets: Targets, distance: list[int], swap_to: dict[int, Swap], size: int, avoid: frozenset[int]
) -> bool:
    """Do one round of Bellman-Ford over all pairs; return False if no distance decreased."""
    changed = False
    for a in network.nodes:
        group = size + targets.group[a]
        in_group = targets.group[a] >= 0
        if in_group and distance[group] < distance[a] and network.loads[a] > targets.least[a]:
            distance[a], swap_to[a], changed = distance[group], Swap(-1, group, a), True
        for b in network.nodes:
            below = distance[b] - distance[a]
            if below < 0 or b == a:
                continue
            edge = network.edge(a, b, below, avoid)
            if edge is not None:
                distance[b], swap_to[b], changed = distance[a] + edge[1], Swap(edge[0], a, b), True
        if in_group and distance[a] < distance[group] and network.loads[a] < targets.most[a]:
            distance[group], swap_to[group], changed = distance[a], Swap(-1, a, group), True
    return changed


def _cycle(swap_to: dict[int, Swap]) -> list[Swap]:
    """Return a cycle of negative cost among the last swaps of each node; empty if there is none."""
    state: dict[int, int] = {}
    for start in swap_to:
        node = start
        while node in swap_to and node not in state:
            state[node] = start
            node = swap_to[node].a
        if state.get(node) == start and node in swap_to:
            steps: list[Swap] = []
            end = node
            while not steps or node != end:
                steps.append(swap_to[node])
                node = swap_to[node].a
            return steps[::-1]
    return []
