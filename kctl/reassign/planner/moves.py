"""The fewest replica copies that bring every broker to its target.

1. Fill vacancies on the brokers with the largest deficit, and move surplus directly to brokers with a deficit: each
move costs one copy, and no plan needs less. 2. Use chains where no direct move exists: a replica that moves anyway
makes room by choosing another broker (cost 0) or by staying where it was (-1). 3. If the simple bound is not reached,
cancel all cycles of negative cost. The remaining distances prove that no plan is smaller.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from kctl.reassign.planner.bounds import copies_needed, copies_proven
from kctl.reassign.planner.chains import Swap, apply_chain, cancel_cycles, cheapest_chain, drain
from kctl.reassign.planner.leveling import level_out, one_group, settle, targets_met
from kctl.reassign.planner.placement import PlacementState
from kctl.reassign.planner.rules import Rules
from kctl.reassign.planner.targets import Targets

_PAIRS = 40_000_000  # pairs of brokers that a proof may examine: about a minute
_LEADER_PAIRS = 100_000  # likewise, to keep leaders in place: about a second


def plan_moves(
    rules: Rules, targets: Targets, room_bytes: dict[int, int], *, even: bool = True
) -> tuple[PlacementState, int]:
    """Return the final place of all replicas, and the copies that any equally even plan needs. See PlacementState.

    even: if False, meet the targets only as far as that costs no copy. A replica that fits on no disk stays VACANT, or
    where it was: see kctl.reassign.planner.plan.
    """
    least_copies = copies_needed(rules, targets)
    placement = PlacementState(rules, room_bytes)
    _choose_again(placement, targets)
    _fill_vacancies(placement, targets.least)
    _push_straight(placement, targets)
    if len(targets.total) == 1 and all(
        load >= least for load, least in zip(placement.loads, targets.least, strict=True)
    ):
        _fill_vacancies(placement, targets.most)
    if not even:
        targets = _place_the_rest(placement, targets)
    _push_by_one_between(placement, targets)
    settle(placement, targets, rules.vacant)
    _fill_anywhere(placement)
    if not targets_met(placement, targets):
        targets = level_out(placement, rules.hosts, targets)
        least_copies = copies_needed(rules, targets)
    if placement.copies > least_copies:
        least_copies = max(least_copies, _prove(placement, targets))
    _keep_leaders(placement)
    return placement, least_copies


def _place_the_rest(placement: PlacementState, targets: Targets) -> Targets:
    """Fill the vacancies that have no direct move, at one copy each; return targets that accept any load."""
    loads, vacant = placement.loads, placement.rules.vacant
    drain(
        placement,
        lambda: [vacant] if loads[vacant] else [],
        lambda: [b for b in placement.rules.hosts if loads[b] < targets.most[b]],
        up_to=1,
    )
    _fill_vacancies(placement, [len(placement.replicas)] * placement.n)
    n = placement.n - 1
    return one_group([0] * placement.n, [len(placement.replicas)] * n + [0], loads, placement.rules.hosts)


def _choose_again(placement: PlacementState, targets: Targets) -> None:
    """Reconsider the dropped replicas: another replica of the partition may be a better choice, at no cost."""
    if any(placement.home[1].values()):
        loads, everywhere = placement.loads, [placement.rules.vacant, *placement.nodes]
        drain(
            placement,
            lambda: [b for b in everywhere if loads[b] > targets.most[b]],
            lambda: [b for b in placement.nodes if loads[b] < targets.least[b]],
            up_to=0,
        )


def _fill_vacancies(placement: PlacementState, limit: list[int]) -> None:
    """Place each vacancy on the allowed broker that is furthest below its limit."""
    vacant = placement.rules.vacant
    racks: dict[int, list[tuple[int, int]]] = {}
    for node in placement.rules.hosts:
        if placement.loads[node] < limit[node]:
            racks.setdefault(placement.racks[node], []).append((placement.loads[node] - limit[node], node))
    for heap in racks.values():
        heapify(heap)
    top = [(heap[0][0], rack) for rack, heap in racks.items()]
    heapify(top)
    for p in list(placement.logs[1][vacant]) if placement.loads[vacant] else ():
        while vacant in placement.replicas[p] and top and _fill(placement, p, top, racks):
            pass


def _fill(
    placement: PlacementState, p: int, top: list[tuple[int, int]], racks: dict[int, list[tuple[int, int]]]
) -> bool:
    """Place one vacancy of p; return False if no rack with a deficit may hold it."""
    aside: list[tuple[int, int]] = []
    placed = False
    while top and not placed:
        entry = heappop(top)
        heap = racks[entry[1]]
        skipped = []
        if placement.opens(p, placement.rules.vacant, entry[1]):
            while heap and not placement.fits(p, heap[0][1]):
                skipped.append(heappop(heap))
            if heap:
                lack, node = heap[0]
                placement.swap(p, placement.rules.vacant, node)
                placed = True
                if lack + 1 < 0:
                    heapreplace(heap, (lack + 1, node))
                else:
                    heappop(heap)
        for other in skipped:
            heappush(heap, other)
        if heap:
            aside.append((heap[0][0], entry[1]))
    for entry in aside:
        heappush(top, entry)
    return placed


def _push_straight(placement: PlacementState, targets: Targets) -> None:
    """Move surplus directly to brokers below their target, those with the largest deficit first."""
    loads, least, most = placement.loads, targets.least, targets.most
    lacking = [node for node in placement.rules.hosts if loads[node] < least[node]]
    for a in placement.nodes:
        heap = [(loads[b] - least[b], b) for b in lacking if loads[b] < least[b]]
        heapify(heap)
        while heap and loads[a] > most[a]:
            lack, b = heap[0]
            p = placement.find(a, b, 1)
            if p < 0:
                heappop(heap)
                continue
            placement.swap(p, a, b)
            if lack + 1 < 0:
                heapreplace(heap, (lack + 1, b))
            else:
                heappop(heap)


def _push_by_one_between(placement: PlacementState, targets: Targets) -> None:
    """Apply many chains at once, each of two copies through one other broker.

    None of them costs more than necessary, because all chains of one copy are used first, and pushing along a cheapest
    chain creates no cheaper one.
    """
    loads, least, most, vacant = placement.loads, targets.least, targets.most, placement.rules.vacant
    hosts = placement.rules.hosts

    def surplus() -> list[int]:
        return [b for b in (vacant, *placement.nodes) if loads[b] > most[b]]

    def lacking() -> list[int]:
        return [b for b in hosts if loads[b] < least[b]]

    drain(placement, surplus, lacking, up_to=1)
    for a in surplus():
        for x in hosts:
            for b in lacking() if x != a else ():
                while loads[a] > most[a] and loads[b] < least[b] and b != x:
                    p = placement.find(a, x, 1)
                    q = placement.find(x, b, 1, frozenset({p})) if p >= 0 else -1
                    if q < 0:
                        break
                    placement.swap(p, a, x)
                    placement.swap(q, x, b)


def _fill_anywhere(placement: PlacementState) -> None:
    """Fill the remaining vacancies on any broker with room: full disks may prevent an even plan."""
    vacant = placement.rules.vacant
    drain(placement, lambda: [vacant] if placement.loads[vacant] else [], lambda: placement.rules.hosts)


def _keep_leaders(placement: PlacementState) -> None:
    """Return preferred leaders to their brokers if followers of other partitions can move for as many copies."""
    leaving, brokers = placement.rules.leaving, placement.rules.cluster.brokers
    placement.leaders_stay = True
    chains = _LEADER_PAIRS // len(placement.nodes) ** 2
    for p, original in enumerate(placement.original):
        first = original[0]
        if first in placement.replicas[p] or first in leaving or not brokers[first].alive:
            continue
        back = [b for b in placement.replicas[p] if placement.legal(p, b, first)]
        if not any(_bring_back(placement, p, b, first, straight=True) for b in back) and chains > 0:
            chains -= 1
            any(_bring_back(placement, p, b, first, straight=False) for b in back)
    placement.leaders_stay = False


def _bring_back(placement: PlacementState, p: int, b: int, first: int, *, straight: bool) -> bool:
    """Return p's replica from b to first, and move another partition's follower from first to b, at no extra copy.

    straight: if False, use a chain of followers of several partitions. Return False, with no change, if there is none.
    """
    copies, avoid = placement.copies, frozenset({p})
    placement.swap(p, b, first)
    gained = copies - placement.copies
    if straight:
        edge = placement.edge(first, b, gained + 1, avoid)
        steps = [Swap(edge[0], first, b)] if edge else []
    else:
        chain = cheapest_chain(placement, [first], {b}, gained, gained, avoid)
        steps = chain[1] if chain is not None and chain[0] <= gained else []
    if steps and apply_chain(placement, steps) is None:
        return True
    placement.swap(p, first, b)
    return False


def _prove(placement: PlacementState, targets: Targets) -> int:
    """Improve to the optimum and return the bound that proves it; 0 if the budget was not enough."""
    prices = cancel_cycles(placement, targets, rounds=_PAIRS // len(placement.nodes) ** 2)
    return 0 if prices is None else copies_proven(placement.rules, targets, prices)
