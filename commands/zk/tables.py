"""Tables of kctl zk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kctl.base.units import format_duration, format_size
from kctl.commands.terminal.output import Column, Table, cell

_STAT = (
    ("path", "path"), ("meaning", "what it is"), ("data_bytes", "bytes"), ("children", "children"),
    ("created", "created"), ("modified", "modified"), ("version", "version"),
    ("children_version", "version of its children"), ("acl_version", "version of its ACL"),
    ("session", "ends with session"), ("czxid", "zxid of its creation"), ("mzxid", "zxid of its data"),
    ("pzxid", "zxid of its children"),
)  # fmt: skip


def stat_table(stat: Mapping[str, Any]) -> Table:
    """What ZooKeeper keeps about one node."""
    rows = [{"fact": text, "value": stat[key]} for key, text in _STAT if key != "session" or stat[key]]
    return Table([Column("fact", "NODE"), Column("value", " ")], rows)


def node_tables(node: Mapping[str, Any]) -> list[Table]:
    """A node's content, and in a line above it what it is."""
    stat = node["stat"]
    title = f"{node['path']}: {node['meaning']}" if node["meaning"] else node["path"]
    facts = [
        f"{format_size(stat['data_bytes'])}", f"version {stat['version']}", f"modified {stat['modified']}",
        f"children {stat['children']}", *(["ephemeral"] if stat["session"] else []),
    ]  # fmt: skip
    columns = [Column("name", "FIELD", name=True), Column("value")]
    rows = [*_rows(node), {"name": "(node)", "value": ", ".join(facts)}]
    return [Table(columns, rows, title=title)]


def _rows(node: Mapping[str, Any]) -> list[dict[str, str]]:
    value = node["value"]
    if value is None and node["base64"]:
        return [{"name": "(no UTF-8)", "value": f"base64 {node['base64']}"}]
    if value is None:
        return [{"name": "(empty)", "value": ""}] if not node["text"] else [{"name": "(text)", "value": node["text"]}]
    if not isinstance(value, Mapping):
        return [{"name": "(value)", "value": _text(value)}]
    return [{"name": name, "value": text} for name, text in _flat(value, "")]


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Objects within objects by dotted names."""
    for key, each in value.items():
        name = f"{prefix}{key}"
        if isinstance(each, Mapping) and each:
            yield from _flat(each, f"{name}.")
        else:
            yield name, _text(each)


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list)):
        plain = isinstance(value, list) and not any(isinstance(each, (Mapping, list)) for each in value)
        return cell(value) if plain and value else json.dumps(value, ensure_ascii=False)
    return cell(value)


def server_table(servers: Sequence[Mapping[str, Any]]) -> Table:
    """A line for each server; what only `mntr` tells with -o wide."""
    columns = [
        Column("server", name=True),
        Column("mode", name=True, style=lambda row: None if row["healthy"] else "red"),
        Column("version"),
        Column("latency", "MS MIN/AVG/MAX"),
        Column("connections", "CONN", align="right"),
        Column("outstanding", align="right"),
        Column("zxid"),
        Column("nodes", align="right", wide=True),
        Column("uptime_ms", "UP FOR", show=format_duration, wide=True),
        Column("watches", align="right", wide=True),
        Column("data_bytes", "DATA", show=format_size, align="right", wide=True),
        Column("open_files", align="right", wide=True),
        Column("synced_followers", align="right", wide=True),
    ]
    rows = [{**row, "latency": _latency(row), "mode": row["mode"] or "not serving"} for row in servers]
    return Table(columns, rows)


def _latency(row: Mapping[str, Any]) -> str | None:
    low, mean, high = (row[f"latency_{part}_ms"] for part in ("min", "avg", "max"))
    return None if mean is None else f"{low:g}/{round(mean, 1):g}/{high:g}"
