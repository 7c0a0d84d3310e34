"""A plan: the new replicas of partitions, what they copy, and lower bounds.

kctl.reassign.plan_file writes and reads it as a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kctl.base.text import counted
from kctl.base.units import format_size
from kctl.cluster.log_dirs import LogDir
from kctl.errors import Reason, Refused
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.bounds import leader_changes_needed
from kctl.reassign.planner.byte_balance import ByteBound, balance_bytes
from kctl.reassign.planner.cluster import PlanCluster
from kctl.reassign.planner.disks import disks_of
from kctl.reassign.planner.goals import BalanceGoal, Goals, Roles, resolve
from kctl.reassign.planner.leaders import LeaderAssignment, even_targets, plan_leaders
from kctl.reassign.planner.loads import BrokerLoad, PartitionChange, broker_loads
from kctl.reassign.planner.log_dir_moves import LogDirPlan, paths_of, plan_log_dirs
from kctl.reassign.planner.moves import plan_moves
from kctl.reassign.planner.rules import Rules, make_rules
from kctl.reassign.planner.targets import Targets, replica_targets
from kctl.reassign.planner.warnings import (
    about_leaders,
    about_lower_factor,
    about_one_replica,
    about_racks,
    about_stuck,
    lowered_topics,
    refuse_moving,
    warnings_of,
    without_leader,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. moves: replicas to copy; bytes: of known sizes; unknown_sizes: copies of unknown size.

    lower_bound, leader_lower_bound, bytes_lower_bound: no plan with the same result needs less. complete: the plan
    reaches its goals; otherwise unmet has the reasons (limits, disks, racks). deferred: moves beyond a limit, for
    another plan. forced: replicas that must move regardless of balance (removed brokers, a higher factor, racks);
    further moves balance the brokers. warnings: to read before the plan runs. hosts: brokers (ids) that may receive
    replicas. log_dirs: moves within brokers, not counted in moves or bytes; None if not a goal.
    """

    cluster: PlanCluster
    changes: list[PartitionChange]
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
    warnings: list[str] = field(default_factory=list)
    deferred: int = 0
    forced: int = 0
    hosts: tuple[int, ...] = ()
    log_dirs: LogDirPlan | None = None

    @property
    def complete(self) -> bool:
        return not self.unmet

    @property
    def minimal(self) -> bool:
        """Return True if the bounds prove that no plan needs fewer moves or leader changes."""
        return self.moves <= self.lower_bound and self.leader_changes <= self.leader_lower_bound


class _Placement(NamedTuple):
    """The planned replicas, preferred leader first; bounds of moves, bytes and leader changes."""

    rows: list[tuple[int, ...]]
    bounds: tuple[int, int, int]
    unmet: list[str]
    deferred: int
    forced: int = 0


def make_plan(cluster: PlanCluster, goals: Goals, log_dirs: Mapping[int, list[LogDir]] | None = None) -> Plan:
    """Return the smallest plan. log_dirs: broker id → its log dirs, for goals.log_dirs.

    Raises the errors of resolve, and Refused if a replica that must move fits on no broker, or if partitions are
    already being reassigned.
    """
    refuse_moving(cluster)
    roles = resolve(goals, cluster)
    stuck = without_leader(cluster)
    if stuck:
        rows = list(cluster.replicas)
        free = [p for p in range(len(cluster)) if p not in stuck]
        placed = _place(cluster.take(free), goals, roles)
        for p, row in zip(free, placed.rows, strict=True):
            rows[p] = row
        placed = placed._replace(rows=rows)
    else:
        placed = _place(cluster, goals, roles)
    unmet, warnings = about_stuck(cluster, goals, roles, stuck)
    changed = [p for p, (old, new) in enumerate(zip(cluster.replicas, placed.rows, strict=True)) if old != new]
    changes = [PartitionChange(p, cluster.ids(cluster.replicas[p]), cluster.ids(placed.rows[p])) for p in changed]
    plan = _assemble(cluster, changes, placed.bounds, [*unmet, *placed.unmet])
    hosts = tuple(cluster.ids(roles.hosts))
    warnings += warnings_of(cluster, goals, roles)
    warnings += about_lower_factor(cluster, goals, changes, placed.forced)
    warnings += about_one_replica(lowered_topics(cluster.topics, cluster.topic_of, changes))
    if plan.moves:
        warnings += about_racks(cluster, hosts, plan.before, plan.after)
        warnings += about_leaders(plan.after, hosts, goals)
    plan = replace(plan, warnings=warnings, deferred=placed.deferred, forced=placed.forced, hosts=hosts)
    return _with_log_dirs(plan, goals, roles, log_dirs or {}, stuck) if goals.log_dirs else plan


