"""Results as Parquet, written by Spark.

A local folder is written under a temporary name and renamed. Other file systems (hdfs://, s3a://) rely on Spark's own
commit protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.history.parquet import IS_URI, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(frame: DataFrame, where: str, *, overwrite: bool) -> None:
    """Write `frame` to `where`. Call check_target first. Raises OperationFailed, and Spark's exceptions."""
    if IS_URI.match(where):
        frame.write.mode("overwrite" if overwrite else "errorifexists").parquet(where)
        return
    written(lambda fresh: frame.write.mode("errorifexists").parquet(fresh.as_uri()), where)
