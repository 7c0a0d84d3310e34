"""Segments of log dirs as a Spark data source: a row for each, with what retention and compaction go by.

A task has some partitions' folders, about as many bytes of logs as the others. Folders are local paths that every
executor sees: brokers' log dirs, copies, mounted backups. What kctl.segment.listing says is in a row; what cannot be
read is in its `error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from kctl.segment.listing import SegmentListing, list_segments, log_bytes
from kctl.spark.arrow import batches
from kctl.spark.dealing import deal_by_weight

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "kctl_segments"
_TEXTS = {"log_dir", "folder", "topic", "state", "topic_id", "error"}
_INTEGERS = {"partition", "damaged_places"}


def _type(name: str) -> DataType:
    return StringType() if name in _TEXTS else IntegerType() if name in _INTEGERS else LongType()


SCHEMA = StructType([StructField(name, _type(name)) for name in SegmentListing._fields])
Share = tuple[str, ...]  # partitions' folders


def shares(folders: Iterable[Path], tasks: int) -> list[Share]:
    """Folders dealt to at most `tasks` tasks, by their bytes."""
    return [tuple(map(str, each)) for each in deal_by_weight(folders, log_bytes, tasks)]


def read(share: Share, *, headers: bool) -> Iterator[pa.RecordBatch]:
    """The segments of a share, batches of SCHEMA. Needs no session."""
    return batches(list_segments(map(Path, share), headers=headers), SCHEMA)


class SegmentsSource(DataSource):
    """Base of the classes that `load` makes; alone it reads nothing."""

    shares: ClassVar[tuple[Share, ...]] = ()
    headers: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return SegmentsReader(self.shares, headers=self.headers)


class SegmentsReader(DataSourceReader):
    """Lists one share in each task."""

    def __init__(self, shares: Sequence[Share], *, headers: bool) -> None:
        self._shares, self._headers = tuple(shares), headers

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's stand-in for no partitions
            return iter(())
        return read(partition.value, headers=self._headers)


def load(spark: SparkSession, dealt: Sequence[Share], *, headers: bool = False) -> DataFrame:
    """The segments as a DataFrame of SCHEMA, in no order between tasks. headers: read every batch header."""
    bound = type("BoundSegments", (SegmentsSource,), {"shares": tuple(dealt), "headers": headers})
    spark.dataSource.register(bound)
    return spark.read.format(FORMAT).load()
