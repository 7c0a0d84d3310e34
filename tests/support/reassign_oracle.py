"""The exact solution for small clusters, by a min-cost flow that shares no code with kctl's planner.

source → partition (w units) → (partition, rack) (limit) → broker (1 unit; cost 0 for an existing replica, else 1 copy)
→ sink, where the l-th replica of a broker costs 2·l + 1 times more than all copies together: the cheapest flow is the
most even placement (least sum of squares), among these with the fewest copies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

EVEN = 10_000
KEEP = -10_000_000


class Flow:
    """A flow by successive shortest paths (Bellman-Ford): slow, short, exact."""

    def __init__(self) -> None:
        self.arcs: list[list[int]] = []  # to, capacity, cost; arc i ^ 1 is the reverse of i
        self.out: dict[object, list[int]] = {}
        self.ends: list[object] = []

    def arc(self, a: object, b: object, room: int, cost: int = 0) -> int:
        for end, start, amount, price in ((b, a, room, cost), (a, b, 0, -cost)):
            self.out.setdefault(start, []).append(len(self.arcs))
            self.ends.append(end)
            self.arcs.append([amount, price])
        return len(self.arcs) - 2

    def push(self, source: object, sink: object) -> int:
        """Send as much as possible. Return the amount."""
        sent = 0
        while True:
            distance, came = {source: 0}, {}
            queue = [source]
            while queue:
                node = queue.pop(0)
                for i in self.out[node]:
                    room, cost = self.arcs[i]
                    end = self.ends[i]
                    if room and distance[node] + cost < distance.get(end, 1 << 60):
                        distance[end], came[end] = distance[node] + cost, i
                        if end not in queue:
                            queue.append(end)
            if sink not in distance:
                return sent
            sent += 1
            node = sink
            while node != source:
                i = came[node]
                self.arcs[i][0] -= 1
                self.arcs[i ^ 1][0] += 1
                node = self.ends[i ^ 1]


def fewest_copies(
    partitions: Sequence[tuple[Collection[int], int]],
    hosts: Collection[int],
    leaving: Collection[int],
    rack_of: Sequence[int],
    limit: Callable[[int, int], int],
) -> tuple[int, int]:
    """Return (sum of squares of the hosts' loads, copies) of the best placement. partitions: (replicas, target)."""
    flow = Flow()
    wanted = 0
    choices: list[tuple[int, int, int]] = []
    for p, (now, count) in enumerate(partitions):
        wanted += count
        flow.arc("source", ("p", p), count)
        allowed = set(hosts) | (set(now) - set(leaving))
        for rack in sorted({rack_of[b] for b in allowed}):
            flow.arc(("p", p), ("pr", p, rack), limit(p, rack))
        for b in sorted(allowed):
            kept = KEEP if b not in hosts else 0  # brokers that may not receive replicas keep theirs
            choices.append((p, b, flow.arc(("pr", p, rack_of[b]), ("b", b), 1, (b not in now) + kept)))
    for b in sorted({b for _, b, _ in choices}):
        for load in range(len(partitions)):
            flow.arc(("b", b), "sink", 1, EVEN * (2 * load + 1) if b in hosts else 0)
    assert flow.push("source", "sink") == wanted, "no placement at all"
    taken = [(p, b) for p, b, i in choices if not flow.arcs[i][0]]
    return squares((b for _, b in taken), hosts), sum(b not in partitions[p][0] for p, b in taken)


def fewest_leader_changes(
    rows: Sequence[Sequence[int]], firsts: Sequence[int], hosts: Collection[int]
) -> tuple[int, int]:
    """Return (sum of squares of preferred leaders per broker, changes). All brokers of rows are hosts."""
    flow = Flow()
    choices = []
    for p, row in enumerate(rows):
        flow.arc("source", ("p", p), 1)
        choices += [(p, b, flow.arc(("p", p), ("b", b), 1, b != firsts[p])) for b in row]
    for b in sorted(hosts):
        for load in range(len(rows)):
            flow.arc(("b", b), "sink", 1, EVEN * (2 * load + 1))
    assert flow.push("source", "sink") == len(rows)
    taken = [(p, b) for p, b, i in choices if not flow.arcs[i][0]]
    return squares((b for _, b in taken), hosts), sum(b != firsts[p] for p, b in taken)


def squares(brokers: Iterable[int], hosts: Collection[int]) -> int:
    loads = dict.fromkeys(hosts, 0)
    for b in brokers:
        if b in loads:
            loads[b] += 1
    return sum(load * load for load in loads.values())
