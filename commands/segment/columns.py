"""The table columns of segment rows, by row class, and options that several segment commands share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from kctl.commands.terminal.output import Column

# Limits of a table cell: characters of a text, number of headers. -o json has no limits.
_MAX_CHARS = 2000
_MAX_HEADERS = 50
Size = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Maximum record size; a larger record is damage (default: 100MiB).")
]


def message_limit(size: str | None) -> int:
    """Return --max-message-size in bytes. Raises UsageError."""
    from kctl.base.units import parse_size
    from kctl.segment.dump.query import MAX_MESSAGE_BYTES

    return MAX_MESSAGE_BYTES if size is None else parse_size(size)


def _alarm(row: Mapping[str, Any]) -> str | None:
    return None if row["valid"] else "red"


def content(value: Any) -> str:
    """Format a key or value: text, or the output of a decoder."""
    if isinstance(value, dict) and value.keys() == {"type", "version", "data"}:  # a message of an internal topic
        return " ".join([value["type"], *(f"{name}={_part(each)}" for name, each in value["data"].items())])
    return _part(value)


def _part(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}… ({len(text)} characters)"


def _headers(headers: list[Mapping[str, Any]]) -> str:
    """Format headers as key=value; without a value, as the key alone."""
    texts = (
        _part(each["key"]) if each["value"] is None else f"{_part(each['key'])}={_part(each['value'])}"
        for each in headers[:_MAX_HEADERS]
    )
    more = f" … ({len(headers)} headers)" if len(headers) > _MAX_HEADERS else ""
    return " ".join(texts) + more or "-"


def batch_marks(row: Mapping[str, Any]) -> str:
    """Return words for the unusual properties of a batch."""
    marks = [word for word in ("transactional", "control") if row[word]]
    if row["delete_horizon"] is not None:
        marks.append("delete horizon")
    if row["magic"] < 0:
        marks.append(
            f"MAGIC {row['magic']}" + (", CRC matches magic 2" if "CRC matches" in (row["damage"] or "") else "")
        )
    elif not row["valid"]:
        marks.append("WRONG CRC")
    return " ".join(marks) or "-"


# Timestamps have the same width: right-aligned like numbers, they are never wrapped.
BATCH_COLUMNS = [
    Column("position", align="right"),
    Column("base_offset", "FIRST", align="right"),
    Column("last_offset", "LAST", align="right"),
    Column("count", align="right"),
    Column("max_timestamp", "LATEST", align="right"),
    Column("size_bytes", "BYTES", align="right"),
    Column("codec"),
    Column("marks", style=_alarm, words=True),
]
RECORD_COLUMNS = [
    Column("offset", align="right"),
    Column("timestamp", align="right"),
    Column("key", show=content),
    Column("value", show=content),
    Column("headers", show=_headers),
    Column("control"),
]
# Internal topics: no headers. Metadata logs: no keys, but control records.
COORDINATOR_COLUMNS = RECORD_COLUMNS[:4]
METADATA_COLUMNS = [*RECORD_COLUMNS[:2], *RECORD_COLUMNS[3::2]]
# Columns of -o wide.
_PRODUCER = Column("producer_id", "PRODUCER", align="right")
WIDE: dict[str, list[Column]] = {
    "BatchRow": [
        *BATCH_COLUMNS[:-1],
        Column("magic", align="right"),
        Column("partition_leader_epoch", "EPOCH", align="right"),
        _PRODUCER,
        Column("producer_epoch", "PRODUCER EPOCH", align="right"),
        Column("base_sequence", "SEQUENCE", align="right"),
        Column("timestamp_type", "TIME IS"),
        BATCH_COLUMNS[-1],
    ],
    "RecordRow": [
        Column("position", "BATCH AT", align="right"),
        *RECORD_COLUMNS,
        _PRODUCER,
        Column("sequence", align="right"),
        Column("transactional", "TXN"),
    ],
}
# By class name, so that the classes need not be imported.
COLUMNS: dict[str, list[Column]] = {
    "BatchRow": BATCH_COLUMNS,
    "RecordRow": RECORD_COLUMNS,
    "OffsetIndexRow": [Column("offset", align="right"), Column("position", align="right")],
    "TimeIndexRow": [Column("timestamp", align="right"), Column("offset", align="right")],
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
        Column("timestamp", align="right"),
        Column("transaction_first_offset", "TXN SINCE", align="right"),
    ],
    "CheckpointOffsetRow": [Column("topic"), Column("partition", align="right"), Column("offset", align="right")],
    "EpochRow": [Column("epoch", align="right"), Column("start_offset", "START", align="right")],
    "SettingRow": [Column("key"), Column("value")],
}
