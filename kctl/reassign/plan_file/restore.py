"""A plan file as the plan that it was, without a cluster: what `kctl topic reassign show` shows."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kctl.base.input_file import read_input
from kctl.reassign.plan_file.document import Execution
from kctl.reassign.plan_file.read import MAX_BYTES, PlanFile, bad_file, load_document, plan_of
from kctl.reassign.planner.cluster import UNKNOWN, PlanBroker, PlanCluster
from kctl.reassign.planner.goals import Balance, Goals
from kctl.reassign.planner.loads import BrokerLoad, Change
from kctl.reassign.planner.log_dir_moves import LogDirLoad, LogDirMove, LogDirPlan
from kctl.reassign.planner.plan import Plan

_MAX = 1 << 62
_Row = TypeVar("_Row", BrokerLoad, LogDirLoad)


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan file. document: its values; text: as it is written.

    known: it says what the replicas were; otherwise nothing of `plan` but `changes` counts. plan: its cluster has only
    the partitions that change. goals: as far as the file tells them.
    """

    document: Mapping[str, Any]
    text: str
    known: bool
    plan: Plan
    goals: Goals
    execution: Execution


def read_saved(path: Path) -> SavedPlan:
    """The plan in a file; «-» is stdin. Raises NotFound, and InvalidFile that names everything that is wrong."""
    data, name = read_input(path, max_bytes=MAX_BYTES, hint="`kctl topic reassign plan --out FILE` writes one")
    document = load_document(data, name)
    file = plan_of(document, name, hashlib.sha256(data).hexdigest())
    reader = _Reader(document)
    goals = reader.goals()
    plan = _plan(file, reader, goals)
    execution = Execution(
        batches=file.batches or (),
        throttle_bytes_per_s=reader.number("throttle_bytes_per_s") or None,
        estimated_ms=reader.number("estimated_ms"),
        max_concurrent_moves=reader.number("max_concurrent_moves"),
    )
    if reader.problems:
        raise bad_file(name, reader.problems)
    try:
        text = data.decode().removesuffix("\n")
    except UnicodeDecodeError:  # JSON may be UTF-16 as well
        text = json.dumps(document)
    return SavedPlan(document, text, all(r.before is not None for r in file.reassignments), plan, goals, execution)


class _Reader:
    """Values of the file by key, each looked at; problems: what is wrong."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.problems: list[str] = []

    def number(self, key: str) -> int | None:
        found = self.document.get(key)
        if found is None or (type(found) is int and 0 <= found < _MAX):
            return found
        self.problems.append(f"{key} is no number")
        return None

    def lines(self, key: str) -> list[str]:
        found = self.document.get(key, [])
        if isinstance(found, list) and all(isinstance(line, str) for line in found):
            return found
        self.problems.append(f"{key} is no list of texts")
        return []

    def ids(self, owner: Mapping[str, Any], key: str) -> frozenset[int]:
        found = owner.get(key, [])
        if isinstance(found, list) and all(type(node) is int and 0 <= node < 2**31 for node in found):
            return frozenset(found)
        self.problems.append(f"{key} is no list of brokers")
        return frozenset()

    def rows(self, key: str, kind: type[_Row]) -> list[_Row]:
        """A list of loads, none where the file has none."""
        found = self.document.get(key) or []
        if isinstance(found, list) and all(isinstance(row, dict) and _fits(row, kind) for row in found):
            return [kind(**{name: row[name] for name in kind.__slots__}) for row in found]
        self.problems.append(f"{key} has rows that are not understood")
        return []

    def goals(self) -> Goals:
        found = self.document.get("goals") or {}
        wanted = found.get("balance", [])
        known = [each.value for each in Balance]
        if not isinstance(wanted, list) or not all(isinstance(each, str) and each in known for each in wanted):
            self.problems.append("goals: balance is not understood")
            wanted = []
        return Goals(
            remove_brokers=self.ids(found, "remove_broker"),
            add_brokers=self.ids(found, "add_broker"),
            exclude_brokers=self.ids(found, "exclude_broker"),
            balance=frozenset(map(Balance, wanted)),
            leaders_only=found.get("leaders_only") is True,
        )


def _fits(row: Mapping[str, Any], kind: type[Any]) -> bool:
    for name in kind.__slots__:
        value = row.get(name)
        if name in {"rack", "usable_bytes"} and value is None and name in row:
            continue
        wanted = str if name in {"rack", "path"} else bool if name == "alive" else int
        if type(value) is not wanted or (isinstance(value, int) and not 0 <= value < _MAX):
            return False
    return True


def _plan(file: PlanFile, reader: _Reader, goals: Goals) -> Plan:
    """What is counted is counted anew; bounds are the file's word."""
    before, after = reader.rows("before", BrokerLoad), reader.rows("after", BrokerLoad)
    if [load.broker for load in before] != [load.broker for load in after]:
        reader.problems.append("before and after do not have the same brokers")
        before, after = [], []
    cluster = _cluster(file, after)
    changes = [
        Change(
            row,
            list(r.before or ()),
            list(r.after),
            list(r.log_dirs_before) if r.log_dirs_before else None,
            list(r.log_dirs) if r.log_dirs else None,
        )
        for row, r in enumerate(file.reassignments)
    ]
    hosts = reader.ids(reader.document, "hosts") or {
        load.broker for load in after if load.alive and load.broker not in goals.remove_brokers | goals.exclude_brokers
    }
    sizes = [r.size_bytes for r in file.reassignments for _ in r.adding]
    return Plan(
        cluster=cluster,
        changes=changes,
        moves=len(sizes),
        lower_bound=reader.number("lower_bound") or 0,
        leader_changes=sum(bool(r.before) and r.before[0] != r.after[0] for r in file.reassignments if r.before),
        leader_lower_bound=reader.number("leader_lower_bound") or 0,
        bytes=sum(size or 0 for size in sizes),
        bytes_lower_bound=reader.number("bytes_lower_bound") or 0,
        unknown_sizes=sizes.count(None),
        before=before,
        after=after,
        unmet=reader.lines("unmet"),
        warnings=reader.lines("warnings"),
        left=reader.number("left") or 0,
        forced=reader.number("forced_moves") or 0,
        hosts=tuple(sorted(hosts)),
        log_dirs=_log_dirs(reader, changes, cluster),
    )


