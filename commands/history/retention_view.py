"""Tables of `kctl history retention` and `kctl spark retention`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.base.units import format_due
from kctl.commands.history.options import show_bytes_limit, show_duration, show_size
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.history.lag.explain import Line
    from kctl.history.retention.what_if_report import WhatIf

_SOON_MS = 7 * 24 * 3_600_000
_MAX_EXPLAINED = 100


def usage_table(rows: Sequence[Any], by: str, *, outlook: bool = False, wide: bool = False) -> Table:
    """Return topics, partitions, replicas, brokers or log dirs as a table.

    Columns that are empty in every row are omitted. outlook: with growth and forecasts. wide: also columns beyond 80
    characters.
    """
    values = [_with_text(row) for row in jsonable(rows)]
    columns = [
        column
        for column in [*_BY[by](), *(_OUTLOOK[by]() if outlook else [])]
        if (wide or column.key not in _WIDE[by])
        and (column.key in _ALWAYS or any(row[column.key] not in {None, False} for row in values))
    ]
    return Table(columns, values, empty="no logs")


def losses_table(rows: Sequence[Any]) -> Table:
    """Return the messages that groups lose when each disk is full."""
    columns = [
        _right("broker"), Column("log_dir"), _full(), Column("group", name=True), _right("partition_count", "PARTS"),
        _count("unread"), _count("sole", "ONLY HERE"), _count("deleted"), _due("loss_ms", "LOSS IN"),
    ]  # fmt: skip
    return Table(columns, jsonable(rows), empty="no disk will be full with messages that a group has not read")


def skew_table(rows: Sequence[Any]) -> Table:
    """Return how evenly bytes are distributed."""
    columns = [
        Column("over"), _right("broker"), Column("topic"), _right("places"), _size("least", "MIN"),
        Column("mean", show=lambda value: show_size(int(value)), align="right"), _size("most", "MAX"),
        Column("ratio", "MAX/MEAN", show=lambda value: f"{value:.2f}", align="right"),
        Column("spread", show=lambda value: f"{value:.0%}", align="right"),
    ]  # fmt: skip
    return Table(columns, jsonable(rows), empty="nothing to compare")


def tombstones_table(rows: Sequence[Any]) -> Table:
    """Return how long groups still see deletions of compacted topics."""
    columns = [
        Column("group"), Column("topic"), _right("partition", "PART"), _duration("time_lag_ms", "TIME LAG"),
        _duration("delete_retention_ms", "RETAINED FOR"), _duration("sure_ms", "SAFE FOR"),
    ]  # fmt: skip
    return Table(columns, jsonable(rows), empty="no group is behind on a compacted topic")


def what_if_tables(effect: WhatIf) -> list[Table]:
    """Return what a change frees, its effect on the disks, and the groups that lose messages."""
    topics = [
        Column("topic"), _right("partition_count", "PARTITIONS"), _size("replicas_bytes", "ALL REPLICAS"),
        _size("freed_at_least_bytes", "FREED"), _size("freed_at_most_bytes", "AT MOST"),
        _size("ceiling_bytes", "CEILING"), _size("new_ceiling_bytes", "NEW CEILING"),
        Column("unknown_partitions", "UNKNOWN", align="right", style=_unknown_style),
    ]  # fmt: skip
    dirs = [
        _right("broker"), Column("log_dir"), _size("usable_bytes", "FREE"), _size("freed_at_least_bytes", "FREED"),
        _size("freed_at_most_bytes", "AT MOST"), _full_text(),
        replace(_full("new_full_ms", "THEN"), key="then", show=str),
    ]  # fmt: skip
    groups = [
        Column("group", name=True), Column("topic", name=True), _right("partition_count", "PARTITIONS"),
        _count("lost_at_most", "LOST AT MOST"), _due("loss_ms", "LOSS IN"), _due("new_loss_ms", "THEN"),
    ]  # fmt: skip
    return [
        Table(topics, jsonable(effect.topics), title="topics", empty="no matching topic"),
        Table(dirs, [_with_then(row) for row in jsonable(effect.log_dirs)], title="log dirs"),
        Table(
            groups,
            jsonable(effect.groups),
            title="groups that would lose messages, immediately or sooner",
            empty="no group would lose messages immediately or sooner",
        ),
    ]


def explanations(rows: Sequence[tuple[str, Sequence[Line]]]) -> list[Table]:
    """Return one table per row that explains its values."""
    columns = [Column("name", "FIGURE"), Column("text", "EXPLANATION")]
    return [Table(columns, [line._asdict() for line in lines], title=name) for name, lines in rows[:_MAX_EXPLAINED]]


# --- columns --------------------------------------------------------------------------------------------------------


def _unknown_style(row: Mapping[str, Any]) -> str | None:
    return "yellow" if row["unknown_partitions"] else None


def _with_text(row: dict[str, Any]) -> dict[str, Any]:
    """Add formatted columns: the main cause of a log dir's growth, and "none" for an unlimited ceiling."""
    causes = row.get("causes")
    if causes:
        first = causes[0]
        row["cause"] = f"{'other files' if first['topic'] is None else first['topic']} {first['share']:.0%}"
    if "full_ms" in row:
        row["full"] = full_in(row)
    if "ceiling_bytes" in row:
        ceiling = row["ceiling_bytes"]
        row["ceiling"] = "none" if row["unlimited"] else None if ceiling is None else show_size(ceiling)
    return row


def _with_then(row: dict[str, Any]) -> dict[str, Any]:
    """Add when a log dir is full, before and after the change; "never" if the change keeps it from filling up."""
    new, old = row["new_full_ms"], row["full_ms"]
    would = old is not None or row["full_after_ms"] is not None
    return row | {
        "full": _full_in(old, row["full_after_ms"], None),
        "then": _full_in(new, row["new_full_after_ms"], "never" if would else None),
    }


