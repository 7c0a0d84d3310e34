"""Restore the planner's plan from a file, without a cluster: for `kctl topic reassign show`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kctl.reassign.plan_file.document import (
    ANY,
    BROKER_LOADS,
    EXECUTION_NUMBERS,
    LOG_DIR_BOUNDS,
    LOG_DIR_LOADS,
    PLAN_NUMBERS,
)
from kctl.reassign.plan_file.read import PlanFile, bad_file
from kctl.reassign.planner.cluster import UNKNOWN, PlanBroker, PlanCluster
from kctl.reassign.planner.execution import Execution
from kctl.reassign.planner.goals import BalanceGoal, Goals
from kctl.reassign.planner.loads import BrokerLoad, PartitionChange
from kctl.reassign.planner.log_dir_moves import LogDirLoad, LogDirMove, LogDirPlan
from kctl.reassign.planner.plan import Plan, count_changes

_MAX = 1 << 62
_Row = TypeVar("_Row", BrokerLoad, LogDirLoad)


class Restored(NamedTuple):
    """A restored plan. Its cluster has only the partitions that change. goals: the goals in the file."""

    plan: Plan
    goals: Goals
    execution: Execution


def restore(file: PlanFile, name: str) -> Restored:
    """Return the plan of a file. name: the file's name. Raises InvalidFile, which lists every problem.

    Without original replicas (`has_before`), only the changes of the plan are known.
    """
    values = _FileValues(file.values)
    goals = values.goals()
    plan = _plan(file, values, goals)
    numbers: dict[str, Any] = {key: values.number(key) for key in EXECUTION_NUMBERS}
    if values.problems:
        raise bad_file(name, values.problems)
    rate = numbers.pop("throttle_bytes_per_s") or None
    return Restored(plan, goals, Execution(batches=file.batches or (), throttle_bytes_per_s=rate, **numbers))


class _FileValues:
    """The values of a file by key, validated. problems: a line for each invalid value."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.problems: list[str] = []

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        if value is None or (type(value) is int and 0 <= value < _MAX):
            return value
        self.problems.append(f"{key} is not a number")
        return None

    def lines(self, key: str) -> list[str]:
        value = self.values.get(key, [])
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            return value
        self.problems.append(f"{key} is not a list of strings")
        return []

    def ids(self, owner: Mapping[str, Any], key: str) -> frozenset[int]:
        value = owner.get(key, [])
        if isinstance(value, list) and all(type(node) is int and 0 <= node < 2**31 for node in value):
            return frozenset(value)
        self.problems.append(f"{key} is not a list of brokers")
        return frozenset()

    def loads(self, keys: tuple[str, str], kind: type[_Row], names: Sequence[str]) -> tuple[list[_Row], list[_Row]]:
        """Return the loads before and after, if the file has them. names: fields that must be equal in both."""
        before, after = (self._rows(key, kind) for key in keys)
        first, second = ([[getattr(row, name) for name in names] for row in rows] for rows in (before, after))
        if first == second:
            return before, after
        noun = "brokers" if kind is BrokerLoad else "log dirs"
        self.problems.append(f"{keys[0]} and {keys[1]} do not have the same {noun}")
        return [], []

    def _rows(self, key: str, kind: type[_Row]) -> list[_Row]:
        value = self.values.get(key) or []
        if isinstance(value, list) and all(isinstance(row, dict) and _fits(row, kind) for row in value):
            return [kind(**{name: row[name] for name in kind.__slots__}) for row in value]
        self.problems.append(f"{key} has invalid rows")
        return []

    def goals(self) -> Goals:
        options = self.values.get("goals") or {}
        balance = options.get("balance", [])
        values = [each.value for each in BalanceGoal]
        if not isinstance(balance, list) or not all(isinstance(each, str) and each in values for each in balance):
            self.problems.append("goals: balance is invalid")
            balance = []
        return Goals(
            remove_brokers=self.ids(options, "remove_broker"),
            add_brokers=self.ids(options, "add_broker"),
            exclude_brokers=self.ids(options, "exclude_broker"),
            balance=frozenset(map(BalanceGoal, balance)),
            leaders_only=options.get("leaders_only") is True,
        )


