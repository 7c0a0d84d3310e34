"""The source that Spark's Python processes unpickle: its columns, its partitions, and the work of tasks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import LongType, StructField, StructType

from kctl.history.evaluate.reading_batches import ReadingsQuery, read
from kctl.spark.snapshot_source import SCHEMA
from kctl.spark.task_source import TaskReader, source_class

_untyped: Any = cloudpickle
COLUMNS = StructType([StructField("n", LongType())])
_PLANS = """
import pickle, sys
source = pickle.loads(sys.stdin.buffer.read())({})
parts = source.reader(source.schema()).partitions()
print(len(source.schema()), len(parts), source.name(), *sorted({"numpy", "pyarrow", "kctl.lag"} & sys.modules.keys()))
"""


def _count(step: int, share: range) -> Iterator[pa.RecordBatch]:
    for n in share:
        yield pa.RecordBatch.from_arrays([pa.array([n * step], pa.int64())], names=["n"])


def test_each_task_calls_the_function_with_its_share() -> None:
    source = _untyped.loads(
        _untyped.dumps(source_class("numbers", COLUMNS, partial(_count, 10), [range(2), range(5, 6)]))
    )
    assert source.name() == "numbers"
    assert source({}).schema() == COLUMNS
    reader = source({}).reader(COLUMNS)
    parts = [_untyped.loads(_untyped.dumps(part)) for part in reader.partitions()]
    found = [[value for batch in reader.read(part) for value in batch.column(0).to_pylist()] for part in parts]
    assert found == [[0, 10], [50]]


def test_no_partitions_give_no_rows() -> None:
    assert list(TaskReader(partial(_count, 1), []).read(InputPartition(None))) == []  # Spark's stand-in for none


def test_planning_does_not_import_the_modules_of_tasks(tmp_path: Path) -> None:
    query = ReadingsQuery(str(tmp_path), 0, 1)
    source = source_class("readings", SCHEMA, partial(read, query), [None, None])
    done = subprocess.run([sys.executable, "-c", _PLANS], input=_untyped.dumps(source), capture_output=True, check=True)
    assert done.stdout.decode().split() == [str(len(SCHEMA)), "2", "readings"]