def _place(cluster: PlanCluster, goals: Goals, roles: Roles) -> _Placement:
    if not len(cluster):
        return _Placement([], (0, 0, 0), [], 0)
    rows = cluster.replicas
    unmet: list[str] = []
    bound = bytes_bound = deferred = forced_moves = 0
    if goals.moves_data:
        rules = make_rules(cluster, goals, roles)
        forced_moves = rules.forced
        forced = [p for p, start in enumerate(rules.start) if rules.vacant in start]
        bytes_bound = sum(max(0, cluster.size_bytes[p]) * rules.start[p].count(rules.vacant) for p in forced)
        targets = replica_targets(rules, goals.tolerance, even=goals.even_replicas)
        placement, bound = plan_moves(rules, targets, _room(cluster, roles), even=goals.even_replicas)
        _check_placed(rules)
        unmet = _unmet_counts(rules, targets, placement.loads) if goals.even_replicas else []
        if BalanceGoal.BYTES in goals.balance:
            byte_bounds = balance_bytes(placement, targets if goals.even_replicas else None, goals.tolerance)
            if not byte_bounds.off:
                bound = max(bound, byte_bounds.lower_bound_moves)
                bytes_bound = max(bytes_bound, byte_bounds.lower_bound_bytes)
            unmet += _unmet_bytes(cluster, byte_bounds)
        rows = [_in_order(old, new) for old, new in zip(cluster.replicas, placement.replicas, strict=True)]
        rows, deferred = _limit(cluster, rows, forced, goals)
        if deferred:
            moves = "1 move is" if deferred == 1 else f"{deferred:,} moves are"
            unmet.append(f"{moves} left for another plan (--max-moves or --max-bytes)")
            # The moves of a plan and its deferred moves together are a complete plan, so they are at least `bound`.
            bound, bytes_bound = max(0, bound - deferred), 0
    if not (goals.moves_data or goals.even_leaders):
        return _Placement(rows, (0, 0, 0), [], 0)
    leaders = _leaders(cluster, rows, roles, goals)
    final = [_leader_first(row, leader) for row, leader in zip(rows, leaders.first, strict=True)]
    leader_bound = leaders.lower_bound  # valid for these replicas; replaced below if replicas move
    if goals.moves_data:
        leader_bound = max(0, _min_leader_changes(cluster, leaders.first, roles, goals) - deferred)
    return _Placement(final, (bound, bytes_bound, leader_bound), unmet, deferred, forced_moves)


