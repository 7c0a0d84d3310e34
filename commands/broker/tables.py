"""The tables of `kctl broker`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.units import format_size
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import alarm, ranges

if TYPE_CHECKING:
    from kctl.brokers.log_dir_rows import LogDirRow, ReplicaRow
    from kctl.brokers.overview import BrokerDescription, BrokerSummary
    from kctl.cluster.api_versions import ApiOfBrokers, FeatureOfBrokers

_MAX_NAMES = 20


def broker_table(rows: Sequence[BrokerSummary]) -> Table:
    """Return the table with one row per broker."""
    columns = [
        Column("broker", "ID", align="right"),
        Column("address"),
        Column("rack"),
        Column("state", style=lambda row: None if row["state"] == "up" else "red"),
        Column("is_controller", "CTRL", show=lambda value: "yes" if value else ""),
        Column("leaders", align="right"),
        Column("replica_count", "REPLICAS", align="right"),
        Column("not_in_sync", "NOT IN SYNC", align="right", style=alarm("not_in_sync")),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("used_percent", "DISK", show=_percent, align="right"),
        Column("log_dir_count", "LOG DIRS", align="right", wide=True),
        Column("offline_log_dirs", "OFFLINE DIRS", align="right", style=alarm("offline_log_dirs")),
        Column("cordoned_log_dirs", "CORDONED DIRS", align="right", style=alarm("cordoned_log_dirs")),
        Column("release", "RELEASE"),
    ]
    cells = [{**row, "address": _address(row)} for row in jsonable(rows)]
    hidden = {key for key in ("offline_log_dirs", "cordoned_log_dirs") if not any(row[key] for row in cells)}
    columns = [column for column in columns if column.key not in hidden]
    return Table(columns, cells, empty="no brokers")


def _percent(value: float) -> str:
    return f"{value:g} %"


def _address(row: Mapping[str, Any]) -> str | None:
    host = row["host"]
    return None if host is None else f"[{host}]:{row['port']}" if ":" in host else f"{host}:{row['port']}"


def description_tables(broker: BrokerDescription) -> list[Table]:
    """Return the tables of one broker: its facts as lines, then its log dirs."""
    row = jsonable(broker)
    facts = {
        "address": _address(row),
        "rack": row["rack"],
        "state": row["state"],
        "controller": row["is_controller"],
        "release": row["release"],
        "leaders": f"{_count(broker.leaders)}; preferred leader of {_count(broker.preferred)}",
        "replicas": f"{_count(broker.replica_count)}; not in sync: {_not_in_sync(broker)}",
    }
    lines = Table(
        [Column("key", "BROKER"), Column("value", str(broker.broker))],
        [{"key": key, "value": value} for key, value in facts.items()],
    )
    return [lines] if broker.log_dirs is None else [lines, log_dir_table(broker.log_dirs, with_broker=False)]


def description_rows(brokers: Sequence[BrokerDescription]) -> list[dict[str, Any]]:
    """Return one row per broker without log dirs, for CSV; `kctl broker log-dirs` has the log dirs."""
    return [{key: value for key, value in row.items() if key != "log_dirs"} for row in jsonable(brokers)]


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _not_in_sync(broker: BrokerDescription) -> str:
    if broker.replica_count is None and not broker.partitions_not_in_sync:
        return "unknown"
    return _first_names(broker.partitions_not_in_sync) + (
        "" if broker.replica_count is not None else " among the visible topics"
    )


def _first_names(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def log_dir_table(rows: Sequence[LogDirRow], *, with_broker: bool = True) -> Table:
    """Return the table with one row per log dir."""
    columns = [
        Column("broker", align="right"),
        Column("log_dir", "LOG DIR", name=True),
        Column("replica_count", "REPLICAS", align="right"),
        Column("future_replicas", "FUTURE", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("usable_bytes", "USABLE", show=format_size, align="right"),
        Column("total_bytes", "TOTAL", show=format_size, align="right"),
        Column("used_percent", "USED", show=_percent, align="right"),
        Column("cordoned", show=lambda value: "yes" if value else "", style=alarm("cordoned")),
        Column("error", "OFFLINE", style=alarm("error")),
    ]
    cells = jsonable(rows)
    hidden = {key for key in ("future_replicas", "cordoned", "error") if not any(row[key] for row in cells)}
    if not with_broker:
        hidden.add("broker")
    return Table([column for column in columns if column.key not in hidden], cells, empty="no log dirs")


def replica_table(rows: Sequence[ReplicaRow]) -> Table:
    """Return the table with one row per replica."""
    columns = [
        Column("broker", align="right"),
        Column("log_dir", "LOG DIR", name=True),
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("offset_lag", "OFFSET LAG", align="right"),
        Column("is_future", "FUTURE", show=lambda value: "yes" if value else ""),
    ]
    return Table(columns, jsonable(rows), empty="no replicas")


def api_table(rows: Sequence[ApiOfBrokers], *, empty: str) -> Table:
    """Return the table with one row per API. Where brokers differ, the cell lists them: "1-2: 0 to 8; 3: 0 to 9"."""
    columns = [
        Column("api_key", "KEY", align="right"),
        Column("api"),
        Column("shown", "VERSIONS", style=lambda row: None if row["same"] else "yellow"),
    ]
    return Table(columns, [{**row, "shown": _versions(row)} for row in jsonable(rows)], empty=empty)


def api_rows(rows: Sequence[ApiOfBrokers]) -> list[dict[str, Any]]:
    """Return one row per API and distinct version range, for CSV."""
    return [
        {"api_key": row["api_key"], "api": row["api"], "same": row["same"], **each}
        for row in jsonable(rows)
        for each in row["versions"]
    ]


def _versions(row: Mapping[str, Any]) -> str:
    pieces = [(ranges(each["brokers"]), _range(each)) for each in row["versions"]]
    return pieces[0][1] if row["same"] else "; ".join(f"{brokers}: {text}" for brokers, text in pieces)


def _range(each: Mapping[str, Any]) -> str:
    return "none" if each["min_version"] is None else f"{each['min_version']} to {each['max_version']}"


def feature_table(rows: Sequence[FeatureOfBrokers]) -> Table:
    """Return the table with one row per feature and distinct level. Levels of metadata.version have names."""
    columns = [
        Column("feature"),
        Column("brokers", show=ranges),
        Column("min_name", "SUPPORTED MIN", align="right"),
        Column("max_name", "SUPPORTED MAX", align="right"),
        Column("finalized_name", "FINALIZED", align="right"),
        Column("finalized_epoch", "EPOCH", align="right"),
    ]
    return Table(columns, [_with_level_names(row) for row in rows], empty="no features")


def _with_level_names(row: FeatureOfBrokers) -> dict[str, Any]:
    from kctl.features.levels import level_name

    levels = {"min_name": row.min_version, "max_name": row.max_version, "finalized_name": row.finalized_version}
    names = {key: None if level is None else level_name(row.feature, level) for key, level in levels.items()}
    return {**jsonable(row), **names}
