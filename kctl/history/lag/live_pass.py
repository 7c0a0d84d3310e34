"""A pass just taken over the cluster, as Arrow IPC bytes.

It is sent to the tasks, which append it to the store's passes. Memory: about 20 bytes per row. Each task gets the whole
pass and selects its own groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import ipc

from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.moment import TABLES
from kctl.history.snapshots.rows import batch_of
from kctl.lag.control_records import Markers
from kctl.lag.rates import LogEnd

_TABLES = (schema.COMMITS, *TABLES)


@dataclass(frozen=True)
class LivePass:
    """A pass over the live cluster.

    tables: rows by table, as a compressed Arrow IPC stream; empty tables are omitted. points: log ends of logs with
    lag, by topic and partition (kctl.lag.log_times). markers: control records of logs with a small lag
    (kctl.lag.control_records).
    """

    at_ms: int
    complete: bool
    failures: tuple[str, ...]
    tables: dict[str, bytes]
    points: Mapping[tuple[str, int], Sequence[LogEnd]] = field(default_factory=dict)
    markers: Mapping[tuple[str, int], Markers] = field(default_factory=dict)

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table, sorted by its key, with text not dictionary-encoded."""
        data = self.tables.get(table)
        if data is not None:
            with ipc.open_stream(pa.py_buffer(data)) as stream:
                yield from stream


def live_pass(
    snapshot: Pass,
    at_ms: int,
    points: Mapping[tuple[str, int], Sequence[LogEnd]] | None = None,
    markers: Mapping[tuple[str, int], Markers] | None = None,
) -> LivePass:
    """Return a collector's pass, taken at at_ms, in the form that is sent to tasks."""
    tables = {
        table: _packed(batch_of(table, ((at_ms, *row) for row in snapshot.rows[table])))
        for table in _TABLES
        if snapshot.rows.get(table)
    }
    return LivePass(at_ms, snapshot.complete, tuple(snapshot.failures), tables, dict(points or {}), dict(markers or {}))


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
