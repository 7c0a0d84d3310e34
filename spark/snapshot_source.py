"""Groups over time, as a Spark data source over a store of snapshots: a row for each reading of lag.window.

A task has a range of groups. It reads the files of the hours that were asked for (and what the first windows reach
back to), and of those the row groups that can hold its groups; puts them together in the order of the store's key;
and judges them as they come. Nothing is shuffled, and memory does not grow with the span of time.

A file that is damaged, or a store that cannot be read, is a row with nothing but `error`: other rows are still true,
and the report says that some are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kctl.errors import KctlError
from kctl.history.evaluate.error_rows import error_rows, read_rows
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.evaluate.store_access import store_here
from kctl.history.evaluate.windows import KEPT, KEPT_IF_THERE, READING_TYPES, NotSorted, judge_batches
from kctl.history.lag.window import DEFAULT_RULES, WindowRules
from kctl.history.snapshots import schema
from kctl.history.snapshots.passes import passes
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.store import Damaged
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "kctl_readings"
_SPARK: dict[pa.DataType, DataType] = {
    pa.int8(): ByteType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a store: readings with from_ms ≤ at_ms < to_ms; last_only: the last one of each partition.

    lookback_ms: how far before from_ms snapshots are read for the first windows and for time lags (None: as far as a
    window reaches). offsets_logs: log dirs, or folders, with the log of __consumer_offsets, which tells when offsets
    were committed; each task reads all of it, for its groups.
    """

    store: str
    from_ms: int
    to_ms: int
    rules: WindowRules = DEFAULT_RULES
    last_only: bool = False
    lookback_ms: int | None = None
    offsets_logs: tuple[str, ...] = ()

    @property
    def read_from_ms(self) -> int:
        """The first moment that is read."""
        back = self.rules.span_ms if self.lookback_ms is None else self.lookback_ms
        return max(self.from_ms - back, 0)


def _arrow_fields() -> list[pa.Field]:
    kept = {field.name: field.type for field in schema.arrow_schema(schema.COMMITS)}
    own = [pa.field(name, kept[name]) for name in (*KEPT, *KEPT_IF_THERE)]
    return [*own, *(pa.field(name, kind) for name, kind in READING_TYPES.items()), pa.field("error", pa.string())]


ARROW = pa.schema(_arrow_fields())
SCHEMA = StructType([StructField(field.name, _SPARK[field.type]) for field in ARROW])


def read(question: Question, groups: GroupRange = EVERY_GROUP) -> Iterator[pa.RecordBatch]:
    """The readings of a range of groups, batches of ARROW's schema; then what could not be read. Needs no Spark."""
    damaged: list[Damaged] = []
    errors: list[str] = []
    try:
        for batch in judge_batches(
            _with_times(question, groups, _commits(question, groups, damaged), errors),
            question.rules,
            last_only=question.last_only,
            from_ms=question.from_ms,
        ):
            yield read_rows(batch, ARROW)
    except KctlError as exc:
        errors.append(exc.message)
    except NotSorted as exc:
        errors.append(f"{question.store}: {exc}")
    errors += [str(each) for each in damaged]
    if errors:
        yield error_rows(list(dict.fromkeys(errors)), ARROW)


def _commits(question: Question, groups: GroupRange, damaged: list[Damaged]) -> Iterable[pa.RecordBatch]:
    return read_sorted(
        store_here(question.store),
        schema.COMMITS,
        question.read_from_ms,
        question.to_ms,
        damaged=damaged.append,
        lower=groups.lower,
        upper=groups.upper,
    )


def _with_times(
    question: Question, groups: GroupRange, commits: Iterable[pa.RecordBatch], errors: list[str]
) -> Iterable[pa.RecordBatch]:
    """The commits with the times at which they were made, when logs tell of them."""
    if not question.offsets_logs:
        return commits
    from kctl.history.commits.commit_log import Span, offsets_logs
    from kctl.history.commits.commit_times import times_of_logs

    store = store_here(question.store)
    found = passes(store, question.read_from_ms, question.to_ms, damaged=lambda each: errors.append(str(each)))
    logs = offsets_logs([Path(each) for each in question.offsets_logs])
    span = Span(lower=groups.lower, upper=groups.upper)
    return times_of_logs(logs, [each.at_ms for each in found], span, told=errors.append).beside(commits)


# --- Spark ----------------------------------------------------------------------------------------------------------


def load(spark: SparkSession, question: Question, ranges: Sequence[GroupRange]) -> DataFrame:
    """The readings as a DataFrame: the columns of SCHEMA, in no order between tasks. `error` is null in readings."""
    return task_source.load(spark, FORMAT, SCHEMA, partial(read, question), ranges)
