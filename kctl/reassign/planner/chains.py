"""Cheapest chains of swaps over a graph of brokers: the part that replicas and leaders have in common.

A swap a → b takes one unit of load from a to b. With costs −1, 0 and 1 and no cycle of negative cost, pushing along
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
    """Brokers, and what can be swapped between them."""

    nodes: list[int]
    loads: list[int]

    def edge(self, a: int, b: int, below: int, avoid: frozenset[int]) -> tuple[int, int] | None: ...
    def legal(self, p: int, a: int, b: int) -> bool: ...
    def swap(self, p: int, a: int, b: int) -> None: ...


class Swap(NamedTuple):
    """Partition p's unit goes from a to b."""

    p: int
    a: int
    b: int


def drain(
    network: Network, sources: Callable[[], list[int]], sinks: Callable[[], Collection[int]], *, up_to: int = _FAR
) -> None:
    """Push units from sources to sinks (asked for before each) along cheapest chains, while one costs up_to or less."""
    level, avoid = 0, _NOTHING
    while (full := sources()) and (ends := frozenset(sinks())):
        found = cheapest_chain(network, full, ends, level, level, avoid)
        if found is None:
            found = cheapest_chain(network, full, ends, level, _FAR, avoid)
        if found is None or found[0] > up_to:
            return
        level = max(level, found[0])
        failed = apply_chain(network, found[1])
        avoid = _NOTHING if failed is None else avoid | {failed}


def cheapest_chain(
    network: Network,
    sources: Collection[int],
    sinks: Collection[int],
    level: int,
    prune: int,
    avoid: frozenset[int],
) -> tuple[int, list[Swap]] | None:
    """The cost and steps of a cheapest path from a source to a sink.

    level: nothing cheaper exists, so that the first path of that cost will do. prune: look at no node further away.
    """
    distance = [_FAR] * (max((*network.nodes, *sources)) + 1)
    came: dict[int, Swap] = {}
    for node in sources:
        distance[node] = 0
    queue = deque(sources)
    waiting = set(sources)
    budget = 50 * len(distance)  # a negative cycle (full disks can make one) must not keep us here
    best = -1
    while queue and budget:
        budget -= 1
        a = queue.popleft()
        waiting.discard(a)
        here = distance[a]
        for b in network.nodes:
            below = min(distance[b], prune + 1) - here
            if below < 0 or b == a:
                continue
            edge = network.edge(a, b, below, avoid)
            if edge is None:
                continue
            distance[b] = here + edge[1]
            came[b] = Swap(edge[0], a, b)
            if b in sinks and (best < 0 or distance[b] < distance[best] or best == b):
                best = b
                if distance[b] <= level and (steps := _path(came, b, sources)):
                    return distance[b], steps
            if b not in waiting:
                waiting.add(b)
                queue.append(b)
    if best < 0:
        return None
    steps = _path(came, best, sources)
    return (distance[best], steps) if steps else None


def _path(came: dict[int, Swap], node: int, sources: Collection[int]) -> list[Swap]:
    """Return the swaps from a source to node; empty if they form a cycle."""
    steps: list[Swap] = []
    while node in came and len(steps) <= len(came):
        steps.append(came[node])
        node = came[node].a
    return steps[::-1] if node in sources and len(steps) <= len(came) else []


def apply_chain(network: Network, steps: list[Swap]) -> int | None:
    """Do all swaps. Two of one partition may exclude each other: then none is done, and the partition is returned."""
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
    """Cancel cycles of negative cost until there is none; return the distances that prove it.

    kctl.reassign.planner.bounds has the proof.

    Chains from a broker whose load may fall to one of its group whose load may grow are cycles, through a node that the
    group has outside the network. None when rounds, each one look at all pairs of brokers, were not enough.
    """
    avoid = _NOTHING
    while True:
        size = max(network.nodes) + 1
        distance = [0] * (size + len(targets.total))
        came: dict[int, Swap] = {}
        cycle: list[Swap] = []
        while not cycle:
            rounds -= 1
            if rounds < 0:
                return None
            if not _relax(network, targets, distance, came, size, avoid):
                return distance[:size] if not avoid else None
            cycle = _cycle(came)
        failed = apply_chain(network, [step for step in cycle if step.p >= 0])
        avoid = _NOTHING if failed is None else avoid | {failed}


def _relax(
    network: Network, targets: Targets, distance: list[int], came: dict[int, Swap], size: int, avoid: frozenset[int]
) -> bool:
    """Do one round of Bellman-Ford over all pairs; return False if no distance decreased."""
    changed = False
    for a in network.nodes:
        group = size + targets.group[a]
        outside = targets.group[a] >= 0
        if outside and distance[group] < distance[a] and network.loads[a] > targets.least[a]:
            distance[a], came[a], changed = distance[group], Swap(-1, group, a), True
        for b in network.nodes:
            below = distance[b] - distance[a]
            if below < 0 or b == a:
                continue
            edge = network.edge(a, b, below, avoid)
            if edge is not None:
                distance[b], came[b], changed = distance[a] + edge[1], Swap(edge[0], a, b), True
        if outside and distance[a] < distance[group] and network.loads[a] < targets.most[a]:
            distance[group], came[group], changed = distance[a], Swap(-1, a, group), True
    return changed


def _cycle(came: dict[int, Swap]) -> list[Swap]:
    """Return a cycle of negative cost among the last swaps of each node; empty if there is none."""
    state: dict[int, int] = {}
    for start in came:
        node = start
        while node in came and node not in state:
            state[node] = start
            node = came[node].a
        if state.get(node) == start and node in came:
            steps: list[Swap] = []
            end = node
            while not steps or node != end:
                steps.append(came[node])
                node = came[node].a
            return steps[::-1]
    return []
