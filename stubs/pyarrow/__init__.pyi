# What kctl calls of pyarrow, no more.
from collections.abc import Iterator, Sequence
from typing import Any

class DataType: ...
class Array: ...

class Field:
    name: str
    type: DataType

class Schema:
    names: list[str]
    def __iter__(self) -> Iterator[Field]: ...

class Table:
    def to_pylist(self) -> list[dict[str, Any]]: ...

class RecordBatch:
    num_rows: int
    schema: Schema
    @staticmethod
    def from_arrays(arrays: Sequence[Array], *, schema: Schema) -> RecordBatch: ...

def array(values: Sequence[Any], type: DataType | None = ...) -> Array: ...
