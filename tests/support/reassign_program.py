"""The smallest plan as an integer program, written from the rules alone, without kctl's planner.

x(p, b): partition p has a replica on broker b. y(p, b): b is its preferred leader.

1. Σ over b of x(p, b) is p's replication factor. x exists only for brokers that may hold p: those that may receive,
   and those that hold it already and are not emptied, which keep it.
2. In each rack p has at most ceil(factor ÷ racks) replicas: more only if the racks are too small otherwise and, if
   racks are not to be fixed, as many as it has there already.
3. Loads of brokers that may receive are as even as the rules allow (least sum of squares), or within the tolerance.
4. Of all such placements, one with the fewest x(p, b) that are new.
5. Of these, leaders as even as possible, if requested; and of these the fewest new leaders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from integer_program import FREE, Program

Cells = dict[tuple[int, int], int]  # (partition, broker) → variable


@dataclass(frozen=True)
class Wish:
    """A cluster (rack of each broker, replicas of each partition, preferred leader first) and the goals.

    hosts: brokers that may receive; emptied: those that must end empty. tolerance: how far a host's replicas may be
    from the mean, as a share of it; None: no limit. leader_tolerance: the same for preferred leaders.
    """

    racks: Sequence[str | None]
    rows: Sequence[Sequence[int]]
    hosts: frozenset[int]
    emptied: frozenset[int] = frozenset()
    factor: int | None = None
    fix_racks: bool = False
    tolerance: float | None = 0.0
    leader_tolerance: float | None = None


@dataclass(frozen=True)
class Smallest:
    """moves: replicas to copy. leader_changes: the fewest among plans with this number of moves."""

    moves: int
    leader_changes: int


def smallest_plan(wish: Wish) -> Smallest | None:
    """Return the smallest plan; None if no plan satisfies the rules, or racks rule out loads within the tolerance."""
    program = Program()
    x = _placements(wish, program)
    if wish.tolerance is not None and not _spread(wish, program, x, wish.tolerance):
        return None
    moved = {i: 1 for (p, b), i in x.items() if b not in wish.rows[p]}
    if (found := program.smallest(moved)) is None:
        return None
    moves = found[0]
    program.row(0, moved, moves)
    y = _leaders(wish, program, x)
    if wish.leader_tolerance is not None and not _spread(wish, program, y, wish.leader_tolerance):
        return None
    changed = {i: 1 for (p, b), i in y.items() if b != wish.rows[p][0]}
    best = program.smallest(changed)
    assert best is not None
    return Smallest(moves, best[0])


def _placements(wish: Wish, program: Program) -> Cells:
    """Add rules 1 and 2."""
    x: Cells = {}
    racked = all(wish.racks[b] is not None for b in wish.hosts)
    for p, row in enumerate(wish.rows):
        factor = wish.factor or len(row)
        stays = set(row) - wish.emptied
        mine = sorted(wish.hosts | stays)
        for b in mine:
            x[p, b] = program.variable(low=int(b not in wish.hosts))
        program.equal({x[p, b]: 1 for b in mine}, factor)
        if racked:
            most = _most_in_a_rack(wish, factor)
            for rack in sorted({str(wish.racks[b]) for b in mine}):
                held = 0 if wish.fix_racks else sum(wish.racks[b] == rack for b in stays)
                program.row(0, {x[p, b]: 1 for b in mine if wish.racks[b] == rack}, max(most, held))
    return x


def _most_in_a_rack(wish: Wish, factor: int) -> int:
    names = [wish.racks[b] for b in wish.hosts]
    sizes = [names.count(rack) for rack in set(names)]
    most = ceil(factor / len(sizes))
    while most < factor and sum(min(most, size) for size in sizes) < factor:
        most += 1
    return most


def _leaders(wish: Wish, program: Program, x: Cells) -> Cells:
    """Add one leader for each partition, among its replicas: a host, or the previous leader."""
    y: Cells = {}
    for p, row in enumerate(wish.rows):
        for b in sorted(wish.hosts | set(row)):
            if (p, b) in x and (b in wish.hosts or b == row[0]):
                y[p, b] = program.variable()
                program.row(-FREE, {y[p, b]: 1, x[p, b]: -1}, 0)
        program.equal({y[p, b]: 1 for b in wish.hosts | set(row) if (p, b) in y}, 1)
    return y


def _spread(wish: Wish, program: Program, cells: Cells, tolerance: float) -> bool:
    """Add rule 3 as rows of the program. Return False if there is no such placement."""
    of: dict[int, dict[int, int]] = {b: {} for b in sorted(wish.hosts)}
    for (_, b), i in cells.items():
        if b in of:
            of[b][i] = 1
    if (found := program.smallest({})) is None:
        return False
    # Replicas of other brokers are fixed, so all placements have the same sum on hosts.
    mean = sum(found[1][i] for terms in of.values() for i in terms) / len(of)
    before = len(program.rows)
    for terms in of.values():
        program.row(floor(mean), terms, ceil(mean))
    reached = program.smallest({}) is not None
    if tolerance and not reached:
        return False
    if tolerance or not reached:
        del program.rows[before:]
    if tolerance:
        low, high = min(floor(mean), ceil(mean * (1 - tolerance))), max(ceil(mean), floor(mean * (1 + tolerance)))
        for terms in of.values():
            program.row(low, terms, high)
    if reached:
        return True
    squares = {}
    for terms in of.values():
        square = program.variable(high=FREE)
        squares[square] = 1
        for k in range(len(terms)):  # above k² + (2k + 1)·(load − k): the smallest integer above all is load²
            program.row(-k * (k + 1), {square: 1, **dict.fromkeys(terms, -2 * k - 1)}, FREE)
    best = program.smallest(squares)
    assert best is not None
    program.row(0, squares, best[0])
    return True
