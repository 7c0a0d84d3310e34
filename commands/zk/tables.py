"""Tables for kctl zk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kctl.base.units import format_duration, format_size
from kctl.commands.terminal.output import Column, Table, cell

_STAT = (
    ("path", "path"), ("meaning", "meaning"), ("data_bytes", "bytes"), ("children", "children"),
    ("created", "created"), ("modified", "modified"), ("version", "version"),
    ("children_version", "children version"), ("acl_version", "ACL version"),
    ("session", "owner session"), ("czxid", "creation zxid"), ("mzxid", "data zxid"),
    ("pzxid", "children zxid"),
)  # fmt: skip


def stat_table(stat: Mapping[str, Any]) -> Table:
    """Return the metadata of one node."""
    rows = [{"property": text, "value": stat[key]} for key, text in _STAT if key != "session" or stat[key]]
    return Table([Column("property", "NODE"), Column("value", " ")], rows)


def node_tables(node: Mapping[str, Any]) -> list[Table]:
    """Return the content of a node, with its meaning in the title."""
    stat = node["stat"]
    title = f"{node['path']}: {node['meaning']}" if node["meaning"] else node["path"]
    details = [
        f"{format_size(stat['data_bytes'])}", f"version {stat['version']}", f"modified {stat['modified']}",
        f"children {stat['children']}", *(["ephemeral"] if stat["session"] else []),
    ]  # fmt: skip
    columns = [Column("name", "FIELD", name=True), Column("value")]
    rows = [*_rows(node), {"name": "(node)", "value": ", ".join(details)}]
    return [Table(columns, rows, title=title)]


def _rows(node: Mapping[str, Any]) -> list[dict[str, str]]:
    value = node["value"]
    if value is None and node["base64"]:
        return [{"name": "(not UTF-8)", "value": f"base64 {node['base64']}"}]
    if value is None:
        return [{"name": "(empty)", "value": ""}] if not node["text"] else [{"name": "(text)", "value": node["text"]}]
    if not isinstance(value, Mapping):
        return [{"name": "(value)", "value": _text(value)}]
    return [{"name": name, "value": text} for name, text in _flat(value, "")]


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Flatten nested objects to dotted names."""
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
    """Return a row for each server. Values that only mntr reports are in -o wide."""
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
