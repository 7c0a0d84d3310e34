"""The rules of kctl.lag.retention as Spark columns. (The rules of lag use numpy: kctl.history.evaluate.window_rules.)

Each function equals the one of the same name in kctl.lag.retention; tests/integration/spark/test_columns.py compares
them on random rows. Spark's greatest() and least() skip nulls and the Python rules do not, hence the explicit
conditions.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from kctl.lag.retention import DELETE

if TYPE_CHECKING:
    from pyspark.sql import Column


def _all_present(*columns: Column) -> Column:
    return reduce(lambda a, b: a & b, (column.isNotNull() for column in columns))


def deletes(cleanup_policy: Column) -> Column:
    """Return kctl.lag.retention.deletes as a column; false for null."""
    policies = F.split(F.replace(cleanup_policy, F.lit(" "), F.lit("")), ",")
    return F.coalesce(F.array_contains(policies, DELETE), F.lit(False))


def age_ms(now_ms: int, timestamp_ms: Column) -> Column:
    """Return kctl.lag.retention.age_ms as a column."""
    age = F.greatest(F.lit(now_ms).cast("bigint") - timestamp_ms, F.lit(0).cast("bigint"))
    return F.when(timestamp_ms.isNotNull(), age)


def used(amount: Column, limit: Column, cleanup_policy: Column) -> Column:
    """Return kctl.lag.retention.used as a column."""
    applies = _all_present(amount, limit) & (limit > 0) & deletes(cleanup_policy)
    return F.when(applies, amount.cast("double") / limit.cast("double"))


def disk_used(total_bytes: Column, usable_bytes: Column) -> Column:
    """Return kctl.lag.retention.disk_used as a column."""
    applies = _all_present(total_bytes, usable_bytes) & (total_bytes > 0)
    return F.when(applies, (total_bytes - usable_bytes).cast("double") / total_bytes.cast("double"))