def full_in(row: Mapping[str, Any]) -> str | None:
    """Return when a log dir (or the first log dir of a broker) is full; None if unknown."""
    predictable = row["disk_used"] is not None and row["growth_bytes_per_hour"] is not None
    return _full_in(row["full_ms"], row["full_after_ms"], "never" if predictable else None)


def _full_in(full_ms: int | None, after_ms: int | None, otherwise: str | None) -> str | None:
    """Return "3d 2h", or "> 5h" if the disk fills up later than the observed span can predict."""
    if full_ms is not None:
        return show_duration(full_ms)
    return f"> {show_duration(after_ms)}" if after_ms is not None else otherwise


def _right(key: str, header: str = "") -> Column:
    return Column(key, header, align="right")


def _count(key: str, header: str = "") -> Column:
    return Column(key, header, show=lambda value: f"{value:,}", align="right")


def _size(key: str, header: str = "") -> Column:
    return Column(key, header, show=show_size, align="right")


def _duration(key: str, header: str) -> Column:
    return Column(key, header, show=show_duration, align="right")


def _due(key: str, header: str) -> Column:
    return Column(key, header, show=format_due, align="right")


def _rate(key: str, header: str) -> Column:
    return Column(key, header, show=lambda value: f"{show_size(int(value))}/h", align="right")


def _full(key: str = "full_ms", header: str = "FULL IN") -> Column:
    def style(row: Mapping[str, Any]) -> str | None:
        value = row.get(key)
        return "red" if value is not None and value < _SOON_MS else None

    return Column(key, header, show=show_duration, align="right", style=style)


def _full_text() -> Column:
    return replace(_full(), key="full", show=str)


def _sizes(*, replicas: bool = True) -> list[Column]:
    size = _size("size_bytes", "SIZE")
    return [size, _size("replicas_bytes", "ALL REPLICAS")] if replicas else [size]


def _limit() -> Column:
    return Column("retention_bytes", "RETENTION BYTES", show=show_bytes_limit, align="right")


def _shares() -> list[Column]:
    return [_share("retention_bytes_used", "BYTES USED"), _duration("oldest_age_ms", "OLDEST"),
            _share("retention_ms_used", "TIME USED")]  # fmt: skip


def _share(key: str, header: str) -> Column:
    return Column(
        key,
        header,
        show=_percent,
        align="right",
        style=lambda row: "yellow" if (row[key] or 0) >= 0.9 else None,
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"


def _cleaner() -> list[Column]:
    return [
        _share("dirty_ratio_at_least", "DIRTY"),
        Column(
            "cleaner_stands_still", "CLEANER", show=lambda value: "stalled" if value else "",
            style=lambda row: "red" if row["cleaner_stands_still"] else None,
        ),
    ]  # fmt: skip


_BY: dict[str, Any] = {
    "topic": lambda: [Column("topic"), _right("partition_count", "PARTITIONS"), *_sizes(), _limit(), *_shares()],
    "partition": lambda: [
        Column("topic"), _right("partition", "PART"), _right("leader"), _right("replica_count", "REPLICAS"),
        *_sizes(), _limit(), *_shares(),
    ],
    "replica": lambda: [
        Column("topic"), _right("partition", "PART"), _right("broker"), Column("log_dir"),
        Column("is_leader", "LEADER"), *_sizes(replicas=False), _share("retention_bytes_used", "BYTES USED"),
    ],
    "broker": lambda: [
        _right("broker"), _right("log_dir_count", "LOG DIRS"), _right("topic_count", "TOPICS"),
        _right("replica_count", "REPLICAS"), *_sizes(replicas=False), _share("disk_used", "DISK"), *_shares(),
    ],
    "log-dir": lambda: [
        _right("broker"), Column("log_dir"), _right("replica_count", "REPLICAS"), *_sizes(replicas=False),
        _size("usable_bytes", "FREE"), _share("disk_used", "DISK"), *_shares(),
    ],
}  # fmt: skip
_GROWTH = (("written_bytes_per_hour", "WRITTEN"), ("growth_bytes_per_hour", "GROWTH"))
_OUTLOOK: dict[str, Any] = {
    "topic": lambda: [*(_rate(*each) for each in _GROWTH), _right("ceiling"),
                      Column("skew", show=lambda value: f"{value:.2f}", align="right"), *_cleaner()],
    "partition": lambda: [*(_rate(*each) for each in _GROWTH), _right("ceiling"), *_cleaner()],
    "replica": lambda: [*(_rate(*each) for each in _GROWTH), _rate("freed_bytes_per_hour", "FREED")],
    "broker": lambda: [*(_rate(*each) for each in _GROWTH), _full_text(), Column("full_log_dir", "LOG DIR")],
    "log-dir": lambda: [*(_rate(*each) for each in _GROWTH), _full_text(), Column("cause", "BY")],
}  # fmt: skip
_SHARES = {"retention_bytes_used", "oldest_age_ms", "retention_ms_used"}
_WIDE: dict[str, set[str]] = {
    "topic": {"partition_count", "size_bytes", "retention_bytes", "oldest_age_ms", "skew", "dirty_ratio_at_least"},
    "partition": {
        "leader", "replica_count", "replicas_bytes", "retention_bytes", "oldest_age_ms", "dirty_ratio_at_least",
    },
    "replica": {"retention_bytes_used", "freed_bytes_per_hour"},
    "broker": {"log_dir_count", "topic_count", "replica_count", *_SHARES},
    "log-dir": {"replica_count", *_SHARES},
}  # fmt: skip
_ALWAYS = {"topic", "partition", "broker", "log_dir", "size_bytes", "replicas_bytes"}
