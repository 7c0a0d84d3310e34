"""kctl history retention --show segments|cleaner: reports from the files of a log dir."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.base.text import counted
from kctl.commands.history.engine import ParquetFolder
from kctl.commands.history.options import REQUEST_TIMEOUT_S, show_duration, show_size
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.history.retention.segment_usage import FilesReport
    from kctl.lag.log_config import LogConfig
    from kctl.lag.selection import Names

_REASONS = {
    "log_start_offset": "before the log start",
    "retention_bytes": "retention.bytes",
    "retention_ms": "retention.ms",
    "future_timestamp": "future timestamp",
    "earlier_segment": "an earlier segment",
    "high_watermark": "the high watermark",
}


def files_report(
    inv: Invocation,
    show: str,
    log_dirs: Sequence[Path],
    topics: Names,
    store: Path | None,
    *,
    keys: bool,
    dedupe_buffer: str,
    parquet: ParquetFolder,
) -> None:
    """Read the segments of the log dirs. Topic configs come from the store's newest snapshot, or from the cluster."""
    from kctl.base.units import parse_size
    from kctl.history.retention.segment_usage import (
        CleanerRow,
        SegmentRequest,
        SegmentRow,
        log_folders,
        read_segments,
        topics_of,
    )

    buffer_bytes = parse_size(dedupe_buffer)
    parquet.check()
    folders = log_folders(log_dirs)
    selected = {name for name in topics_of(folders) if name in topics}
    if not selected and not topics.everything:
        raise topics.nothing("topic")
    if not selected:
        raise UsageError(
            "no partition logs in --log-dir", hint="set --log-dir to a broker's log dir (one folder per partition)"
        )
    configs, missing_configs = _configs(inv, selected, store)
    request = SegmentRequest(
        configs, time.time_ns() // 1_000_000, cleaner=show == "cleaner", keys=keys, buffer_bytes=buffer_bytes
    )
    with output.progress("Reading") as progress:
        segments = read_segments(folders, request, lambda done, total: progress.update("Reading", done, total))
    rows = segments.cleaner if show == "cleaner" else segments.segments
    if parquet.where is not None:
        parquet.write(rows, CleanerRow if show == "cleaner" else SegmentRow)
    inv.emit(rows, lambda: [_cleaner_table(rows) if show == "cleaner" else _segments_table(rows)])
    if parquet.where is not None:
        output.note(f"written to {parquet.where}")
    output.note(f"read {counted(segments.logs, 'log')} with {counted(segments.segments_seen, 'segment')}")
    _raise_if_incomplete(segments, missing_configs)


def _raise_if_incomplete(segments: FilesReport, missing_configs: list[str]) -> None:
    failures = [*missing_configs, *segments.failures]
    if failures:
        raise incomplete(failures)


def _configs(inv: Invocation, topics: set[str], store: Path | None) -> tuple[dict[str, LogConfig], list[str]]:
    """Return the configs by topic, and an error line for each topic without configs."""
    if store is not None:
        from kctl.history.snapshots.disk_moment import newest_configs
        from kctl.history.snapshots.store import open_store

        damaged: list[Any] = []
        configs = newest_configs(open_store(store), damaged=damaged.append)
        missing = sorted(topics - configs.keys())
        return configs, [*map(str, damaged), *(f"topic {name} has no configs in the store" for name in missing)]
    from kctl.errors import KctlError
    from kctl.lag.retention_requests import fetch_log_configs

    with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
        responses = fetch_log_configs(client, topics)
    failed = [
        f"configs of topic {name}: {each.message}" for name, each in responses.items() if isinstance(each, KctlError)
    ]
    return {name: each for name, each in responses.items() if not isinstance(each, KctlError)}, failed


def _segments_table(rows: Sequence[Any]) -> Table:
    columns = [
        Column("topic"),
        Column("partition", "PART", align="right"),
        Column("base_offset", "SEGMENT", align="right"),
        Column("size_bytes", "SIZE", show=show_size, align="right"),
        Column("largest_timestamp", "NEWEST RECORD"),
        Column("expired", show=lambda value: "yes" if value else ""),
        Column("reason", "EXPIRED BY", show=lambda value: _REASONS.get(value, value)),
        Column("pinned_by", "RETAINED BY", show=lambda value: _REASONS.get(value, value)),
        Column("pinned_by_segment", "BLOCKING SEGMENT", align="right"),
        Column("deletable_at", "UNTIL"),
    ]
    return Table(columns, jsonable(rows), empty="no segment is due for deletion or retained too long")


def _cleaner_table(rows: Sequence[Any]) -> Table:
    columns = [
        Column("topic"),
        Column("partition", "PART", align="right"),
        Column("size_bytes", "SIZE", show=show_size, align="right"),
        Column("cleanable_bytes", "CLEANABLE", show=show_size, align="right"),
        Column("dirty_ratio", "DIRTY", show=lambda value: f"{value:.0%}", align="right"),
        Column("wants_cleaning", "NEEDS CLEANING", show=lambda value: "yes" if value else ""),
        Column("offsets", align="right", show=lambda value: f"{value:,}"),
        Column("keys", align="right", show=lambda value: f"{value:,}"),
        Column("rounds", align="right"),
        Column("waiting_ms", "WAITING", show=show_duration, align="right"),
        Column("silent_ms", "CLEANER IDLE", show=show_duration, align="right"),
        Column(
            "stands_still",
            "STALLED",
            show=lambda value: "yes" if value else "",
            style=lambda row: "red" if row["stands_still"] else None,
        ),
    ]
    return Table(columns, jsonable(rows), empty="no compacted logs")
