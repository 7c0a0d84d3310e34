"""A plan: which partitions get which replicas, what that copies, and below which numbers no plan can be.

`document` is Kafka's own reassignment JSON (ReassignPartitionsCommand: version, partitions with topic, partition,
replicas, log_dirs) with more keys beside it, which kafka-reassign-partitions passes over:

    {"version": 1, "partitions": [{"topic", "partition", "replicas", "log_dirs": ["any", …]}],
     "moves", "lower_bound", "leader_changes", "leader_lower_bound", "bytes", "bytes_lower_bound", "unknown_sizes",
     "complete", "unmet": [], "before": [{"broker", "rack", "alive", "replicas", "leaders", "bytes"}], "after": …,
     "racks_before": [{"rack", "replicas", "leaders", "bytes"}], "racks_after": …,
     "current": {"version", "partitions"}, "rollback": the same}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kctl.errors import Refused
from kctl.reassign.byte_balance import ByteBound, balance_bytes
from kctl.reassign.cluster import PlanCluster
from kctl.reassign.goals import Balance, Goals, Roles, resolve
from kctl.reassign.leaders import Leaders, plan_leaders
from kctl.reassign.moves import plan_moves
from kctl.reassign.rules import Rules, make_rules
from kctl.reassign.targets import Targets, replica_targets


class Change(NamedTuple):
    """A partition (its row in the cluster) whose replicas change; broker ids, the preferred leader first."""

    partition: int
    before: list[int]
    after: list[int]


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds. leaders: partitions whose preferred leader it is. bytes: of known sizes."""

    broker: int
    rack: str | None
    alive: bool
    replicas: int
    leaders: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RackLoad:
    rack: str | None
    replicas: int
    leaders: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """moves: replicas to copy; bytes: what that is, of known sizes; unknown_sizes: copies of unknown size.

    lower_bound, leader_lower_bound, bytes_lower_bound: no plan gets as far with less; leader changes are counted for
    the replicas that this plan chose. complete: it reaches the goals; otherwise
    unmet says why not (a limit that was asked for, disks, racks).
    """

    cluster: PlanCluster
    changes: list[Change]
    moves: int
    lower_bound: int
    leader_changes: int
    leader_lower_bound: int
    bytes: int
    bytes_lower_bound: int
    unknown_sizes: int
    before: list[BrokerLoad]
    after: list[BrokerLoad]
    unmet: list[str]

    @property
    def complete(self) -> bool:
        return not self.unmet

    @property
    def minimal(self) -> bool:
        """Is it proven that no plan needs fewer moves or leader changes?"""
        return self.moves <= self.lower_bound and self.leader_changes <= self.leader_lower_bound


def make_plan(cluster: PlanCluster, goals: Goals) -> Plan:
    """The smallest plan. Raises what resolve raises, and Refused where replicas that must go find no broker."""
    roles = resolve(goals, cluster)
    if not len(cluster):
        return _assemble(cluster, [], (0, 0, 0), [])
    rows = cluster.replicas
    bound, bytes_bound, unmet = 0, 0, []
    if goals.moves_data:
        rules = make_rules(cluster, goals, roles)
        forced = [p for p, start in enumerate(rules.start) if rules.vacant in start]
        bytes_bound = sum(max(0, cluster.size_bytes[p]) * rules.start[p].count(rules.vacant) for p in forced)
        targets = replica_targets(rules, goals.tolerance, even=goals.even_replicas)
        board, bound = plan_moves(rules, targets, _room(cluster, roles))
        _check_placed(rules)
        unmet = _missed(rules, targets, board.loads)
        if Balance.BYTES in goals.balance:
            byte_bounds = balance_bytes(board, targets if goals.even_replicas else None, goals.tolerance)
            if not byte_bounds.off:
                bound = max(bound, byte_bounds.lower_bound_moves)
                bytes_bound = max(bytes_bound, byte_bounds.lower_bound_bytes)
            unmet += _missed_bytes(cluster, byte_bounds)
        rows = [_in_order(old, new) for old, new in zip(cluster.replicas, board.replicas, strict=True)]
        rows, left = _limit(cluster, rows, forced, goals)
        if left:
            unmet.append(f"{left} moves are left for another plan: --max-moves or --max-bytes")
            bound, bytes_bound = (
                max(0, bound - left),
                0,
            )  # a plan that leaves no more for later: its moves and those make the whole
    leaders = _leaders(cluster, rows, roles, goals)
    final = [_first(row, leader) for row, leader in zip(rows, leaders.first, strict=True)]
    changed = [p for p, (old, new) in enumerate(zip(cluster.replicas, final, strict=True)) if old != new]
    changes = [Change(p, cluster.ids(cluster.replicas[p]), cluster.ids(final[p])) for p in changed]
    return _assemble(cluster, changes, (bound, bytes_bound, leaders.lower_bound), unmet)


