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


def status_tables(found: LeaderStatus) -> list[Table]:
    """Brokers, then the partitions that their preferred replica does not lead."""
    largest = max((row.leaders for row in found.brokers), default=0)
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
        rows=[{**row, "bar": bar(row["leaders"], largest, _BAR)} for row in jsonable(found.brokers)],
        title=_title(found),
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
            for row in jsonable(found.not_preferred[:_SHOWN])
        ],
        title=f"Not led by the preferred replica{_of(len(found.not_preferred))}:",
    )
    return [brokers, partitions]


def idle_lines(found: LeaderStatus) -> list[str]:
    """Brokers that no election makes lead anything, and what would."""
    lines = []
    if found.idle_brokers:
        named = _brokers(found.idle_brokers)
        lines.append(f"{named} no partition's preferred leader: `kctl leader balance` spreads them")
    if found.empty_brokers:
        ids = ",".join(map(str, found.empty_brokers))
        command = f"`kctl topic reassign plan --add-broker {ids} --balance leaders`"
        lines.append(f"{_brokers(found.empty_brokers)} without any replica: {command} plans a share")
    return lines


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]} is" if len(ids) == 1 else f"brokers {', '.join(map(str, ids))} are"


def _title(found: LeaderStatus) -> str:
    told = (
        f"{found.preferred:,} of {counted(found.partition_count, 'partition')} led by the preferred replica "
        f"({found.preferred_percent:.1f} %)"
    )
    if found.leaderless:
        told += f", {found.leaderless:,} without a leader"
    if found.auto_rebalance is None:
        return told
    limit = "" if found.imbalance_limit_percent is None else f" above {found.imbalance_limit_percent:g} %"
    return f"{told}; the controller {'elects by itself' + limit if found.auto_rebalance else 'never elects by itself'}"


def _of(number: int) -> str:
    return f" ({_SHOWN} of {number:,}, -o json has all)" if number > _SHOWN else ""


def _down(row: Mapping[str, Any]) -> str | None:
    return None if row["alive"] else "red"


def _unbalanced(row: Mapping[str, Any]) -> str | None:
    return "yellow" if row["missing"] else None


def election_tables(plan: Sequence[Election]) -> list[Table]:
    """A line for each partition, what went wrong first."""
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


def balance_tables(found: LeaderBalance) -> list[Table]:
    """Leaders of each broker before and after, then partitions that did not get theirs."""
    done = any(row.leaders_after is not None for row in found.brokers)
    key = "leaders_after" if done else "planned"
    largest = max((row.planned for row in found.brokers), default=0)
    columns = [
        Column("broker", align="right", style=_down),
        Column("rack", show=str),
        Column("leaders_before", "LEADERS NOW" if not done else "LEADERS BEFORE", align="right"),
        Column("preferred_before", "PREFERRED NOW" if not done else "PREFERRED BEFORE", align="right"),
        Column("planned", align="right"),
        *([Column("leaders_after", "LEADERS AFTER", align="right")] if done else []),
        Column("bar", " "),
    ]
    rows = [{**row, "bar": bar(row[key] or 0, largest, _BAR)} for row in jsonable(found.brokers)]
    left = [row for row in found.elections if row.result in {ItemResult.FAILED, ItemResult.SKIPPED}]
    tables = [Table(columns, rows, title=certificate(found), empty="no brokers")]
    return tables + (election_tables(left) if left else [])
