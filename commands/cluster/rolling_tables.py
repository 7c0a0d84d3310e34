"""A rolling restart on the terminal: what is planned, what is asked, what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.restart.gate import Unprotected
    from kctl.restart.plan import RestartPlan, RollingRestart

_NAMED = 5


def plan_tables(plan: RestartPlan) -> list[Table]:
    """What cannot be protected, the order, what blocks."""
    rows = [
        {
            **row,
            "address": f"{row['host']}:{row['port']}" if row["host"] else None,
            "note": "controller" if row["is_controller"] else "",
        }
        for row in jsonable(plan.brokers)
    ]
    columns = [
        Column("turn", align="right"), Column("broker", align="right"), Column("address"), Column("rack"),
        Column("state"), Column("note", " "),
    ]  # fmt: skip
    tables = [_unprotected_table(plan.unprotected)] if plan.unprotected else []
    tables.append(Table(columns, rows, empty="Every broker is restarted already."))
    if plan.blockers:
        tables.append(Table([Column("blocker", "BLOCKED BY")], [{"blocker": str(each)} for each in plan.blockers]))
    return tables


def _unprotected_table(unprotected: tuple[Unprotected, ...]) -> Table:
    columns = [
        Column("topic", "NOT PROTECTED"), Column("partition_count", "PARTITIONS", align="right"),
        Column("replication_factor", "RF", align="right"), Column("min_insync_replicas", "MIN ISR", align="right"),
        Column("consequence"),
    ]  # fmt: skip
    return Table(columns, jsonable(unprotected))


def said_before(plan: RestartPlan, max_unavailable: int) -> list[str]:
    """What to know before: topics that no order of restarts can protect come first."""
    lines = [
        f"{row.topic} is not protected: {counted(row.partition_count, 'partition')} with "
        f"{counted(row.replication_factor, 'replica')}, min.insync.replicas {row.min_insync_replicas}: "
        f"{row.consequence}"
        for row in plan.unprotected[:_NAMED]
    ]
    if len(plan.unprotected) > _NAMED:
        lines.append(f"{counted(len(plan.unprotected) - _NAMED, 'more topic')} not protected: --dry-run lists all")
    lines += plan.not_seen
    if plan.left_down:
        nodes = ", ".join(map(str, plan.left_down))
        lines.append(f"broker {nodes} hosts replicas, is down, and is not among those that are restarted")
    if max_unavailable > 1 and any(row.rack is None for row in plan.brokers):
        lines.append("brokers without a rack are restarted one at a time: --max-unavailable is for those of one rack")
    return lines


def said_plan(plan: RestartPlan) -> list[str]:
    """The order in words."""
    lines = []
    if plan.resumes is not None:
        done = f"; restarted already: {', '.join(map(str, plan.restarted))}" if plan.restarted else ""
        lines.append(f"going on with the rolling restart {plan.resumes}{done}")
    turns: dict[int, list[str]] = {}
    for row in plan.brokers:
        kind = " (controller)" if row.is_controller else " (down: started first)" if row.state == "down" else ""
        turns.setdefault(row.turn, []).append(f"{row.broker}{kind}")
    if turns:
        lines.append(f"order: {', then '.join(' with '.join(each) for each in turns.values())}")
    return lines


def question(plan: RestartPlan, max_unavailable: int) -> str:
    """What is asked before it begins."""
    how = "one after the other" if max_unavailable == 1 else f"{max_unavailable} of a rack at once at most"
    what = counted(len(plan.brokers), "broker")
    verb = "Go on restarting" if plan.resumes is not None else "Restart"
    risk = f" {counted(len(plan.unprotected), 'topic')} not protected." if plan.unprotected else ""
    return f"{verb} {what} of {plan.cluster}, {how}?{risk}"


def result_tables(result: RollingRestart) -> list[Table]:
    """One row a broker."""

    def seconds(value: object) -> str:
        return f"{value / 1000:.1f} s" if isinstance(value, int) else ""

    columns = [
        Column("broker", align="right"),
        Column("result"),
        Column("stop_ms", "STOP", show=seconds, align="right"),
        Column("start_ms", "START", show=seconds, align="right"),
        Column("in_sync_ms", "IN SYNC", show=seconds, align="right"),
        Column("longest_under_replicated_ms", "UNDER-REPLICATED", show=seconds, align="right"),
    ]
    return [Table(columns, jsonable(result.brokers))]
