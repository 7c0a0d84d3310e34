"""The rules of kctl.lag.retention as Spark columns. Those of lag are numpy's: kctl.history.evaluate.window_rules.

Each function here says the same as the one of that name there; tests/integration/test_spark_columns.py holds them
together with random rows. Spark's greatest() and least() skip nulls, Python's rules do
not: hence the explicit conditions.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kctl.lag.retention import DELETE

if TYPE_CHECKING:
    from pyspark.sql import Column


def _known(*columns: Column) -> Column:
    return reduce(lambda a, b: a & b, (column.isNotNull() for column in columns))


def deletes(cleanup_policy: Column) -> Column:
    """kctl.lag.retention.deletes; false for null."""
    policies = F.split(F.replace(cleanup_policy, F.lit(" "), F.lit("")), ",")
    return F.coalesce(F.array_contains(policies, DELETE), F.lit(False))


def age_ms(now_ms: int, timestamp_ms: Column) -> Column:
    """kctl.lag.retention.age_ms."""
    age = F.greatest(F.lit(now_ms).cast("bigint") - timestamp_ms, F.lit(0).cast("bigint"))
    return F.when(timestamp_ms.isNotNull(), age)


def used(amount: Column, limit: Column, cleanup_policy: Column) -> Column:
    """kctl.lag.retention.used."""
    applies = _known(amount, limit) & (limit > 0) & deletes(cleanup_policy)
    return F.when(applies, amount.cast("double") / limit.cast("double"))


def disk_used(total_bytes: Column, usable_bytes: Column) -> Column:
    """kctl.lag.retention.disk_used."""
    known = _known(total_bytes, usable_bytes) & (total_bytes > 0)
    return F.when(known, (total_bytes - usable_bytes).cast("double") / total_bytes.cast("double"))
