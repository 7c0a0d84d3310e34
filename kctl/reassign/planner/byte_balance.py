"""Balance bytes: bring each host within a tolerance of the mean, move few bytes, and return a lower bound.

Finding the minimum is as hard as bin packing. Replicas are moved (or exchanged, if counts must stay) from the fullest
host to the emptiest, each with a size as close as possible to the amount needed. The bound shows how good that is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kctl.reassign.planner.placement import PlacementState
from kctl.reassign.planner.targets import Targets

DEFAULT_TOLERANCE = 0.1
_TRIES = 64  # replicas to try for one step between two hosts


@dataclass(frozen=True, slots=True)
class ByteBound:
    """Bounds of a byte balance.

    least, most: limits of the bytes of a host. lower_bound_bytes, lower_bound_moves: no plan copies less.
    """

    least: int
    most: int
    lower_bound_bytes: int
    lower_bound_moves: int
    off: tuple[int, ...]  # hosts that stay outside the limits


def balance_bytes(placement: PlacementState, targets: Targets | None, tolerance: float) -> ByteBound:
    """Move replicas in `placement`. targets: replica counts to keep, None for any. tolerance 0: the default."""
    balancer = _Balancer(placement, targets, tolerance or DEFAULT_TOLERANCE)
    bound = byte_bound(placement, balancer.low, balancer.high)
    budget = 4 * len(placement.replicas) + 100
    while budget and balancer.improve():
        budget -= 1
    off = tuple(b for b in placement.rules.hosts if not balancer.low <= balancer.bytes[b] <= balancer.high)
    return ByteBound(balancer.low, balancer.high, *bound, off)


def byte_bound(placement: PlacementState, low: int, high: int) -> tuple[int, int]:
    """Return the bytes and replicas that any plan must copy for low ≤ bytes ≤ high on each host.

    A deficit must be copied to its host; a surplus, and all data of leaving brokers, must be copied away. A deficit of
    x needs at least as many replicas as the largest replicas of the cluster that add up to x; a surplus of x, as many
    as the host's largest that add up to x. (Original replicas count; the replication factor must not shrink.)
    """
    sizes_on: dict[int, list[int]] = {b: [] for b in range(placement.n)}
    for p, row in enumerate(placement.original):
        for b in row:
            sizes_on[b].append(max(0, placement.size[p]))
    largest = sorted((max(0, size) for size in placement.size), reverse=True)
    lack = lack_moves = excess = excess_moves = 0
    for b in placement.rules.hosts:
        current = sum(sizes_on[b])
        if current < low:
            lack += low - current
            lack_moves += count_to(largest, low - current)
        elif current > high:
            excess += current - high
            excess_moves += count_to(sorted(sizes_on[b], reverse=True), current - high)
    for b in placement.rules.leaving:
        excess += sum(sizes_on[b])
        excess_moves += len(sizes_on[b])
    if any(len(new) < len(old) for new, old in zip(placement.replicas, placement.original, strict=True)):
        excess = excess_moves = 0  # surplus replicas may be dropped instead
    return max(lack, excess), max(lack_moves, excess_moves)


def count_to(sizes: Sequence[int], amount: int) -> int:
    """Return how many of the first sizes add up to the amount."""
    for count, size in enumerate(sizes):
        if amount <= 0:
            return count
        amount -= size
    return len(sizes)


class _Balancer:
    def __init__(self, placement: PlacementState, targets: Targets | None, tolerance: float) -> None:
        self.placement, self.targets = placement, targets
        self.hosts = list(placement.rules.hosts)
        self.bytes = [0] * placement.n
        self.on: dict[int, list[tuple[int, int]]] = {b: [] for b in range(placement.n)}
        for p, row in enumerate(placement.replicas):
            for b in row:
                self.bytes[b] += self.size(p)
                self.on[b].append((self.size(p), p))
        for rows in self.on.values():
            rows.sort()
        mean = sum(self.bytes[b] for b in self.hosts) / len(self.hosts)
        self.stuck: set[int] = set()
        self.changed = False
        self.low, self.high = int(mean * (1 - tolerance)), -int(-mean * (1 + tolerance) // 1)

    def size(self, p: int) -> int:
        return max(0, self.placement.size[p])

    def improve(self) -> bool:
        """Move or exchange replicas once, from a host above the limit or to one below it. False if nothing helps.

        The fullest and the emptiest host come first. A host that no step helps is skipped until another host changes.
        """
        order = sorted(self.hosts, key=lambda b: (self.bytes[b], b))
        for a in reversed(order):
            if self.bytes[a] > self.high and a not in self.stuck:
                if self._any_step((a, b) for b in order):
                    return True
                self.stuck.add(a)
        for b in order:
            if self.bytes[b] < self.low and b not in self.stuck:
                if self._any_step((a, b) for a in reversed(order)):
                    return True
                self.stuck.add(b)
        if not self.changed:
            return False
        self.changed = False
        self.stuck.clear()
        return self.improve()

    def _any_step(self, pairs: Iterable[tuple[int, int]]) -> bool:
        for a, b in pairs:
            if a != b and self._step(a, b):
                self.changed = True
                return True
        return False

    def _step(self, a: int, b: int) -> bool:
        needed = max(self.bytes[a] - self.high, self.low - self.bytes[b])
        most = min(self.bytes[a] - self.low, self.high - self.bytes[b])
        if most <= 0 or needed <= 0:
            return False
        needed = min(needed, most)
        if self._counts_allow(a, b):
            for p in self._near(a, needed, most):
                if self.placement.may(p, a, b):
                    self._move(p, a, b)
                    return True
        return self._exchange(a, b, needed, most)

    def _counts_allow(self, a: int, b: int) -> bool:
        if self.targets is None:
            return True
        loads, same_group = self.placement.loads, self.targets.group[a] == self.targets.group[b]
        return same_group and loads[a] > self.targets.least[a] and loads[b] < self.targets.most[b]

    def _near(self, a: int, needed: int, most: int) -> list[int]:
        """Return replicas on a: from the size needed up to most, then smaller ones."""
        rows = self.on[a]
        at = bisect_left(rows, (needed, -1))
        end = bisect_left(rows, (most + 1, -1))
        start = max(0, at - _TRIES)
        candidates = [*rows[at : min(end, at + _TRIES)], *rows[start : min(at, end)][::-1]]
        return [p for size, p in candidates if size > 0]

    def _exchange(self, a: int, b: int, needed: int, most: int) -> bool:
        """Exchange a larger replica of a for a smaller one of b, with a size difference close to the amount needed."""
        rows = self.on[b]
        pairs = []
        for size, p in self.on[a][: -_TRIES - 1 : -1]:
            if self.placement.may(p, a, b):
                at = max(0, bisect_left(rows, (size - needed, -1)) - 2)
                for other, q in rows[at : at + 4]:
                    if 0 < size - other <= most:
                        pairs.append((abs(size - other - needed), p, q))
        for _, p, q in sorted(pairs):
            self._move(p, a, b)
            if self.placement.legal(q, b, a):
                self._move(q, b, a)
                return True
            self._move(p, b, a)
        return False

    def _move(self, p: int, a: int, b: int) -> None:
        self.placement.swap(p, a, b)
        entry = (self.size(p), p)
        self.on[a].pop(bisect_left(self.on[a], entry))
        insort(self.on[b], entry)
        self.bytes[a] -= entry[0]
        self.bytes[b] += entry[0]
