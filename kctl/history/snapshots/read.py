"""Reading a table of a local store over a span of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import OperationFailed
from kctl.history.snapshots import files, footer, schema
from kctl.history.snapshots.layout import DataFile, Hour
from kctl.history.snapshots.merge import merged
from kctl.history.snapshots.rows import BATCH_ROWS, BadRows, Part, plain_text, read_rows
from kctl.history.snapshots.store import Damaged, Store

if TYPE_CHECKING:
    import pyarrow as pa

_FEWEST_BATCH_ROWS = 1_024


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
    """The rows with from_ms ≤ at_ms < to_ms, a file after the other in the order of time, each sorted in itself.

    damaged: is told of each file that counts and cannot be read; its rows from there on are missing. columns: only
    those. lower, upper: of the first column of the sort key. dictionaries: text columns are dictionaries.
    Raises OperationFailed when a compaction or an expiry took the files away while they were read.
    """
    part = Part(from_ms, to_ms, lower, upper)
    for hour, file in chosen_files(store, from_ms, to_ms):
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
    """`read_table` as one stream sorted by the table's key, with text in dictionaries.

    Memory: a batch of each file (there are one for each hour that is compacted, and one for each later pass).
    """
    part = Part(from_ms, to_ms, lower, upper)
    chosen = list(chosen_files(store, from_ms, to_ms))
    size = max(BATCH_ROWS * 4 // max(len(chosen), 1), _FEWEST_BATCH_ROWS)
    streams = [
        read_file(store, table, hour, file, part, damaged=damaged, batch_rows=min(size, BATCH_ROWS))
        for hour, file in chosen
    ]
    for piece in merged(streams, schema.SORT_KEYS[table]):
        yield from piece.to_batches(max_chunksize=BATCH_ROWS)


def chosen_files(store: Store, from_ms: int, to_ms: int) -> Iterator[tuple[Hour, DataFile]]:
    """The files that count and can have rows in [from_ms, to_ms), in the order of time."""
    for hour in store.hours():
        if hour.start_ms >= to_ms or hour.end_ms <= from_ms:
            continue
        for file in store.counting(hour).files:
            if file.at_ms >= from_ms and (file.compacted or file.at_ms < to_ms):
                yield hour, file


def stored_bytes(store: Store, table: str, from_ms: int, to_ms: int) -> int:
    """Return the size of a table's files of a span of time. Files that are missing or remote count as nothing."""
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
    """The wanted rows of one file that counts, as `read_table` says; text in dictionaries."""
    path = store.folder(table, hour) / file.name
    own = _own(part, hour, file)
    try:
        with files.opened(path) as stream:
            yield from read_rows(stream, table, own, columns=columns, batch_rows=batch_rows)
    except FileNotFoundError:
        if file not in store.counting(hour).files:
            raise _changed(path) from None
        if store.has_rows(table, hour, file):
            damaged(Damaged(path, "it is missing"))
    except BadRows as exc:
        damaged(Damaged(path, str(exc)))
    except OSError as exc:
        damaged(Damaged(path, footer.reason_of(exc)))


def _own(part: Part, hour: Hour, file: DataFile) -> Part:
    """`part` within the times that a file of this name can have: rows of other times do not belong to it."""
    first = hour.start_ms if file.compacted else file.at_ms
    return part._replace(
        from_ms=first if part.from_ms is None else max(first, part.from_ms),
        to_ms=file.at_ms + 1 if part.to_ms is None else min(file.at_ms + 1, part.to_ms),
    )


def _changed(path: Path) -> OperationFailed:
    return OperationFailed(f"{path} was compacted or expired while it was read", hint="run it again")
