"""Groups over time, from a snapshot store: a row for each reading of kctl.history.lag.window, as Arrow batches.

A reader has a range of groups. It reads the files of the requested hours and of the earlier time that the first windows
need. Of these files, it reads only the row groups that can contain its groups. It merges them in the order of the
store's key and evaluates them as a stream. Memory use does not grow with the time span.

A damaged file or an unreadable store is a row with only `error` set: other rows remain valid, and the report states
that some are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kctl.errors import KctlError
from kctl.history.evaluate.error_rows import error_rows, read_rows
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.evaluate.store_access import store_here
from kctl.history.evaluate.windows import OPTIONAL_COLUMNS, READING_COLUMNS, READING_TYPES, NotSorted, judge_batches
from kctl.history.lag.window import DEFAULT_RULES, WindowRules
from kctl.history.snapshots import schema
from kctl.history.snapshots.passes import passes
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.store import Damaged


@dataclass(frozen=True, slots=True)
class ReadingsQuery:
    """A query of readings with from_ms ≤ at_ms < to_ms. last_only: only the last reading of each partition.

    lookback_ms: how far before from_ms snapshots are read for the first windows and for time lags (None: the span of a
    window). offsets_logs: log dirs or partition folders with the log of __consumer_offsets, for commit times; each task
    reads all of it for its groups.
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
        """Return the time from which snapshots are read."""
        back = self.rules.span_ms if self.lookback_ms is None else self.lookback_ms
        return max(self.from_ms - back, 0)


def _arrow_fields() -> list[pa.Field]:
    types = {field.name: field.type for field in schema.arrow_schema(schema.COMMITS)}
    stored = [pa.field(name, types[name]) for name in (*READING_COLUMNS, *OPTIONAL_COLUMNS)]
    return [*stored, *(pa.field(name, kind) for name, kind in READING_TYPES.items()), pa.field("error", pa.string())]


ARROW = pa.schema(_arrow_fields())


def read(query: ReadingsQuery, groups: GroupRange = EVERY_GROUP) -> Iterator[pa.RecordBatch]:
    """Yield the readings of a range of groups as batches of ARROW's schema, then read failures. Needs no Spark."""
    damaged: list[Damaged] = []
    errors: list[str] = []
    try:
        for batch in judge_batches(
            _with_times(query, groups, _commits(query, groups, damaged), errors),
            query.rules,
            last_only=query.last_only,
            from_ms=query.from_ms,
        ):
            yield read_rows(batch, ARROW)
    except KctlError as exc:
        errors.append(exc.message)
    except NotSorted as exc:
        errors.append(f"{query.store}: {exc}")
    errors += [str(each) for each in damaged]
    if errors:
        yield error_rows(list(dict.fromkeys(errors)), ARROW)


def _commits(query: ReadingsQuery, groups: GroupRange, damaged: list[Damaged]) -> Iterable[pa.RecordBatch]:
    return read_sorted(
        store_here(query.store),
        schema.COMMITS,
        query.read_from_ms,
        query.to_ms,
        damaged=damaged.append,
        lower=groups.lower,
        upper=groups.upper,
    )


def _with_times(
    query: ReadingsQuery, groups: GroupRange, commits: Iterable[pa.RecordBatch], errors: list[str]
) -> Iterable[pa.RecordBatch]:
    """Return the commits with their commit times, if the query has logs."""
    if not query.offsets_logs:
        return commits
    from kctl.history.commits.commit_log import Span, offsets_logs
    from kctl.history.commits.commit_times import times_of_logs

    store = store_here(query.store)
    result = passes(store, query.read_from_ms, query.to_ms, damaged=lambda each: errors.append(str(each)))
    logs = offsets_logs([Path(each) for each in query.offsets_logs])
    span = Span(lower=groups.lower, upper=groups.upper)
    return times_of_logs(logs, [each.at_ms for each in result], span, report=errors.append).beside(commits)
