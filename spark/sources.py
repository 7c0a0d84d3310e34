"""State of a live cluster as Spark data sources: Arrow batches, split so that executors share the work.

    format              a task's share                    a row
    kctl_logs           partitions, by their leader       both ends of a log, and the timestamp of its oldest record
    kctl_log_dirs       brokers                           a log dir, or a replica in it
    kctl_configs        topics                            retention.ms, retention.bytes, …

kctl's own process plans the shares (retention.live_plan) while Spark starts. The Target with its secrets
travels inside the pickled reader (kctl.spark.task_source).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from kctl.history.retention import live_reads as reading
from kctl.protocol.target import Target
from kctl.spark import task_source
from kctl.spark.arrow import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class SourceKind(NamedTuple):
    """A source: its row schema, and the function that reads a share of the rows."""

    format: str
    schema: StructType
    read_rows: Callable[..., Iterator[tuple[Any, ...]]]


def _schema(row: type[Any], **types: Any) -> StructType:
    """Return a schema with the fields of a NamedTuple, all nullable. Fields not in `types` are text."""
    return StructType([StructField(name, types.get(name, StringType())) for name in row._fields])


_INT, _LONG = IntegerType(), LongType()
LOGS = SourceKind(
    "kctl_logs",
    _schema(
        reading.LogRow,
        partition=_INT,
        leader=_INT,
        log_start_offset=_LONG,
        log_end_offset=_LONG,
        oldest_timestamp_ms=_LONG,
    ),
    reading.read_logs,
)
LOG_DIRS = SourceKind(
    "kctl_log_dirs",
    _schema(
        reading.LogDirReplicaRow,
        broker=_INT,
        partition=_INT,
        total_bytes=_LONG,
        usable_bytes=_LONG,
        size_bytes=_LONG,
        offset_lag=_LONG,
        future=BooleanType(),
    ),
    reading.read_log_dirs,
)
CONFIGS = SourceKind(
    "kctl_configs",
    _schema(reading.ConfigRow, retention_bytes=_LONG, retention_ms=_LONG, segment_bytes=_LONG),
    reading.read_configs,
)


def load(
    spark: SparkSession, kind: SourceKind, target: Target, shares: Sequence[Any], *, timeout_s: float = 30.0
) -> DataFrame:
    """Return the rows of `shares` as a DataFrame. Each action on it reads the cluster again (see `once`)."""
    read_share = partial(_read_share, kind, target, timeout_s)
    return task_source.load(spark, kind.format, kind.schema, read_share, shares)


def _read_share(kind: SourceKind, target: Target, timeout_s: float, share: Any) -> Iterator[pa.RecordBatch]:
    return batches(kind.read_rows(target, share, timeout_s=timeout_s), kind.schema)


def once(frame: DataFrame) -> DataFrame:
    """Return `frame` with its rows computed by the first action and then stored.

    The cluster is read once, so all figures of a report are from the same time. A local checkpoint, not persist(): if
    an executor is lost, the job fails instead of reading again. Reading the rows of persist() would also compile code.
    """
    return frame.localCheckpoint(eager=False)
