"""Rows as Arrow batches for Spark, made of buffers (kctl.history.snapshots.columns): Arrow's own way imports pandas,
which costs each Python worker half a CPU second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from kctl.history.snapshots.columns import column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

BATCH_ROWS = 20_000  # of some 100 bytes: far below the 2 GiB that int32 offsets reach


def batches(rows: Iterable[tuple[Any, ...]], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches of bounded size: 1.4 million rows a second, against 0.3 million as tuples."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema)
    remaining = iter(rows)
    while chunk := list(islice(remaining, BATCH_ROWS)):
        columns = zip(*chunk, strict=True)
        arrays = [column(values, field.type) for values, field in zip(columns, arrow, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow)
