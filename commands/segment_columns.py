"""The columns of segment rows in tables, by the rows' classes, and options that several segment commands have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from kctl.commands.output import Column

Size = Annotated[str | None, typer.Option(metavar="SIZE", help="The largest record; more is damage.")]


def _alarm(row: Mapping[str, Any]) -> str | None:
    return None if row["valid"] else "red"


def content(value: Any) -> str:
    """A key or a value: text, or what a decoder made of it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _headers(headers: list[Mapping[str, Any]]) -> str:
    return " ".join(f"{each['key']}={each['value']}" for each in headers) or "-"


BATCH_COLUMNS = [
    Column("position", align="right"),
    Column("base_offset", "FIRST", align="right"),
    Column("last_offset", "LAST", align="right"),
    Column("count", align="right"),
    Column("max_timestamp", "LATEST"),
    Column("size_bytes", "BYTES", align="right"),
    Column("codec"),
    Column("producer_id", "PRODUCER", align="right"),
    Column("partition_leader_epoch", "EPOCH", align="right"),
    Column("transactional", "TXN"),
    Column("control"),
    Column("valid", "CRC", show=lambda valid: "ok" if valid else "WRONG", style=_alarm),
]
RECORD_COLUMNS = [
    Column("offset", align="right"),
    Column("timestamp"),
    Column("key", show=content),
    Column("value", show=content),
    Column("headers", show=_headers),
    Column("control"),
]
# By the classes' names: the classes are imported only by what makes rows of them.
COLUMNS: dict[str, list[Column]] = {
    "BatchRow": BATCH_COLUMNS,
    "RecordRow": RECORD_COLUMNS,
    "OffsetIndexRow": [Column("offset", align="right"), Column("position", align="right")],
    "TimeIndexRow": [Column("timestamp"), Column("offset", align="right")],
    "AbortedTransactionRow": [
        Column("producer_id", "PRODUCER", align="right"),
        Column("first_offset", "FIRST", align="right"),
        Column("last_offset", "LAST", align="right"),
        Column("last_stable_offset", "LAST STABLE", align="right"),
        Column("version", align="right"),
    ],
    "ProducerRow": [
        Column("producer_id", "PRODUCER", align="right"),
        Column("producer_epoch", "EPOCH", align="right"),
        Column("coordinator_epoch", "COORDINATOR EPOCH", align="right"),
        Column("first_sequence", "FIRST SEQ", align="right"),
        Column("last_sequence", "LAST SEQ", align="right"),
        Column("last_offset", align="right"),
        Column("timestamp"),
        Column("transaction_first_offset", "TXN SINCE", align="right"),
    ],
    "OffsetRow": [Column("topic"), Column("partition", align="right"), Column("offset", align="right")],
    "EpochRow": [Column("epoch", align="right"), Column("start_offset", "START", align="right")],
    "SettingRow": [Column("key"), Column("value")],
}
