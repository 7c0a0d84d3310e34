"""What all sources of kctl are to Spark: a class that is made for one plan, and calls one function in each task.

Spark starts a Python process to make a source, another one to ask it for its partitions, and then those of the tasks.
The first two need nothing but the columns and how many tasks there are. So the function with what is bound to it, and
each task's share, travel as bytes, which only a task unpacks; and this module imports pyspark alone: numpy, pyarrow
and the rules would cost either process a quarter of a CPU second more, one after the other, before a row is read.

The class is pickled by value: what it carries, a Target with its secrets too, appears in no option, configuration,
plan or event log.
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

    Read = Callable[[Any], Iterable[pa.RecordBatch]]


class TaskReader(DataSourceReader):
    """Calls `read` with one of `shares` in each task. What `read` gives has the columns of the source's schema."""

    def __init__(self, read: Read, shares: Sequence[Any]) -> None:
        self._read = _packed(read)
        self._shares = tuple(map(_packed, shares))

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's stand-in for no partitions
            return iter(())
        read: Read = pickle.loads(self._read)  # noqa: S301 - this class's own bytes
        return iter(read(pickle.loads(partition.value)))  # noqa: S301


def _packed(value: object) -> bytes:
    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    return data


class TaskSource(DataSource):
    """Base of the classes that `bound` makes; alone it reads nothing."""

    format: ClassVar[str]
    columns: ClassVar[StructType]
    made_reader: ClassVar[TaskReader]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> StructType:
        return self.columns

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return self.made_reader


def bound(name: str, columns: StructType, read: Read, shares: Sequence[Any]) -> type[TaskSource]:
    """A source for one plan: a class of its own, which pickle has to take by value."""
    own = {"format": name, "columns": columns, "made_reader": TaskReader(read, shares)}
    return type(f"Bound_{name}", (TaskSource,), own)


def load(spark: SparkSession, name: str, columns: StructType, read: Read, shares: Sequence[Any]) -> DataFrame:
    """The rows of all tasks, in no order between them; each action on the frame reads again."""
    _spare_search(spark)
    spark.dataSource.register(bound(name, columns, read, shares))
    return spark.read.format(name).load()


def _spare_search(spark: SparkSession) -> None:
    """Tell Spark that no other package of this Python has sources: it would start one more process to look for them.

    There is no public way (DataSourceManager.initialStaticDataSourceBuilders): where this one is gone, Spark looks.
    """
    with suppress(Exception):
        jvm: Any = spark._jvm  # noqa: SLF001
        manager = getattr(getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$"), "MODULE$")
        if manager.dataSourceBuilders().isEmpty():
            none = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
            getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Option.apply(none))