def _room(cluster: PlanCluster, roles: Roles) -> dict[int, int]:
    """Usable bytes of hosts that might not take all that could come: the rest need not be watched."""
    largest = sum(size for size in cluster.size_bytes if size > 0)
    found = {}
    for node in roles.hosts:
        usable = cluster.brokers[node].usable_bytes
        if usable is not None and sum(usable) < largest:
            found[node] = sum(usable)
    return found


def _check_placed(rules: Rules) -> None:
    stuck = [p for p, row in enumerate(rules.start) if rules.vacant in row]
    if stuck:
        names = ", ".join(str(rules.cluster.tp(p)) for p in stuck[:3])
        raise Refused(
            f"{len(stuck)} partitions find no broker for a replica that has to be placed: {names}",
            hint="the brokers that could hold them have too little disk space: free some, or add a broker",
        )


def _missed(rules: Rules, targets: Targets, loads: Sequence[int]) -> list[str]:
    off = [b for b in rules.hosts if not targets.least[b] <= loads[b] <= targets.most[b]]
    if not off:
        return []
    names = ", ".join(str(node) for node in rules.cluster.ids(off[:5]))
    return [f"{len(off)} brokers stay off their target (disk space or racks do not allow more): {names}"]


def _missed_bytes(cluster: PlanCluster, bounds: ByteBound) -> list[str]:
    unmet = []
    unknown = sum(1 for size in cluster.size_bytes if size < 0)
    if unknown:
        unmet.append(f"{unknown} partitions are of unknown size and count as empty: bytes may not be even")
    if bounds.off:
        names = ", ".join(map(str, cluster.ids(bounds.off[:5])))
        unmet.append(f"{len(bounds.off)} brokers stay outside {bounds.least}–{bounds.most} bytes: {names}")
    return unmet


def _in_order(old: tuple[int, ...], new: Iterable[int]) -> tuple[int, ...]:
    """New replicas in the places of those that go; what is more comes last."""
    after = set(new)
    if after == set(old):
        return old
    fresh = sorted(after.difference(old), reverse=True)
    row = []
    for node in old:
        if node in after:
            row.append(node)
        elif fresh:
            row.append(fresh.pop())
    return (*row, *reversed(fresh))


def _limit(
    cluster: PlanCluster, rows: list[tuple[int, ...]], forced: list[int], goals: Goals
) -> tuple[list[tuple[int, ...]], int]:
    """As much of the plan as max_moves and max_bytes allow, and the moves left out.

    What has to be placed comes first. Each partition stands alone: any part of a plan keeps the rules.
    """
    if goals.max_moves is None and goals.max_bytes is None:
        return rows, 0
    moves = goals.max_moves if goals.max_moves is not None else 1 << 62
    room = goals.max_bytes if goals.max_bytes is not None else 1 << 62
    first = set(forced)
    left, kept = 0, rows[:]
    for p in [*forced, *(p for p in range(len(rows)) if p not in first)]:
        copies = len(set(rows[p]).difference(cluster.replicas[p]))
        needed = copies * max(0, cluster.size_bytes[p])
        if copies <= moves and needed <= room:
            moves -= copies
            room -= needed
        else:
            kept[p] = cluster.replicas[p]
            left += copies
    return kept, left


def _leaders(cluster: PlanCluster, rows: Sequence[Sequence[int]], roles: Roles, goals: Goals) -> Leaders:
    before = [replicas[0] for replicas in cluster.replicas]
    return plan_leaders(
        rows, before, roles.hosts, len(cluster.brokers), tolerance=goals.tolerance, even=goals.even_leaders
    )


def _first(row: Sequence[int], leader: int) -> tuple[int, ...]:
    if row[0] == leader:
        return tuple(row)
    return (leader, *(node for node in row if node != leader))


