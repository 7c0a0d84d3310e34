"""The tables of `kctl leader`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.commands.leader.elections import certificate
from kctl.commands.terminal.bars import bar
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.health.leaders import LeaderStatus
    from kctl.leader.balance import LeaderBalance
    from kctl.leader.election import Election

_SHOWN = 30  # partitions; JSON has all
_BAR = 20


def status_tables(leaders: LeaderStatus) -> list[Table]:
    """Return the brokers, and the partitions that are not led by their preferred replica."""
    largest = max((row.leaders for row in leaders.brokers), default=0)
    brokers = Table(
        columns=[
            Column("broker", align="right", style=_down),
            Column("rack", show=str),
            Column("leaders", align="right"),
            Column("preferred", align="right"),
            Column("missing", "LED BY OTHERS", align="right"),
            Column("imbalance_percent", "IMBALANCE", show=lambda p: f"{p:.1f} %", align="right", style=_unbalanced),
            Column("bar", " "),
        ],
        rows=[{**row, "bar": bar(row["leaders"], largest, _BAR)} for row in jsonable(leaders.brokers)],
        title=_title(leaders),
        empty="no brokers",
    )
    partitions = Table(
        columns=[
            Column("topic"),
            Column("partition", align="right"),
            Column("leader", align="right", show=str),
            Column("preferred_leader", "PREFERRED", align="right"),
            Column("election", style=lambda row: None if row["electable"] else "yellow"),
        ],
        rows=[
            {**row, "election": "possible" if row["electable"] else row["reason"]}
            for row in jsonable(leaders.not_preferred[:_SHOWN])
        ],
        title=f"Not led by the preferred replica{_of(len(leaders.not_preferred))}:",
    )
    return [brokers, partitions]


def idle_lines(leaders: LeaderStatus) -> list[str]:
    """Return a line about brokers that an election cannot make leader, with the command that can."""
    lines = []
    if leaders.idle_brokers:
        named = _brokers(leaders.idle_brokers)
        lines.append(f"{named} no partition's preferred leader: balance with `kctl leader balance`")
    if leaders.empty_brokers:
        ids = ",".join(map(str, leaders.empty_brokers))
        command = f"`kctl topic reassign plan --add-broker {ids} --balance leaders`"
        lines.append(f"{_brokers(leaders.empty_brokers)} without any replica: plan a share with {command}")
    return lines


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]} is" if len(ids) == 1 else f"brokers {', '.join(map(str, ids))} are"


def _title(leaders: LeaderStatus) -> str:
    text = (
        f"{leaders.preferred:,} of {counted(leaders.partition_count, 'partition')} led by the preferred replica "
        f"({leaders.preferred_percent:.1f} %)"
    )
    if leaders.leaderless:
        text += f", {leaders.leaderless:,} without a leader"
    if leaders.auto_rebalance is None:
        return text
    limit = "" if leaders.imbalance_limit_percent is None else f" above {leaders.imbalance_limit_percent:g} %"
    state = f"rebalances automatically{limit}" if leaders.auto_rebalance else "does not rebalance"
    return f"{text}; the controller {state}"


def _of(number: int) -> str:
    return f" ({_SHOWN} of {number:,}; all: -o json)" if number > _SHOWN else ""


def _down(row: Mapping[str, Any]) -> str | None:
    return None if row["alive"] else "red"


def _unbalanced(row: Mapping[str, Any]) -> str | None:
    return "yellow" if row["missing"] else None


def election_tables(plan: Sequence[Election]) -> list[Table]:
    """Return a row per partition, failures first."""
    order = {ItemResult.FAILED: 0, ItemResult.SKIPPED: 1}
    rows = sorted(plan, key=lambda row: (order.get(row.result, 2), row.topic, row.partition))
    columns = [
        Column("topic"),
        Column("partition", align="right"),
        Column("leader", "LEADER BEFORE", align="right"),
        Column("elected", "ELECTED", align="right"),
        Column("result", style=_result_style),
        Column("reason", show=str),
    ]
    if not any(row.reason for row in rows):
        columns.pop()
    title = f"Elections{_of(len(rows))}:" if len(rows) > _SHOWN else None
    return [Table(columns, jsonable(rows[:_SHOWN]), title=title, empty="no election is needed")]


def _result_style(row: Mapping[str, Any]) -> str | None:
    return {ItemResult.FAILED: "red", ItemResult.SKIPPED: "yellow"}.get(row["result"])


def balance_tables(balance: LeaderBalance) -> list[Table]:
    """Return the leaders of each broker before and after, then the failed and skipped partitions."""
    is_applied = any(row.leaders_after is not None for row in balance.brokers)
    key = "leaders_after" if is_applied else "planned"
    largest = max((row.planned for row in balance.brokers), default=0)
    columns = [
        Column("broker", align="right", style=_down),
        Column("rack", show=str),
        Column("leaders_before", "LEADERS NOW" if not is_applied else "LEADERS BEFORE", align="right"),
        Column("preferred_before", "PREFERRED NOW" if not is_applied else "PREFERRED BEFORE", align="right"),
        Column("planned", align="right"),
        *([Column("leaders_after", "LEADERS AFTER", align="right")] if is_applied else []),
        Column("bar", " "),
    ]
    rows = [{**row, "bar": bar(row[key] or 0, largest, _BAR)} for row in jsonable(balance.brokers)]
    unelected = [row for row in balance.elections if row.result in {ItemResult.FAILED, ItemResult.SKIPPED}]
    tables = [Table(columns, rows, title=certificate(balance), empty="no brokers")]
    return tables + (election_tables(unelected) if unelected else [])
