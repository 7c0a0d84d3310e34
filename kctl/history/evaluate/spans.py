"""Reduce a stream of readings to one row per partition. The vectorized form of kctl.history.lag.span.

Batches are those of evaluate.windows, sorted by partition and time; a batch may end anywhere. Only the span of the
previous batch's last partition is carried over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kctl.history.evaluate.column_arrays import chosen, differs, nullable, numbers, numeric
from kctl.history.evaluate.window_rules import Flags, Ints, NullableInts
from kctl.history.evaluate.windows import KEY

SPAN_TYPES: dict[str, pa.DataType] = {
    "first_at_ms": pa.int64(),
    "readings": pa.int64(),
    "lag_before": pa.int64(),
    "peak_lag": pa.int64(),
    "worst_status": pa.int64(),
    "worst_owned": pa.int64(),
}
_NONE = np.int64(-1)  # lags are never negative


@dataclass(frozen=True, slots=True)
class _Spans:
    """The span of each partition; unknown lags are -1."""

    first_at_ms: Ints
    readings: Ints
    lag_before: Ints
    peak_lag: Ints
    worst_status: Ints
    worst_owned: Ints

    def at(self, rows: slice) -> _Spans:
        return _Spans(*(getattr(self, name)[rows] for name in SPAN_TYPES))


@dataclass(frozen=True, slots=True)
class _OpenSpan:
    """A partition that may continue in the next batch: its last reading, and its span so far."""

    last: pa.RecordBatch
    span: _Spans


def spans(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the last reading of each partition with its span: the columns of the batches, then SPAN_TYPES."""
    open_: _OpenSpan | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        first = _first_rows(batch)
        begins = np.flatnonzero(first)
        result = _spans(batch, begins)
        if open_ is not None:
            if _key(open_.last) == _key(batch):
                result = _joined(open_.span, result)
            else:
                yield _batch(open_.last, open_.span)
        ends = np.append(begins[1:], batch.num_rows) - 1
        open_ = _OpenSpan(batch.slice(int(ends[-1]), 1), result.at(slice(-1, None)))
        if len(ends) > 1:
            arrays = chosen(batch, batch.schema.names, ends[:-1])
            last = pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
            yield _batch(last, result.at(slice(0, -1)))
    if open_ is not None:
        yield _batch(open_.last, open_.span)


def _first_rows(batch: pa.RecordBatch) -> Flags:
    result = differs(batch.column("partition"))
    for name in ("group", "topic"):
        result |= differs(batch.column(name))
    return result


def _key(batch: pa.RecordBatch) -> tuple[object, ...]:
    return tuple(batch.column(name)[0].as_py() for name in KEY)


def _spans(batch: pa.RecordBatch, begins: Ints) -> _Spans:
    """Return the spans of the partitions that begin at `begins`, limited to the batch."""
    lag = nullable(batch.column("lag"))
    lags = np.where(lag.valid, lag.value, _NONE)
    return _Spans(
        first_at_ms=numbers(batch.column("at_ms"))[begins],
        readings=np.diff(np.append(begins, batch.num_rows)),
        lag_before=lags[begins],
        peak_lag=np.maximum.reduceat(lags, begins),
        worst_status=np.maximum.reduceat(_states(batch, "status"), begins),
        worst_owned=np.maximum.reduceat(_states(batch, "status_owned"), begins),
    )


def _states(batch: pa.RecordBatch, name: str) -> Ints:
    return numbers(batch.column(name).cast(pa.int64()))


def _joined(before: _Spans, result: _Spans) -> _Spans:
    """Return `result` with the previous span added to its first partition."""
    for name in ("peak_lag", "worst_status", "worst_owned"):
        values = getattr(result, name)
        values[0] = max(values[0], getattr(before, name)[0])
    result.first_at_ms[0] = before.first_at_ms[0]
    result.lag_before[0] = before.lag_before[0]
    result.readings[0] += before.readings[0]
    return result


def _batch(last: pa.RecordBatch, span: _Spans) -> pa.RecordBatch:
    arrays, fields = list(last.columns), list(last.schema)
    for name, kind in SPAN_TYPES.items():
        value = getattr(span, name)
        lag = NullableInts(value, value >= 0) if name in {"lag_before", "peak_lag"} else None
        arrays.append(numeric(value, kind, None if lag is None else lag.valid))
        fields.append(pa.field(name, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
