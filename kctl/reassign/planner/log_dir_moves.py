"""Balance the log dirs within each broker by moves between them (KIP-113); no replica changes brokers.

Each log dir gets its share of the broker's bytes within a tolerance: equal shares, or in proportion to the disks if
their sizes are known. If bytes are unknown or zero, replicas are counted, and the number of moves is minimal. With
bytes, the minimum is as hard as bin packing: replicas are moved or exchanged one by one, those with the closest size
first, and a bound shows how good the result is.

The original keeps its space until the copy is complete, so a log dir never receives more than its usable bytes. Log
dirs with identical sizes are treated as folders of one disk, and share its space.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from kctl.reassign.planner.byte_balance import DEFAULT_TOLERANCE, count_to
from kctl.reassign.planner.disks import BrokerDisks

_TRIES = 64  # replicas to try for one exchange
_WORTH = 20  # a step that misses the goal must reduce the distance by a twentieth of the bytes that it copies
_FAR = 1 << 62


class LogDirMove(NamedTuple):
    """A move of a replica of a partition (row of the cluster) from one log dir of its broker (id) to another."""

    partition: int
    broker: int
    source: str
    target: str
    size_bytes: int  # UNKNOWN (-1) if unknown


@dataclass(frozen=True, slots=True)
class LogDirLoad:
    """The load of a log dir. usable_bytes: as reported, None if unknown."""

    broker: int
    path: str
    replicas: int
    bytes: int
    usable_bytes: int | None


@dataclass(slots=True)
class LogDirPlan:
    """Moves within brokers. lower_bound, bytes_lower_bound: no plan with the same balance needs less."""

    moves: list[LogDirMove] = field(default_factory=list)
    lower_bound: int = 0
    bytes_lower_bound: int = 0
    before: list[LogDirLoad] = field(default_factory=list)
    after: list[LogDirLoad] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(max(0, move.size_bytes) for move in self.moves)


def plan_log_dirs(
    brokers: Iterable[BrokerDisks],
    *,
    leaving: Mapping[int, Collection[int]] | None = None,
    fixed: Collection[int] = (),
    tolerance: float = 0.0,
    max_moves: int | None = None,
    max_bytes: int | None = None,
) -> LogDirPlan:
    """Balance the log dirs of each broker.

    leaving: broker id → partitions whose replica leaves the broker. fixed: partitions that keep their log dirs.
    tolerance: allowed deviation from a log dir's share; 0: the default for bytes, floor and ceil for replicas.
    """
    plan = LogDirPlan()
    deferred = 0
    moves_room, bytes_room = (_FAR if n is None else n for n in (max_moves, max_bytes))
    for disks in sorted(brokers, key=lambda each: each.broker):
        balancer = _LogDirBalancer(disks, frozenset((leaving or {}).get(disks.broker, ())), frozenset(fixed), tolerance)
        plan.before += balancer.loads(balancer.at_first)
        balancer.run()
        bound, bytes_bound = balancer.bounds()
        for move in balancer.moves():
            if moves_room < 1 or bytes_room < max(0, move.size_bytes):
                deferred += 1
                balancer.undo(move.partition)
                continue
            moves_room, bytes_room = moves_room - 1, bytes_room - max(0, move.size_bytes)
            plan.moves.append(move)
        plan.lower_bound += bound
        plan.bytes_lower_bound += bytes_bound
        plan.after += balancer.loads(balancer.place)
        plan.unmet += [] if deferred else balancer.missed()
    if deferred:
        plan.lower_bound, plan.bytes_lower_bound = max(0, plan.lower_bound - deferred), 0
        moves = "1 move between log dirs is" if deferred == 1 else f"{deferred} moves between log dirs are"
        plan.unmet.append(f"{moves} left for another plan (--max-moves or --max-bytes)")
    return plan


class _LogDirBalancer:
    """The log dirs of one broker. weight: bytes of a replica, or 1 if replicas are counted."""

    def __init__(self, disks: BrokerDisks, leaving: frozenset[int], fixed: frozenset[int], tolerance: float) -> None:
        self.disks = disks
        self.size = {p: size for p, (_, size) in disks.replicas.items() if p not in leaving}
        self.at_first = {p: disks.replicas[p][0] for p in self.size}
        self.place = dict(self.at_first)
        total_bytes = sum(max(0, size) for size in self.size.values())
        self.by_bytes = total_bytes > 0 and min(self.size.values(), default=0) >= 0
        self.load = [disk.fixed_bytes if self.by_bytes else disk.fixed_replicas for disk in disks.disks]
        self.on: list[list[tuple[int, int, int]]] = [[] for _ in disks.disks]  # weight, bytes, partition
        for p, place in self.place.items():
            self.load[place] += self.weight(p)
            if p not in fixed:
                self.on[place].append((self.weight(p), max(0, self.size[p]), p))
        for rows in self.on:
            rows.sort()
        self.low, self.high = self._limits(tolerance)
        self.room, self.pool = _room(disks)

    def weight(self, p: int) -> int:
        return self.size[p] if self.by_bytes else 1

    def _limits(self, tolerance: float) -> tuple[list[int], list[int]]:
        totals = [disk.total_bytes or 0 for disk in self.disks.disks]
        if not self.by_bytes or min(totals, default=0) <= 0:
            totals = [1] * len(totals)
        slack = Fraction(str(tolerance or (DEFAULT_TOLERANCE if self.by_bytes else 0)))
        shares = [Fraction(sum(self.load) * total, sum(totals)) for total in totals]
        return (
            [min(floor(share), ceil(share * (1 - slack))) for share in shares],
            [max(ceil(share), floor(share * (1 + slack))) for share in shares],
        )

    # --- improving ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        budget = 4 * len(self.place) + 100
        while budget and self._improve():
            budget -= 1

    def off(self, place: int) -> int:
        """Return how much a log dir exceeds its limit, or (negative) falls short of it."""
        return max(0, self.load[place] - self.high[place]) or min(0, self.load[place] - self.low[place])

    def _improve(self) -> bool:
        """Move or exchange replicas once to bring two log dirs closer to their shares; False if nothing helps."""
        order = sorted(range(len(self.load)), key=lambda d: (self.load[d] - self.high[d], d))
        over = [d for d in reversed(order) if self.off(d) > 0]
        under = [d for d in order if self.off(d) < 0]
        pairs = [(a, b) for a in over for b in order if a != b]
        pairs += [(a, b) for b in under for a in reversed(order) if a != b and a not in over]
        return any(self._move_one(a, b) for a, b in pairs) or any(self._exchange(a, b) for a, b in pairs)

    def _violation(self, a: int, b: int, weight: int) -> int:
        """Return how far two log dirs are off in total after moving a weight from a to b."""
        x, y = self.load[a] - weight, self.load[b] + weight
        return max(0, x - self.high[a]) + max(0, self.low[a] - x) + max(0, y - self.high[b]) + max(0, self.low[b] - y)

    def _weight_range(self, a: int, b: int) -> tuple[int, int]:
        """Return the range of the best weight to move from a to b."""
        needed = max(self.load[a] - self.high[a], self.low[b] - self.load[b])
        most = min(self.load[a] - self.low[a], self.high[b] - self.load[b])
        return (needed, most) if needed <= most else (most, needed)

    def _move_one(self, a: int, b: int) -> bool:
        rows, (least, most) = self.on[a], self._weight_range(a, b)
        if not self.by_bytes:
            most = min(most, 1)
        first = bisect_left(rows, (least, -1, -1))
        last = bisect_right(rows, (most, _FAR, _FAR))
        fits = bisect_right(rows, (self.room[self.pool[b]], _FAR, _FAR)) if self.by_bytes else len(rows)
        near = {first, first - 1, last, last - 1, fits - 1} & set(range(min(fits, len(rows))))
        now = self._violation(a, b, 0)
        best = min(
            ((self._violation(a, b, rows[i][0]), rows[i]) for i in near if rows[i][1] <= self.room[self.pool[b]]),
            default=None,
        )
        if best is None or not _pays(now, best[0], best[1][0]):
            return False
        self._apply(best[1], a, b)
        return True

    def _exchange(self, a: int, b: int) -> bool:
        """Exchange a larger replica of a for a smaller one of b."""
        if not self.by_bytes:
            return False
        now, (least, most) = self._violation(a, b, 0), self._weight_range(a, b)
        best: tuple[int, int, tuple[int, int, int], tuple[int, int, int]] | None = None
        for p in self.on[a][: -_TRIES - 1 : -1]:
            for q in self._partners(b, p[0], least, most):
                if p[1] <= self.room[self.pool[b]] and q[1] <= self.room[self.pool[a]]:
                    step = (self._violation(a, b, p[0] - q[0]), p[0] + q[0], p, q)
                    best = step if best is None or step < best else best
        if best is None or not _pays(now, best[0], best[1]):
            return False
        self._apply(best[2], a, b)
        self._apply(best[3], b, a)
        return True

    def _partners(self, b: int, weight: int, least: int, most: int) -> Iterator[tuple[int, int, int]]:
        rows = self.on[b]
        for target_weight in (weight - most, weight - least):
            at = bisect_left(rows, (target_weight, -1, -1))
            yield from rows[max(0, at - 1) : at + 1]

    def _apply(self, row: tuple[int, int, int], a: int, b: int) -> None:
        weight, size, p = row
        del self.on[a][bisect_left(self.on[a], row)]
        insort(self.on[b], row)
        self.load[a] -= weight
        self.load[b] += weight
        self.place[p] = b
        # The original occupies its space until the copy is complete; a step that is undone needs no space.
        for place, sign in ((a, 1), (b, -1)):
            if self.at_first[p] != place:
                self.room[self.pool[place]] += sign * size

    # --- the result ---------------------------------------------------------------------------------------------------

    def moves(self) -> list[LogDirMove]:
        """Return the moves, the smallest first, so that a limit omits few."""
        paths = [disk.path for disk in self.disks.disks]
        moved = sorted((self.size[p], p) for p, place in self.place.items() if place != self.at_first[p])
        return [
            LogDirMove(p, self.disks.broker, paths[self.at_first[p]], paths[self.place[p]], size) for size, p in moved
        ]

    def undo(self, p: int) -> None:
        self.place[p] = self.at_first[p]

    def missed(self) -> list[str]:
        off = [self.disks.disks[d].path for d in range(len(self.load)) if self.off(d)]
        if not off:
            return []
        unit = "bytes" if self.by_bytes else "replicas"
        names = ", ".join(off[:3]) + (" …" if len(off) > 3 else "")
        reason = "large partitions, or too little disk space"
        return [f"log dirs of broker {self.disks.broker} do not reach their share of {unit} ({reason}): {names}"]

    def bounds(self) -> tuple[int, int]:
        """Return the moves and bytes that any plan needs to bring all log dirs as close to their limits as this plan.

        The surplus of a log dir must leave it, with at least as many replicas as its largest that add up to it. A
        deficit must be copied to it, with at least as many as the largest elsewhere that add up to it.
        """
        start: list[list[int]] = [[] for _ in self.load]
        for p, place in self.at_first.items():
            start[place].append(self.weight(p))
        furthest = max((abs(self.off(d)) for d in range(len(self.load))), default=0)
        surplus = surplus_moves = deficit = deficit_moves = 0
        for d, disk in enumerate(self.disks.disks):
            current = sum(start[d]) + (disk.fixed_bytes if self.by_bytes else disk.fixed_replicas)
            over, under = current - self.high[d] - furthest, self.low[d] - furthest - current
            if over > 0:
                surplus += over
                surplus_moves += count_to(sorted(start[d], reverse=True), over)
            if under > 0:
                deficit += under
                others = [w for other, weights in enumerate(start) if other != d for w in weights]
                deficit_moves += count_to(sorted(others, reverse=True), under)
        return max(surplus_moves, deficit_moves), max(surplus, deficit) if self.by_bytes else 0

    def loads(self, place: Mapping[int, int]) -> list[LogDirLoad]:
        replicas = [disk.fixed_replicas for disk in self.disks.disks]
        size = [disk.fixed_bytes for disk in self.disks.disks]
        for p, d in place.items():
            replicas[d] += 1
            size[d] += max(0, self.size[p])
        return [
            LogDirLoad(self.disks.broker, disk.path, replicas[d], size[d], disk.usable_bytes)
            for d, disk in enumerate(self.disks.disks)
        ]


def _pays(before: int, after: int, copied: int) -> bool:
    """Return True if reducing the violation justifies the bytes that the step copies."""
    return after < before and (after == 0 or (before - after) * _WORTH >= copied)


def _room(disks: BrokerDisks) -> tuple[list[int], list[int]]:
    """Return the usable bytes of each disk, and the disk of each log dir."""
    pools: dict[object, int] = {}
    room: list[int] = []
    pool: list[int] = []
    for number, disk in enumerate(disks.disks):
        key: object = (disk.total_bytes, disk.usable_bytes)
        if disk.usable_bytes is None or disk.total_bytes is None:
            key = number
        if key not in pools:
            pools[key] = len(room)
            room.append(_FAR if disk.usable_bytes is None else disk.usable_bytes)
        pool.append(pools[key])
    return room, pool


def paths_of(moves: Sequence[LogDirMove]) -> dict[int, dict[int, tuple[str, str]]]:
    """Return partition → broker id → (from, to)."""
    paths: dict[int, dict[int, tuple[str, str]]] = {}
    for move in moves:
        paths.setdefault(move.partition, {})[move.broker] = (move.source, move.target)
    return paths
