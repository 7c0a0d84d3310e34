"""Rows of the store's tables as Arrow batches and as Parquet: writing them, and reading them defensively.

A file from outside may contain anything. Before rows are returned, kctl checks that it is Parquet with this table's
columns and types; sizes are plausible; pages match their checksums; text is UTF-8; non-nullable columns have no nulls.
Columns missing in older files are null; additional columns are not read.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from kctl.history.snapshots import footer, schema
from kctl.history.snapshots.columns import column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData, ParquetFile

BATCH_ROWS = 65_536
_MAX_ROW_GROUP_BYTES = 1 << 30  # 100,000 rows take about 10 MB
_MAX_ROWS_PER_BYTE = 1_000
_RANGES = b"kctl.ranges"
_THRIFT_TEXT, _THRIFT_ITEMS = 100_000_000, 1_000_000


class BadRows(Exception):
    """Raised if a file does not contain what its path promises. The text says why."""


class Part(NamedTuple):
    """A range of rows: from_ms ≤ at_ms < to_ms, and lower ≤ the first column of the sort key < upper.

    None: no bound. (`at_ms` is the first column of `passes`; its rows have no other bound.)
    """

    from_ms: int | None = None
    to_ms: int | None = None
    lower: str | None = None
    upper: str | None = None


EVERYTHING = Part()


def batch_of(table: str, rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    """Return rows (in the order of the table's columns) as one batch, sorted by the table's key."""
    import pyarrow as pa

    arrow = schema.arrow_schema(table)
    places = [arrow.names.index(name) for name in schema.SORT_KEYS[table]]
    ordered = sorted(rows, key=lambda row: tuple(row[place] for place in places))
    values = list(zip(*ordered, strict=True)) if ordered else [()] * len(arrow.names)
    arrays = [column(each, field.type) for each, field in zip(values, arrow, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


class RowWriter:
    """A writer of sorted rows as one Parquet file, in row groups of ROW_GROUP_ROWS.

    `close` completes it. Raises OSError.
    """

    def __init__(self, stream: BinaryIO, table: str) -> None:
        import pyarrow.parquet as pq

        self._schema = schema.arrow_schema(table)
        names = self._schema.names
        self._writer = pq.ParquetWriter(
            stream,
            self._schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=schema.dictionary_columns(table),
            column_encoding=dict.fromkeys(schema.delta_columns(table), "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
            store_schema=False,
            sorting_columns=[pq.SortingColumn(names.index(name)) for name in schema.SORT_KEYS[table]],
        )
        self._stream = stream
        self._table = table
        self._waiting: list[pa.Table] = []
        self._ranges: list[Range] = []

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows with the columns of the table, in order. Text may be dictionary-encoded."""
        import pyarrow as pa

        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._waiting.append(table.cast(self._schema))
        if sum(each.num_rows for each in self._waiting) < schema.ROW_GROUP_ROWS:
            return
        result = pa.concat_tables(self._waiting)
        whole = result.num_rows - result.num_rows % schema.ROW_GROUP_ROWS
        self._write_groups(result.slice(0, whole))
        self._waiting = [result.slice(whole)]

    def close(self) -> None:
        """Write pending rows and the footer."""
        import pyarrow as pa

        if self._waiting:
            self._write_groups(pa.concat_tables(self._waiting))
        about = {_RANGES.decode(): json.dumps(self._ranges), footer.KEY: footer.PLACEHOLDER}
        self._writer.add_key_value_metadata(about)
        self._writer.close()
        footer.sign(self._stream)

    def abandon(self) -> None:
        """End without a valid footer; no effect after `close`.

        Without this, Arrow writes a footer on garbage collection.
        """
        with suppress(Exception):
            self._writer.close()

    def _write_groups(self, rows: pa.Table) -> None:
        for start in range(0, rows.num_rows, schema.ROW_GROUP_ROWS):
            group = rows.slice(start, schema.ROW_GROUP_ROWS)
            self._writer.write_table(group, row_group_size=schema.ROW_GROUP_ROWS)
            self._ranges.append(_range_of(group, self._table))


def read_rows(
    stream: BinaryIO,
    table: str,
    part: Part = EVERYTHING,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file within `part`, with text dictionary-encoded. Raises BadRows.

    columns: only these, in the table's order. Memory: the pages of one row group.
    """
    import pyarrow as pa

    try:
        yield from _read(stream, table, part, columns, batch_rows)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as exc:
        raise BadRows(footer.reason_of(exc)) from exc


def row_groups(stream: BinaryIO, table: str) -> list[Range]:
    """Return the range of each row group; empty if the file does not have all of them. Raises BadRows."""
    import pyarrow as pa

    try:
        footer.check(stream)
        file = _opened(stream)
        _checked_columns(file, table)
        result = _ranges(file.metadata)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as exc:
        raise BadRows(footer.reason_of(exc)) from exc
    return [each for each in result if each is not None] if None not in result else []


def _read(
    stream: BinaryIO, table: str, part: Part, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    footer.check(stream)
    about = _opened(stream)
    present = _checked_columns(about, table)
    _check_sizes(about.metadata, stream.seek(0, os.SEEK_END))
    text = [name for name in present if name in schema.text_columns(table)]
    with _opened(stream, metadata=about.metadata, read_dictionary=text) as file:
        groups = [i for i, each in enumerate(_ranges(file.metadata)) if each is None or each.overlaps(part)]
        if not groups:
            return
        key = schema.SORT_KEYS[table][0]
        needed = present if columns is None else [name for name in present if name in {*columns, key, "at_ms"}]
        missing = sum(file.metadata.row_group(i).num_rows for i in groups)
        for batch in file.iter_batches(batch_rows, row_groups=groups, columns=needed, use_threads=False):
            missing -= batch.num_rows
            rows = _within(batch, key, part)
            if rows.num_rows:
                yield _shaped(rows, table, columns)
        if missing:  # Arrow may skip a page with a damaged header
            raise BadRows(f"{missing:,} of its rows are missing")


def _opened(stream: BinaryIO, **settings: Any) -> ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        stream,
        page_checksum_verification=True,
        thrift_string_size_limit=_THRIFT_TEXT,
        thrift_container_size_limit=_THRIFT_ITEMS,
        pre_buffer=False,
        arrow_extensions_enabled=False,
        **settings,
    )


def _checked_columns(file: ParquetFile, table: str) -> list[str]:
    """Return the table's columns that the file has. Raises BadRows for a wrong type or a missing required column."""
    import pyarrow as pa

    result = {field.name: field.type for field in file.schema_arrow}
    present = []
    for field in schema.arrow_schema(table):
        if field.name not in result:
            if not field.nullable:
                raise BadRows(f"column {field.name} is missing")
            continue
        kind = result[field.name]
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if plain != field.type and not (pa.types.is_list(field.type) and pa.types.is_list(plain)):
            raise BadRows(f"column {field.name} is {_type_name(plain)}, not {field.type}")
        present.append(field.name)
    return present


def _type_name(kind: pa.DataType) -> str:
    """Return the name of a type, shortened: a nested type in a foreign file may be long."""
    return str(kind)[:60]


def _check_sizes(metadata: FileMetaData, size_bytes: int) -> None:
    """Raise BadRows if the footer claims more than a file of this size can contain."""
    if metadata.num_rows > size_bytes * _MAX_ROWS_PER_BYTE:
        raise BadRows(f"it claims {metadata.num_rows:,} rows in {size_bytes:,} bytes")
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if group.total_byte_size > _MAX_ROW_GROUP_BYTES:
            raise BadRows(f"a row group claims {group.total_byte_size:,} bytes")


class Range(NamedTuple):
    """The times of a row group, and its range in the first column of the sort key (both ends inclusive)."""

    rows: int
    first_ms: int
    last_ms: int
    lowest: str | int
    highest: str | int

    def overlaps(self, part: Part) -> bool:
        """Return True if the row group may have rows within `part`."""
        if part.from_ms is not None and self.last_ms < part.from_ms:
            return False
        if part.to_ms is not None and self.first_ms >= part.to_ms:
            return False
        if part.lower is not None and isinstance(self.highest, str) and self.highest < part.lower:
            return False
        return not (part.upper is not None and isinstance(self.lowest, str) and self.lowest >= part.upper)


def _range_of(rows: pa.Table, table: str) -> Range:
    import pyarrow.compute as pc

    key = schema.SORT_KEYS[table][0]
    times = pc.min_max(rows.column("at_ms"))
    ends = (rows.column(key)[place].as_py() for place in (0, -1))
    return Range(rows.num_rows, times["min"].as_py(), times["max"].as_py(), *ends)


def _ranges(metadata: FileMetaData) -> list[Range | None]:
    """Return the range of each row group from the file's metadata; None for a missing or impossible range.

    Files also contain Parquet's statistics, for other readers. kctl does not use them: Arrow aborts the process if they
    are read from a damaged file (ParquetException in ColumnChunkMetaData, pyarrow 26).
    """
    count = metadata.num_row_groups
    text = (metadata.metadata or {}).get(_RANGES, b"[]")
    try:
        result = json.loads(text)
        ranges = [Range(*each) for each in result]
    except (ValueError, TypeError, RecursionError):
        return [None] * count
    if len(ranges) != count or not all(map(_is_possible, ranges)):
        return [None] * count
    return [each if each.rows == metadata.row_group(i).num_rows else None for i, each in enumerate(ranges)]


def _is_possible(result: Range) -> bool:
    numbers = (result.rows, result.first_ms, result.last_ms)
    return all(type(each) is int for each in numbers) and type(result.lowest) is type(result.highest)


def _within(batch: pa.RecordBatch, key: str, part: Part) -> pa.RecordBatch:
    """Return the rows within `part` of a batch sorted by `key`."""
    import pyarrow.compute as pc

    first, end = 0, batch.num_rows
    if part.lower is not None or part.upper is not None:
        names = batch.column(key)
        if part.lower is not None:
            first = bisect_left(range(end), part.lower, key=lambda i: names[i].as_py())
        if part.upper is not None:
            end = bisect_left(range(end), part.upper, key=lambda i: names[i].as_py())
        batch = batch.slice(first, max(end - first, 0))
    if not batch.num_rows:
        return batch
    at = batch.column("at_ms")
    bounds = pc.min_max(at)
    if part.from_ms is not None and bounds["min"].as_py() < part.from_ms:
        batch = batch.filter(pc.greater_equal(batch.column("at_ms"), part.from_ms))
    if part.to_ms is not None and bounds["max"].as_py() >= part.to_ms:
        batch = batch.filter(pc.less(batch.column("at_ms"), part.to_ms))
    return batch


def _shaped(batch: pa.RecordBatch, table: str, columns: Sequence[str] | None) -> pa.RecordBatch:
    """Return the batch with the table's columns in order, text dictionary-encoded. Raises BadRows, ArrowInvalid."""
    import pyarrow as pa

    fields, arrays = [], []
    for field in schema.arrow_schema(table):
        if columns is not None and field.name not in columns:
            continue
        kind = pa.dictionary(pa.int32(), pa.string()) if field.type == pa.string() else field.type
        if field.name in batch.schema.names:
            array = batch.column(field.name)
            if not field.nullable and array.null_count:
                raise BadRows(f"column {field.name} has nulls")
            array.validate(full=True)
            array = array if array.type == kind else array.cast(kind)
        else:
            array = pa.nulls(batch.num_rows, kind)
        arrays.append(array)
        fields.append(pa.field(field.name, kind, nullable=field.nullable))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def plain_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without dictionary encoding, as in the table's schema."""
    import pyarrow as pa

    fields, arrays = [], []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        text = pa.types.is_dictionary(field.type)
        arrays.append(array.cast(pa.string()) if text else array)
        fields.append(pa.field(field.name, pa.string(), nullable=field.nullable) if text else field)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
