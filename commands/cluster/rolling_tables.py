"""Tables and texts of a rolling restart: plan, question, result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.restart.gate import Blocker, UnprotectedTopic
    from kctl.restart.plan import RestartPlan, RollingRestart

_MAX_NAMES = 5


def plan_tables(plan: RestartPlan) -> list[Table]:
    """Return the tables of the unprotected topics, the order and the blockers."""
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
    tables.append(Table(columns, rows, empty="All brokers are already restarted."))
    return [*tables, *blocker_tables(plan.blockers)]


def blocker_tables(blockers: Sequence[Blocker]) -> list[Table]:
    """Return a table of the blockers, if there are any."""
    return [Table([Column("blocker", "BLOCKED BY")], [{"blocker": str(each)} for each in blockers])] if blockers else []


def _unprotected_table(unprotected: tuple[UnprotectedTopic, ...]) -> Table:
    columns = [
        Column("topic", "NOT PROTECTED"), Column("partition_count", "PARTITIONS", align="right"),
        Column("replication_factor", "RF", align="right"), Column("min_insync_replicas", "MIN ISR", align="right"),
        Column("consequence"),
    ]  # fmt: skip
    return Table(columns, jsonable(unprotected))


def unprotected_warnings(unprotected: Sequence[UnprotectedTopic]) -> list[str]:
    """Return the warnings about topics that no order of restarts can protect."""
    lines = [
        f"{row.topic} is not protected: {counted(row.partition_count, 'partition')} with "
        f"{counted(row.replication_factor, 'replica')}, min.insync.replicas {row.min_insync_replicas}: "
        f"{row.consequence}"
        for row in unprotected[:_MAX_NAMES]
    ]
    if len(unprotected) > _MAX_NAMES:
        lines.append(f"{counted(len(unprotected) - _MAX_NAMES, 'more topic')} not protected: list all with --dry-run")
    return lines


def plan_warnings(plan: RestartPlan, max_unavailable: int) -> list[str]:
    """Return the warnings before the start; topics that no order of restarts can protect come first."""
    lines = [*unprotected_warnings(plan.unprotected), *plan.not_seen]
    if plan.left_down:
        nodes = ", ".join(map(str, plan.left_down))
        lines.append(f"broker {nodes} hosts replicas and is down, but is not part of this restart")
    if max_unavailable > 1 and any(row.rack is None for row in plan.brokers):
        lines.append("brokers without a rack restart one at a time: --max-unavailable applies within one rack")
    return lines


def plan_notes(plan: RestartPlan) -> list[str]:
    """Return the order as text."""
    lines = []
    if plan.resumes is not None:
        done = f"; already restarted: {', '.join(map(str, plan.restarted))}" if plan.restarted else ""
        lines.append(f"resuming rolling restart {plan.resumes}{done}")
    turns: dict[int, list[str]] = {}
    for row in plan.brokers:
        kind = " (controller)" if row.is_controller else " (down, started first)" if row.state == "down" else ""
        turns.setdefault(row.turn, []).append(f"{row.broker}{kind}")
    if turns:
        lines.append(f"order: {', then '.join(' with '.join(each) for each in turns.values())}")
    return lines


def question(plan: RestartPlan, max_unavailable: int) -> str:
    """Return the question to confirm."""
    how = "one after another" if max_unavailable == 1 else f"up to {max_unavailable} of one rack at once"
    brokers = counted(len(plan.brokers), "broker")
    verb = "Resume restarting" if plan.resumes is not None else "Restart"
    risk = f" {counted(len(plan.unprotected), 'topic')} not protected." if plan.unprotected else ""
    return f"{verb} {brokers} of {plan.cluster}, {how}?{risk}"


def time_columns() -> list[Column]:
    """Return the columns with the times of each restarted node."""

    def seconds(value: object) -> str:
        return f"{value / 1000:.1f} s" if isinstance(value, int) else ""

    return [
        Column("stop_ms", "STOP", show=seconds, align="right"),
        Column("start_ms", "START", show=seconds, align="right"),
        Column("in_sync_ms", "IN SYNC", show=seconds, align="right"),
        Column("longest_under_replicated_ms", "UNDER-REPLICATED", show=seconds, align="right"),
    ]


def result_tables(result: RollingRestart) -> list[Table]:
    """Return a table with one row per broker."""
    columns = [Column("broker", align="right"), Column("result"), *time_columns()]
    return [Table(columns, jsonable(result.brokers))]
