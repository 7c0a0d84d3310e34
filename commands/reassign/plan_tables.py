"""The tables of `kctl topic reassign plan` and `show`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.commands.terminal.bars import change_bar
from kctl.commands.terminal.output import Column, Table
from kctl.reassign.planner.goals import BalanceGoal, Goals
from kctl.reassign.planner.loads import rack_loads

if TYPE_CHECKING:
    from kctl.reassign.planner.execution import Execution
    from kctl.reassign.planner.plan import Plan

_ROWS = 20  # of a table, without -o wide
_MOVES = 10
_BAR = 10
_ARROW = " -> "


def plan_tables(plan: Plan, goals: Goals, execution: Execution, *, wide: bool) -> list[Table]:
    """Return the verdict, brokers, racks, log dirs and moves. wide: all rows of each table."""
    lines = [{"text": line} for line in verdict(plan, execution)]
    tables = [Table([Column("text", "PLAN")], lines)]
    if not plan.changes:
        return tables
    if plan.after and (plan.moves or plan.leader_changes):
        tables += [_brokers(plan, goals, wide=wide), *_racks(plan, goals), _spread(plan)]
    if plan.log_dirs is not None:
        tables.append(_log_dirs(plan, wide=wide))
    return [*tables, _moves(plan, wide=wide)]


def unknown_tables(plan: Plan, *, wide: bool) -> list[Table]:
    """Return the tables of a plan whose file does not have the original replicas."""
    count = counted(len(plan.changes), "partition")
    line = f"{count}; the file has neither the original replicas nor the sizes"
    tables = [Table([Column("text", "PLAN")], [{"text": line}])]
    return [*tables, _moves(plan, wide=wide)] if plan.changes else tables


# --- the verdict ------------------------------------------------------------------------------------------------------


def verdict(plan: Plan, execution: Execution) -> list[str]:
    """Return the size of the plan, and the lower bound that certifies it."""
    if not plan.changes:
        state = "the goals are already reached" if plan.complete else "the unmet goals cannot be planned"
        return [f"nothing to do: {state}"]
    lines = []
    if plan.moves or not (plan.leader_changes or plan.log_dirs):
        lines.append(certificate(plan.moves, "move", plan.lower_bound, deferred=plan.deferred))
    if 0 < plan.forced < plan.moves:
        lines.append(f"{plan.forced:,} of them are mandatory; {plan.moves - plan.forced:,} balance the brokers")
    if plan.leader_changes:
        lines.append(certificate(plan.leader_changes, "leader change", plan.leader_lower_bound))
    if plan.log_dirs is not None and plan.log_dirs.moves:
        moves = certificate(len(plan.log_dirs.moves), "move", plan.log_dirs.lower_bound)
        lines.append(f"between log dirs of the same broker: {moves}")
    lines += _copied(plan, execution)
    removed = sum(each.fewer for each in plan.changes)
    if removed:
        lines.append("1 replica is removed" if removed == 1 else f"{removed:,} replicas are removed")
    count, max_copies = len(execution.batches), execution.max_concurrent_moves
    bound = f" of at most {max_copies:,} copies" if max_copies and (plan.moves or plan.log_dirs) else ""
    batches = f" in {count:,} {'batch' if count == 1 else 'batches'}{bound}" if count else ""
    lines.append(f"{counted(len(plan.changes), 'partition')}{batches}")
    return lines


def certificate(moves: int, noun: str, bound: int, *, deferred: int = 0) -> str:
    """Return e.g. "3,000 moves; no plan needs fewer than 3,000" or "3,010 moves; at least 2,950 are needed"."""
    count = counted(moves, noun)
    if deferred:
        return f"{count}, and {deferred:,} left for another plan; at least {bound + deferred:,} are needed in total"
    if moves <= bound:
        return f"{count}; no plan needs fewer than {moves:,}"
    if not bound:
        return f"{count}; no lower bound is proven"
    return f"{count}; at least {bound:,} {'is' if bound == 1 else 'are'} needed"


def _copied(plan: Plan, execution: Execution) -> list[str]:
    inside = plan.log_dirs.bytes if plan.log_dirs else 0
    if not plan.moves and not (plan.log_dirs and plan.log_dirs.moves):
        return ["no data is copied"]
    line = f"{format_size(plan.bytes + inside)} to copy"
    if execution.throttle_bytes_per_s and execution.estimated_ms is not None:
        rate = f"{format_size(execution.throttle_bytes_per_s)}/s per broker"
        seconds = max(1, -(-execution.estimated_ms // 1000))
        line += f": at least {format_duration(seconds * 1000)} at {rate}"
    if plan.unknown_sizes:
        line += f" ({counted(plan.unknown_sizes, 'copy', 'copies')} of unknown size not counted)"
    return [line, "the rate is an assumption; apply runs unthrottled by default"] if "at least" in line else [line]


# --- brokers and racks ------------------------------------------------------------------------------------------------


def _measure(goals: Goals) -> str:
    """Return the quantity that the bars show."""
    if goals.leaders_only or goals.balance == {BalanceGoal.LEADERS}:
        return "leaders"
    return "bytes" if BalanceGoal.BYTES in goals.balance else "replicas"


def change(before: Any, after: Any, show: Callable[[int], str] = "{:,}".format) -> str:
    """Return e.g. "100 -> 150", or one number if nothing changes."""
    old, new = show(before), show(after)
    return new if before == after else f"{old}{_ARROW}{new}"


def _columns(rows: Sequence[tuple[Mapping[str, Any], Any, Any]], measure: str) -> list[dict[str, Any]]:
    """Return the rows with their numbers. rows: (first cells, load before, load after)."""
    largest = max((getattr(load, measure) for _, *pair in rows for load in pair), default=0)
    return [
        {
            **cells,
            "replicas": change(old.replicas, new.replicas),
            "leaders": change(old.leaders, new.leaders),
            "bytes": change(old.bytes, new.bytes, format_size),
            "bar": change_bar(getattr(old, measure), getattr(new, measure), largest, _BAR),
        }
        for cells, old, new in rows
    ]


_NUMBERS = [Column("replicas", align="right"), Column("leaders", align="right"), Column("bytes", align="right")]


def _brokers(plan: Plan, goals: Goals, *, wide: bool) -> Table:
    measure = _measure(goals)
    rows = []
    for old, new in zip(plan.before, plan.after, strict=True):
        rows.append(
            (
                {
                    "broker": new.broker,
                    "rack": new.rack or ("" if new.alive else "?"),
                    "state": _state(plan, goals, new),
                },
                old,
                new,
            )
        )
    visible = rows
    if not wide and len(rows) > _ROWS + 4:
        order = sorted(rows, key=lambda row: (not row[0]["state"], -abs(row[2].replicas - row[1].replicas)))
        visible = sorted(order[:_ROWS], key=lambda row: row[2].broker)
    title = f"Brokers; bar: {measure}, + added, - removed"
    if len(visible) < len(rows):
        title = f"Brokers: the {len(visible)} of {len(rows)} that change most (all: -o wide); bar: {measure}"
    with_racks = any(load.rack for _, _, load in rows)
    with_state = any(cells["state"] for cells, _, _ in visible)
    columns = [
        Column("broker", align="right"),
        *([Column("rack")] if with_racks else []),
        *_NUMBERS,
        Column("bar", " "),
        *([Column("state", " ", style=lambda row: "red" if row["state"] == "down" else None)] if with_state else []),
    ]
    return Table(columns, _columns(visible, measure), title=title)


def _state(plan: Plan, goals: Goals, load: Any) -> str:
    """Return the special state of a broker, empty if it has none."""
    if load.broker not in plan.hosts and load.alive and load.broker not in goals.exclude_brokers:
        return "leaves" if load.replicas == 0 else "receives nothing"
    if load.broker in goals.add_brokers:
        return "new"
    if not load.alive:
        return "down"
    return "excluded" if load.broker in goals.exclude_brokers else ""


def _racks(plan: Plan, goals: Goals) -> list[Table]:
    before, after = rack_loads(plan.before), rack_loads(plan.after)
    if len(after) < 2:
        return []
    has_live = any(load.alive and load.rack is None for load in plan.after)
    unnamed_rack = "(none)" if has_live else "(down)"  # the rack of a broker that is down is unknown
    rows = [({"rack": new.rack or unnamed_rack}, old, new) for old, new in zip(before, after, strict=True)]
    columns = [Column("rack"), *_NUMBERS, Column("bar", " ")]
    return [Table(columns, _columns(rows, _measure(goals)), title="Racks")]


def _spread(plan: Plan) -> Table:
    """Return the minimum and maximum over the brokers that may receive replicas."""
    hosts = set(plan.hosts)
    rows = []
    for name, show in (("replicas", "{:,}".format), ("leaders", "{:,}".format), ("bytes", format_size)):
        spans = []
        for loads in (plan.before, plan.after):
            values = [getattr(load, name) for load in loads if load.broker in hosts]
            spans.append(_span(min(values, default=0), max(values, default=0), show))
        rows.append({"what": name, "before": spans[0], "after": spans[1]})
    columns = [Column("what", "PER BROKER"), Column("before", align="right"), Column("after", align="right")]
    return Table(columns, rows, title="Spread: minimum and maximum of the brokers that may receive replicas")


def _span(low: int, high: int, show: Callable[[int], str]) -> str:
    return show(high) if low == high else f"{show(low)} .. {show(high)}"


# --- log dirs ---------------------------------------------------------------------------------------------------------


def _log_dirs(plan: Plan, *, wide: bool) -> Table:
    assert plan.log_dirs is not None
    pairs = list(zip(plan.log_dirs.before, plan.log_dirs.after, strict=True))
    moving = {load.broker for load, new in pairs if load != new}
    visible = pairs if wide or len(pairs) <= _ROWS + 4 else [p for p in pairs if p[0].broker in moving][:_ROWS]
    by_bytes = any(load.bytes for pair in visible for load in pair)
    measure = "bytes" if by_bytes else "replicas"
    largest = max((getattr(load, measure) for pair in visible for load in pair), default=0)
    root = common_folder([load.path for pair in pairs for load in pair])
    rows = [
        {
            "broker": new.broker,
            "path": new.path[len(root) :],
            "replicas": change(old.replicas, new.replicas),
            "bytes": change(old.bytes, new.bytes, format_size),
            "usable_bytes": new.usable_bytes,
            "bar": change_bar(getattr(old, measure), getattr(new, measure), largest, _BAR),
        }
        for old, new in visible
    ]
    columns = [
        Column("broker", align="right"),
        Column("path", "LOG DIR"),
        Column("replicas", align="right"),
        Column("bytes", align="right"),
        Column("usable_bytes", "USABLE", show=format_size, align="right"),
        Column("bar", " "),
    ]
    more = f" ({len(visible)} of {len(pairs)}; all: -o wide)" if len(visible) < len(pairs) else ""
    suffix = f" in {root}{more}; bar: {measure}" if root else f"{more}; bar: {measure}, + added, - removed"
    return Table(columns, rows, title=f"Log dirs{suffix}")


def common_folder(paths: Sequence[str]) -> str:
    """Return the common parent folder with a slash, to omit from each path; empty if there is none but "/"."""
    folders = {path.rpartition("/")[0] for path in paths}
    common = os.path.commonpath(folders) if folders and all(folders) else ""
    return f"{common}/" if len(common) > 1 else ""


# --- moves ------------------------------------------------------------------------------------------------------------


def change_rows(plan: Plan) -> list[dict[str, Any]]:
    """Return a row for each partition that changes, as in `-o csv`."""
    rows = []
    for p, before, after, dirs_before, dirs in plan.changes:
        tp, size = plan.cluster.tp(p), plan.cluster.size_bytes[p]
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "before": before,
                "after": after,
                "moves": len(set(after).difference(before)),
                "size_bytes": size if size >= 0 else None,
                "log_dirs_before": [path or "any" for path in dirs_before or ()],
                "log_dirs": [path or "any" for path in dirs or ()],
            }
        )
    return rows


def _common_folders(plan: Plan) -> dict[int, int]:
    """Return broker → length of the common parent folder of its log dirs in the plan."""
    paths_on: dict[int, set[str]] = {}
    for _, before, after, dirs_before, dirs in plan.changes:
        for nodes, paths in ((before, dirs_before), (after, dirs)):
            for node, path in zip(nodes, paths or (), strict=False):
                if path:
                    paths_on.setdefault(node, set()).add(path)
    return {node: len(common_folder(sorted(paths))) for node, paths in paths_on.items()}


def _moves(plan: Plan, *, wide: bool) -> Table:
    visible = plan.changes if wide or len(plan.changes) <= _MOVES + 2 else plan.changes[:_MOVES]
    rows = []
    prefix_lengths = _common_folders(plan)
    for p, before, after, dirs_before, dirs in visible:
        tp, size = plan.cluster.tp(p), plan.cluster.size_bytes[p]
        row = {
            "topic": tp.topic,
            "partition": tp.partition,
            "before": before,
            "after": after,
            "size_bytes": size if size >= 0 else None,
            "log_dirs": "; ".join(
                f"{node}: {old[prefix_lengths[node] :] if old else 'any'}{_ARROW}{new[prefix_lengths[node] :]}"
                for node, new in zip(after, dirs or (), strict=False)
                for old in [dict(zip(before, dirs_before or (), strict=True)).get(node)]
                if new
            ),
        }
        rows.append(row)
    columns = [
        Column("topic"),
        Column("partition", "PART", align="right"),
        Column("before"),
        Column("after"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
    ]
    if any(row["log_dirs"] for row in rows):
        columns.append(Column("log_dirs", "LOG DIRS"))
    title = "Partitions"
    if len(visible) < len(plan.changes):
        title = f"Partitions: the first {len(visible)} of {len(plan.changes):,} (all: -o wide)"
    return Table(columns, rows, title=title)
