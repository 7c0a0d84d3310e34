"""The placement of replicas during planning: which replicas can move between two brokers, and at which cost.

The cost of moving a replica of p from broker a to b, in replicas to copy, is +1 if b is new to p, and -1 if a was new
to p (the copy to a is no longer needed). If each possible move is an edge a → b, the cheapest chains over brokers equal
those of the full network partition → rack → broker (a path there enters and leaves a partition by one such swap).

Edges are searched, not stored. Each broker has a log of the partitions with a replica on it, and each (broker, rack)
and (broker, broker) has a position in that log before which no partition can move. A skipped partition can move again
only after its replicas change, and it is then appended to the logs again. So all searches together read each entry once
per rack.
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.reassign.planner.rules import Rules


class PlacementState:
    """The current placement. replicas[p]: broker indexes, VACANT for a replica without a place; loads: per broker."""

    def __init__(self, rules: Rules, room_bytes: dict[int, int]) -> None:
        """Start from rules.start. room_bytes: bytes that a broker (index) can still receive; absent: any amount."""
        self.rules = rules
        self.racks = rules.racks
        self.original = rules.original
        self.replicas = rules.start
        self.room = room_bytes
        self.size = rules.cluster.size_bytes
        n = len(self.racks)
        self.n = n
        self.places = max(self.racks) + 1
        self.loads = [0] * n
        self.copies = 0
        self.leaders_stay = False  # True: preferred leaders do not move; searches then skip them permanently
        # log 0: replicas new to their broker; log 1: original replicas, including vacancies
        self.logs: tuple[list[list[int]], list[list[int]]] = ([[] for _ in range(n)], [[] for _ in range(n)])
        self.rack_at: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.broker_at: tuple[dict[int, int], dict[int, int]] = ({}, {})
        # like the logs: a·n + b → partitions that were on b, may return to it, and have a replica on a; and positions
        self.home: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
        self.home_at: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._returns = [node not in rules.leaving for node in range(n)]
        hosts = set(rules.hosts)
        self.receives = [node in hosts for node in range(n)]
        self.nodes = [node for node in range(n - 1) if self._returns[node]]
        self._fill()

    def _fill(self) -> None:
        old = self.logs[1]
        changed_partitions = []
        for p, row in enumerate(self.replicas):
            for node in row:
                old[node].append(p)
            if len(row) != len(self.original[p]) or self.rules.vacant in row:
                changed_partitions.append(p)
        for node, log in enumerate(old):
            self.loads[node] = len(log)
            # Brokers start at different positions, so that few partitions lose two replicas. Partitions that a broker
            # does not lead come first, so that few lose their leader.
            cut = node * len(log) // self.n
            rotated_log = log[cut:] + log[:cut]
            led = [p for p in rotated_log if self.original[p][0] == node]
            old[node] = [p for p in rotated_log if self.original[p][0] != node] + led
        for p in changed_partitions:
            self._note_homes(p, [node for node in self.replicas[p] if node != self.original[p][0]])
        for p in changed_partitions:
            self._note_homes(p, self.original[p][:1])

    def _note_homes(self, p: int, nodes: Sequence[int]) -> None:
        """Record that p's replicas on the nodes may return to their original brokers."""
        row, original, vacant = self.replicas[p], self.original[p], self.n - 1
        for back in original:
            if back not in row and self._returns[back]:
                for node in nodes:
                    if node in row:
                        home = self.home[node in original or node == vacant]
                        home.setdefault(node * self.n + back, []).append(p)

    def may(self, p: int, a: int, b: int) -> bool:
        """Return True if p's replica on a may move to b. (a and b differ; a holds a replica.)"""
        row = self.replicas[p]
        if b in row or (self.leaders_stay and self.original[p][0] == a):
            return False
        rack, racks, in_rack = self.racks[b], self.racks, 0
        for node in row:
            if racks[node] == rack:
                in_rack += 1
        if racks[a] == rack:
            in_rack -= 1
        if in_rack and in_rack >= self.rules.limit(p, rack):
            return False
        return b not in self.room or b in self.original[p] or self.size[p] <= self.room[b]

    def fits(self, p: int, b: int) -> bool:
        """Return True if b may hold a replica of p, ignoring the rack limit."""
        if b in self.replicas[p]:
            return False
        return b not in self.room or b in self.original[p] or self.size[p] <= self.room[b]

    def opens(self, p: int, a: int, rack: int) -> bool:
        """Return True if the rack has room for p's replica on a."""
        racks, in_rack = self.racks, 0
        for node in self.replicas[p]:
            if racks[node] == rack:
                in_rack += 1
        if racks[a] == rack:
            in_rack -= 1
        return not in_rack or in_rack < self.rules.limit(p, rack)

    def edge(self, a: int, b: int, below: int, avoid: frozenset[int]) -> tuple[int, int] | None:
        """Return the cheapest replica that can move from a to b and its cost (-1, 0, 1), if less than below."""
        if below < 0:
            return None
        if (p := self._find_home(a, b, 0, avoid)) >= 0:
            return p, -1
        if below > 0:
            if (p := self._find_home(a, b, 1, avoid)) >= 0 or (p := self.find(a, b, 0, avoid)) >= 0:
                return p, 0
            if below > 1 and (p := self.find(a, b, 1, avoid)) >= 0:
                return p, 1
        return None

    def find(self, a: int, b: int, old: int, avoid: frozenset[int] = frozenset()) -> int:
        """Return a partition that can move from a to b and is new to b, -1 if there is none.

        old: 1 for a replica that was on a originally (cost 1), else 0. avoid: partitions to skip in this search.
        """
        log = self.logs[old][a]
        if not log or not self.receives[b]:
            return -1
        end, rack, rows = len(log), self.racks[b], self.replicas
        at_rack, at_broker = self.rack_at[old], self.broker_at[old]
        i = start = at_rack.get(a * self.places + rack, 0)
        while i < end and not (a in rows[log[i]] and self.opens(log[i], a, rack)):
            i += 1
        if i != start:
            at_rack[a * self.places + rack] = i
        key = a * self.n + b
        j = start = max(i, at_broker.get(key, 0))
        first_avoided = -1  # the first partition skipped only because of avoid: later searches start there
        while j < end:
            p = log[j]
            if a in rows[p] and b not in self.original[p] and self.may(p, a, b):
                if p not in avoid:
                    break
                first_avoided = j if first_avoided < 0 else first_avoided
            j += 1
        if j != start:
            at_broker[key] = j if first_avoided < 0 else first_avoided
        return log[j] if j < end else -1

    def _find_home(self, a: int, b: int, old: int, avoid: frozenset[int]) -> int:
        """Return a partition on a that was on b originally and may return, -1 if there is none. old: see find."""
        key = a * self.n + b
        entries = self.home[old].get(key)
        if not entries:
            return -1
        i = start = self.home_at[old].get(key, 0)
        first_avoided, end, rows = -1, len(entries), self.replicas
        while i < end:
            p = entries[i]
            if a in rows[p] and self.may(p, a, b):
                if p not in avoid:
                    break
                first_avoided = i if first_avoided < 0 else first_avoided
            i += 1
        if i != start:
            self.home_at[old][key] = i if first_avoided < 0 else first_avoided
        return entries[i] if i < end else -1

    def legal(self, p: int, a: int, b: int) -> bool:
        return a in self.replicas[p] and self.may(p, a, b) and (self.receives[b] or b in self.original[p])

    def swap(self, p: int, a: int, b: int) -> None:
        """Move p's replica from a to b."""
        row = self.replicas[p]
        row[row.index(a)] = b
        self.loads[a] -= 1
        self.loads[b] += 1
        original = self.original[p]
        if b not in original and b != self.n - 1:
            self.copies += 1
            if b in self.room:
                self.room[b] -= self.size[p]
        if a not in original and a != self.n - 1:
            self.copies -= 1
            if a in self.room:
                self.room[a] += self.size[p]
                for places in self.broker_at:  # replicas that did not fit may fit now
                    for x in range(self.n):
                        places.pop(x * self.n + a, None)
        for node in set(row):
            self.logs[node in original or node == self.n - 1][node].append(p)
        self._note_homes(p, row)
