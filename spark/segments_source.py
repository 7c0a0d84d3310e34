"""Segments of log dirs as a Spark data source: a row for each segment, with the facts for retention and compaction.

Each task reads the folders of some partitions, about the same number of log bytes per task. Folders are local paths
that every executor can read: log dirs of brokers, copies, mounted backups. Rows are those of kctl.segment.log.listing;
`error` is the reason why a folder or segment could not be read.
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
Share = tuple[str, ...]  # folders of partitions


def shares(folders: Iterable[Path], tasks: int) -> list[Share]:
    """Split folders by size into shares for at most `tasks` tasks."""
    return [tuple(map(str, each)) for each in split_by_weight(folders, log_bytes, tasks)]


def read(share: Share, *, headers: bool) -> Iterator[pa.RecordBatch]:
    """Yield the segments of a share in batches of SCHEMA. Needs no session."""
    return batches(list_segments(map(Path, share), headers=headers), SCHEMA)


def load(spark: SparkSession, split: Sequence[Share], *, headers: bool = False) -> DataFrame:
    """Return the segments as a DataFrame of SCHEMA, in no particular order. headers: read every batch header."""
    return task_source.load(spark, FORMAT, SCHEMA, partial(read, headers=headers), split)
