"""The base of all Spark data sources of kctl: a class created for one plan that calls one function in each task.

Spark starts a Python process to create a source, another one to list its partitions, and then the workers of the
tasks. The first two processes need only the columns and the number of tasks. So the function with its bound arguments
and the share of each task travel as bytes that only a task unpickles, and this module imports only pyspark. Importing
numpy, pyarrow and the rules would cost each of the two processes another quarter of a CPU second before the first row.

The class is pickled by value. Its contents, including a Target with its secrets, never appear in an option, a
configuration, a plan or an event log.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    ShareReader = Callable[[Any], Iterable[pa.RecordBatch]]


class TaskReader(DataSourceReader):
    """A reader that calls `read_share` with one of `shares` in each task. Batches have the columns of the source."""

    def __init__(self, read_share: ShareReader, shares: Sequence[Any]) -> None:
        self._read_share = _packed(read_share)
        self._shares = tuple(map(_packed, shares))

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's stand-in for no partitions
            return iter(())
        function: ShareReader = pickle.loads(self._read_share)  # noqa: S301 - pickled by this class
        return iter(function(pickle.loads(partition.value)))  # noqa: S301


def _packed(value: object) -> bytes:
    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    return data


class TaskSource(DataSource):
    """The base of the classes that `source_class` creates."""

    format: ClassVar[str]
    columns: ClassVar[StructType]
    task_reader: ClassVar[TaskReader]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> StructType:
        return self.columns

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return self.task_reader


def source_class(name: str, columns: StructType, read_share: ShareReader, shares: Sequence[Any]) -> type[TaskSource]:
    """Return a source for one plan: a new class, which must be pickled by value."""
    attributes = {"format": name, "columns": columns, "task_reader": TaskReader(read_share, shares)}
    return type(f"TaskSource_{name}", (TaskSource,), attributes)


def load(
    spark: SparkSession, name: str, columns: StructType, read_share: ShareReader, shares: Sequence[Any]
) -> DataFrame:
    """Return the rows of all tasks, in no order across tasks. Each action on the frame reads again."""
    _skip_source_search(spark)
    spark.dataSource.register(source_class(name, columns, read_share, shares))
    return spark.read.format(name).load()


def _skip_source_search(spark: SparkSession) -> None:
    """Keep Spark from starting another process to search this Python for packages with sources.

    There is no public API (DataSourceManager.initialStaticDataSourceBuilders). If the internal one is missing, Spark
    searches.
    """
    with suppress(Exception):
        jvm: Any = spark._jvm  # noqa: SLF001
        manager = getattr(getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$"), "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            no_sources = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
            getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Option.apply(no_sources))
