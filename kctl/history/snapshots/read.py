"""Read a table of a store over a time span."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import OperationFailed
from kctl.history.snapshots import files, footer, read_progress, schema
from kctl.history.snapshots.layout import DataFile, Hour
from kctl.history.snapshots.merge import merged
from kctl.history.snapshots.rows import BATCH_ROWS, BadRows, Part, plain_text, read_rows
from kctl.history.snapshots.store import Damaged, Store

if TYPE_CHECKING:
    import pyarrow as pa

_MIN_BATCH_ROWS = 1_024


def read_table(
    store: Store,
    table: str,
    from_ms: int,
    to_ms: int,
    *,
    damaged: Callable[[Damaged], None],
    columns: Sequence[str] | None = None,
    lower: str | None = None,
    upper: str | None = None,
    dictionaries: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with from_ms ≤ at_ms < to_ms, file by file in order of time, each file sorted.

    damaged: called for each unreadable file, whose remaining rows are missing. columns: only these. lower, upper:
    bounds of the first column of the sort key. dictionaries: return text dictionary-encoded. Raises OperationFailed if
    compaction or expiry removed files while they were read.
    """
    part = Part(from_ms, to_ms, lower, upper)
    for hour, file in chosen_files(store, from_ms, to_ms, phase=f"reading {table}"):
        for batch in read_file(store, table, hour, file, part, damaged=damaged, columns=columns):
            yield batch if dictionaries else plain_text(batch)


def read_sorted(
    store: Store,
    table: str,
    from_ms: int,
    to_ms: int,
    *,
    damaged: Callable[[Damaged], None],
    lower: str | None = None,
    upper: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read_table` as one stream sorted by the table's key, with text dictionary-encoded.

    Memory: one batch per file (one file per compacted hour, one per later pass).
    """
    part = Part(from_ms, to_ms, lower, upper)
    chosen = list(chosen_files(store, from_ms, to_ms))
    size = max(BATCH_ROWS * 4 // max(len(chosen), 1), _MIN_BATCH_ROWS)
    streams = [
        read_file(store, table, hour, file, part, damaged=damaged, batch_rows=min(size, BATCH_ROWS))
        for hour, file in chosen
    ]
    if read_progress.observer() is not None and len(streams) > 1:
        streams = [_with_report(stream, table, number, len(streams)) for number, stream in enumerate(streams, 1)]
    for piece in merged(streams, schema.SORT_KEYS[table]):
        yield from piece.to_batches(max_chunksize=BATCH_ROWS)


def _with_report(stream: Iterator[pa.RecordBatch], table: str, number: int, total: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file; report it when its first batch is read. A merge starts with these."""
    first = next(stream, None)
    read_progress.report(f"reading {table}", number, total, "files")
    if first is not None:
        yield first
        yield from stream


def chosen_files(
    store: Store, from_ms: int, to_ms: int, *, phase: str | None = None
) -> Iterator[tuple[Hour, DataFile]]:
    """Yield the valid files that may have rows in [from_ms, to_ms), in order of time. phase: report each hour."""
    hours = [hour for hour in store.hours() if hour.start_ms < to_ms and hour.end_ms > from_ms]
    for number, hour in enumerate(hours):
        if phase is not None and len(hours) > 1:
            read_progress.report(phase, number, len(hours), "hours")
        for file in store.valid_files(hour).files:
            if file.at_ms >= from_ms and (file.compacted or file.at_ms < to_ms):
                yield hour, file


def stored_bytes(store: Store, table: str, from_ms: int, to_ms: int) -> int:
    """Return the size of a table's files in a time span. Missing and remote files count as 0."""
    size = 0
    for hour, file in chosen_files(store, from_ms, to_ms):
        path = store.folder(table, hour) / file.name
        if isinstance(path, Path):
            with suppress(OSError):
                size += path.stat().st_size
    return size


def read_file(
    store: Store,
    table: str,
    hour: Hour,
    file: DataFile,
    part: Part,
    *,
    damaged: Callable[[Damaged], None],
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file within `part`, see `read_table`; text is dictionary-encoded."""
    path = store.folder(table, hour) / file.name
    file_part = _limit(part, hour, file)
    try:
        with files.opened(path) as stream:
            yield from read_rows(stream, table, file_part, columns=columns, batch_rows=batch_rows)
    except FileNotFoundError:
        if file not in store.valid_files(hour).files:
            raise _changed_error(path) from None
        if store.has_rows(table, hour, file):
            damaged(Damaged(path, "it is missing"))
    except BadRows as exc:
        damaged(Damaged(path, str(exc)))
    except OSError as exc:
        damaged(Damaged(path, footer.reason_of(exc)))


def _limit(part: Part, hour: Hour, file: DataFile) -> Part:
    """Return `part` limited to the times that a file with this name can have. Rows of other times are ignored."""
    first = hour.start_ms if file.compacted else file.at_ms
    return part._replace(
        from_ms=first if part.from_ms is None else max(first, part.from_ms),
        to_ms=file.at_ms + 1 if part.to_ms is None else min(file.at_ms + 1, part.to_ms),
    )


def _changed_error(path: Path) -> OperationFailed:
    return OperationFailed(f"{path} was compacted or expired while it was read", hint="run the command again")