def _fits(row: Mapping[str, Any], kind: type[Any]) -> bool:
    for name in kind.__slots__:
        value = row.get(name)
        if name in {"rack", "usable_bytes"} and value is None and name in row:
            continue
        expected = str if name in {"rack", "path"} else bool if name == "alive" else int
        if type(value) is not expected or (isinstance(value, int) and not 0 <= value < _MAX):
            return False
    return True


def _plan(file: PlanFile, values: _FileValues, goals: Goals) -> Plan:
    """Return the plan. Moves and bytes are recounted; lower bounds come from the file."""
    before, after = values.loads(BROKER_LOADS, BrokerLoad, ("broker",))
    cluster = _cluster(file, after)
    changes = _changes(file)
    counts = count_changes(cluster, changes if file.has_before else [])._asdict()
    bounds = {name: values.number(key) or 0 for key, name in PLAN_NUMBERS.items() if name not in counts}
    return Plan(
        cluster=cluster,
        changes=changes,
        before=before,
        after=after,
        unmet=values.lines("unmet"),
        warnings=values.lines("warnings"),
        hosts=_hosts(values, goals, after),
        log_dirs=_log_dirs(values, changes, cluster),
        **counts,
        **bounds,
    )


def _changes(file: PlanFile) -> list[PartitionChange]:
    return [
        PartitionChange(
            row,
            list(r.before or ()),
            list(r.after),
            list(r.log_dirs_before) if r.log_dirs_before else None,
            list(r.log_dirs) if r.log_dirs else None,
        )
        for row, r in enumerate(file.reassignments)
    ]


def _hosts(values: _FileValues, goals: Goals, after: Sequence[BrokerLoad]) -> tuple[int, ...]:
    """Return the brokers that may receive replicas; in files of older versions, according to the goals."""
    closed_brokers = goals.remove_brokers | goals.exclude_brokers
    hosts = values.ids(values.values, "hosts")
    return tuple(sorted(hosts or {load.broker for load in after if load.alive and load.broker not in closed_brokers}))


def _cluster(file: PlanFile, loads: Sequence[BrokerLoad]) -> PlanCluster:
    """Return the partitions of the plan, in the order of the file."""
    rows = file.reassignments
    brokers = {load.broker: PlanBroker(load.broker, load.rack, load.alive) for load in loads}
    ids = sorted(brokers.keys() | {node for r in rows for node in (*r.after, *(r.before or ()))})
    index = {node: position for position, node in enumerate(ids)}
    topics = sorted({r.topic for r in rows})
    number_of = {topic: position for position, topic in enumerate(topics)}
    return PlanCluster(
        brokers=tuple(brokers.get(node) or PlanBroker(node, None, True) for node in ids),
        topics=tuple(topics),
        topic_of=array("i", (number_of[r.topic] for r in rows)),
        number=array("i", (r.partition for r in rows)),
        replicas=[tuple(index[node] for node in r.before or ()) for r in rows],
        leader=array("i", [UNKNOWN]) * len(rows),
        size_bytes=array("q", (UNKNOWN if r.size_bytes is None else min(r.size_bytes, _MAX) for r in rows)),
        cluster_id=file.cluster_id,
    )


def _log_dirs(values: _FileValues, changes: Sequence[PartitionChange], cluster: PlanCluster) -> LogDirPlan | None:
    """Return the moves within brokers; None for a plan without --log-dirs."""
    before, after = values.loads(LOG_DIR_LOADS, LogDirLoad, ("broker", "path"))
    moves = []
    for change in changes:
        sources = dict(zip(change.before, change.log_dirs_before or (), strict=False))
        for node, target in zip(change.after, change.log_dirs or (), strict=False):
            if target is not None and node in sources:
                size = cluster.size_bytes[change.partition]
                moves.append(LogDirMove(change.partition, node, sources[node] or ANY, target, size))
    if not (before or moves):
        return None
    bounds: dict[str, Any] = {name: values.number(key) or 0 for key, name in LOG_DIR_BOUNDS.items()}
    return LogDirPlan(moves=moves, before=before, after=after, **bounds)
