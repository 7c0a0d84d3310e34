"""Segments of log dirs as a Spark data source: a row for each, with what retention and compaction go by.

A task has some partitions' folders, about as many bytes of logs as the others. Folders are local paths that every
executor sees: brokers' log dirs, copies, mounted backups. What kctl.segment.log.listing says is in a row; what cannot
be read is in its `error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from kctl.segment.log.listing import SegmentListing, list_segments, log_bytes
from kctl.spark import task_source
from kctl.spark.arrow import batches
from kctl.spark.task_split import split_by_weight

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
    return [tuple(map(str, each)) for each in split_by_weight(folders, log_bytes, tasks)]


def read(share: Share, *, headers: bool) -> Iterator[pa.RecordBatch]:
    """The segments of a share, batches of SCHEMA. Needs no session."""
    return batches(list_segments(map(Path, share), headers=headers), SCHEMA)


def load(spark: SparkSession, dealt: Sequence[Share], *, headers: bool = False) -> DataFrame:
    """The segments as a DataFrame of SCHEMA, in no order between tasks. headers: read every batch header."""
    return task_source.load(spark, FORMAT, SCHEMA, partial(read, headers=headers), dealt)
