from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from pyarrow import RecordBatch, Schema, Table

class Statistics:
    has_min_max: bool
    min: Any
    max: Any

class ColumnChunkMetaData:
    path_in_schema: str
    statistics: Statistics | None
    encodings: Sequence[str]

class RowGroupMetaData:
    num_rows: int
    num_columns: int
    total_byte_size: int
    def column(self, i: int) -> ColumnChunkMetaData: ...

class FileMetaData:
    num_rows: int
    num_row_groups: int
    metadata: Mapping[bytes, bytes] | None
    def row_group(self, i: int) -> RowGroupMetaData: ...

class ParquetFile:
    metadata: FileMetaData
    schema_arrow: Schema
    def __init__(
        self,
        source: Path | BinaryIO,
        *,
        metadata: FileMetaData | None = ...,
        read_dictionary: Sequence[str] | None = ...,
        page_checksum_verification: bool = ...,
        thrift_string_size_limit: int | None = ...,
        thrift_container_size_limit: int | None = ...,
        pre_buffer: bool = ...,
        arrow_extensions_enabled: bool = ...,
    ) -> None: ...
    def __enter__(self) -> ParquetFile: ...
    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def read(self, *, columns: list[str] | None = None) -> Table: ...
    def iter_batches(
        self, batch_size: int, *, row_groups: Sequence[int], columns: Sequence[str], use_threads: bool
    ) -> Iterator[RecordBatch]: ...

class SortingColumn:
    def __init__(self, column_index: int) -> None: ...

class ParquetWriter:
    def __init__(
        self,
        where: Path | BinaryIO,
        schema: Schema,
        *,
        compression: str = ...,
        compression_level: int | None = ...,
        use_dictionary: Sequence[str] = ...,
        column_encoding: Mapping[str, str] | None = ...,
        write_page_checksum: bool = ...,
        store_schema: bool = ...,
        sorting_columns: Sequence[SortingColumn] | None = ...,
    ) -> None: ...
    def __enter__(self) -> ParquetWriter: ...
    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def add_key_value_metadata(self, key_value_metadata: Mapping[str, str]) -> None: ...
    def write_table(self, table: Table, row_group_size: int) -> None: ...
    def close(self) -> None: ...

def read_table(source: Path) -> Table: ...
def read_schema(where: Path) -> Schema: ...
def write_table(table: Table, where: Path, *, compression: str = ...) -> None: ...
