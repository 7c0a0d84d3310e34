"""Rows with a column `error`: a row has either values or an error."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kctl.history.snapshots.columns import column


def read_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows in the given schema: dictionary-encoded text as plain text, no error."""
    arrays = [
        pa.nulls(batch.num_rows, field.type) if field.name == "error" else _plain(batch.column(field.name))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def error_rows(errors: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """Return a row for each error."""
    arrays = [
        column(errors, pa.string()) if field.name == "error" else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if isinstance(array, pa.DictionaryArray) else array