def _assemble(cluster: PlanCluster, changes: list[Change], bounds: tuple[int, int, int], unmet: list[str]) -> Plan:
    moves = size_bytes = unknown = leader_changes = 0
    for change in changes:
        copies = len(set(change.after).difference(change.before))
        moves += copies
        size = cluster.size_bytes[change.partition]
        size_bytes += copies * max(0, size)
        unknown += copies if size < 0 else 0
        leader_changes += change.before[0] != change.after[0]
    before, after = _loads(cluster, changes)
    return Plan(
        cluster=cluster,
        changes=changes,
        moves=moves,
        lower_bound=bounds[0],
        leader_changes=leader_changes,
        leader_lower_bound=bounds[2],
        bytes=size_bytes,
        bytes_lower_bound=bounds[1],
        unknown_sizes=unknown,
        before=before,
        after=after,
        unmet=unmet,
    )


def _loads(cluster: PlanCluster, changes: list[Change]) -> tuple[list[BrokerLoad], list[BrokerLoad]]:
    n = len(cluster.brokers)
    replicas, leaders, size_bytes = [0] * n, [0] * n, [0] * n
    for p, row in enumerate(cluster.replicas):
        leaders[row[0]] += 1
        size = max(0, cluster.size_bytes[p])
        for node in row:
            replicas[node] += 1
            size_bytes[node] += size

    def rows() -> list[BrokerLoad]:
        columns = zip(cluster.brokers, replicas, leaders, size_bytes, strict=True)
        return [BrokerLoad(broker.id, broker.rack, broker.alive, *counts) for broker, *counts in columns]

    before, index = rows(), cluster.index_of()
    for change in changes:
        size = max(0, cluster.size_bytes[change.partition])
        for ids, sign in ((change.before, -1), (change.after, 1)):
            leaders[index[ids[0]]] += sign
            for node in ids:
                replicas[index[node]] += sign
                size_bytes[index[node]] += sign * size
    return before, rows()


def rack_loads(brokers: Iterable[BrokerLoad]) -> list[RackLoad]:
    """Sums by rack; brokers without one together, first."""
    sums: dict[str | None, list[int]] = {}
    for row in brokers:
        counts = sums.setdefault(row.rack, [0, 0, 0])
        for i, count in enumerate((row.replicas, row.leaders, row.bytes)):
            counts[i] += count
    return [RackLoad(rack, *sums[rack]) for rack in sorted(sums, key=lambda rack: (rack is not None, rack or ""))]


def reassignment_json(plan: Plan, *, before: bool = False) -> dict[str, Any]:
    """The changed partitions as Kafka's tool writes them: as they will be, or as they were (the rollback)."""
    rows = []
    for change in plan.changes:
        tp, ids = plan.cluster.tp(change.partition), change.before if before else change.after
        rows.append({"topic": tp.topic, "partition": tp.partition, "replicas": ids, "log_dirs": ["any"] * len(ids)})
    return {"version": 1, "partitions": rows}


def document(plan: Plan) -> dict[str, Any]:
    """The plan file; see the module's text for its keys."""
    return {
        **reassignment_json(plan),
        "moves": plan.moves,
        "lower_bound": plan.lower_bound,
        "leader_changes": plan.leader_changes,
        "leader_lower_bound": plan.leader_lower_bound,
        "bytes": plan.bytes,
        "bytes_lower_bound": plan.bytes_lower_bound,
        "unknown_sizes": plan.unknown_sizes,
        "complete": plan.complete,
        "unmet": plan.unmet,
        "before": [_row(load) for load in plan.before],
        "after": [_row(load) for load in plan.after],
        "racks_before": [_row(load) for load in rack_loads(plan.before)],
        "racks_after": [_row(load) for load in rack_loads(plan.after)],
        "current": _current(plan),
        "rollback": reassignment_json(plan, before=True),
    }


def _current(plan: Plan) -> dict[str, Any]:
    """What the plan was made for, with the sizes of one replica where they are known."""
    found = reassignment_json(plan, before=True)
    for row, change in zip(found["partitions"], plan.changes, strict=True):
        size = plan.cluster.size_bytes[change.partition]
        if size >= 0:
            row["size_bytes"] = size
    return found


def _row(load: BrokerLoad | RackLoad) -> dict[str, Any]:
    return {name: getattr(load, name) for name in load.__slots__}