def _cluster(file: PlanFile, loads: Sequence[BrokerLoad]) -> PlanCluster:
    """Partitions in the order of the file."""
    rows = file.reassignments
    known = {load.broker: PlanBroker(load.broker, load.rack, load.alive) for load in loads}
    ids = sorted(known.keys() | {node for r in rows for node in (*r.after, *(r.before or ()))})
    index = {node: position for position, node in enumerate(ids)}
    topics = sorted({r.topic for r in rows})
    number_of = {topic: position for position, topic in enumerate(topics)}
    return PlanCluster(
        brokers=tuple(known.get(node) or PlanBroker(node, None, True) for node in ids),
        topics=tuple(topics),
        topic_of=array("i", (number_of[r.topic] for r in rows)),
        number=array("i", (r.partition for r in rows)),
        replicas=[tuple(index[node] for node in r.before or ()) for r in rows],
        leader=array("i", [UNKNOWN]) * len(rows),
        size_bytes=array("q", (UNKNOWN if r.size_bytes is None else min(r.size_bytes, _MAX) for r in rows)),
        cluster_id=file.cluster_id,
    )


def _log_dirs(reader: _Reader, changes: Sequence[Change], cluster: PlanCluster) -> LogDirPlan | None:
    """Moves inside brokers; None for a plan that was made without --log-dirs."""
    before, after = reader.rows("log_dirs_before", LogDirLoad), reader.rows("log_dirs_after", LogDirLoad)
    if [(load.broker, load.path) for load in before] != [(load.broker, load.path) for load in after]:
        reader.problems.append("log_dirs_before and log_dirs_after do not have the same log dirs")
        before, after = [], []
    moves = []
    for change in changes:
        sources = dict(zip(change.before, change.log_dirs_before or (), strict=False))
        for node, target in zip(change.after, change.log_dirs or (), strict=False):
            if target is not None and node in sources:
                size = cluster.size_bytes[change.partition]
                moves.append(LogDirMove(change.partition, node, sources[node] or "any", target, size))
    if not (before or moves):
        return None
    return LogDirPlan(
        moves=moves,
        lower_bound=reader.number("log_dir_lower_bound") or 0,
        bytes_lower_bound=reader.number("log_dir_bytes_lower_bound") or 0,
        before=before,
        after=after,
    )