def _with_log_dirs(
    plan: Plan, goals: Goals, roles: Roles, log_dirs: Mapping[int, list[LogDir]], stuck: Collection[int]
) -> Plan:
    """Add moves within brokers. A partition that also changes brokers keeps its log dirs in this plan."""
    cluster = plan.cluster
    disks = disks_of(cluster, log_dirs)
    excluded = {node for node, broker in enumerate(cluster.brokers) if broker.id in goals.exclude_brokers}
    staying = [n for n, broker in enumerate(cluster.brokers) if broker.alive and n not in roles.leaving | excluded]
    moving = {change.partition: change for change in plan.changes if set(change.before) != set(change.after)}
    leaving: dict[int, list[int]] = {}
    for p, change in moving.items():
        for node in set(change.before).difference(change.after):
            leaving.setdefault(node, []).append(p)
    log_dir_plan = plan_log_dirs(
        [disks[node] for node in staying if node in disks],
        leaving=leaving,
        fixed={*moving, *stuck},
        tolerance=goals.tolerance,
        max_moves=None if goals.max_moves is None else max(0, goals.max_moves - plan.moves),
        max_bytes=None if goals.max_bytes is None else max(0, goals.max_bytes - plan.bytes),
    )
    unmet = [*plan.unmet, *log_dir_plan.unmet]
    cordoned = [f"{d.path} of broker {node}" for node, dirs in sorted(log_dirs.items()) for d in dirs if d.cordoned]
    warnings = [f"cordoned log dirs stay as they are: {', '.join(cordoned[:5])}"] if cordoned else []
    unknown = cluster.ids(node for node in staying if node not in disks)
    if unknown:
        brokers = "broker" if len(unknown) == 1 else "brokers"
        names = ", ".join(map(str, unknown[:5]))
        unmet.append(f"the log dirs of {brokers} {names} are unknown: they stay as they are")
    warnings = [*plan.warnings, *warnings]
    return replace(plan, changes=_add_paths(plan, log_dir_plan), unmet=unmet, warnings=warnings, log_dirs=log_dir_plan)


def _add_paths(plan: Plan, log_dir_plan: LogDirPlan) -> list[PartitionChange]:
    """Add the log dirs of replicas that move within a broker to the changes."""
    changes = {change.partition: change for change in plan.changes}
    for p, paths in paths_of(log_dir_plan.moves).items():
        ids = plan.cluster.ids(plan.cluster.replicas[p])
        change = changes.get(p, PartitionChange(p, ids, ids))
        changes[p] = change._replace(
            log_dirs_before=[paths[node][0] if node in paths else None for node in change.before],
            log_dirs=[paths[node][1] if node in paths else None for node in change.after],
        )
    return [changes[p] for p in sorted(changes)]


def _room(cluster: PlanCluster, roles: Roles) -> dict[int, int]:
    """Return the usable bytes of hosts that might run out of space; the others need no check."""
    total_bytes = sum(size for size in cluster.size_bytes if size > 0)
    room = {}
    for node in roles.hosts:
        usable = cluster.brokers[node].usable_bytes
        if usable is not None and sum(usable) < total_bytes:
            room[node] = sum(usable)
    return room


def _check_placed(rules: Rules) -> None:
    stuck = [p for p, row in enumerate(rules.start) if rules.vacant in row]
    if stuck:
        names = ", ".join(str(rules.cluster.tp(p)) for p in stuck[:3])
        raise Refused(
            f"{counted(len(stuck), 'partition')} with a replica that fits on no broker: {names}",
            hint="the brokers have too little disk space: free some, or add a broker",
            reason=Reason.IMPOSSIBLE,
        )


def _unmet_counts(rules: Rules, targets: Targets, loads: Sequence[int]) -> list[str]:
    off = [b for b in rules.hosts if not targets.least[b] <= loads[b] <= targets.most[b]]
    if not off:
        return []
    names = ", ".join(str(node) for node in rules.cluster.ids(off[:5]))
    subject = "1 broker does" if len(off) == 1 else f"{len(off)} brokers do"
    return [f"{subject} not reach the target replica count, due to disk space or racks: {names}"]


def _unmet_bytes(cluster: PlanCluster, bounds: ByteBound) -> list[str]:
    unmet = []
    unknown = sum(1 for size in cluster.size_bytes if size < 0)
    if unknown:
        unmet.append(f"the size of {counted(unknown, 'partition')} is unknown and counted as 0: bytes may be uneven")
    if bounds.off:
        names = ", ".join(map(str, cluster.ids(bounds.off[:5])))
        subject = "1 broker stays" if len(bounds.off) == 1 else f"{len(bounds.off)} brokers stay"
        unmet.append(f"{subject} outside {format_size(bounds.least)} to {format_size(bounds.most)}: {names}")
    return unmet


