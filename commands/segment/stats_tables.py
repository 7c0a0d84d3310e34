"""The tables of `kctl segment stats`: sections that fit into 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kctl.base.units import format_duration, format_size
from kctl.commands.terminal.bars import bar
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.segment.stats.statistics import SegmentStatistics

Row = Mapping[str, Any]


def empty_logs(statistics: SegmentStatistics) -> set[str]:
    """Return the logs without data; none of them if all are empty."""
    empty = {log.log for log in statistics.logs if not log.size_bytes}
    return empty if len(empty) < len(statistics.logs) else set()


def tables(statistics: SegmentStatistics, *, wide: bool = False) -> list[Table]:
    """Return all sections that are not empty; without empty logs unless wide."""
    row = jsonable(statistics)
    if not wide:
        skipped = empty_logs(statistics)
        row["logs"] = [log for log in row["logs"] if log["log"] not in skipped]
    return [table for table in _sections(row) if table.rows]


def _sections(statistics: Row) -> Iterator[Table]:
    yield _figures(f"Totals, at {statistics['at']}", _totals(statistics["totals"]))
    yield Table(_LOG_COLUMNS, statistics["logs"], title="Logs")
    yield Table(_CODEC_COLUMNS, statistics["codecs"], title="Compression")
    yield _histogram("Batches by their size in the log", statistics["batch_sizes"])
    if statistics["record_sizes"] is not None:
        yield _histogram("Records by their uncompressed size", statistics["record_sizes"])
    if statistics["keys"] is not None:
        yield _figures("Keys, values and headers", _keys(statistics["keys"]))
        yield _hottest(statistics["keys"])
    yield _producers(statistics["producers"])
    yield _figures("Timestamps", _timestamps(statistics["timestamps"]))
    if statistics["compaction"] is not None:
        yield _figures("What compaction would remove", _compaction(statistics["compaction"]))
    transactions = statistics["transactions"]
    yield _figures("Transactions", _transactions(transactions))
    more = transactions["open_count"] - len(transactions["open"])
    yield Table(_OPEN_COLUMNS, transactions["open"], title=f"Open transactions{f', {more} more' if more else ''}")
    for log in statistics["logs"]:
        yield _segments(statistics, log["log"])


def _figures(title: str, figures: Iterator[tuple[str, object]]) -> Table:
    rows = [{"figure": name, "value": value} for name, value in figures]
    return Table([Column("figure"), Column("value")], rows, title=title)


def _bytes(number: int) -> str:
    """Format bytes for people, and exactly if large."""
    return f"{format_size(number)}" + (f" ({number})" if number >= 1000 else "")


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _short_time(text: str) -> str:
    """Format UTC without milliseconds, and with a space where a narrow table can wrap it."""
    return text[:19].replace("T", " ") if text.endswith("Z") else text


# --- totals, sizes --------------------------------------------------------------------------------------------------


def _totals(totals: Row) -> Iterator[tuple[str, object]]:
    yield "segments", totals["segments"]
    yield "size", _bytes(totals["size_bytes"])
    yield "batches", totals["batches"]
    yield "records", totals["records"] if totals["records_exact"] else f"at least {totals['records']}"
    if totals["control_batches"]:
        yield "control batches", totals["control_batches"]
    yield "earliest timestamp", totals["earliest_timestamp"]
    yield "latest timestamp", totals["latest_timestamp"]
    if totals["damaged_places"]:
        yield "damaged places", totals["damaged_places"]
        yield "damaged bytes", _bytes(totals["damaged_bytes"])


_LOG_COLUMNS = [
    Column("log", path=True),
    Column("segments", align="right"),
    Column("size_bytes", "SIZE", show=format_size, align="right"),
    Column("records", align="right"),
    Column("first_offset", "FIRST OFFSET", align="right"),
    Column("log_end_offset", "LOG END OFFSET", align="right"),
    Column("high_watermark", "HIGH WATERMARK", align="right"),
    Column("last_stable_offset", "LAST STABLE OFFSET", align="right"),
]
_CODEC_COLUMNS = [
    Column("codec"),
    Column("batches", align="right"),
    Column("records", align="right"),
    Column("size_bytes", "SIZE", show=format_size, align="right"),
    Column("uncompressed_bytes", "UNCOMPRESSED", show=format_size, align="right"),
    Column("ratio", show=lambda ratio: f"{ratio:.2f}", align="right"),
]


def _histogram(title: str, sizes: Row) -> Table:
    buckets = sizes["histogram"]
    largest = max((bucket["count"] for bucket in buckets), default=0)
    total = sum(bucket["count"] for bucket in buckets)
    rows = [
        {
            "bytes": f"{bucket['from_bytes']}..{bucket['to_bytes']}",
            "count": bucket["count"],
            "share": _percent(bucket["count"] / total) if total else "",
            "bar": bar(bucket["count"], largest),
        }
        for bucket in buckets
    ]
    if total:
        title += (
            f": {format_size(sizes['smallest_bytes'])} to {format_size(sizes['largest_bytes'])}, "
            f"mean {format_size(round(sizes['mean_bytes']))}"
        )
    columns = [Column("bytes", align="right"), Column("count", align="right"), Column("share", align="right")]
    return Table([*columns, Column("bar", " ")], rows, title=title)


# --- keys, producers ------------------------------------------------------------------------------------------------


def _keys(keys: Row) -> Iterator[tuple[str, object]]:
    error = keys["distinct_error"]
    yield "records with a key", keys["records_with_key"]
    yield "distinct keys", f"about {keys['distinct_keys']} (± {error:.1%})" if error else keys["distinct_keys"]
    yield "records without a key", keys["null_keys"]
    yield "tombstones", keys["tombstones"]
    if keys["null_values_without_key"]:
        yield "neither key nor value", keys["null_values_without_key"]
    yield "bytes of keys", _bytes(keys["key_bytes"])
    yield "bytes of values", _bytes(keys["value_bytes"])
    yield "records with headers", keys["records_with_headers"]
    if keys["headers"]:
        yield "headers", keys["headers"]
        yield "bytes of headers", _bytes(keys["header_bytes"])


def _hottest(keys: Row) -> Table:
    error = keys["hottest_error"]
    largest = max((row["records"] for row in keys["hottest"]), default=0)
    rows = [{**row, "shown": _key(row), "bar": bar(row["records"], largest, 20)} for row in keys["hottest"]]
    columns = [
        Column("shown", "KEY"),
        Column("records", align="right"),
        Column("share", show=_percent, align="right"),
        Column("bar", " "),
    ]
    return Table(columns, rows, title=f"Hottest keys{f' (counts are up to {error} too low)' if error else ''}")


def _key(row: Row) -> str:
    text = row["key"] if row["key_encoding"] == "utf-8" else f"base64:{row['key']}"
    if not text:
        return '""'
    return f"{text}…" if row["truncated"] else text


def _producers(producers: Row) -> Table:
    rows = [
        {**row, "shown": "none" if row["producer_id"] is None else row["producer_id"]} for row in producers["listed"]
    ]
    if producers["others"] is not None:
        rows.append({**producers["others"], "shown": "others", "producer_epoch": None})
    columns = [
        Column("shown", "PRODUCER", align="right"),
        Column("producer_epoch", "EPOCH", align="right"),
        Column("batches", align="right"),
        Column("transactional_batches", "TRANSACTIONAL", align="right"),
        Column("records", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("share", show=_percent, align="right"),
    ]
    count = f"{'' if producers['exact'] else 'about '}{producers['producers']}"
    error = producers["error_bytes"]
    title = f"Producers by bytes, {count} with an id{f' (up to {format_size(error)} too low)' if error else ''}"
    return Table(columns, rows, title=title)


# --- retention, compaction, transactions ----------------------------------------------------------------------------


def _timestamps(timestamps: Row) -> Iterator[tuple[str, object]]:
    yield "batches with CreateTime", timestamps["create_time_batches"]
    yield "batches with LogAppendTime", timestamps["log_append_time_batches"]
    if timestamps["no_timestamp_batches"]:
        yield "batches without timestamps", timestamps["no_timestamp_batches"]
    if timestamps["out_of_order_records"] is not None:
        back = timestamps["largest_step_back_ms"]
        most = f", by {format_duration(back)} at most" if back else ""
        yield "records earlier than the previous one", f"{timestamps['out_of_order_records']}{most}"
        yield "records in the future", timestamps["future_records"]
    yield "segments with a future timestamp", timestamps["future_segments"]


def _compaction(compaction: Row) -> Iterator[tuple[str, object]]:
    at_least = "at least " if compaction["lower_bound"] else ""
    about = "" if compaction["bytes_exact"] else "about "
    yield "segments it can compact", f"{compaction['cleanable_segments']}, {_bytes(compaction['cleanable_bytes'])}"
    yield "superseded records", f"{at_least}{compaction['superseded_records']}"
    yield "superseded bytes", f"{at_least}{about}{_bytes(compaction['superseded_bytes'])}"
    if compaction["aborted_records"]:
        yield "records of aborted transactions", compaction["aborted_records"]
        yield "bytes of aborted transactions", _bytes(compaction["aborted_bytes"])
    yield "superseded records, all segments", f"{at_least}{compaction['with_active_records']}"
    yield "superseded bytes, all segments", f"{at_least}{about}{_bytes(compaction['with_active_bytes'])}"


def _transactions(transactions: Row) -> Iterator[tuple[str, object]]:
    if not any(transactions[key] for key in ("committed", "aborted", "other_markers", "index_entries", "open_count")):
        return
    yield "committed", transactions["committed"]
    yield "aborted", transactions["aborted"]
    if transactions["other_markers"]:
        yield "markers without a transaction", transactions["other_markers"]
    yield "aborted, listed in .txnindex", transactions["index_entries"]
    yield "open", f"{'' if transactions['open_exact'] else 'at least '}{transactions['open_count']}"
    timeout = format_duration(transactions["transaction_timeout_ms"])
    yield f"hanging (open for over {timeout})", transactions["hanging_count"]


def _alarm(row: Row) -> str | None:
    return "red" if row["hanging"] else None


_OPEN_COLUMNS = [
    Column("producer_id", "PRODUCER", align="right"),
    Column("producer_epoch", "EPOCH", align="right"),
    Column("first_offset", "FIRST OFFSET", align="right"),
    Column("first_timestamp", "STARTED", show=_short_time),
    Column("age_ms", "AGE", show=format_duration, align="right"),
    Column("records", align="right"),
    Column("hanging", style=_alarm),
]


_DELETION_REASONS = {"log_start_offset": "by log start", "retention_bytes": "by bytes", "retention_ms": "by time"}
_RETENTION_REASONS = {
    "future_timestamp": "future timestamp",
    "high_watermark": "high watermark",
    "empty_active": "empty, active",
}


def _segments(statistics: Row, log: str) -> Table:
    limited = statistics["retention_ms"] is not None or statistics["retention_bytes"] is not None
    rows = [
        {**row, "pinned": _pin_text(row), "latest": _latest(row)} for row in statistics["segments"] if row["log"] == log
    ]
    columns = [
        Column("base_offset", "BASE OFFSET", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("records", align="right"),
        Column("latest", "LARGEST TIMESTAMP"),
    ]
    if statistics["retention_ms"] is not None:
        columns.append(Column("deletable_at", "DELETABLE AT", show=_short_time))
    if limited or any(row["deletable_now"] for row in rows):
        columns.append(Column("deletable_now", "DELETABLE NOW", show=lambda reason: _DELETION_REASONS[reason]))
    if limited:
        columns.append(Column("pinned", "KEPT BY"))
    limits = []
    if statistics["retention_ms"] is not None:
        limits.append(f"retention.ms {statistics['retention_ms']}")
    if statistics["retention_bytes"] is not None:
        limits.append(f"retention.bytes {statistics['retention_bytes']}")
    title = f"Segments of {log}{', with ' if limits else ''}{' and '.join(limits)}; times are UTC"
    return Table(columns, rows, title=title)


def _latest(row: Row) -> str | None:
    timestamp = row["largest_timestamp"]
    return (
        None
        if timestamp is None
        else f"{_short_time(timestamp)}{' (of the file)' if row['timestamp_from_file'] else ''}"
    )


def _pin_text(row: Row) -> str | None:
    pin: str | None = row["pinned_by"]
    return (
        f"segment {row['pinned_by_segment']}" if pin == "earlier_segment" else _RETENTION_REASONS[pin] if pin else None
    )
