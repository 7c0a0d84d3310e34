"""Spans over columns: what the plain function says, whatever the batches' borders."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kctl.history.evaluate.spans import SPAN_TYPES, spans
from kctl.history.evaluate.windows import READING_TYPES
from kctl.history.lag.status import Status
from kctl.history.lag.window import Reading
from kctl.history.snapshots.columns import column
from span_oracle import span_of

_KINDS = {"group": pa.string(), "topic": pa.string(), "partition": pa.int32(), "at_ms": pa.int64()}
_STATES = st.sampled_from([status for status in Status if status is not Status.ERR])
_PARTITION = st.lists(st.tuples(st.none() | st.integers(0, 2**62), _STATES, _STATES), min_size=1, max_size=6)


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    names = [*_KINDS, *READING_TYPES]
    kinds = _KINDS | READING_TYPES
    arrays = []
    for name in names:
        values = [row.get(name) for row in rows]
        if kinds[name] == pa.int8():
            arrays.append(column(values, pa.int32()).cast(pa.int8()))
        else:
            array = column(values, kinds[name])
            arrays.append(array.dictionary_encode() if kinds[name] == pa.string() else array)
    return pa.RecordBatch.from_arrays(arrays, names)


def _reading(row: dict[str, Any]) -> Reading:
    figures: dict[str, Any] = {
        name: row.get(name) for name in READING_TYPES if name not in {"status", "status_owned", "lag"}
    }
    states: dict[str, Any] = {name: Status(row[name]) for name in ("status", "status_owned")}
    return Reading(at_ms=row["at_ms"], lag=row["lag"], **states, **figures)


@given(st.lists(_PARTITION, max_size=6), st.lists(st.integers(0, 40), max_size=5))
def test_spans_over_columns(partitions: list[list[tuple[Any, ...]]], borders: list[int]) -> None:
    rows = [
        {
            "group": f"g{number // 4}", "topic": "t" if number % 4 < 2 else "u", "partition": number % 2, "at_ms": at,
            "lag": lag, "status": int(status), "status_owned": int(owned),
        }
        for number, readings in enumerate(partitions)
        for at, (lag, status, owned) in enumerate(readings)
    ]  # fmt: skip
    cuts = [0, *sorted(min(border, len(rows)) for border in borders), len(rows)]
    batches = [_batch(rows[start:end]) for start, end in pairwise(cuts)]
    found = [row for batch in spans(batches) for row in batch.to_pylist()]
    assert len(found) == len(partitions)
    for number, (row, readings) in enumerate(zip(found, partitions, strict=True)):
        own = [each for each in rows if (each["group"], each["topic"], each["partition"]) == _key(number)]
        assert len(own) == len(readings)
        assert (row["group"], row["topic"], row["partition"], row["at_ms"]) == (*_key(number), own[-1]["at_ms"])
        expected = span_of([_reading(each) for each in own])
        assert {name: row[name] for name in SPAN_TYPES} == expected._asdict()


def _key(number: int) -> tuple[str, str, int]:
    return f"g{number // 4}", "t" if number % 4 < 2 else "u", number % 2
