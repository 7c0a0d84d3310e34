"""A pass that was just made over a cluster, as Arrow's bytes: it travels to the tasks, which put it behind the store's.

Memory: some 20 bytes a row; each task has all of it and takes its own groups.
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
    """A pass. tables: rows by table, as a stream of Arrow's (IPC), compressed; without what is not reported.

    points: of logs that somebody is behind on, by topic and partition (kctl.lag.log_times). markers: control records of
    those on which somebody is a little behind (kctl.lag.control_records).
    """

    at_ms: int
    complete: bool
    failures: tuple[str, ...]
    tables: dict[str, bytes]
    points: Mapping[tuple[str, int], Sequence[LogEnd]] = field(default_factory=dict)
    markers: Mapping[tuple[str, int], Markers] = field(default_factory=dict)

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table, sorted by its key; text as text."""
        data = self.tables.get(table)
        if data is not None:
            with ipc.open_stream(pa.py_buffer(data)) as stream:
                yield from stream


def live_pass(
    found: Pass,
    at_ms: int,
    points: Mapping[tuple[str, int], Sequence[LogEnd]] | None = None,
    markers: Mapping[tuple[str, int], Markers] | None = None,
) -> LivePass:
    """What a collector's pass at that moment read."""
    tables = {
        table: _packed(batch_of(table, ((at_ms, *row) for row in found.rows[table])))
        for table in _TABLES
        if found.rows.get(table)
    }
    return LivePass(at_ms, found.complete, tuple(found.failures), tables, dict(points or {}), dict(markers or {}))


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
