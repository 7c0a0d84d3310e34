"""Rows of the store's tables as Arrow batches, and as Parquet: how they are written, and read back with suspicion.

A file from outside may hold anything. What is looked at before its rows are given: it is Parquet, with this table's
columns and types; its sizes are possible ones; its pages have the checksums that they were written with; text is
UTF-8; what may not be null is not. Columns that a file lacks because it is older are null; others that it has are not
read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from kctl.snapshots import schema
from kctl.snapshots.columns import column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData, ParquetFile

BATCH_ROWS = 65_536
_MOST_ROW_GROUP_BYTES = 1 << 30  # 100,000 rows take some 10 MB
_MOST_ROWS_PER_BYTE = 1_000
_THRIFT_TEXT, _THRIFT_ITEMS = 100_000_000, 1_000_000


class BadRows(Exception):
    """A file does not hold what its place says. The text says why."""


class Part(NamedTuple):
    """Which rows are wanted: from_ms ≤ at_ms < to_ms, and lower ≤ the first column of the sort key < upper.

    None: no bound. (`at_ms` is the first column of `passes`; its rows have no other bound.)
    """

    from_ms: int | None = None
    to_ms: int | None = None
    lower: str | None = None
    upper: str | None = None


EVERYTHING = Part()


def batch_of(table: str, rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    """Rows (in the order of the table's columns) as one batch, sorted by the table's key."""
    import pyarrow as pa

    arrow = schema.arrow_schema(table)
    places = [arrow.names.index(name) for name in schema.SORT_KEYS[table]]
    ordered = sorted(rows, key=lambda row: tuple(row[place] for place in places))
    values = list(zip(*ordered, strict=True)) if ordered else [()] * len(arrow.names)
    arrays = [column(each, field.type) for each, field in zip(values, arrow, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


class RowWriter:
    """Writes sorted rows as one Parquet file, in row groups of ROW_GROUP_ROWS; `close` ends it. Raises OSError."""

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
        self._waiting: list[pa.Table] = []

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows, the columns of the table in their order. Text may be in dictionaries."""
        import pyarrow as pa

        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._waiting.append(table.cast(self._schema))
        if sum(each.num_rows for each in self._waiting) < schema.ROW_GROUP_ROWS:
            return
        found = pa.concat_tables(self._waiting)
        whole = found.num_rows - found.num_rows % schema.ROW_GROUP_ROWS
        self._writer.write_table(found.slice(0, whole), row_group_size=schema.ROW_GROUP_ROWS)
        self._waiting = [found.slice(whole)]

    def close(self) -> None:
        """Write what is waiting, and the footer."""
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=schema.ROW_GROUP_ROWS)
        self._writer.close()


