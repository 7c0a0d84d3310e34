"""What a cluster knows, as Spark data sources: Arrow batches, split so that executors share the work.

    format              a task's share                    a row
    kctl_logs           partitions, by their leader       both ends of a log, and its oldest record's timestamp
    kctl_log_dirs       brokers                           a log dir, or a replica in it
    kctl_configs        topics                            retention.ms, retention.bytes, …

The shares are planned by kctl's own process (kctl.spark.planning) while Spark starts. A bound source is a class made
for one cluster and one plan: Spark pickles it by value, so that the Target with its secrets travels inside the
pickled reader to the executors and appears in no option, configuration, plan or event log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from kctl.context import Target
from kctl.spark import reading
from kctl.spark.arrow import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Kind(NamedTuple):
    """One of the sources: its rows, and what reads a share of them."""

    format: str
    schema: StructType
    read: Callable[..., Iterator[tuple[Any, ...]]]


def _schema(row: type[Any], **types: Any) -> StructType:
    """A schema with the fields of a NamedTuple, all nullable; what is not in `types` is text."""
    return StructType([StructField(name, types.get(name, StringType())) for name in row._fields])


_INT, _LONG = IntegerType(), LongType()
LOGS = Kind(
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
LOG_DIRS = Kind(
    "kctl_log_dirs",
    _schema(
        reading.LogDirRow,
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
CONFIGS = Kind(
    "kctl_configs",
    _schema(reading.ConfigRow, retention_bytes=_LONG, retention_ms=_LONG, segment_bytes=_LONG),
    reading.read_configs,
)


class BoundSource(DataSource):
    """Base of the classes that `bind` makes; alone it reads nothing."""

    kind: ClassVar[Kind]
    target: ClassVar[Target]
    shares: ClassVar[tuple[Any, ...]] = ()
    timeout_s: ClassVar[float] = 30.0

    @classmethod
    def name(cls) -> str:
        return cls.kind.format

    def schema(self) -> StructType:
        return self.kind.schema

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return ShareReader(self.kind, self.target, self.shares, self.timeout_s)


class ShareReader(DataSourceReader):
    """Reads one share in each task."""

    def __init__(self, kind: Kind, target: Target, shares: Sequence[Any], timeout_s: float) -> None:
        self._kind, self._target, self._shares, self._timeout_s = kind, target, tuple(shares), timeout_s

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's stand-in for no partitions
            return iter(())
        rows = self._kind.read(self._target, partition.value, timeout_s=self._timeout_s)
        return batches(rows, self._kind.schema)


def bind(kind: Kind, target: Target, shares: Sequence[Any], *, timeout_s: float) -> type[DataSource]:
    """A data source for one cluster and one plan: a class of its own, which pickle has to take by value."""
    own = {"kind": kind, "target": target, "shares": tuple(shares), "timeout_s": timeout_s}
    return type(f"Bound_{kind.format}", (BoundSource,), own)


def load(
    spark: SparkSession, kind: Kind, target: Target, shares: Sequence[Any], *, timeout_s: float = 30.0
) -> DataFrame:
    """The rows that `shares` say, as a DataFrame; each action on it asks the cluster again (see `once`)."""
    spark.dataSource.register(bind(kind, target, shares, timeout_s=timeout_s))
    return spark.read.format(kind.format).load()


def once(frame: DataFrame) -> DataFrame:
    """The rows of `frame`, computed by the first action and kept: a cluster is read once, so that all figures of a
    report are of one moment. A local checkpoint, not persist(): when an executor is lost the job fails instead of
    reading again, and reading what persist() keeps would compile code."""
    return frame.localCheckpoint(eager=False)
