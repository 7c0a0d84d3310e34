"""The rules of kctl.lag.rules, kctl.lag.retention and kctl.lag.deletion as Spark columns.

Each function here says the same as the one of that name there; tests/integration/test_spark_columns.py and
test_spark_readings.py hold them together with random rows. Spark's greatest() and least() skip nulls, Python's rules do
not: hence the explicit conditions.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kctl.lag.rates import MAX_MS, MS_PER_S
from kctl.lag.retention import DELETE

if TYPE_CHECKING:
    from pyspark.sql import Column


def _known(*columns: Column) -> Column:
    return reduce(lambda a, b: a & b, (column.isNotNull() for column in columns))


def lag_of(committed: Column, log_start: Column, log_end: Column) -> Column:
    """kctl.lag.rules.lag_of."""
    lag = F.greatest(log_end - F.greatest(committed, log_start), F.lit(0).cast("bigint"))
    return F.when(_known(committed, log_start, log_end), lag)


def lost_of(committed: Column, log_start: Column) -> Column:
    """kctl.lag.rules.lost_of."""
    return F.when(_known(committed, log_start), F.greatest(log_start - committed, F.lit(0).cast("bigint")))


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


def _unread(committed: Column, log_start: Column, log_end: Column) -> Column:
    """Messages from the next unread one to the log end; null when there is none, or nobody knows."""
    unread = lag_of(committed, log_start, log_end)
    return F.when(unread > 0, unread)


def deletion_by_time(
    committed: Column,
    log_start: Column,
    log_end: Column,
    time_lag_ms: Column,
    retention_ms: Column,
    cleanup_policy: Column,
) -> Column:
    """kctl.lag.deletion.Deletion.by_time_ms."""
    applies = _known(_unread(committed, log_start, log_end), time_lag_ms, retention_ms)
    left = F.greatest(retention_ms - time_lag_ms, F.lit(0).cast("bigint"))
    return F.when(applies & (retention_ms >= 0) & deletes(cleanup_policy), left)


def deletion_by_bytes(
    committed: Column,
    log_start: Column,
    log_end: Column,
    size_bytes: Column,
    produced_per_s: Column,
    retention_bytes: Column,
    cleanup_policy: Column,
) -> Column:
    """kctl.lag.deletion.Deletion.by_bytes_ms. Divisors are null instead of 0: Spark may divide before it asks."""
    unread = _unread(committed, log_start, log_end)
    applies = _known(unread, size_bytes, retention_bytes) & (size_bytes > 0) & (retention_bytes >= 0)
    offsets = F.nullif(log_end - log_start, F.lit(0)).cast("double")
    each = F.nullif(size_bytes, F.lit(0)).cast("double") / offsets
    left = retention_bytes.cast("double") / each - unread.cast("double")
    rate = F.when(produced_per_s > 0, produced_per_s)
    ms = F.when(left <= 0, F.lit(0).cast("bigint")).otherwise(_whole_ms(left / rate * MS_PER_S))
    return F.when(applies & deletes(cleanup_policy), ms)


def loss_eta_ms(deletion_eta_ms: Column, consumed_per_s: Column, produced_per_s: Column) -> Column:
    """kctl.lag.deletion.loss_eta_ms; deletion_eta_ms: the sooner of both, as F.least gives it."""
    stands = (deletion_eta_ms == 0) | F.coalesce(consumed_per_s <= 0, F.lit(True))
    outrun = _known(produced_per_s) & (consumed_per_s < produced_per_s)
    share = consumed_per_s / F.nullif(produced_per_s, F.lit(0.0))
    later = _whole_ms(deletion_eta_ms.cast("double") / F.nullif(F.lit(1.0) - share, F.lit(0.0)))
    return F.when(stands, deletion_eta_ms).when(outrun, later)


def _whole_ms(ms: Column) -> Column:
    return F.when(ms < MAX_MS, F.when(ms < MAX_MS, ms).cast("bigint"))