def read_rows(
    stream: BinaryIO,
    table: str,
    part: Part = EVERYTHING,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The wanted rows of a file, with text in dictionaries; columns: only those, in the table's order.

    Memory: one row group's pages. Raises BadRows.
    """
    import pyarrow as pa

    try:
        yield from _read(stream, table, part, columns, batch_rows)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as exc:
        raise BadRows(str(exc).splitlines()[0][:200] if str(exc) else type(exc).__name__) from exc


def _read(
    stream: BinaryIO, table: str, part: Part, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    size = os.fstat(stream.fileno()).st_size
    file = pq.ParquetFile(
        stream,
        read_dictionary=schema.text_columns(table),
        page_checksum_verification=True,
        thrift_string_size_limit=_THRIFT_TEXT,
        thrift_container_size_limit=_THRIFT_ITEMS,
        pre_buffer=False,
        arrow_extensions_enabled=False,
    )
    with file:
        present = _checked_columns(file, table)
        _check_sizes(file.metadata, size)
        groups = [i for i in range(file.metadata.num_row_groups) if _wanted(file.metadata, i, table, part)]
        if not groups:
            return
        key = schema.SORT_KEYS[table][0]
        needed = present if columns is None else [name for name in present if name in {*columns, key, "at_ms"}]
        for batch in file.iter_batches(batch_rows, row_groups=groups, columns=needed, use_threads=False):
            rows = _within(batch, key, part)
            if rows.num_rows:
                yield _shaped(rows, table, columns)


def _checked_columns(file: ParquetFile, table: str) -> list[str]:
    """The table's columns that the file has. Raises BadRows when one has another type, or is missing and must not."""
    import pyarrow as pa

    found = {field.name: field.type for field in file.schema_arrow}
    present = []
    for field in schema.arrow_schema(table):
        if field.name not in found:
            if not field.nullable:
                raise BadRows(f"it has no column {field.name}")
            continue
        kind = found[field.name]
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if plain != field.type and not (pa.types.is_list(field.type) and pa.types.is_list(plain)):
            raise BadRows(f"its column {field.name} is {_type_name(plain)}, not {field.type}")
        present.append(field.name)
    return present


def _type_name(kind: pa.DataType) -> str:
    """A type's name, at most some words: a nested one of a strange file may be long."""
    return str(kind)[:60]


def _check_sizes(metadata: FileMetaData, size_bytes: int) -> None:
    """Raise BadRows when the footer promises more than a file of this size can hold."""
    if metadata.num_rows > size_bytes * _MOST_ROWS_PER_BYTE:
        raise BadRows(f"it claims {metadata.num_rows:,} rows in {size_bytes:,} bytes")
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if group.total_byte_size > _MOST_ROW_GROUP_BYTES:
            raise BadRows(f"a row group of it claims {group.total_byte_size:,} bytes")


def _wanted(metadata: FileMetaData, number: int, table: str, part: Part) -> bool:
    """Whether a row group can hold wanted rows, by its statistics; it can when it has none."""
    group = metadata.row_group(number)
    bounds: dict[str, tuple[Any, Any]] = {}
    for place in range(group.num_columns):
        chunk = group.column(place)
        if chunk.path_in_schema in {schema.SORT_KEYS[table][0], "at_ms"}:
            statistics = chunk.statistics
            if statistics is not None and statistics.has_min_max:
                bounds[chunk.path_in_schema] = statistics.min, statistics.max
    least, most = bounds.get("at_ms", (None, None))
    if part.from_ms is not None and most is not None and most < part.from_ms:
        return False
    if part.to_ms is not None and least is not None and least >= part.to_ms:
        return False
    least, most = bounds.get(schema.SORT_KEYS[table][0], (None, None))
    if part.lower is not None and isinstance(most, str) and most < part.lower:
        return False
    return not (part.upper is not None and isinstance(least, str) and least >= part.upper)


def _within(batch: pa.RecordBatch, key: str, part: Part) -> pa.RecordBatch:
    """The wanted rows of a batch that is sorted by `key`."""
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
    """The batch with the table's columns in their order, text in dictionaries. Raises BadRows, ArrowInvalid."""
    import pyarrow as pa

    fields, arrays = [], []
    for field in schema.arrow_schema(table):
        if columns is not None and field.name not in columns:
            continue
        kind = pa.dictionary(pa.int32(), pa.string()) if field.type == pa.string() else field.type
        if field.name in batch.schema.names:
            array = batch.column(field.name)
            if not field.nullable and array.null_count:
                raise BadRows(f"its column {field.name} has nulls")
            array.validate(full=True)
            array = array if array.type == kind else array.cast(kind)
        else:
            array = pa.nulls(batch.num_rows, kind)
        arrays.append(array)
        fields.append(pa.field(field.name, kind, nullable=field.nullable))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def plain_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with text as text, as the table's schema says."""
    import pyarrow as pa

    fields, arrays = [], []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        text = pa.types.is_dictionary(field.type)
        arrays.append(array.cast(pa.string()) if text else array)
        fields.append(pa.field(field.name, pa.string(), nullable=field.nullable) if text else field)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
