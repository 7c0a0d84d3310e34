"""The reads of a store for the retention reports, run in Spark's tasks (kctl.history.retention.store_reads)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kctl.history.evaluate.group_ranges import group_ranges
from kctl.history.evaluate.reading_batches import ReadingsQuery
from kctl.history.retention.replica_growth import ARROW, SizesQuery, topic_ranges
from kctl.history.retention.store_reads import READERS, StoreReads
from kctl.history.snapshots.remote import parse_location
from kctl.history.snapshots.store import Store, open_store
from kctl.spark import size_source, snapshot_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkReads(StoreReads):
    """Reads that run in at most `parallelism` tasks."""

    def __init__(self, spark: SparkSession, parallelism: int, store: Store, from_ms: int, to_ms: int) -> None:
        super().__init__(store, from_ms, to_ms)
        self._spark, self._parallelism = spark, parallelism

    def _sizes(self, query: SizesQuery) -> Iterable[Sequence[Any]]:
        ranges = topic_ranges(self.store, query.from_ms, query.to_ms, self._parallelism, damaged=self._report)
        rows: Sequence[Sequence[Any]] = size_source.load(self._spark, query, ranges).select(*ARROW.names).collect()
        return rows

    def _readings(self, query: ReadingsQuery) -> Iterator[dict[str, Any]]:
        ranges = group_ranges(self.store, query.from_ms, query.to_ms, self._parallelism, damaged=self._report)
        for row in snapshot_source.load(self._spark, query, ranges).select(*READERS).collect():
            yield dict(zip(READERS, row, strict=True))


def reads_by_spark(spark: SparkSession, parallelism: int, store: str, from_ms: int, to_ms: int) -> SparkReads:
    """Return the reads of a store in a folder. Raises the errors of open_store."""
    return SparkReads(spark, parallelism, open_store(parse_location(store)), from_ms, to_ms)
