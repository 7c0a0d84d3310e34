"""Rows of a source that may also be errors: a column `error`, beside which a row that was read has its values, and a
row that tells what could not be read has none.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kctl.history.snapshots.columns import column


def read_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows that were read, as the schema has them: text as text, no error."""
    arrays = [
        pa.nulls(batch.num_rows, field.type) if field.name == "error" else _plain(batch.column(field.name))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def error_rows(errors: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """A row for each error."""
    arrays = [
        column(errors, pa.string()) if field.name == "error" else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if isinstance(array, pa.DictionaryArray) else array
