"""Tables and texts of upgrades and rollbacks: plan, question, result."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.commands.cluster.rolling_tables import blocker_tables, time_columns, unprotected_warnings
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.upgrade.finalize import FinalizationPlan
    from kctl.upgrade.plan import UpgradePlan
    from kctl.upgrade.run import UpgradeResult


def plan_tables(plan: UpgradePlan) -> list[Table]:
    """Return the tables of the order, the changed settings and the blockers."""
    columns = [
        Column("turn", align="right"), Column("node"), Column("kafka_version", "KAFKA"), Column("to"),
        Column("state"), Column("note", " "),
    ]  # fmt: skip
    rows = [
        {**row, "to": plan.to_version, "note": "active controller" if row["is_active_controller"] else ""}
        for row in jsonable(plan.nodes)
    ]
    tables = [Table(columns, rows, empty=f"All nodes run Kafka {plan.to_version}.")]
    if plan.settings:
        tables.append(_settings_table(plan))
    return [*tables, *blocker_tables(plan.blockers)]


def _settings_table(plan: UpgradePlan) -> Table:
    """Return a table with one row per change; nodes with the same change share a row."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for row in plan.settings:
        for change in row.changes:
            new_names = ", ".join(change.new_names)
            text = f"{change.action.value}{f': {new_names}' if new_names else ''}"
            nodes.setdefault((change.setting, change.value, text), []).append(row.node)
    rows = [
        {"setting": setting, "value": value, "change": text, "nodes": ", ".join(names)}
        for (setting, value, text), names in nodes.items()
    ]
    return Table([Column("setting"), Column("value"), Column("change"), Column("nodes")], rows)


def plan_warnings(plan: UpgradePlan) -> list[str]:
    """Return the warnings before the start."""
    return [*plan.warnings, *unprotected_warnings(plan.unprotected)]


def plan_notes(plan: UpgradePlan) -> list[str]:
    """Return the plan as text."""
    verb = "resuming the " if plan.resumes else ""
    versions = f"from Kafka {plan.from_version} to {plan.to_version}"
    java = f"with Java {plan.java_version} ({plan.minimum_java} or later is needed)"
    lines = [f"{verb}{plan.action} {versions}, {java}"]
    order = [
        f"{row.node}{' (active controller)' if row.is_active_controller else ''}"
        f"{' (down, started first)' if row.state == 'down' else ''}"
        for row in plan.nodes
    ]
    if order:
        lines.append(f"order: {', then '.join(order)}")
    nodes: dict[str, list[str]] = {}
    for row in plan.settings:
        counts = Counter(change.action.value for change in row.changes)
        text = ", ".join(f"{count} {action}" for action, count in counts.items())
        nodes.setdefault(text, []).append(row.node)
    lines += [f"settings of {', '.join(names)}: {text} (listed by --dry-run)" for text, names in nodes.items()]
    return lines


def question(plan: UpgradePlan) -> str:
    """Return the question to confirm."""
    risk = f" {counted(len(plan.unprotected), 'topic')} not protected." if plan.unprotected else ""
    nodes = counted(len(plan.nodes), "node")
    if plan.action == "rollback":
        return f"Return {nodes} of {plan.cluster} to Kafka {plan.to_version}, one after another?{risk}"
    if not plan.nodes:
        return f"All nodes of {plan.cluster} run Kafka {plan.to_version}. Watch its health again?"
    return f"Upgrade {nodes} of {plan.cluster} to Kafka {plan.to_version}, one after another?{risk}"


def finalization_tables(plan: FinalizationPlan) -> list[Table]:
    """Return the tables of the features that change, or of the brokers that restart."""
    if plan.protocol is not None:
        rows = [{"node": node, **jsonable(plan.protocol)} for node in plan.protocol.nodes]
        columns = [Column("node"), Column("before", "INTER.BROKER.PROTOCOL.VERSION"), Column("after")]
        return [Table(columns, rows, empty="All brokers use the new protocol.")]
    rows = [{**row, "undo": "yes" if row["reversible"] else "no"} for row in jsonable(plan.features)
            if row["before"] != row["after"]]  # fmt: skip
    columns = [
        Column("feature"), Column("before_name", "BEFORE"), Column("after_name", "AFTER"),
        Column("undo", "CAN BE LOWERED"),
    ]  # fmt: skip
    return [Table(columns, rows, empty="No feature changes.")]


def finalization_question(plan: FinalizationPlan) -> str:
    """Return the question to confirm."""
    restart = f" {counted(len(plan.protocol.nodes), 'broker')} restart." if plan.protocol is not None else ""
    return (
        f"Finalize the upgrade of {plan.cluster} to Kafka {plan.to_version}? A rollback to {plan.from_version} is then "
        f"impossible.{restart}"
    )


def finalized_lines(plan: FinalizationPlan) -> list[str]:
    """Return the new state, and the next step if there is one."""
    final = f"a rollback to {plan.from_version} is no longer possible"
    lines = [f"{plan.cluster} runs Kafka {plan.to_version}, finalized; {final}"]
    if plan.static_voters:
        lines.append("its quorum still has static voters (kraft.version 0); `kctl quorum convert` makes them dynamic")
    return lines


def result_tables(result: UpgradeResult) -> list[Table]:
    """Return a table with one row per node."""
    columns = [Column("node"), Column("result"), *time_columns()]
    return [Table(columns, jsonable(result.nodes), empty="No node was restarted.")]


def closing_lines(result: UpgradeResult) -> list[str]:
    """Return the release that the cluster runs now, and the next steps."""
    if result.outcome.value == "rolled back":
        return [f"all nodes of {result.cluster} run Kafka {result.to_version} again, with the previous settings"]
    return [
        f"all nodes of {result.cluster} run Kafka {result.to_version}, with the features of {result.from_version}",
        f"to go back: kctl cluster rollback {result.cluster}",
        f"to use the new features, which cannot be undone: kctl cluster finalize {result.cluster}",
    ]