def _in_order(old: tuple[int, ...], new: Iterable[int]) -> tuple[int, ...]:
    """Return the new replicas: each added one in the place of a removed one, the others last."""
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
    """Return the part of the plan within max_moves and max_bytes, and the number of deferred moves.

    Mandatory moves come first. Partitions are independent: any part of a plan follows the rules.
    """
    if goals.max_moves is None and goals.max_bytes is None:
        return rows, 0
    moves = goals.max_moves if goals.max_moves is not None else 1 << 62
    room = goals.max_bytes if goals.max_bytes is not None else 1 << 62
    first = set(forced)
    deferred, limited = 0, rows[:]
    for p in [*forced, *(p for p in range(len(rows)) if p not in first)]:
        copies = len(set(rows[p]).difference(cluster.replicas[p]))
        needed = copies * max(0, cluster.size_bytes[p])
        if copies <= moves and needed <= room:
            moves -= copies
            room -= needed
        else:
            limited[p] = cluster.replicas[p]
            deferred += copies
    return limited, deferred


def _leaders(cluster: PlanCluster, rows: Sequence[Sequence[int]], roles: Roles, goals: Goals) -> LeaderAssignment:
    before = [replicas[0] for replicas in cluster.replicas]
    return plan_leaders(
        rows, before, roles.hosts, len(cluster.brokers), tolerance=goals.tolerance, even=goals.even_leaders
    )


def _min_leader_changes(cluster: PlanCluster, after: Sequence[int], roles: Roles, goals: Goals) -> int:
    """Return the leader changes that any plan needs, with the same balance if that is a goal."""
    n = len(cluster.brokers)
    firsts, led = [0] * n, [0] * n
    for row, leader in zip(cluster.replicas, after, strict=True):
        firsts[row[0]] += 1
        led[leader] += 1
    forced = sum(firsts[node] for node in roles.leaving)
    if not goals.even_leaders:
        return forced
    targets = even_targets(sum(led[node] for node in roles.hosts), roles.hosts, n, goals.tolerance)
    if any(not targets.least[node] <= led[node] <= targets.most[node] for node in roles.hosts):
        return forced
    return leader_changes_needed(firsts, targets, forced)


def _leader_first(row: Sequence[int], leader: int) -> tuple[int, ...]:
    if row[0] == leader:
        return tuple(row)
    return (leader, *(node for node in row if node != leader))


class ChangeCounts(NamedTuple):
    """The totals of changes, with the field names of Plan."""

    moves: int
    leader_changes: int
    bytes: int
    unknown_sizes: int


def count_changes(cluster: PlanCluster, changes: Iterable[PartitionChange]) -> ChangeCounts:
    """Count the copies of the changes, and the changes of preferred leaders."""
    moves = size_bytes = unknown = leader_changes = 0
    for change in changes:
        copies = len(set(change.after).difference(change.before))
        moves += copies
        size = cluster.size_bytes[change.partition]
        size_bytes += copies * max(0, size)
        unknown += copies if size < 0 else 0
        leader_changes += change.before[0] != change.after[0]
    return ChangeCounts(moves, leader_changes, size_bytes, unknown)


def _assemble(
    cluster: PlanCluster, changes: list[PartitionChange], bounds: tuple[int, int, int], unmet: list[str]
) -> Plan:
    before, after = broker_loads(cluster, changes)
    return Plan(
        cluster=cluster,
        changes=changes,
        **count_changes(cluster, changes)._asdict(),
        lower_bound=bounds[0],
        leader_lower_bound=bounds[2],
        bytes_lower_bound=bounds[1],
        before=before,
        after=after,
        unmet=unmet,
    )


def reassignments(plan: Plan) -> list[Reassignment]:
    """Return the changes of a plan as the reassignments that a run submits."""
    cluster = plan.cluster
    ids = cluster.topic_ids or (None,) * len(cluster.topics)
    rows = []
    for p, before, after, dirs_before, dirs in plan.changes:
        topic, size = cluster.topic_of[p], cluster.size_bytes[p]
        rows.append(
            Reassignment(
                topic=cluster.topics[topic],
                partition=cluster.number[p],
                after=tuple(after),
                before=tuple(before),
                log_dirs=tuple(dirs) if dirs else None,
                log_dirs_before=tuple(dirs_before) if dirs_before else None,
                size_bytes=size if size >= 0 else None,
                topic_id=ids[topic],
            )
        )
    return rows
